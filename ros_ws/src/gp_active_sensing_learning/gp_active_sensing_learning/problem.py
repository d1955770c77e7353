"""Data, priors and starting points for maximising the marginal likelihood, without torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.belief.build import covariance_family
from gp_active_sensing.belief.graph_covariance import Spectrum, laplacian_spectrum
from gp_active_sensing.belief.prior import TRANSFORMS, PriorMean
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels import graph_kernels
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.data.readings import PriorReadings

LEARNABLE = (
    *("se", "matern12", "matern32", "matern52"),
    *("graph_matern12", "graph_matern32", "graph_matern52"),
)
"""Names of the kernels whose length-scale can be learned."""
NOISE_SHARE = 0.3
"""Prior median of the noise, in standard deviations of the readings."""
PLACE_SHARE = 0.3
"""Prior median of `place_std`, in standard deviations of the readings."""
SPREAD = 1.0
"""Prior standard deviation of the logarithms of signal, noise and `place_std`."""
REPEATS = 8
"""If the noise is unknown, learning `place_std` requires this number of repeated readings. So many
readings determine the noise to within a quarter of its value."""
VAGUE = 100.0
"""Prior standard deviation of the mean's coefficients, in standard deviations of the readings."""


@dataclass(frozen=True, eq=False)
class MarginalLikelihoodProblem:
    """Transformed readings and priors, scaled to values of order one.

    `values`, `counts` and `within` are sufficient statistics of the readings for normal noise. The
    independent component is a random offset of each place, with standard deviation `place_std`.

    Args:
        kernel: one of `LEARNABLE`.
        inputs: (m, p) features of each observed place, divided by `shape` and by the prior median
            of the length-scale. Graph kernels have the indices (m, 1) of the places.
        basis: (m, q) basis functions of the mean.
        values: (m,) mean reading of each place minus `centre`, in units of `unit`.
        counts: (m,) number of readings of each place.
        within: sum of squares of the readings about the means of their places, in units of `unit`
            squared.
        centre, unit: mean and standard deviation of the readings.
        median: prior median of the length-scale.
        spread: prior standard deviation of the log length-scale.
        low, high: limits of the length-scale.
        shape: (p,) factor on each feature's length-scale; (1,) = common factor.
        scales: number of learned length-scales, 1 or p.
        spectrum: spectrum of the graph, for graph kernels.
        noise: known standard deviation of the noise, in units of `unit`; None = learned.
        own: True if `place_std` is learned.
    """

    kernel: str
    inputs: FloatArray
    basis: FloatArray
    values: FloatArray
    counts: FloatArray
    within: float
    centre: float
    unit: float
    median: float
    spread: float
    low: float
    high: float
    shape: FloatArray
    scales: int
    spectrum: Spectrum | None = None
    noise: float | None = None
    own: bool = False

    @property
    def readings(self) -> int:
        """Number of readings."""
        return int(self.counts.sum())

    @property
    def repeats(self) -> int:
        """Number of readings minus number of observed places."""
        return self.readings - len(self.counts)

    @property
    def size(self) -> int:
        """Number of learned hyper-parameters."""
        return self.scales + 1 + (self.noise is None) + self.own

    def stds(self, at: FloatArray) -> tuple[float, float, float]:
        """Return standard deviations of signal, noise and independent component, divided by `unit`.

        Args:
            at: (size,) logarithms of the learned hyper-parameters, in the order length-scales,
                signal, noise, independent component.
        """
        k = self.scales
        noise = math.exp(at[k + 1]) if self.noise is None else self.noise
        return math.exp(at[k]), noise, math.exp(at[-1]) if self.own else 0.0

    def starts(self, count: int) -> FloatArray:
        """Return starting points (count, size), which are logarithms as in `stds`.

        Length-scales are quantiles of the prior. Low noise with high `place_std` alternates with
        high noise and low `place_std`.
        """
        from scipy.stats import norm

        points = []
        for k in range(count):
            ell = self.spread * float(norm.ppf((k + 0.5) / count))
            off = 0.5 if k % 2 else -0.5
            noise = [math.log(NOISE_SHARE) + off] if self.noise is None else []
            own = [math.log(PLACE_SHARE) - off] if self.own else []
            points.append([ell] * self.scales + [0.0] + noise + own)
        return np.array(points)


def build_problem(
    config: BeliefConfig,
    topology: Topology,
    readings: PriorReadings,
    *,
    per_feature: bool = False,
    noise: float | None = None,
) -> MarginalLikelihoodProblem:
    """Return the scaled readings and the priors for learning the hyper-parameters.

    `place_std` is learned if the noise is known or there are `REPEATS` repeated readings of places.

    Args:
        config: kernel, mean and transform; other settings are ignored.
        topology: the map.
        readings: readings at places of the map.
        per_feature: True for a separate length-scale for each feature. False for one learned
            length-scale. The length-scale of each feature is then a fixed multiple of it.
        noise: standard deviation of the sensor's noise after the transform; None = learn it.

    Raises:
        ConfigError: the kernel is not in `LEARNABLE`, or does not fit the map.
        ReadingError: a value is outside the transform's domain.
    """
    kernel = config.kernel
    if not isinstance(kernel, str) or kernel not in LEARNABLE:
        msg = (
            f"belief.kernel: the length-scale of {kernel!r} cannot be learned; expected one of "
            f"{', '.join(LEARNABLE)}"
        )
        raise ConfigError(msg)
    graph = kernel in graph_kernels
    if per_feature and graph:
        msg = f"--per-feature: {kernel} is not a function of features"
        raise ConfigError(msg)
    try:
        links = topology.links if graph else None
        _, suggested = covariance_family(kernel, topology.features, topology.feature_names, links)
        grid = suggested(3, ())[0]
    except ValueError as error:
        msg = f"belief: {error}"
        raise ConfigError(msg) from error
    forward = TRANSFORMS[config.given_transform].forward
    seen = np.array([forward(float(value), None)[0] for value in readings.values])
    read, at, counts = np.unique(readings.places, return_inverse=True, return_counts=True)
    centre, unit = float(seen.mean()), float(seen.std())
    scaled = (seen - centre) / unit
    means = np.bincount(at, weights=scaled) / counts
    spectrum: Spectrum | None = None
    p = topology.features.shape[1]
    shape = np.array(grid.shape or (1.0,))
    if links is not None:
        spectrum = laplacian_spectrum(links)
        inputs = read[:, None].astype(np.float64)
    else:
        inputs = topology.features[read] / (shape * grid.median)
    if config.mean == "linear":
        mean = PriorMean.linear(topology.columns(config.mean_features)[0], 0.0, 1.0)
    else:
        mean = PriorMean.constant(topology.n, 0.0, 1.0)
    return MarginalLikelihoodProblem(
        kernel,
        inputs,
        mean.basis[read],
        means,
        counts.astype(np.float64),
        float(np.square(scaled - means[at]).sum()),
        centre,
        unit,
        grid.median,
        grid.spread,
        grid.low,
        grid.high,
        shape,
        p if per_feature else 1,
        spectrum,
        None if noise is None else noise / unit,
        noise is not None or len(seen) - len(read) >= REPEATS,
    )
