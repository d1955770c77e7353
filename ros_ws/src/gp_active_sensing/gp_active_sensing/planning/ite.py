"""Explicit exploration: independent tests find the length-scale, and then `apgd` follows."""

from __future__ import annotations

import dataclasses
import logging
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.base import Candidates, PolicyState, candidates, no_plan
from gp_active_sensing.planning.greedy import expected_entropy, freeze, thaw
from gp_active_sensing.planning.independent_tests import (
    LengthScales,
    Pair,
    PairTest,
    field_variance,
    find_pairs,
    reading_variance,
    statistic,
)
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Plan
from gp_active_sensing.util.ties import NAT, first_best

logger = logging.getLogger(__name__)

_SAME = 1.0001
"""Ratio up to which two variances count as equal."""


@dataclass(frozen=True)
class _Progress:
    """Progress of the search for the length-scale; it is the policy's state during the tests.

    Args:
        low, high: smallest and largest length-scale that is not excluded.
        readings: largest number of readings for the tests; None = no limit.
        spent: number of places used for tests.
        pairs: pairs of places in the present test; () = no test.
        clip: largest absolute value of a product in the present test.
        split: largest of the length-scales that count as short in the present test.
    """

    low: float
    high: float
    readings: int | None
    spent: int = 0
    pairs: tuple[Pair, ...] = ()
    clip: float = 0.0
    split: float = 0.0

    @classmethod
    def of(cls, state: PolicyState) -> _Progress:
        pairs = tuple(Pair(*pair) for pair in state["pairs"])
        return cls(**{**state, "pairs": pairs})

    def to_state(self) -> PolicyState:
        return {**vars(self), "pairs": [[p.a, p.b, p.shorter, p.longer] for p in self.pairs]}


@dataclass(frozen=True)
class ExplicitExploration:
    r"""Policy that first tests which length-scale is right, and then chooses as `apgd`.

    The policy is ITE of [Krause2007].

    The tests are a binary search over the sorted length-scales. Each test separates two
    neighbouring length-scales. The probe observes nearly independent pairs of places whose
    correlations differ most between these two length-scales. The test averages the clipped products
    of the two readings of each pair. It compares the average with the midpoint of the two values
    that are expected under the two length-scales. Hoeffding's and Bernstein's bounds give the
    number of pairs that the `confidence` requires. If the map or the `share` of the readings allows
    fewer pairs, the log reports the confidence that is reached.

    After the search, `apgd` uses a frozen belief in which the excluded length-scales have weight
    zero. The map is still predicted with the belief that all readings update. With several kernels,
    the search and the frozen belief use the first kernel only.

    If the mean is unknown, squared differences replace products (see `statistic`). The signal
    variance and the noise variance are expected values under the belief. A map with moves is
    rejected, because any place must be possible as the next place.
    """

    unit = "nat"
    confidence: float = param(
        0.95, help="wanted probability that no test is wrong", low=0.5, high=0.9999
    )
    share: float = param(
        0.5, help="largest fraction of the budget of readings for the tests", low=0.0, high=1.0
    )
    independence: ClassVar[float] = 0.3
    """Largest correlation between places of different pairs, under the longer length-scale."""

    def check(self, belief: Belief, topology: Topology) -> None:
        """Check that the map has no moves, and that one length-scale applies to all features.

        Raises:
            PlanningError: the policy cannot be used; the message names alternatives.
        """
        if not topology.free:
            msg = (
                "policy ite reads pairs of places at a distance it chooses, so any place must be "
                f"possible next; on map {topology.name!r} the probe obeys moves and cannot jump. "
                "Take bal, ie or apgd, or a line or grid with `moves: free`"
            )
            raise PlanningError(msg)
        variance = belief.level().covariance.variance(np.arange(belief.n))
        uneven = bool((variance.max(axis=1) > _SAME * variance.min(axis=1)).any())
        if uneven and len({h.length_scales for h in belief.hyperparameters}) > 1:
            msg = (
                "policy ite compares products of readings, which needs a field that varies as much "
                "at one place as at another; the belief's kernel has a LIN. Take bal, ie or apgd"
            )
            raise PlanningError(msg)
        if any(len(h.length_scales) > 1 for h in belief.hyperparameters):
            msg = (
                "policy ite searches one sorted list of length-scales; the belief has one for each "
                "feature. Give length-scales that are single numbers, or take bal, ie or apgd"
            )
            raise PlanningError(msg)

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`.

        Raises:
            PlanningError: see `check`.
        """
        belief, topology, pending = request.belief.level(), request.topology, request.pending
        clock = request.clock
        self.check(belief, topology)
        started = clock()
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        scales, wanted = LengthScales(belief), set[int]()
        if state is not None and "weights" in state:
            kept = thaw(state, belief)
        else:
            left = request.remaining.readings
            readings = None if left is None else int(self.share * left)
            begun = _Progress(scales.values[0], scales.values[-1], readings)
            progress = begun if state is None else _Progress.of(state)
            done, progress, wanted = self._advance(belief, scales, options, set(pending), progress)
            kept = scales.between(progress.low, progress.high)
            state = freeze(belief, kept) if done else progress.to_state()
        if wanted:
            indices = np.flatnonzero(np.isin(options.locations, list(wanted))).tolist()
            nearest = min(indices, key=lambda i: options.routes[i].cost.metres)
            options = Candidates(
                options.locations[[nearest]], (options.routes[nearest],), options.observed
            )
        values = expected_entropy(belief, kept, options.locations, pending)
        best = int(first_best(values, floor=NAT))
        return options.valued_plan(best, values, seconds=clock() - started), state

    def _advance(
        self,
        belief: Belief,
        scales: LengthScales,
        options: Candidates,
        pending: set[int],
        progress: _Progress,
    ) -> tuple[bool, _Progress, set[int]]:
        """Evaluate tests whose readings are complete, and begin the next tests.

        Returns:
            done: True if the search is over.
            progress: new progress of the search.
            wanted: places to observe for the present test; pending places are left out.
        """
        possible = set(options.locations.tolist())
        while len(inside := scales.inside(progress.low, progress.high)) > 1:
            if progress.pairs:
                # If a place is set aside or too expensive, its pair is dropped.
                usable = possible | pending | set(np.flatnonzero(belief.observed).tolist())
                pairs = tuple(p for p in progress.pairs if {p.a, p.b} <= usable)
                progress = dataclasses.replace(progress, pairs=pairs)
                places = {x for p in pairs for x in (p.a, p.b)}
                if wanted := places & possible:
                    return False, progress, wanted
                if any(not belief.observed[x] for x in places):
                    return False, progress, set()
                if pairs:
                    progress = self._decide(belief, scales, progress)
                    continue
            begun = self._begin(belief, scales, options, inside, progress)
            if begun is None:
                logger.info(
                    "no further test is possible: the length-scale is one of %s",
                    ", ".join(f"{value:g}" for value in inside),
                )
                return True, progress, set()
            progress = begun
        return True, progress, set()

    def _begin(
        self,
        belief: Belief,
        scales: LengthScales,
        options: Candidates,
        inside: list[float],
        progress: _Progress,
    ) -> _Progress | None:
        """Return the progress with a new test; None if no further test is possible."""
        middle = (len(inside) - 1) // 2
        shorter, longer = inside[middle], inside[middle + 1]
        tests = math.ceil(math.log2(len(inside)))
        open_places = np.zeros(belief.n, dtype=bool)
        open_places[options.locations] = True
        places = np.flatnonzero(open_places | belief.observed)
        most = len(places) // 2
        if progress.readings is not None:
            rest = progress.readings - progress.spent
            most = 0 if rest < 2 else min(most, max(1, rest // (2 * tests)))
        pairs = find_pairs(
            belief.covariance,
            places,
            scales.candidate(shorter),
            scales.candidate(longer),
            self.independence,
            most,
        )
        if not pairs:
            return None
        variance, differences = reading_variance(belief)
        test = PairTest.for_pair(pairs[0], variance, differences)
        error = (1.0 - self.confidence) / max(1, math.ceil(math.log2(len(scales.values))))
        needed = max(test.pairs_needed(pair, error) for pair in pairs)
        if needed <= len(pairs):
            pairs = pairs[: int(needed)]
        else:
            reached = 1.0 - max(test.error(pair, len(pairs)) for pair in pairs)
            logger.warning(
                "length-scale %g or %g: the map and the budget allow %d of the %s pairs of "
                "readings that a confidence of %.4f takes; these are sure of %.2f",
                shorter,
                longer,
                len(pairs),
                f"{needed:.0f}" if math.isfinite(needed) else "infinitely many",
                1.0 - error,
                reached,
            )
        new = {x for p in pairs for x in (p.a, p.b)} - set(np.flatnonzero(belief.observed).tolist())
        return dataclasses.replace(
            progress,
            spent=progress.spent + len(new),
            pairs=tuple(pairs),
            clip=test.clip,
            split=shorter,
        )

    def _decide(self, belief: Belief, scales: LengthScales, progress: _Progress) -> _Progress:
        """Evaluate the present test, whose places must all be observed. Return the new progress."""
        variance, differences = reading_variance(belief)
        test = PairTest(variance, differences, progress.clip)
        signal = math.sqrt(field_variance(belief))
        ends = np.array([[pair.a, pair.b] for pair in progress.pairs])
        readings = belief.weights @ belief.averages(ends.ravel()) - belief.mean.offset[ends.ravel()]
        u, v = readings.reshape(ends.shape).T / signal
        statistics = np.clip(statistic(u, v, variance, differences), -test.clip, test.clip)
        midpoint = float(np.mean([test.midpoint(pair) for pair in progress.pairs]))
        inside = scales.inside(progress.low, progress.high)
        shorter = [value for value in inside if value <= progress.split]
        longer = [value for value in inside if value > progress.split]
        is_longer = float(statistics.mean()) > midpoint
        # If the candidates have changed meanwhile, all length-scales may be on one side.
        kept = (longer if is_longer else shorter) or inside
        logger.info(
            "%d pairs of readings: the length-scale is %s %g (mean of products %.3g, midpoint "
            "%.3g)",
            len(progress.pairs),
            "above" if is_longer else "at most",
            progress.split,
            float(statistics.mean()),
            midpoint,
        )
        return dataclasses.replace(progress, low=kept[0], high=kept[-1], pairs=())
