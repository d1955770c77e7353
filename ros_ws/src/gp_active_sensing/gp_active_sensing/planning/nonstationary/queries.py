"""Which places to ask an expert about: as many as it takes to stand for all of them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.dpp import sample_kdpp, sample_kdpp_mcmc
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["query_number", "spread_places"]

_EXACT = 500
"""Places up to which the draw is exact."""
_JITTER = 1e-6
"""Added to the correlations' diagonal: places next to each other are told apart all the same."""


def query_number(stage: int, factor: float, power: float) -> int:
    """Return ``Q_t = ⌈c log^d t⌉``. [Mauduit2025, Theorem 3.1 and Sec. 4.1].

    Args:
        stage: t ≥ 1.
        factor: c.
        power: d, the dimension of the domain.
    """
    return math.ceil(factor * math.pow(math.log(stage), power))


def spread_places(
    belief: Belief, places: IntArray, number: int, rng: np.random.Generator, *, epsilon: float
) -> IntArray:
    """Draw so many of `places`, sorted, that hardly tell of each other: a Q-DPP.

    With the prior covariance, averaged over λ, as its kernel: what the sparse approximation of a
    posterior is made of in [Burt2020, Algorithm 1]. Exact among few places, O(m³); a Markov chain
    among many, O(m Q) for each of about 10 Q steps.

    Args:
        belief: knows the covariance and the weights b(λ).
        places: (m,) to choose from.
        number: Q; all of them where there are no more.
        rng: source of randomness.
        epsilon: total variation distance of the Markov chain's draw from the Q-DPP.
    """
    if number >= len(places):
        return np.sort(places)
    weights = belief.weights
    used = weights > 1e-9
    average = np.where(used, weights, 0.0)
    variance = average @ belief.covariance.variance(places)
    scale = 1.0 / float(variance.max())
    entries = partial(_entries, belief, places, average * scale)
    diagonal = variance * scale + _JITTER
    if len(places) <= _EXACT:
        drawn = sample_kdpp(entries, diagonal, number, rng)
    else:
        drawn = sample_kdpp_mcmc(entries, diagonal, number, rng, epsilon=epsilon)
    return np.asarray(places[drawn])


def _entries(
    belief: Belief, places: IntArray, weights: FloatArray, rows: IntArray, columns: IntArray
) -> FloatArray:
    """Return the (r, c) average covariance between places, by their numbers in `places`."""
    covariance = belief.covariance.between(places[rows], places[columns])
    same = np.equal.outer(rows, columns)
    return np.asarray(np.einsum("l,lrc->rc", weights, covariance) + _JITTER * same)
