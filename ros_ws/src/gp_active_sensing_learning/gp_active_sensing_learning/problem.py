"""The marginal-likelihood problem: inputs, priors and starting points, without autograd."""

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
"""Kernels whose length-scale can be learned: those that torch can differentiate."""
NOISE_SHARE = 0.3
"""Median of the prior of the noise, as a share of the readings' standard deviation."""
PLACE_SHARE = 0.3
"""Median of the prior of the place part, as a share of the readings' standard deviation."""
SPREAD = 1.0
"""Standard deviation of the logarithms of signal, noise and place part in the prior."""
REPEATS = 8
"""Number of repeated readings from which on noise and place part can be separated:
the noise is then known within a quarter."""
VAGUE = 100.0
"""Standard deviation of the mean's coefficients, in multiples of the readings' one."""


@dataclass(frozen=True, eq=False)
class MarginalLikelihoodProblem:
    """Readings as the Gaussian process sees them, with everything in units of order one.

    Readings of one place are kept as their number, their mean and, of all places together, the sum
    of squares about these means: with a normal noise these are sufficient.

    Args:
        kernel: one of `LEARNABLE`.
        inputs: (m, p) features of each place read in units of `shape` times the prior's median
            length-scale; for graph_matern32 (m, 1) the place.
        basis: (m, q) functions of the mean.
        values: (m,) means of the readings of each place less `centre`, in units of `unit`.
        counts: (m,) readings of each place.
        within: sum of the squares of the readings about the means of their places, in units of
            `unit` squared.
        centre, unit: mean and standard deviation of the readings.
        median: of the prior over the length-scale.
        spread: standard deviation of its logarithm.
        low, high: hard limits of the length-scale.
        shape: (p,) factor of each feature's length-scale; (1,) = the same for all.
        scales: number of length-scales that are learned, 1 or p.
        spectrum: of the graph, for graph_matern32.
        noise: standard deviation of the noise in units of `unit`, where it is known.
        own: the place part is learned as well.
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
        """Readings beyond the first of their place."""
        return self.readings - len(self.counts)

    @property
    def size(self) -> int:
        """Number of parameters: see `stds`."""
        return self.scales + 1 + (self.noise is None) + self.own

    def stds(self, at: FloatArray) -> tuple[float, float, float]:
        """Return standard deviations of signal, noise and place part, in units of `unit`.

        Args:
            at: (size,) logarithms of the length-scales, the signal, the noise unless it is known,
                and the place part where it is learned.
        """
        k = self.scales
        noise = math.exp(at[k + 1]) if self.noise is None else self.noise
        return math.exp(at[k]), noise, math.exp(at[-1]) if self.own else 0.0

    def starts(self, count: int) -> FloatArray:
        """Return (count, size) starting points, logarithms in the order of `stds`.

        Length-scales at the quantiles of the prior, those of low and of high noise in turn, with a
        high and a low place part.
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
    """Return the problem of learning a belief's length-scale, signal, noise and place part.

    Args:
        config: kernel, mean and transform; its lists of candidates do not matter.
        topology: the map.
        readings: of some of its places.
        per_feature: a length-scale for each feature; else one, of the shape that the belief's own
            grid has.
        noise: standard deviation of the sensor's noise, after the transform, where it is known;
            None = to be learned. The place part is learned where it is known, or where there are
            `REPEATS` readings of places that were read before.

    Raises:
        ConfigError: a kernel that cannot be learned, or that does not fit the map.
        ReadingError: a value outside the transform's domain.
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
