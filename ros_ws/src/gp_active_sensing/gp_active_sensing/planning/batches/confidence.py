"""How wide a batch's confidence bounds are: by a schedule, or an estimate of the maximum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bandits.est import Estimate
from gp_active_sensing.planning.bandits.max_value import gap_width
from gp_active_sensing.planning.bandits.schedule import Schedule
from gp_active_sensing.planning.bandits.view import View
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["ByEstimate", "BySchedule", "HasWidths", "Widths"]

Widths: TypeAlias = Callable[[int, IntArray, FloatArray], float]
"""√β_t [standard deviations] of stage t ≥ 1, given the places (m,) that a member is chosen from and
the deviations there (m,)."""


class HasWidths(Protocol):
    """Says how many standard deviations a confidence bound is away from the mean."""

    def widths(self, view: View, belief: Belief) -> Widths:
        """Return √β_t, for all members of a batch.

        Args:
            view: of the belief at the start of the batch.
            belief: over the field.
        """
        ...


@dataclass(frozen=True)
class BySchedule(Schedule):
    """``√β_t`` of GP-UCB. [Srinivas2010]."""

    def widths(self, view: View, belief: Belief) -> Widths:
        """Return √β_t, see `Schedule`."""
        return lambda stage, places, std: self.width(stage, view.size, belief)


@dataclass(frozen=True)
class ByEstimate(Estimate):
    """``√β_t = min_x (m̂ - μ(x))/σ(x)`` of EST. [Kathuria2016, Lemma 3.1].

    The place with the largest ``μ + √β_t σ`` is then that with the least ``(m̂ - μ)/σ``. The minimum
    is over the places that are chosen from; m̂ is that of the whole map at the start of the batch.
    """

    def widths(self, view: View, belief: Belief) -> Widths:
        """Return √β_t, see `Estimate`."""
        highest, mean = self.highest(view), view.everywhere[0]
        return lambda stage, places, std: max(gap_width(highest, mean[places], std), 0.0)
