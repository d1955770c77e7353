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
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.aim import met
from gp_active_sensing.engine.limits import LimitsConfig, check_limits
from gp_active_sensing.engine.quantities import QuantityLinks, by_name
from gp_active_sensing.engine.reservations import BatchPlan, BudgetReservations
from gp_active_sensing.errors import ActiveSensingError, ConfigError, ReadingError
from gp_active_sensing.planning.base import (
    PlansBatch,
    Policy,
    PolicyState,
    QueriesExpert,
    check_fit,
    no_plan,
    rest,
    revisits,
)
from gp_active_sensing.planning.budget import (
    READINGS_SPENT,
    BudgetConstraint,
    check_end,
    in_metres,
    with_way_home,
)
from gp_active_sensing.planning.request import PlanRequest, QuantityBelief, Sorties
from gp_active_sensing.topology.base import GraphTopology, Topology
from gp_active_sensing.topology.lookup import place_of
from gp_active_sensing.topology.shut import with_shut
from gp_active_sensing.topology.turning import Turning, turning
from gp_active_sensing.types import (
    Aim,
    BoolArray,
    Budget,
    Clock,
    Cost,
    PlacedReading,
    Plan,
    PlanLimit,
    Reading,
    Rejection,
    TellReport,
)

logger = logging.getLogger(__name__)

AHEAD = 60.0
"""Largest lead of a stamp over the driver's clock, where the field changes [s]."""
_QUERIES = 1
"""Keeps the draws of queries apart from those of the decision."""


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
        turn_radius: least radius of a curve that the probe can drive [m]; 0 = it turns on the spot.
        aim: error of the map with which the mission is over, whatever is left of the budget.
        limits: on the value of the places that a probe may enter; None = it may enter any.
        name: of the quantity that `belief` is about, the main one; "" = it needs none.
        weight: of the main quantity in the plans.
        quantities: further quantities that the same probes measure, see `engine.quantities`; their
            beliefs are owned and changed by the loop as well.
        clock: monotonic seconds, for limits in seconds only.

    Raises:
        ValueError: beliefs over other places than those of the map, names that do not differ.
        ConfigError: limits on a quantity that there is not.
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
        turn_radius: float = 0.0,
        aim: Aim | None = None,
        limits: LimitsConfig | None = None,
        name: str = "",
        weight: float = 1.0,
        quantities: Sequence[QuantityBelief] = (),
        clock: Clock = time.monotonic,
    ) -> None:
        if limits is not None:
            check_limits(topology)
        if belief.n != topology.n:
            msg = f"belief over {belief.n} places, map {topology.name!r} has {topology.n}"
            raise ValueError(msg)
        self.quantities = by_name(name, belief, quantities)
        """The further quantities, by name."""
        if limits is not None and limits.quantity not in ("", name, *self.quantities):
            known = ", ".join(filter(None, (name, *self.quantities))) or "none with a name"
            msg = f"limits.quantity: {limits.quantity!r} is not measured; known: {known}"
            raise ConfigError(msg)
        check_fit(policy, belief, topology, quantities)
        BudgetConstraint(topology, budget)  # knows its end place
        self.whole = self.topology = topology
        """The map, and the same without the moves that are shut now and what may lie beyond the
        limits."""
        self.shut: frozenset[tuple[int, int]] = frozenset()
        """Moves (from, to) that nobody gets through at present; see `shut_moves`."""
        self.sorties: Sorties | None = None
        """Batteries after the one in the probe of a copy; None = it lasts."""
        self.belief = belief
        self.name = name
        self.links = QuantityLinks(name, belief, self.quantities)
        for other, template in self.links.templates.items():
            self.quantities[other] = replace(self.quantities[other], belief=template.copy())
        self.weight = weight
        self.retries = retries
        self.snap_distance = snap_distance
        self.remaining = budget
        self.spent = 0
        """Readings of the budget spent: new places, and visits of observed ones."""
        self.decisions = 0
        self.returning_home = False
        """Nothing more is chosen: the last plan leads to where the mission has to end."""
        self.restoring = False
        """Readings come from a journal: those that were used are used again, whatever is kept."""
        self.counts: Counter[str] = Counter()
        self.set_aside: set[int] = set()
        """Places that gave no reading."""
        self.reservations = BudgetReservations()
        self.leads: frozenset[str] = frozenset({""})
        """Names of the quantities whose readings complete the visits of some probe."""
        self.clock_ns: int | None = None
        """Time of the driver's clock, where it has one: no stamp can be far ahead of it."""
        self._misses: Counter[int] = Counter()
        self._newest_ns: dict[str, int] = {}
        self.policy = policy
        self.seed = seed
        self.limit = limit
        self.speed = speed
        self.turn_radius = turn_radius
        self.aim = aim
        self.blocked: set[int] = set()
        """Places that cannot be reached at present; kept by the driver."""
        self.closed: frozenset[int] = frozenset()
        """Places that the map says are occupied by now, see `move_to`."""
        self.policy_state: PolicyState = None
        self.clock = clock
        self.limits = limits
        self.declared: frozenset[int] = frozenset()
        """Places about where probes began, which are declared safe."""
        self.began: frozenset[str] = frozenset()
        """Names of the probes whose start is among them."""
        self.beyond: frozenset[int] = frozenset()
        """Places that no probe may enter, since they may lie beyond the limits."""

    # -- the map --------------------------------------------------------------------------------

    @property
    def unavailable(self) -> frozenset[int]:
        """Places that are not to be chosen: set aside, blocked or occupied."""
        return self.closed.union(self.set_aside, self.blocked, self.beyond)

    def move_to(
        self,
        topology: Topology,
        fresh: Belief,
        closed: Collection[int] = (),
        further: Mapping[str, Belief] = MappingProxyType({}),
    ) -> None:
        """Use a changed map; its first places are the places so far, in their order.

        What was read, set aside, spent and promised stays. Snapshots keep the map they were taken
        with. `fresh` and `further` (by name) are beliefs over it before their first reading; the
        probe chooses no `closed` place, which is occupied: the map has no move there.

        Raises:
            ValueError: it lacks a place, or has them in another order or frame, or a quantity has
                no belief; nothing has changed then.
            PlanningError: the policy cannot plan on it; nothing has changed then.
        """
        names, frame = self.topology.names, self.topology.frame
        if topology.frame != frame or topology.names[: len(names)] != names:
            msg = (
                f"expected a map in frame {frame!r} that begins with the {len(names)} places of "
                f"map {self.topology.name!r}, got one of {topology.n} in frame {topology.frame!r}"
            )
            raise ValueError(msg)
        if set(further) != set(self.quantities):
            msg = f"expected a belief for each of {list(self.quantities)}, got {list(further)}"
            raise ValueError(msg)
        if any(belief.n != topology.n for belief in (fresh, *further.values())):
            sizes = [belief.n for belief in (fresh, *further.values())]
            msg = f"expected beliefs over {topology.n} places, got {sizes}"
            raise ValueError(msg)
        check_fit(self.policy, fresh, topology, self.quantities.values())
        self.belief.move_to(fresh)
        self.links = copy.copy(self.links)
        self.links.templates = {name: further[name] for name in self.links.sources}
        for name, each in self.quantities.items():
            each.belief.move_to(further[name], others=name in self.links.sources)
        self.finish_links()
        self.whole = topology
        self._restrict()
        self.closed = frozenset(closed)
        # Ways that were planned for several probes at once may not be there any more.
        self.policy_state = BatchPlan(self.policy_state, self.spent).policy_state

    def shut_moves(self, moves: Collection[tuple[int, int]]) -> None:
        """Exclude some moves (from, to) from every plan, and allow all others again."""
        if not self.shut.issuperset(moves):  # ways that were planned for several probes at once
            self.policy_state = BatchPlan(self.policy_state, self.spent).policy_state
        self.shut = frozenset(moves)
        self._restrict()

    def keep_limits(self, at: int | None = None, probe: str = "") -> None:
        """Close the places that may lie beyond the limits, and open the others.

        For a probe that asks at `at`. What is about the place of its first question is safe.
        """
        if self.limits is None:
            return
        began, declared = self.began, set(self.declared)
        if at is not None and probe not in began:
            declared |= set(self.limits.near(self.whole, at).tolist())
            began = began | {probe}
        closed = self.limits.closed(self.belief_of(self.limits.quantity), declared)
        if self.remaining.end is not None:
            closed[self.remaining.end] = False  # anyone who set it knows the place
        self.set_limits(declared, began, np.flatnonzero(closed).tolist())

    def set_limits(
        self, declared: Collection[int], began: Collection[str], beyond: Collection[int]
    ) -> None:
        """Apply the result of `keep_limits`, now or from before a restart."""
        self.declared, self.began = frozenset(declared), frozenset(began)
        if self.beyond != (found := frozenset(beyond)):
            self.counts["limits_closed"] += len(found - self.beyond)
            self.counts["limits_opened"] += len(self.beyond - found)
            self.beyond = found
            self._restrict()

    def replay_limits(
        self,
        closed: Collection[int],
        opened: Collection[int],
        declared: Collection[int],
        began: Collection[str],
    ) -> None:
        """Close and open places as before a restart.

        Raises:
            ValueError: the map has no such places.
        """
        if not all(0 <= place < self.whole.n for place in (*closed, *opened, *declared)):
            msg = f"expected places 0 … {self.whole.n - 1}"
            raise ValueError(msg)
        self.set_limits(declared, began, self.beyond.union(closed) - set(opened))

    def limit_figures(self) -> dict[str, int]:
        """Return the numbers of places that are open and closed, and what changed; {} = no limits.

        ``read_beyond`` counts the places whose own readings lie beyond the limits.
        """
        if self.limits is None:
            return {}
        return {
            "open": self.whole.n - len(self.beyond),
            "closed": len(self.beyond),
            "times_closed": self.counts["limits_closed"],
            "times_opened": self.counts["limits_opened"],
            "read_beyond": self.limits.read_beyond(self.belief_of(self.limits.quantity)),
        }

    def _restrict(self) -> None:
        topology = self.whole
        if isinstance(topology, GraphTopology):
            topology = topology.closed_to(self.beyond)
        self.topology = with_shut(topology, self.shut)

    def open_place(self, place: int) -> int:
        """Return where a probe at `place` can drive on from: the nearest place not closed."""
        if place not in self.closed:
            return place
        apart = np.hypot(*(self.topology.positions - self.topology.positions[place]).T)
        apart[list(self.closed)] = math.inf
        nearest = int(np.argmin(apart))
        return nearest if math.isfinite(apart[nearest]) else place

    # -- readings -------------------------------------------------------------------------------

    def of(self, quantity: str = "", *, leads: bool = False) -> Receiver:
        """Return the receiver of a quantity's readings; the loop itself for the main one.

        With `leads` they cost the budget: their probe does not measure the main one.

        Raises:
            ReadingError: there is no such quantity.
        """
        if self.belief_of(quantity) is self.belief:
            return self
        if leads:
            self.leads |= {quantity}
        return FurtherReceiver(self, quantity, leads=leads)

    def belief_of(self, quantity: str = "") -> Belief:
        """Return the belief about a quantity; "" = the main one.

        Raises:
            ReadingError: there is no such quantity.
        """
        if quantity in ("", self.name):
            return self.belief
        if quantity not in self.quantities:
            known = ", ".join(filter(None, (self.name, *self.quantities))) or "none with a name"
            msg = f"a reading of the quantity {quantity!r}, which is not measured; known: {known}"
            raise ReadingError("unknown_quantity", msg)
        return self.quantities[quantity].belief

    def observed_of(self, quantity: str = "") -> BoolArray:
        """Return the (n,) places with a reading of a quantity; see `Belief.observed`."""
        return self.belief_of(quantity).observed

    @property
    def used(self) -> int:
        """Return the number of readings used, those of every quantity together."""
        return self.counts["accepted"] + sum(self.counts[f"accepted_{q}"] for q in self.quantities)

    def tell(self, readings: Iterable[Reading | PlacedReading], *, lead: str = "") -> TellReport:
        """Use readings in any order; each is either used or rejected and counted.

        A `PlacedReading` has been checked, and only the budget can reject it. A reading of another
        quantity than `lead` changes the belief about that quantity and costs nothing.

        A newly observed place costs one reading of the budget, once; so does the
        visit of an observed place that a policy chose again. Late readings are used like any other
        (the belief does not depend on order) and counted.

        `lead` is the quantity that costs the budget; "" = the main one.
        """
        accepted = late = 0
        new_places: list[int] = []
        rejected: list[Rejection] = []
        for reading in readings:
            try:
                placed = reading if isinstance(reading, PlacedReading) else self.place(reading)
                belief = self.belief_of(placed.reading.quantity)
                if leads := belief is self.belief_of(lead):
                    self.check_room(placed.place, lead)
            except ReadingError as error:
                one = reading.reading if isinstance(reading, PlacedReading) else reading
                rejected.append(self.reject(one, error))
                continue
            location = placed.place
            is_new = not belief.observed[location]
            is_new |= leads and self.reservations.is_due(location, lead)
            belief.observe_placed(placed)
            accepted += 1
            late += self._count(placed.reading)
            if is_new and leads:
                self._charge(location, lead)
                new_places.append(location)
            # After each new place, not each batch: what a journal gives back is the same.
            if is_new and (why := belief.adapt()):
                of = placed.reading.quantity
                logger.info("the belief%s follows the readings: %s", of and f" about {of}", why)
            if is_new:
                of = "" if belief is self.belief else placed.reading.quantity
                self.links.follow(self.belief_of, of)
        return TellReport(accepted, tuple(new_places), tuple(rejected), late)

    def _charge(self, location: int, lead: str) -> None:
        self.reservations.pay(location, lead)
        self.remaining = self.remaining.minus(readings=1)
        self.spent += 1
        self.set_aside.discard(location)
        self._misses.pop(location, None)

    def amend(self, before: PlacedReading, reading: PlacedReading) -> TellReport:
        """Replace a reading by another one of the same stay.

        Args:
            before: the reading as stored; of an amended one, with the stamp of the first.
            reading: what is to count instead.
        """
        self.belief_of(reading.reading.quantity).amend_placed(before, reading)
        return TellReport(1, late=self._count(reading.reading))

    def reject(self, reading: Reading, error: ReadingError) -> Rejection:
        """Count a reading that cannot be used."""
        self.counts[f"rejected_{error.reason}"] += 1
        level = logging.DEBUG if error.reason == "budget_spent" else logging.WARNING
        logger.log(level, "reading rejected: %s", error)
        return Rejection(reading, error.reason, str(error))

    def _count(self, reading: Reading) -> int:
        """Count a reading that is used; return 1 if it is older than one of its quantity before."""
        name = reading.quantity if reading.quantity in self.quantities else ""
        newest_ns = self._newest_ns.get(name, reading.stamp_ns)
        self._newest_ns[name] = max(newest_ns, reading.stamp_ns)
        late = int(reading.stamp_ns < newest_ns)
        ending = name and f"_{name}"
        self.counts[f"accepted{ending}"] += 1
        self.counts[f"late{ending}"] += late
        return late

    def advance(self, now_ns: int) -> None:
        """Advance time; this ages the readings of a field that changes."""
        for belief in (self.belief, *(each.belief for each in self.quantities.values())):
            belief.advance(1e-9 * now_ns)

    def inform(self, readings: Iterable[Reading]) -> TellReport:
        """Use an expert's readings: they tell about the field and cost nothing of the budget."""
        rejected: list[Rejection] = []
        accepted = 0
        for reading in readings:
            try:
                belief = self.belief_of(reading.quantity)
                belief.observe_placed(self._placed(reading), expert=True)
            except ReadingError as error:
                rejected.append(Rejection(reading, error.reason, str(error)))
                self.counts[f"expert_rejected_{error.reason}"] += 1
                logger.warning("answer of an expert rejected: %s", error)
                continue
            accepted += 1
        self.counts["expert_accepted"] += accepted
        return TellReport(accepted, (), tuple(rejected))

    def place(self, reading: Reading) -> PlacedReading:
        """Check a reading and find its place; nothing changes.

        Raises:
            ReadingError: it would be rejected, with the word that it would be counted under.
        """
        placed = self._placed(reading)
        self._check_stamp(reading)
        return placed

    def _placed(self, reading: Reading) -> PlacedReading:
        belief = self.belief_of(reading.quantity)
        location = place_of(reading, self.topology, self.snap_distance)
        quantity = "" if belief is self.belief else reading.quantity
        return belief.place(replace(reading, location=location, quantity=quantity))

    def check_budget(self, placed: PlacedReading) -> None:
        """Check that the budget has a reading for a place.

        Raises:
            ReadingError: it has none, or keeps it for another place.
        """
        if placed.reading.quantity not in self.quantities:
            self.check_room(placed.place)

    def check_room(self, place: int, quantity: str = "") -> None:
        """Check that the budget has a reading of a quantity for a place.

        Raises:
            ReadingError: it has none, or keeps it for another place.
        """
        if not self.wants(place, quantity):
            name = self.topology.names[place]
            msg = (
                f"a reading of {name}: the budget of readings is spent, or kept for where the "
                "probe is going"
            )
            raise ReadingError("budget_spent", msg)

    def costs(self, location: int) -> bool:
        """Return whether the next reading of a place costs one of the budget."""
        return not self.belief.observed[location] or self.reservations.is_due(location)

    def _check_stamp(self, reading: Reading) -> None:
        """Refuse a stamp far ahead: where the field changes, it would make all else out of date."""
        if self.clock_ns is None or self.restoring:
            return
        if not self.belief_of(reading.quantity).drift.changing:
            return
        ahead = 1e-9 * (reading.stamp_ns - self.clock_ns)
        if ahead > AHEAD:
            msg = (
                f"a reading of {reading.source or 'the sensor'} is stamped {ahead:.0f} s ahead of "
                "the clock here; set the clocks alike"
            )
            raise ReadingError("stamp_ahead", msg)

    def wants(self, location: int, quantity: str = "") -> bool:
        """Return whether a reading of a place would be used now.

        Once decisions are taken, the budget of readings is never exceeded: the last readings are
        kept for what lies on the way that was planned, whatever else is read there. A place that
        is observed already costs nothing.

        `quantity` is the one that completes a visit of the probe.
        """
        left, visit = self.remaining.readings, (quantity, location)
        if left is None or self.restoring or not (self.decisions or self.returning_home):
            return True
        if self.observed_of(quantity)[location]:
            return True
        promised = self.reservations.kept(self.observed_of, self.set_aside)
        if visit not in promised:
            return left > len(promised)
        # A way may cross a place that was blocked, from which no reading was expected.
        return left > len(self.reservations.goals(self.observed_of, self.set_aside) - {visit})

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

    # -- decisions ------------------------------------------------------------------------------

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

        `places` are those where the expert can be asked; None = anywhere.
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
        """Subtract a driven distance and time from the budget."""
        self.remaining = self.remaining.minus(cost=cost)

    def ask(
        self,
        at: int | None,
        *,
        pending: Collection[int] = (),
        passed: Collection[int] = (),
        limit: PlanLimit | None = None,
        probe: str = "",
        waiting: Mapping[str, int | None] = MappingProxyType({}),
        now_ns: int | None = None,
        heading: float | None = None,
        carried: Sequence[str] | None = None,
    ) -> Plan:
        """Choose the next place to observe for a probe standing at `at`.

        A policy that chooses for several probes at once does so with the first of those that wait;
        each of the others is given its share when it is asked for, unless a visit was made since.

        Args:
            at: where the probe stands; None = nowhere yet.
            pending: waypoints already given to other probes, and `passed`.
            passed: places that a probe has left again, whose readings are still to come.
            limit: limit on the computing of this decision; None = the loop's own.
            probe: its name, where there are several.
            waiting: other probes that wait for a decision, and where each of them stands.
            now_ns: time of the decision, for a belief about a field that changes; None = as it is.
            heading: of the probe [rad], where it has a turning radius; None = not known.
            carried: names of the quantities that the probe measures; the first one completes a
                visit; None = all.

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
        self.keep_limits(at, probe)
        if at is not None and self.decisions == 0:
            check_end(self.seen(at, heading), self.remaining, at, speed=self.speed)
        remaining = in_metres(self.remaining, self.speed)
        seen = self.seen(at, heading)
        limit = self.limit if limit is None else limit
        lead, others = self._measured(carried)
        plan = self._choose(seen, at, pending, passed, limit, probe, waiting, lead, others)
        way = plan.path if plan.waypoints else ()
        again = bool(way) and bool(lead.belief.observed[way[-1]])
        self.reservations.make(probe, way, self.lead_of(carried), again=again)
        if plan.waypoints:
            self.decisions += 1
        else:
            if self.beyond:
                why = f"{len(self.beyond)} of {self.whole.n} places are closed by the limits"
                plan = replace(plan, reason=f"{plan.reason}; {why}")
            rest(self.policy)
            if at is not None and remaining.end is not None:
                plan = with_way_home(plan, seen, at, remaining)
        self.returning_home = not plan.waypoints and remaining.end is not None
        if self.speed is not None:
            metres = plan.cost.metres
            plan = replace(plan, cost=Cost(metres, metres / self.speed))
        if isinstance(seen, Turning) and plan.path:
            end = seen.drive(plan.path)[1]
            plan = replace(plan, heading=end if math.isfinite(end) else None)
        return plan

    def seen(self, at: int | None, heading: float | None) -> Topology:
        """Return the map for a probe, with its turning radius if it has one."""
        return turning(self.topology, self.turn_radius, at, heading)

    def _choose(
        self,
        seen: Topology,
        at: int | None,
        pending: Collection[int],
        passed: Collection[int],
        limit: PlanLimit,
        probe: str,
        waiting: Mapping[str, int | None],
        lead: QuantityBelief,
        further: tuple[QuantityBelief, ...],
    ) -> Plan:
        """Return the plan of the policy, or the one that it made for this probe before."""
        left = self.readings_for(probe, pending)
        if left is not None and left <= 0:
            return no_plan(READINGS_SPENT)
        if why := self.good_enough((lead, *further)):
            return no_plan(why)
        unavailable = self.unavailable
        remaining = replace(in_metres(self.remaining, self.speed), readings=left)
        joint = BatchPlan(self.policy_state, self.spent)
        plan = joint.take(probe, at, {*unavailable, *pending})
        whole, observed = replace(self.remaining, readings=left), lead.belief.observed
        if plan is not None and self.fits(plan, remaining=whole, observed=observed):
            self.policy_state = joint.state()
            return plan
        others = {name: place for name, place in waiting.items() if name != probe}
        rng = np.random.default_rng([self.seed, self.decisions])
        policy = self.policy
        request = PlanRequest(
            lead.belief,
            seen,
            at,
            pending=tuple(dict.fromkeys([*pending, *joint.goals])),
            passed=passed,
            waiting=tuple(others.values()),
            limit=limit,
            rng=rng,
            remaining=remaining,
            unavailable=unavailable,
            aim=lead.aim,
            sorties=self._sorties_in_metres(left),
            others=further,
            weight=lead.weight,
            clock=self.clock,
        )
        if not (others and not joint.goals and isinstance(policy, PlansBatch)):
            if isinstance(seen, Turning):
                from gp_active_sensing.planning.routes.curves import plan_with_curves

                plan, joint.policy_state = plan_with_curves(policy, request, joint.policy_state)
            else:
                plan, joint.policy_state = policy.plan(request, joint.policy_state)
        else:
            stand = [at, *others.values()]
            plans, joint.policy_state = policy.plan_batch(request, stand, joint.policy_state)
            plan = plans[0]
            for (name, place), theirs in zip(others.items(), plans[1:], strict=True):
                if theirs.waypoints:
                    joint.keep(name, place, theirs)
        self.policy_state = joint.state()
        return plan

    def _sorties_in_metres(self, readings: int | None) -> Sorties | None:
        if self.sorties is None:
            return None
        whole = replace(in_metres(self.sorties.whole, self.speed), readings=readings)
        return Sorties(whole, in_metres(self.sorties.fresh, self.speed))

    def set_aims(self, aim: Aim | None, further: Mapping[str, Aim]) -> None:
        """Set the errors of the maps with which the mission is over; `further` by quantity."""
        self.aim = aim
        self.quantities = {
            name: replace(each, aim=further.get(name)) for name, each in self.quantities.items()
        }

    def finish_links(self) -> None:
        """Update the links to all readings so far, such as before the final maps are recorded."""
        for source in dict.fromkeys(self.links.sources.values()):
            self.links.follow(self.belief_of, source, now=True)

    def _measured(
        self, carried: Sequence[str] | None
    ) -> tuple[QuantityBelief, tuple[QuantityBelief, ...]]:
        """Return the quantities that a probe measures, the one that completes a visit apart."""
        main = QuantityBelief(self.name, self.belief, self.weight, aim=self.aim)
        if carried is None:
            return main, tuple(self.quantities.values())
        lead, *others = (self.quantities.get(name, main) for name in carried)
        return lead, tuple(others)

    def lead_of(self, carried: Sequence[str] | None) -> str:
        """Return the name of the quantity that completes a probe's visits, "" of the main one.

        It measures the quantities `carried`; None = all.
        """
        return carried[0] if carried is not None and carried[0] in self.quantities else ""

    def good_enough(self, measured: Sequence[QuantityBelief] | None = None) -> str:
        """Return why no more readings are needed, "" while some are; see `met`.

        The quantities `measured` count; None = all.
        """
        if measured is None:
            main, further = self._measured(None)
            measured = (main, *further)
        found: list[str] = []
        for each in measured:
            if each.aim is None:
                continue
            why = met(each.aim, each.belief, self.topology, self.unavailable)
            if not why:
                return ""
            found.append(f"{each.name}: {why}" if each.name in self.quantities else why)
        return "; ".join(found)

    def readings_for(self, probe: str, pending: Collection[int]) -> int | None:
        """Return the number of readings left for a probe; None = no limit.

        Each of the others has those kept that it was promised, see `BudgetReservations.kept_from`.
        """
        left = self.remaining.readings
        if left is None:
            return None
        return left - self.reservations.kept_from(probe, pending, self.observed_of, self.set_aside)

    def fits(
        self,
        plan: Plan,
        remaining: Budget | None = None,
        observed: BoolArray | None = None,
    ) -> bool:
        """Return whether a plan made for an expected budget fits into the remaining budget.

        Args:
            plan: with a waypoint.
            remaining: what is left for its probe; None = the loop's own.
            observed: (n,) places that its probe has no need to read; None = those of the main
                quantity.
        """
        left = self.remaining if remaining is None else remaining
        if left.readings is not None and left.readings < 1:
            return False
        observed = self.belief.observed if observed is None else observed
        goal = plan.waypoints[0]
        there = self.seen(goal, plan.heading)
        constraint = BudgetConstraint(there, in_metres(left, self.speed))
        # A goal that is observed is to be read once more.
        reads = sum(not observed[place] for place in set(plan.path)) + int(observed[goal])
        return constraint.allows(goal, plan.cost, reads=reads)

    def replay_decision(
        self,
        state: PolicyState,
        path: tuple[int, ...] = (),
        probe: str = "",
        *,
        again: bool = False,
        carried: Sequence[str] | None = None,
    ) -> None:
        """Replay a decision from before a restart, with its policy state and its way.

        With `again` the plan led to a place that was observed already, to read it once more.
        """
        self.decisions += 1
        self.reservations.make(probe, path, self.lead_of(carried), again=again)
        self.policy_state = state

    def replay_way_home(self, probe: str = "") -> None:
        """Record that the last plan before a restart led to the end place."""
        self.returning_home = True
        self.reservations.drop(probe)

    def release(self, probe: str = "") -> None:
        """Release the readings reserved for the way of a probe that no longer drives it."""
        self.reservations.drop(probe)

    def snapshot(self, clock: Clock | None = None) -> SensingLoop:
        """Return a copy to plan on beside this loop, which goes on taking readings; see `adopt`."""
        other = copy.copy(self)
        other.clock = self.clock if clock is None else clock
        other.blocked = set(self.blocked)
        other.belief = self.belief.copy()
        other.quantities = {
            name: replace(each, belief=each.belief.copy()) for name, each in self.quantities.items()
        }
        other.counts = self.counts.copy()
        other.set_aside = set(self.set_aside)
        other.reservations = self.reservations.copy()
        other._misses = self._misses.copy()
        other._newest_ns = self._newest_ns.copy()
        return other

    def adopt(self, snapshot: SensingLoop, probe: str = "") -> None:
        """Count the decision that a snapshot took (for a probe) as this loop's own."""
        self.decisions = snapshot.decisions
        self.policy_state = snapshot.policy_state
        self.returning_home = snapshot.returning_home
        self.set_limits(snapshot.declared, snapshot.began, snapshot.beyond)
        self.reservations.take_over(snapshot.reservations, probe)


class FurtherReceiver:
    """Receiver of the readings of a further quantity.

    Where it `leads`, the first reading of a place costs the budget, as one of the main quantity.
    """

    def __init__(self, loop: SensingLoop, quantity: str, *, leads: bool = False) -> None:
        self._loop, self._quantity, self._leads = loop, quantity, leads
        self.place = loop.place
        self.amend = loop.amend
        self.reject = loop.reject

    @property
    def belief(self) -> Belief:
        """The belief about the quantity."""
        return self._loop.belief_of(self._quantity)

    @property
    def topology(self) -> Topology:
        """The map."""
        return self._loop.topology

    @property
    def clock_ns(self) -> int | None:
        """Time of the driver's clock [ns]; None = it has none."""
        return self._loop.clock_ns

    def check_budget(self, placed: PlacedReading) -> None:
        """Check that the budget has a reading for a place. Raises ReadingError."""
        if self._leads:
            self._loop.check_room(placed.place, self._quantity)

    def costs(self, location: int) -> bool:
        """Return whether the next reading of a place begins a visit."""
        due = self._leads and self._loop.reservations.is_due(location, self._quantity)
        return due or not self.belief.observed[location]

    def tell(self, readings: Iterable[Reading | PlacedReading]) -> TellReport:
        """Use readings; the new places of the report are those of this quantity."""
        before = self.belief.observed.copy()
        with suppress(ActiveSensingError):
            # A gate looks at it before a reading, a restart does not: both are to round alike.
            self.belief.weights  # noqa: B018  computed on being asked
        if self._leads:
            return self._loop.tell(readings, lead=self._quantity)
        report = self._loop.tell(readings)
        new = (self.belief.observed & ~before).nonzero()[0].tolist()
        return replace(report, new_places=tuple(new))


Receiver: TypeAlias = SensingLoop | FurtherReceiver
"""Receiver of the readings of one quantity."""
