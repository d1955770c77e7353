"""Integrated variance: the place whose reading takes most off the error of the map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from gp_active_sensing.planning.base import PlanRequest, PolicyState, candidates, no_plan
from gp_active_sensing.planning.beliefs import unread
from gp_active_sensing.planning.map_error import map_error_gains, map_error_of
from gp_active_sensing.types import Plan
from gp_active_sensing.util.ties import first_best

__all__ = ["IntegratedVariance"]

_LOOK_AHEAD = "is removed; take policy tour for a whole route, or bal for some readings ahead"


@dataclass(frozen=True)
class IntegratedVariance:
    r"""Largest expected drop of the mean variance of the map. [Cohn1996, ALC; Sacks1989, IMSE].

    .. math:: \arg\max_x \sum_\lambda b(\lambda)
        \frac{\sum_p w_p \operatorname{Cov}_\lambda(f_p, f_x | z_D)^2}
             {\operatorname{Var}_\lambda(Z_x | z_D)}

    The weights of the places (`map.weights`) are equal unless the map says otherwise. A value is a
    drop of the mean variance [square of the reading's unit, after a transform]. What a reading
    tells about λ is not counted.
    """

    REMOVED: ClassVar[Mapping[str, str]] = {
        "horizon": _LOOK_AHEAD,
        "beam": _LOOK_AHEAD,
        "candidates": "is removed and fixed at 8",
    }
    candidates: ClassVar[int] = 8
    """Largest number of λ planned with. Of those that predict alike one stands for all."""

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`."""
        belief, topology, pending = request.belief, request.topology, request.pending
        started = request.clock()
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        first, most = options.locations, self.candidates
        if unread(belief, pending).size:
            field = map_error_of(belief, topology, first, pending=pending, candidates=most)
            values = field.weights @ field.gains()
        else:
            weights, gains = map_error_gains(belief, topology, first, candidates=most)
            values = weights @ gains
        seconds = request.clock() - started
        return options.valued_plan(int(first_best(values)), values, seconds=seconds), state
