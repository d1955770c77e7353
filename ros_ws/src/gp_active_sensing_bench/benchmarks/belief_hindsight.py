"""Gaussian process whose hyper-parameters are fitted to all true values of a field."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from belief_data import Field, rng_of
from belief_scores import Mixture

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.topology.base import Topology

KERNELS = ("se", "matern12", "matern32")
GRAPH_KERNELS = ("graph_matern12", "graph_matern32")
"""Kernels that are also tried on maps with moves between neighbours."""
LENGTHS = 10
"""Number of candidate length-scales."""
OWN = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 0.95)
"""Candidate values of the fraction of the field's variance that has no spatial correlation."""
SIZES = np.geomspace(0.2, 20.0, 15)
"""Candidate variances of the Gaussian process, relative to the variance of the field's values."""
MOST = 400
"""Largest number of places in the fit. A larger map is sampled at random."""
_LEAST = 1e-9
"""Smallest eigenvalue of a correlation matrix."""


@dataclass(frozen=True)
class Fitted:
    """Fitted hyper-parameters: length-scale [m], and variances [squared field unit]."""

    kernel: str
    length_scale: float
    smooth: float
    own: float
    noise: float


def length_scales(topology: Topology) -> tuple[float, ...]:
    """Return length-scales from half the spacing of the places to twice the map's extent [m]."""
    at = np.unique(topology.positions, axis=0)
    square = ((at[:, None] - at) ** 2).sum(axis=-1)
    np.fill_diagonal(square, np.inf)
    spacing = float(np.median(np.sqrt(square.min(axis=1))))
    extent = float(np.hypot(*np.ptp(at, axis=0)))
    return tuple(np.geomspace(0.5 * spacing, 2.0 * extent, LENGTHS).tolist())


@lru_cache(maxsize=6)
def _correlation(topology: Topology, kernel: str, length_scale: float) -> np.ndarray:
    config = BeliefConfig((length_scale,), kernel=kernel, signal_std=(1.0,), noise_std=(1.0,))
    everywhere = np.arange(topology.n)
    belief = belief_on(config, topology, quiet=True)
    return np.asarray(belief.covariance.between(everywhere, everywhere)[0])


@lru_cache(maxsize=3)
def _decomposed(
    topology: Topology, places: tuple[int, ...]
) -> list[tuple[str, float, np.ndarray, np.ndarray]]:
    """Return (kernel, length-scale, eigenvalues, eigenvectors) of each candidate correlation."""
    at, found = np.array(places), []
    for kernel in KERNELS if topology.links is None else KERNELS + GRAPH_KERNELS:
        scales = length_scales(topology)
        config = BeliefConfig(scales, kernel=kernel, signal_std=(1.0,), noise_std=(1.0,))
        each = belief_on(config, topology, quiet=True).covariance.between(at, at)
        for scale, correlation in zip(scales, each, strict=True):
            values, vectors = np.linalg.eigh(correlation)
            found.append((kernel, scale, np.maximum(values, _LEAST), vectors))
    return found


def fit(field: Field) -> Fitted:
    """Return the maximum-likelihood hyper-parameters for all true values and the known noise.

    The objective is the expected log likelihood of one reading at each place. The mean is profiled
    out.
    """
    places = field.known
    if len(places) > MOST:
        places = np.sort(rng_of("hindsight").permutation(places)[:MOST])
    values = field.values[places]
    # Without noise and an uncorrelated part, the precision would be infinite.
    noise = max(field.noise**2, 1e-6 * float(values.var()))
    sizes, own = float(values.var()) * SIZES[:, None, None], np.array(OWN)[None, :, None]
    best, found = -np.inf, None
    for kernel, scale, roots, vectors in _decomposed(field.topology, tuple(places.tolist())):
        z, one = vectors.T @ values, vectors.sum(axis=0)
        total = sizes * ((1.0 - own) * roots + own) + noise
        mean = (z * one / total).sum(axis=2) / (one**2 / total).sum(axis=2)
        square = (z - mean[..., None] * one) ** 2 + field.noise**2
        likelihood = -0.5 * (np.log(total) + square / total).sum(axis=2)
        i, j = np.unravel_index(int(likelihood.argmax()), likelihood.shape)
        if likelihood[i, j] > best:
            best, size, share = float(likelihood[i, j]), float(sizes[i, 0, 0]), OWN[int(j)]
            found = Fitted(kernel, scale, size * (1.0 - share), size * share, noise)
    if found is None:
        msg = "expected a field with finite values at some places, got none"
        raise ValueError(msg)
    return found


def predict(
    fitted: Fitted, topology: Topology, places: np.ndarray, readings: np.ndarray, left: np.ndarray
) -> Mixture:
    """Return the prediction at the places `left` from readings at other places."""
    correlation = _correlation(topology, fitted.kernel, fitted.length_scale)
    C = fitted.smooth * correlation[np.ix_(places, places)]
    C[np.diag_indices_from(C)] += fitted.own + fitted.noise
    cross = fitted.smooth * correlation[np.ix_(places, left)]
    solved = np.linalg.solve(C, np.column_stack([cross, readings, np.ones(len(places))]))
    W, z, one = solved[:, :-2], solved[:, -2], solved[:, -1]
    precision = float(one.sum())
    mean = float(z.sum()) / precision
    rest = 1.0 - W.sum(axis=0)
    variance = fitted.smooth + fitted.own - (cross * W).sum(axis=0) + rest**2 / precision
    return Mixture.normal(W.T @ readings + mean * rest, variance)
