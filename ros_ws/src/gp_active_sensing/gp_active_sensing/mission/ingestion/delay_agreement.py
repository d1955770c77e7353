r"""Combine the delays of several blocks of readings into one, as far as the blocks agree.

A block says how probable its readings are with each delay. Its own best delay differs from the true
one: a few readings lie where a bad position makes another delay look better, and a bad position of
a GPS lasts for many readings, so that no block knows how wrong it is. How much the blocks differ
tells. So the delay of each is :math:`\tau` and a chance of its own, normal with a deviation
:math:`s` that is not known, and what it says of :math:`\tau` is the average over both:

.. math:: p(\tau) \propto \sum_s p(s) \prod_b \int p(z_b | t) N(t; \tau, s^2) dt

A block by itself, as sure as it may be, may be one that is wrong by so much, and says little; three
that agree say more the better they agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from gp_active_sensing.types import FloatArray

__all__ = ["CANDIDATES", "NONE", "common_delay", "said_by"]

CANDIDATES: FloatArray = np.linspace(-1.0, 5.0, 25)
"""Delays with which a block is compared [s]."""
NONE = int(np.argmin(np.abs(CANDIDATES)))
"""The one of them that is none."""
STEP = 0.05
"""Between them the log-likelihood of a block is a parabola, looked up so finely [s]."""
SCATTERS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""How far the delays of blocks may be from the common one, standard deviation [s]."""
_PARTS = round(float(CANDIDATES[1] - CANDIDATES[0]) / STEP)
_FINE: FloatArray = np.linspace(CANDIDATES[0], CANDIDATES[-1], _PARTS * (len(CANDIDATES) - 1) + 1)


def said_by(profile: FloatArray) -> FloatArray:
    """Return what one block says of the common delay, (S, F) by scatter and delay [nat].

    Args:
        profile: (K,) log-likelihoods of the block with each of `CANDIDATES`.
    """
    fine = _between(profile)
    fine -= fine.max()
    apart = _FINE[:, None] - _FINE
    said = []
    for scatter in SCATTERS:
        normal = -0.5 * (apart / scatter) ** 2 + math.log(STEP / (scatter * math.sqrt(math.tau)))
        said.append(_log_sum(fine[:, None] + normal))
    return np.array(said)


def common_delay(said: Iterable[FloatArray]) -> tuple[float, float, float]:
    """Return a delay, its standard error [s], and its evidence against none [nat].

    Args:
        said: of each block, by `said_by`; one at least.
    """
    total = _log_sum(np.sum(list(said), axis=0)) - math.log(len(SCATTERS))
    best = int(np.argmax(total))
    weights = np.exp(total - total[best])
    weights /= weights.sum()
    mean = float(weights @ _FINE)
    error = math.sqrt(float(weights @ (_FINE - mean) ** 2))
    evidence = float(total[best] - total[_PARTS * NONE])
    return mean, error, evidence


def _between(profile: FloatArray) -> FloatArray:
    """Return (F,) a profile between the candidates, by the parabola through the nearest three."""
    nearest = np.round(np.arange(len(_FINE)) / _PARTS).astype(int)
    middle = np.clip(nearest, 1, len(CANDIDATES) - 2)
    before, at, after = profile[middle - 1], profile[middle], profile[middle + 1]
    off = np.arange(len(_FINE)) / _PARTS - middle
    return np.asarray(at + 0.5 * (after - before) * off + 0.5 * (before - 2 * at + after) * off**2)


def _log_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of a sum over the first axis."""
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))
