"""What is learned from what: inputs, priors and starts, before any library of autograd."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.belief.build import covariance_family
from gp_active_sensing.belief.mean import PriorMean
from gp_active_sensing.belief.spectrum import Spectrum, laplacian_spectrum
from gp_active_sensing.belief.transform import TRANSFORMS
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels import graph_kernels
from gp_active_sensing.learning.readings import PriorReadings
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray

__all__ = ["LEARNABLE", "NOISE_SHARE", "Problem", "pose"]

LEARNABLE = ("se", "matern12", "matern32", "matern52", "graph_matern")
"""Kernels whose length-scale can be learned: those that there are derivatives of."""
NOISE_SHARE = 0.3
"""Median of the prior of the noise, as a share of the readings' standard deviation."""
SPREAD = 1.0
"""Standard deviation of the logarithms of signal and noise in the prior."""
VAGUE = 100.0
"""Standard deviation of the mean's coefficients, in multiples of the readings' one."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Readings as the Gaussian process sees them, with everything in units of order one.

    Args:
        kernel: one of `LEARNABLE`.
        smoothness: ν, for graph_matern.
        inputs: (r, p) features of each reading in units of `shape` times the prior's median
            length-scale; for graph_matern (r, 1) its place.
        basis: (r, q) functions of the mean.
        values: (r,) less `centre`, in units of `unit`.
        centre, unit: mean and standard deviation of the readings.
        median: of the prior over the length-scale.
        spread: standard deviation of its logarithm.
        low, high: hard limits of the length-scale.
        shape: (p,) factor of each feature's length-scale; (1,) = the same for all.
        scales: number of length-scales that are learned, 1 or p.
        spectrum: of the graph, for graph_matern.
    """

    kernel: str
    smoothness: float
    inputs: FloatArray
    basis: FloatArray
    values: FloatArray
    centre: float
    unit: float
    median: float
    spread: float
    low: float
    high: float
    shape: FloatArray
    scales: int
    spectrum: Spectrum | None = None

    def starts(self, count: int) -> FloatArray:
        """Return (count, scales + 2) starting points: logarithms of length-scale, signal, noise.

        Length-scales at the quantiles of the prior, those of low and of high noise in turn.
        """
        from scipy.stats import norm

        points = []
        for k in range(count):
            ell = self.spread * float(norm.ppf((k + 0.5) / count))
            noise = math.log(NOISE_SHARE) + (0.5 if k % 2 else -0.5)
            points.append([ell] * self.scales + [0.0, noise])
        return np.array(points)


def pose(
    config: BeliefConfig,
    topology: Topology,
    readings: PriorReadings,
    *,
    per_feature: bool = False,
) -> Problem:
    """Return the problem of learning a belief's length-scale, signal and noise.

    Args:
        config: kernel, mean and transform; its lists of candidates do not matter.
        topology: the map.
        readings: of some of its places.
        per_feature: a length-scale for each feature; else one, of the shape that the belief's own
            grid has.

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
        _, suggested = covariance_family(
            config, kernel, topology.features, topology.feature_names, links
        )
        grid = suggested(3)
    except ValueError as error:
        msg = f"belief: {error}"
        raise ConfigError(msg) from error
    forward = TRANSFORMS[config.transform].forward
    seen = np.array([forward(float(value), None)[0] for value in readings.values])
    spectrum: Spectrum | None = None
    p = topology.features.shape[1]
    shape = np.array(grid.shape or (1.0,))
    if links is not None:
        spectrum = laplacian_spectrum(links)
        inputs = readings.places[:, None].astype(np.float64)
    else:
        inputs = topology.features[readings.places] / (shape * grid.median)
    if config.mean == "linear":
        mean = PriorMean.linear(topology.columns(config.mean_features)[0], 0.0, 1.0)
    else:
        mean = PriorMean.constant(topology.n, 0.0, 1.0)
    return Problem(
        kernel,
        config.smoothness,
        inputs,
        mean.basis[readings.places],
        (seen - seen.mean()) / seen.std(),
        float(seen.mean()),
        float(seen.std()),
        grid.median,
        grid.spread,
        grid.low,
        grid.high,
        shape,
        p if per_feature else 1,
        spectrum,
    )
