"""The one engine that every driver uses: tell it readings, ask it for the next place.

The loop knows neither where readings come from nor how the probe moves; a simulator, a logged bag
and a robot drive it alike. It is not thread-safe: a driver with threads holds one lock around it,
or plans on a copy of the belief.
"""

from __future__ import annotations

import copy
import logging
import math
import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.errors import ReadingError
from gp_active_sensing.planning.allowance import Allowance, in_metres
from gp_active_sensing.planning.base import (
    READINGS_SPENT,
    Policy,
    PolicyState,
    check_fit,
    no_plan,
)
from gp_active_sensing.planning.homing import check_end, with_way_home
from gp_active_sensing.readings import place_of
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import (
    Budget,
    Clock,
    Cost,
    Plan,
    PlanLimit,
    Reading,
    Rejection,
    TellReport,
)

__all__ = ["SensingLoop"]

logger = logging.getLogger(__name__)


class SensingLoop:
    """Readings -> belief -> plan.

    Args:
        topology: where a probe may go.
        belief: what is known before the first reading; owned and changed by the loop.
        policy: chooses the next place.
        budget: limit of the mission, and where it has to end.
        seed: key of all random choices; decision number i uses the generator keyed (seed, i).
        limit: default limit on the computing of one decision.
        retries: how often a visit that gave no reading is tried again before it is set aside.
        snap_distance: farthest distance of a reading's position from its place [m].
        speed: the probe's own speed [m/s], by which seconds are counted; None = the map's.
        clock: monotonic seconds, for limits in seconds only.

    Raises:
        PlanningError: the policy cannot plan on this map, or with this belief; no such end place.
    """

    def __init__(
        self,
        topology: Topology,
        belief: Belief,
        policy: Policy,
        *,
        budget: Budget = Budget(),
        seed: int = 0,
        limit: PlanLimit = PlanLimit(),
        retries: int = 2,
        snap_distance: float = math.inf,
        speed: float | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        if belief.n != topology.n:
            msg = f"belief over {belief.n} places, map {topology.name!r} has {topology.n}"
            raise ValueError(msg)
        check_fit(policy, belief, topology)
        Allowance(topology, budget)  # knows its end place
        self.topology = topology
        self.belief = belief
        self.policy = policy
        self.seed = seed
        self.limit = limit
        self.retries = retries
        self.snap_distance = snap_distance
        self.speed = speed
        self.remaining = budget
        self.decisions = 0
        self.homeward = False
        """Nothing more is chosen: the last plan leads to where the mission has to end."""
        self.restoring = False
        """Readings come from a journal: those that were used are used again, whatever is kept."""
        self.counts: Counter[str] = Counter()
        self.set_aside: set[int] = set()
        """Places that gave no reading."""
        self.blocked: set[int] = set()
        """Places that cannot be reached at present; kept by the driver."""
        self.policy_state: PolicyState = None
        self._ways: dict[str, tuple[int, ...]] = {}
        """Of the last plan with a waypoint, by probe."""
        self._misses: Counter[int] = Counter()
        self._newest_ns: int | None = None
        self._clip_said = False
        self.clock = clock

    # -- readings ------------------------------------------------------------------------------

    def tell(self, readings: Iterable[Reading]) -> TellReport:
        """Use readings in any order; each is either used or rejected and counted.

        A newly observed place costs one reading of the budget, once, whoever chose it. Late
        readings are used like any other (the belief does not depend on order) and counted.
        """
        accepted = late = 0
        new_places: list[int] = []
        rejected: list[Rejection] = []
        for reading in readings:
            try:
                location = self.check(reading)
                is_new = not bool(self.belief.observed[location])
                self.belief.observe(location, float(reading.value), reading.noise_variance)
            except ReadingError as error:
                rejected.append(Rejection(reading, error.reason, str(error)))
                self.counts[f"rejected_{error.reason}"] += 1
                level = logging.DEBUG if error.reason == "budget_spent" else logging.WARNING
                logger.log(level, "reading rejected: %s", error)
                continue
            accepted += 1
            if self._newest_ns is not None and reading.stamp_ns < self._newest_ns:
                late += 1
            self._newest_ns = max(self._newest_ns or reading.stamp_ns, reading.stamp_ns)
            if is_new:
                self.remaining = self.remaining.minus(readings=1)
                new_places.append(location)
                self.set_aside.discard(location)
                self._misses.pop(location, None)
                # After each new place, not each batch: what a journal gives back is the same.
                if why := self.belief.adapt():
                    logger.info("the candidate length-scales follow the readings: %s", why)
        self.counts["accepted"] += accepted
        self.counts["late"] += late
        return TellReport(accepted, tuple(new_places), tuple(rejected), late)

    def check(self, reading: Reading) -> int:
        """Return the place of a reading that would be used now; nothing changes.

        Raises:
            ReadingError: it would be rejected, with the word that it would be counted under.
        """
        location = place_of(reading, self.topology, self.snap_distance)
        if not self.wants(location):
            raise ReadingError("budget_spent", self._not_wanted(location))
        self.belief.check(location, float(reading.value), reading.noise_variance)
        return location

    def wants(self, location: int) -> bool:
        """Say whether a reading of a place would be used now.

        Once decisions are taken, the budget of readings is never exceeded: the last readings are
        kept for what lies on the way that was planned, whatever else is read there. A place that
        is observed already costs nothing.
        """
        left = self.remaining.readings
        if left is None or self.belief.observed[location] or not (self.decisions or self.homeward):
            return True
        if self.restoring:
            return True
        promised = {
            place
            for way in self._ways.values()
            for place in way
            if not self.belief.observed[place] and place not in self.set_aside
        }
        return left > (0 if location in promised else len(promised))

    def _not_wanted(self, location: int) -> str:
        spent = "the budget of readings is spent, or kept for where the probe is going"
        return f"a reading of {self.topology.names[location]}: {spent}"

    def miss(self, location: int) -> bool:
        """Count a visit that gave no reading.

        Returns:
            True to try the place again; False when it has now been set aside.

        Raises:
            ValueError: the place is not on the map.
        """
        if not 0 <= location < self.topology.n:
            msg = f"missed place {location}; the map has places 0 … {self.topology.n - 1}"
            raise ValueError(msg)
        again = self._misses[location] < self.retries
        self.replay_miss(location, again=again)
        if not again:
            logger.warning(
                "place %s gave no reading in %d visits and is set aside",
                self.topology.names[location],
                self._misses[location],
            )
        return again

    def replay_miss(self, location: int, *, again: bool) -> None:
        """Count a visit that gave no reading before a restart, and what followed from it."""
        self._misses[location] += 1
        self.counts["missed"] += 1
        if not again:
            self.set_aside.add(location)

    # -- decisions -----------------------------------------------------------------------------

    def moved(self, cost: Cost) -> None:
        """Take a driven distance and time off the budget."""
        self.remaining = self.remaining.minus(cost=cost)

    def ask(
        self,
        at: int | None,
        *,
        pending: Collection[int] = (),
        limit: PlanLimit | None = None,
        probe: str = "",
    ) -> Plan:
        """Choose the next place to observe for a probe standing at `at`.

        Args:
            at: where the probe stands; None = nowhere yet.
            pending: waypoints already given to other probes.
            limit: limit on the computing of this decision; None = the loop's own.
            probe: its name, where there are several.

        Returns:
            The plan; without a waypoint (and with the reason) when the mission is over.
        """
        n = self.topology.n
        if at is not None and not 0 <= at < n:
            msg = f"the probe stands at place {at}; the map has places 0 … {n - 1}"
            raise ValueError(msg)
        if any(not 0 <= place < n for place in pending):
            msg = f"pending waypoints {sorted(pending)}; the map has places 0 … {n - 1}"
            raise ValueError(msg)
        if at is not None and self.decisions == 0:
            check_end(self.topology, self.remaining, at, speed=self.speed)
        self._say_clipped_horizon()
        remaining = in_metres(self.remaining, self.speed)
        left = self.readings_for(probe, pending)
        if left is not None and left <= 0:
            plan = no_plan(READINGS_SPENT)
        else:
            plan, self.policy_state = self.policy.plan(
                self.belief,
                self.topology,
                at,
                pending=pending,
                limit=self.limit if limit is None else limit,
                rng=np.random.default_rng([self.seed, self.decisions]),
                state=self.policy_state,
                remaining=replace(remaining, readings=left),
                unavailable=frozenset(self.set_aside | self.blocked),
                clock=self.clock,
            )
        self._ways[probe] = plan.path if plan.waypoints else ()
        if plan.waypoints:
            self.decisions += 1
        elif at is not None and remaining.end is not None:
            plan = with_way_home(plan, self.topology, at, remaining)
        self.homeward = not plan.waypoints and remaining.end is not None
        if self.speed is not None:
            metres = plan.cost.metres
            plan = replace(plan, cost=Cost(metres, metres / self.speed))
        return plan

    def readings_for(self, probe: str, pending: Collection[int]) -> int | None:
        """Return how many readings are left for a probe; None = any number.

        Each of the others has those kept that it was promised: for its waypoint, and for what is
        not observed yet on its way there. A place that has been read meanwhile is paid for already.

        Args:
            probe: its name.
            pending: waypoints that others are sent to.
        """
        left = self.remaining.readings
        if left is None:
            return None
        kept = set(pending)
        for other, way in self._ways.items():
            if other != probe and way and way[-1] in pending:
                kept.update(place for place in way if place not in self.set_aside)
        return left - sum(not self.belief.observed[place] for place in kept)

    def fits(
        self, plan: Plan, after: Cost = Cost(0.0, 0.0), remaining: Budget | None = None
    ) -> bool:
        """Say whether a plan made for what was to be left fits into what is left now.

        Args:
            plan: with a waypoint.
            after: driven before it, and not taken off the budget yet.
            remaining: what is left for its probe; None = the loop's own.
        """
        left = self.remaining if remaining is None else remaining
        if left.readings is not None and left.readings < 1:
            return False
        allowance = Allowance(self.topology, in_metres(left, self.speed))
        reads = sum(not self.belief.observed[place] for place in set(plan.path))
        return allowance.allows(plan.waypoints[0], plan.cost.plus(after), reads=max(reads, 1))

    def replay_decision(
        self, state: PolicyState, path: tuple[int, ...] = (), probe: str = ""
    ) -> None:
        """Count a decision taken before a restart, with the policy state it left and its way."""
        self.decisions += 1
        self._ways[probe] = path
        self.policy_state = state

    def replay_way_home(self, probe: str = "") -> None:
        """Take note that the last plan before a restart led to the end place."""
        self.homeward = True
        self._ways.pop(probe, None)

    def release(self, probe: str = "") -> None:
        """Keep no readings for the way of a probe any more: it does not drive there."""
        self._ways.pop(probe, None)

    def snapshot(self, clock: Clock | None = None) -> SensingLoop:
        """Return a copy to plan on beside this loop, which goes on taking readings; see `adopt`.

        Args:
            clock: of the copy; None = the loop's own.
        """
        other = copy.copy(self)
        other.clock = self.clock if clock is None else clock
        other.belief = self.belief.copy()
        other.counts = self.counts.copy()
        other.set_aside, other.blocked = set(self.set_aside), set(self.blocked)
        other._ways = dict(self._ways)
        other._misses = self._misses.copy()
        return other

    def adopt(self, snapshot: SensingLoop, probe: str = "") -> None:
        """Count the decision that a snapshot took (for a probe) as this loop's own."""
        self.decisions = snapshot.decisions
        self.policy_state = snapshot.policy_state
        self.homeward = snapshot.homeward
        self._ways[probe] = snapshot._ways.get(probe, ())
        self._clip_said = snapshot._clip_said

    def _say_clipped_horizon(self) -> None:
        horizon = getattr(self.policy, "horizon", None)
        left = self.remaining.readings
        if self._clip_said or horizon is None or left is None or horizon <= left:
            return
        self._clip_said = True
        logger.info(
            "horizon %d is beyond the %d readings left: looking ahead %d", horizon, left, left
        )
