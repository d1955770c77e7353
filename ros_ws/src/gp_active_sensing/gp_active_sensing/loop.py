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
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.promise import met
from gp_active_sensing.engine.batch_plan import BatchPlan
from gp_active_sensing.engine.observations import Observations
from gp_active_sensing.planning.base import (
    READINGS_SPENT,
    BatchRequest,
    PlanRequest,
    Policy,
    PolicyState,
    no_plan,
)
from gp_active_sensing.planning.budget import BudgetConstraint, check_end, in_metres, with_way_home
from gp_active_sensing.planning.capabilities import (
    LooksAhead,
    PlansBatch,
    QueriesExpert,
    check_fit,
    rest,
    revisits,
)
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Aim, Budget, Clock, Cost, Plan, PlanLimit

__all__ = ["SensingLoop"]

logger = logging.getLogger(__name__)

_QUERIES = 1
"""Keeps the draws of queries apart from those of the decision."""


class SensingLoop(Observations):
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
        aim: error of the map with which the mission is over, whatever is left of the budget.
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
        aim: Aim | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        if belief.n != topology.n:
            msg = f"belief over {belief.n} places, map {topology.name!r} has {topology.n}"
            raise ValueError(msg)
        check_fit(policy, belief, topology)
        BudgetConstraint(topology, budget)  # knows its end place
        super().__init__(
            topology, belief, budget=budget, retries=retries, snap_distance=snap_distance
        )
        self.policy = policy
        self.seed = seed
        self.limit = limit
        self.speed = speed
        self.aim = aim
        self.blocked: set[int] = set()
        """Places that cannot be reached at present; kept by the driver."""
        self.policy_state: PolicyState = None
        self._clip_said = False
        self.clock = clock

    @property
    def revisits(self) -> bool:
        """The policy may choose places that are observed already."""
        return revisits(self.policy)

    @property
    def visits(self) -> int | None:
        """Readings of the budget spent, where observed places are chosen again; otherwise None."""
        return self.spent if self.revisits else None

    def queries(self, places: Collection[int] | None = None) -> tuple[int, ...]:
        """Return where the policy wants fresh values of an expert before its next decision.

        Args:
            places: where the expert can be asked; None = anywhere.
        """
        if not isinstance(self.policy, QueriesExpert):
            return ()
        found = self.policy.queries(
            self.belief,
            self.topology,
            rng=np.random.default_rng([self.seed, self.decisions, _QUERIES]),
            state=BatchPlan(self.policy_state, self.spent).policy_state,
            places=places,
        )
        return tuple(int(place) for place in found)

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
        waiting: Mapping[str, int | None] = MappingProxyType({}),
        now_ns: int | None = None,
    ) -> Plan:
        """Choose the next place to observe for a probe standing at `at`.

        A policy that chooses for several probes at once does so with the first of those that wait;
        each of the others is given its share when it is asked for, unless a visit was made since.

        Args:
            at: where the probe stands; None = nowhere yet.
            pending: waypoints already given to other probes.
            limit: limit on the computing of this decision; None = the loop's own.
            probe: its name, where there are several.
            waiting: other probes that wait for a decision, and where each of them stands.
            now_ns: time of the decision, for a belief about a field that changes; None = as it is.

        Returns:
            The plan; without a waypoint (and with the reason) when the mission is over.
        """
        n = self.topology.n
        for place in (at, *waiting.values()):
            if place is not None and not 0 <= place < n:
                msg = f"the probe stands at place {place}; the map has places 0 … {n - 1}"
                raise ValueError(msg)
        if any(not 0 <= place < n for place in pending):
            msg = f"pending waypoints {sorted(pending)}; the map has places 0 … {n - 1}"
            raise ValueError(msg)
        if now_ns is not None:
            self.advance(now_ns)
        if at is not None and self.decisions == 0:
            check_end(self.topology, self.remaining, at, speed=self.speed)
        self._say_clipped_horizon()
        remaining = in_metres(self.remaining, self.speed)
        plan = self._choose(at, pending, self.limit if limit is None else limit, probe, waiting)
        way = plan.path if plan.waypoints else ()
        again = bool(way) and bool(self.belief.observed[way[-1]])
        self.reservations.make(probe, way, again=again)
        if plan.waypoints:
            self.decisions += 1
        else:
            rest(self.policy)
            if at is not None and remaining.end is not None:
                plan = with_way_home(plan, self.topology, at, remaining)
        self.returning_home = not plan.waypoints and remaining.end is not None
        if self.speed is not None:
            metres = plan.cost.metres
            plan = replace(plan, cost=Cost(metres, metres / self.speed))
        return plan

    def _choose(
        self,
        at: int | None,
        pending: Collection[int],
        limit: PlanLimit,
        probe: str,
        waiting: Mapping[str, int | None],
    ) -> Plan:
        """Return the plan of the policy, or the one that it made for this probe before."""
        left = self.readings_for(probe, pending)
        if left is not None and left <= 0:
            return no_plan(READINGS_SPENT)
        if why := self.good_enough():
            return no_plan(why)
        unavailable = frozenset(self.set_aside | self.blocked)
        remaining = replace(in_metres(self.remaining, self.speed), readings=left)
        joint = BatchPlan(self.policy_state, self.spent)
        plan = joint.take(probe, at, {*unavailable, *pending})
        if plan is not None and self.fits(plan, remaining=replace(self.remaining, readings=left)):
            self.policy_state = joint.state()
            return plan
        others = {name: place for name, place in waiting.items() if name != probe}
        rng = np.random.default_rng([self.seed, self.decisions])
        policy = self.policy
        if not (others and not joint.goals and isinstance(policy, PlansBatch)):
            plan, state = self.policy.plan(
                PlanRequest(
                    self.belief,
                    self.topology,
                    at,
                    pending=tuple(dict.fromkeys([*pending, *joint.goals])),
                    waiting=tuple(others.values()),
                    limit=limit,
                    rng=rng,
                    remaining=remaining,
                    unavailable=unavailable,
                    aim=self.aim,
                    clock=self.clock,
                ),
                joint.policy_state,
            )
            joint.policy_state = state
        else:
            plans, state = policy.plan_batch(
                BatchRequest(
                    self.belief,
                    self.topology,
                    [at, *others.values()],
                    pending=pending,
                    limit=limit,
                    rng=rng,
                    remaining=[remaining] * (1 + len(others)),
                    unavailable=unavailable,
                    clock=self.clock,
                ),
                joint.policy_state,
            )
            plan, joint.policy_state = plans[0], state
            for (name, place), theirs in zip(others.items(), plans[1:], strict=True):
                if theirs.waypoints:
                    joint.keep(name, place, theirs)
        self.policy_state = joint.state()
        return plan

    def good_enough(self) -> str:
        """Return why nothing more has to be read, "" while something has; see `met`."""
        if self.aim is None:
            return ""
        return met(self.aim, self.belief, self.topology, self.set_aside | self.blocked)

    def readings_for(self, probe: str, pending: Collection[int]) -> int | None:
        """Return how many readings are left for a probe; None = any number.

        Each of the others has those kept that it was promised, see `BudgetReservations.kept_from`.

        Args:
            probe: its name.
            pending: waypoints that others are sent to.
        """
        left = self.remaining.readings
        if left is None:
            return None
        observed = self.belief.observed
        return left - self.reservations.kept_from(probe, pending, observed, self.set_aside)

    def fits(
        self, plan: Plan, after: Cost = Cost(0.0, 0.0), remaining: Budget | None = None
    ) -> bool:
        """Return whether a plan made for what was to be left fits into what is left now.

        Args:
            plan: with a waypoint.
            after: driven before it, and not taken off the budget yet.
            remaining: what is left for its probe; None = the loop's own.
        """
        left = self.remaining if remaining is None else remaining
        if left.readings is not None and left.readings < 1:
            return False
        constraint = BudgetConstraint(self.topology, in_metres(left, self.speed))
        observed, goal = self.belief.observed, plan.waypoints[0]
        # A goal that is observed is to be read once more.
        reads = sum(not observed[place] for place in set(plan.path)) + int(observed[goal])
        return constraint.allows(goal, plan.cost.plus(after), reads=reads)

    def replay_decision(
        self,
        state: PolicyState,
        path: tuple[int, ...] = (),
        probe: str = "",
        *,
        again: bool = False,
    ) -> None:
        """Count a decision taken before a restart, with the policy state it left and its way.

        Args:
            state: what the policy handed on.
            path: of the plan.
            probe: its name.
            again: the plan led to a place that was observed already, to read it once more.
        """
        self.decisions += 1
        self.reservations.make(probe, path, again=again)
        self.policy_state = state

    def replay_way_home(self, probe: str = "") -> None:
        """Record that the last plan before a restart led to the end place."""
        self.returning_home = True
        self.reservations.drop(probe)

    def release(self, probe: str = "") -> None:
        """Keep no readings for the way of a probe any more: it does not drive there."""
        self.reservations.drop(probe)

    def snapshot(self, clock: Clock | None = None) -> SensingLoop:
        """Return a copy to plan on beside this loop, which goes on taking readings; see `adopt`.

        Args:
            clock: of the copy; None = the loop's own.
        """
        other = copy.copy(self)
        other.clock = self.clock if clock is None else clock
        other.blocked = set(self.blocked)
        self._copy_into(other)
        return other

    def adopt(self, snapshot: SensingLoop, probe: str = "") -> None:
        """Count the decision that a snapshot took (for a probe) as this loop's own."""
        self.decisions = snapshot.decisions
        self.policy_state = snapshot.policy_state
        self.returning_home = snapshot.returning_home
        self.reservations.take_over(snapshot.reservations, probe)
        self._clip_said = snapshot._clip_said

    def _say_clipped_horizon(self) -> None:
        left = self.remaining.readings
        if self._clip_said or left is None or not isinstance(self.policy, LooksAhead):
            return
        horizon = self.policy.horizon
        if horizon <= left:
            return
        self._clip_said = True
        logger.info(
            "horizon %d is beyond the %d readings left: looking ahead %d", horizon, left, left
        )
