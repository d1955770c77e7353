"""Schedule of the optimisation: keep the best state, shrink steps, drop poor kernels."""

from __future__ import annotations

import math
from typing import Any

import torch

from gp_active_sensing.learning.kernel_selection.config import VbksConfig
from gp_active_sensing.learning.kernel_selection.state import State

__all__ = ["CUTS", "CUTS_OF_FULL", "FAULTS", "begin_phase", "judge", "leaving", "restore"]

CUTS = 3
"""Plateaus after which a kernel has converged; after each the step is divided."""
CUTS_OF_FULL = 1
"""The same where q(θ) is a Gaussian: it begins at an optimum, with a small step."""
FAULTS = 3
"""Bounds that are not finite after which a start is given up."""
_DIVISOR = 4.0


def begin_phase(state: State, rate: float) -> None:
    """Forget what was the best, which was another bound, and take steps of another size."""
    state.stale.zero_()
    state.cuts.zero_()
    state.faults.zero_()
    state.best.fill_(-math.inf)
    state.rate.fill_(rate)


def judge(state: State, bound: Any, config: VbksConfig, rows: int, *, first: bool) -> None:
    """Keep what is better, put back what is not finite, and shorten steps on a plateau.

    Args:
        state: changed in place.
        bound: (K,) estimates of the local ELBOs.
        config: what a gain is, and patience.
        rows: that the bounds are of.
        first: of a phase, when there is nothing to compare with.
    """
    gained = bound > state.best + config.tolerance * rows
    better = bound > state.best
    for variable, kept in zip(state.variables, state.kept, strict=True):
        kept[better] = variable[better]
    state.best = torch.where(better, bound, state.best)
    state.stale = torch.where(gained, torch.zeros_like(state.stale), state.stale + 1)
    finite = torch.isfinite(bound)
    if not bool(finite.all()):
        _put_back(state, ~finite)
    if not first:
        flat = finite & (state.stale >= config.patience)
        state.rate[flat] /= _DIVISOR
        state.cuts[flat] += 1
        state.stale[flat] = 0


def _put_back(state: State, bad: Any) -> None:
    """Put kernels back to where their bound was best, with a smaller step."""
    for variable, kept in zip(state.variables, state.kept, strict=True):
        variable[bad] = kept[bad]
    for moment in state.moments:
        moment[bad] = 0.0
    M = state.precision.shape[1]
    eye = torch.eye(M, dtype=state.precision.dtype, device=state.precision.device)
    state.precision[bad] = eye
    state.linear[bad] = 0.0
    state.rate[bad] /= _DIVISOR
    state.faults[bad] += 1


def restore(state: State) -> None:
    """Put all kernels to where their bound was best."""
    for variable, kept in zip(state.variables, state.kept, strict=True):
        variable.copy_(kept)


def leaving(state: State, bound: Any, *, first: bool, full: bool) -> tuple[Any, Any]:
    """Return which kernels (K,) have converged, and which are given up.

    Args:
        state: after `judge`.
        bound: (K,) estimates of the local ELBOs.
        first: of a phase.
        full: q(θ) is a Gaussian, not a point.
    """
    given_up = state.faults >= FAULTS
    if first:
        given_up = given_up & ~torch.isfinite(bound)
    return (state.cuts >= (CUTS_OF_FULL if full else CUTS)) & ~given_up, given_up
