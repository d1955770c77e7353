"""Active-sensing loop: use readings, update the belief, and choose the next place.

A simulator, the replay of a bag, and a robot use the same loop. The loop is not thread-safe. A
program with threads must lock the loop, or plan on a snapshot.
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
    BatchPolicy,
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
from gp_active_sensing.planning.turning import Turning, turning
from gp_active_sensing.topology.base import GraphTopology, Topology
from gp_active_sensing.topology.lookup import place_of
from gp_active_sensing.topology.shut import with_shut
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
"""Longest time by which a stamp may be ahead of the clock, for a field that changes [s]."""
_QUERIES = 1
"""Component of the seed that distinguishes random draws for queries from other draws."""


class SensingLoop:
    """Active-sensing loop: readings -> belief -> plan.

    Args:
        topology: map of the probes.
        belief: belief before the first reading. The loop owns and changes this belief.
        policy: policy that chooses the next place.
        budget: budget of the mission, including its end place.
        seed: seed of all random choices; decision i uses a generator seeded with [seed, i].
        limit: default limit on the computing effort of one decision.
        retries: number of further visits before a place without a reading is set aside.
        snap_distance: largest distance between a reading's position and a place [m].
        speed: the probe's own speed [m/s]; None = the speeds of the map.
        turn_radius: least radius of a curve of the probe [m]; 0 = the probe turns on the spot.
        aim: error of the map at which the mission ends; None = no target error.
        limits: limits on the field at the places that a probe may enter; None = no limits.
        name: name of the main quantity, which `belief` describes; "" = no name.
        weight: weight of the main quantity in the plans.
        quantities: further quantities that the same probes measure, see `engine.quantities`. The
            loop owns and changes the beliefs about these quantities.
        clock: monotonic clock [s], for limits in seconds.

    Raises:
        ValueError: a belief and the map differ in the number of places, or names are repeated.
        ConfigError: the limits refer to an unknown quantity.
        PlanningError: the policy cannot plan with this map or belief, or the end place is unknown.
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
        """Further quantities, keyed by name."""
        if limits is not None and limits.quantity not in ("", name, *self.quantities):
            known = ", ".join(filter(None, (name, *self.quantities))) or "none with a name"
            msg = f"limits.quantity: {limits.quantity!r} is not measured; known: {known}"
            raise ConfigError(msg)
        check_fit(policy, belief, topology, quantities)
        BudgetConstraint(topology, budget)  # checks the end place
        self.whole = self.topology = topology
        """`whole` has all moves. `topology` lacks the moves in `shut`, and those to `beyond`."""
        self.shut: frozenset[tuple[int, int]] = frozenset()
        """Moves (from, to) that are impassable at present; see `shut_moves`."""
        self.sorties: Sorties | None = None
        """Budgets for later batteries; None = no battery change. Set only in a snapshot."""
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
        """Number of readings charged to the budget so far: one for each newly observed place, and
        one for each planned revisit."""
        self.decisions = 0
        self.returning_home = False
        """True if the newest plan leads to the end place of the mission."""
        self.restoring = False
        """True while readings come from a journal. Reservations are ignored during this time."""
        self.counts: Counter[str] = Counter()
        self.set_aside: set[int] = set()
        """Places that gave no reading even after all retries."""
        self.reservations = BudgetReservations()
        self.leads: frozenset[str] = frozenset({""})
        """Names of the quantities that are the first quantity of some probe; see `lead_of`."""
        self.clock_ns: int | None = None
        """Present time [ns]; None = unknown. Stamps far ahead of this time are rejected."""
        self._misses: Counter[int] = Counter()
        self._newest_ns: dict[str, int] = {}
        self.policy = policy
        self.seed = seed
        self.limit = limit
        self.speed = speed
        self.turn_radius = turn_radius
        self.aim = aim
        self.blocked: set[int] = set()
        """Places that cannot be reached at present. The user of the loop updates the set."""
        self.closed: frozenset[int] = frozenset()
        """Places of the present map that are occupied by obstacles; see `move_to`."""
        self.policy_state: PolicyState = None
        self.clock = clock
        self.limits = limits
        self.declared: frozenset[int] = frozenset()
        """Places that are declared safe because a probe started near them."""
        self.began: frozenset[str] = frozenset()
        """Names of the probes whose starts are declared safe."""
        self.beyond: frozenset[int] = frozenset()
        """Places that may lie beyond the limits and must not be entered."""

    # -- the map --------------------------------------------------------------------------------

    @property
    def unavailable(self) -> frozenset[int]:
        """Places that must not be chosen: set aside, blocked, occupied, or beyond the limits."""
        return self.closed.union(self.set_aside, self.blocked, self.beyond)

    def move_to(
        self,
        topology: Topology,
        fresh: Belief,
        closed: Collection[int] = (),
        further: Mapping[str, Belief] = MappingProxyType({}),
    ) -> None:
        """Replace the map by a larger map that begins with the present places, in order.

        Readings, spent budget and reservations stay. Earlier snapshots keep the old map. An error
        leaves the loop unchanged.

        Args:
            topology: the new map.
            fresh: belief about the main quantity over the new map, without readings.
            closed: occupied places of the new map, to which no move leads.
            further: beliefs without readings about the further quantities, keyed by name.

        Raises:
            ValueError: the frame or the first places differ, or a quantity has no belief.
            PlanningError: the policy cannot plan on the new map.
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
        sizes = [belief.n for belief in (fresh, *further.values())]
        if any(n != topology.n for n in sizes):
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
        # Stored plans for several probes may use moves that do not exist any more.
        self.policy_state = BatchPlan(self.policy_state, self.spent).policy_state

    def shut_moves(self, moves: Collection[tuple[int, int]]) -> None:
        """Exclude some moves (from, to) from every plan, and allow all other moves."""
        if not self.shut.issuperset(moves):  # stored plans for several probes may use these moves
            self.policy_state = BatchPlan(self.policy_state, self.spent).policy_state
        self.shut = frozenset(moves)
        self._restrict()

    def keep_limits(self, at: int | None = None, probe: str = "") -> None:
        """Close the places that may lie beyond the limits, and open all other places.

        Places near the first place `at` of a probe are declared safe.
        """
        if self.limits is None:
            return
        began, declared = self.began, set(self.declared)
        if at is not None and probe not in began:
            declared |= set(self.limits.near(self.whole, at).tolist())
            began = began | {probe}
        closed = self.limits.closed(self.belief_of(self.limits.quantity), declared)
        if self.remaining.end is not None:
            closed[self.remaining.end] = False  # a configured end place counts as safe
        self.set_limits(declared, began, np.flatnonzero(closed).tolist())

    def set_limits(
        self, declared: Collection[int], began: Collection[str], beyond: Collection[int]
    ) -> None:
        """Set the places declared safe, the probes that have started, and the closed places."""
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
        """After a restart, repeat a recorded change of the open and closed places.

        Raises:
            ValueError: a place is not on the map.
        """
        if not all(0 <= place < self.whole.n for place in (*closed, *opened, *declared)):
            msg = f"expected places 0 … {self.whole.n - 1}"
            raise ValueError(msg)
        self.set_limits(declared, began, self.beyond.union(closed) - set(opened))

    def limit_figures(self) -> dict[str, int]:
        """Return figures on the limits, keyed by name; {} = no limits.

        ``open`` and ``closed`` are numbers of places. ``times_closed`` and ``times_opened`` count
        changes. ``read_beyond`` is the number of places whose average reading violates the limits.
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
        """Return the unoccupied place that is nearest to `place`."""
        if place not in self.closed:
            return place
        apart = np.hypot(*(self.topology.positions - self.topology.positions[place]).T)
        apart[list(self.closed)] = math.inf
        nearest = int(np.argmin(apart))
        return nearest if math.isfinite(apart[nearest]) else place

    # -- readings -------------------------------------------------------------------------------

    def of(self, quantity: str = "", *, leads: bool = False) -> Receiver:
        """Return the receiver of a quantity's readings; for the main quantity, the loop itself.

        With `leads`, readings of the quantity count against the budget. Use `leads` for a probe
        that does not measure the main quantity.

        Raises:
            ReadingError: there is no such quantity.
        """
        if self.belief_of(quantity) is self.belief:
            return self
        if leads:
            self.leads |= {quantity}
        return FurtherReceiver(self, quantity, leads=leads)

    def belief_of(self, quantity: str = "") -> Belief:
        """Return the belief about a quantity; "" = the main quantity.

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
        """Return the (n,) mask of places with a reading of a quantity; see `Belief.observed`."""
        return self.belief_of(quantity).observed

    @property
    def used(self) -> int:
        """Number of used readings of all quantities."""
        return self.counts["accepted"] + sum(self.counts[f"accepted_{q}"] for q in self.quantities)

    def tell(self, readings: Iterable[Reading | PlacedReading], *, lead: str = "") -> TellReport:
        """Use readings in any order. Each reading is either used or rejected; both are counted.

        A `PlacedReading` was checked before, and is rejected only if the budget does not cover it.
        Only readings of the quantity `lead` count against the budget; "" = the main quantity. A
        newly observed place or a planned revisit counts as one reading. A reading that is older
        than the newest one of its quantity is used, and counted as late.
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
            if not is_new:
                continue
            if leads:
                self._charge(location, lead)
                new_places.append(location)
            # An update after each new place gives the same belief after a restart from a journal.
            of = placed.reading.quantity
            if why := belief.adapt():
                logger.info("the belief%s follows the readings: %s", of and f" about {of}", why)
            self.links.follow(self.belief_of, "" if belief is self.belief else of)
        return TellReport(accepted, tuple(new_places), tuple(rejected), late)

    def _charge(self, location: int, lead: str) -> None:
        self.reservations.pay(location, lead)
        self.remaining = self.remaining.minus(readings=1)
        self.spent += 1
        self.set_aside.discard(location)
        self._misses.pop(location, None)

    def amend(self, before: PlacedReading, reading: PlacedReading) -> TellReport:
        """Replace a reading by another reading of the same stay at a place.

        Args:
            before: stored reading, with the stamp of the first reading at this stay.
            reading: new reading.
        """
        self.belief_of(reading.reading.quantity).amend_placed(before, reading)
        return TellReport(1, late=self._count(reading.reading))

    def reject(self, reading: Reading, error: ReadingError) -> Rejection:
        """Count and log a rejected reading."""
        self.counts[f"rejected_{error.reason}"] += 1
        level = logging.DEBUG if error.reason == "budget_spent" else logging.WARNING
        logger.log(level, "reading rejected: %s", error)
        return Rejection(reading, error.reason, str(error))

    def _count(self, reading: Reading) -> int:
        """Count a used reading. Return 1 if the quantity has a newer reading, else 0."""
        name = reading.quantity if reading.quantity in self.quantities else ""
        newest_ns = self._newest_ns.get(name, reading.stamp_ns)
        self._newest_ns[name] = max(newest_ns, reading.stamp_ns)
        late = int(reading.stamp_ns < newest_ns)
        ending = name and f"_{name}"
        self.counts[f"accepted{ending}"] += 1
        self.counts[f"late{ending}"] += late
        return late

    def advance(self, now_ns: int) -> None:
        """Advance the time of all beliefs to `now_ns` [ns], which ages the stored readings."""
        for belief in (self.belief, *(each.belief for each in self.quantities.values())):
            belief.advance(1e-9 * now_ns)

    def inform(self, readings: Iterable[Reading]) -> TellReport:
        """Use an expert's readings, which do not count against the budget."""
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
        """Check a reading and find its place, but do not use the reading.

        Raises:
            ReadingError: the reading is invalid; the error has the `reason`.
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
        """Check that the budget of readings covers a reading.

        Raises:
            ReadingError: the readings are spent, or reserved for other places.
        """
        if placed.reading.quantity not in self.quantities:
            self.check_room(placed.place)

    def check_room(self, place: int, quantity: str = "") -> None:
        """Check that the budget of readings covers a reading of a quantity at a place.

        Raises:
            ReadingError: the readings are spent, or reserved for other places.
        """
        if not self.wants(place, quantity):
            name = self.topology.names[place]
            msg = (
                f"a reading of {name}: the budget of readings is spent, or kept for where the "
                "probe is going"
            )
            raise ReadingError("budget_spent", msg)

    def costs(self, location: int) -> bool:
        """Return whether the next reading of a place counts against the budget."""
        return not self.belief.observed[location] or self.reservations.is_due(location)

    def _check_stamp(self, reading: Reading) -> None:
        """Reject a stamp far ahead of the clock; it would age all other readings."""
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
        """Return whether the budget covers a reading of a quantity at a place.

        A reading of `quantity` completes a visit of the probe. A reading of an observed place is
        always covered. After the first decision, readings are reserved for planned routes.
        """
        left, visit = self.remaining.readings, (quantity, location)
        if left is None or self.restoring or not (self.decisions or self.returning_home):
            return True
        if self.observed_of(quantity)[location]:
            return True
        promised = self.reservations.kept(self.observed_of, self.set_aside)
        if visit not in promised:
            return left > len(promised)
        # A route may cross a blocked place, where no reading was expected.
        return left > len(self.reservations.goals(self.observed_of, self.set_aside) - {visit})

    def miss(self, location: int) -> bool:
        """Count a visit without a reading.

        Returns:
            True if the place will be visited again; False if the place is now set aside.

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
        """Record a visit without a reading. If `again` is False, the place is set aside."""
        self._misses[location] += 1
        self.counts["missed"] += 1
        if not again:
            self.set_aside.add(location)

    # -- decisions ------------------------------------------------------------------------------

    @property
    def revisits(self) -> bool:
        """True if the policy may choose observed places."""
        return revisits(self.policy)

    @property
    def visits(self) -> int | None:
        """Number of readings charged so far; None = the policy never chooses observed places."""
        return self.spent if self.revisits else None

    def queries(self, places: Collection[int] | None = None) -> tuple[int, ...]:
        """Return the places to ask an expert about before the next decision.

        `places` are the places for which the expert has values; None = all places.
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
        """Subtract the cost of a drive from the budget."""
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
        """Choose the next place to observe for a probe at `at`.

        A policy for several probes plans for all `waiting` probes together. The plans of the other
        probes are stored until these probes ask, or until a reading counts against the budget.

        Args:
            at: place of the probe; None = no place yet.
            pending: waypoints of other probes, including the places of `passed`.
            passed: places that a probe has left before their readings arrived.
            limit: limit on the computing effort of this decision; None = the loop's limit.
            probe: name of the probe, if there are several.
            waiting: places of the other probes that wait for a decision, keyed by the probes'
                names.
            now_ns: time of the decision [ns], for a field that changes; None = unchanged time.
            heading: heading of a probe with a turning radius [rad]; None = unknown.
            carried: names of the quantities that the probe measures; None = all quantities. A
                reading of the first quantity completes a visit of the probe.

        Returns:
            The plan. When the mission is over, the plan has a reason and no waypoint.
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
        seen = self.seen(at, heading)
        if at is not None and self.decisions == 0:
            check_end(seen, self.remaining, at, speed=self.speed)
        remaining = in_metres(self.remaining, self.speed)
        lead, further = self._measured(carried)
        left = self.readings_for(probe, pending)
        if left is not None and left <= 0:
            plan = no_plan(READINGS_SPENT)
        elif why := self.good_enough((lead, *further)):
            plan = no_plan(why)
        else:
            others = {name: place for name, place in waiting.items() if name != probe}
            sorties = self.sorties
            if sorties is not None:
                total = replace(in_metres(sorties.whole, self.speed), readings=left)
                sorties = Sorties(total, in_metres(sorties.fresh, self.speed))
            request = PlanRequest(
                lead.belief,
                seen,
                at,
                pending=pending,
                passed=passed,
                waiting=tuple(others.values()),
                limit=self.limit if limit is None else limit,
                rng=np.random.default_rng([self.seed, self.decisions]),
                remaining=replace(remaining, readings=left),
                unavailable=self.unavailable,
                aim=lead.aim,
                sorties=sorties,
                others=further,
                weight=lead.weight,
                clock=self.clock,
            )
            plan = self._choose(request, probe, others)
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
        """Return the map for a probe; the costs include curves if `turn_radius` is above 0."""
        return turning(self.topology, self.turn_radius, at, heading)

    def _choose(self, request: PlanRequest, probe: str, others: Mapping[str, int | None]) -> Plan:
        """Return the stored plan for a probe, or a new plan of the policy."""
        policy, joint = self.policy, BatchPlan(self.policy_state, self.spent)
        plan = joint.pop(probe, request.at, {*request.unavailable, *request.pending})
        left = replace(self.remaining, readings=request.remaining.readings)
        if plan is not None and self.fits(plan, left, request.belief.observed):
            self.policy_state = joint.state()
            return plan
        request = replace(request, pending=tuple(dict.fromkeys([*request.pending, *joint.goals])))
        if others and not joint.goals and isinstance(policy, BatchPolicy):
            stand = [request.at, *others.values()]
            plans, joint.policy_state = policy.plan_batch(request, stand, joint.policy_state)
            plan = plans[0]
            for (name, place), theirs in zip(others.items(), plans[1:], strict=True):
                if theirs.waypoints:
                    joint.keep(name, place, theirs)
        elif isinstance(request.topology, Turning):
            from gp_active_sensing.planning.routes.curves import plan_with_curves

            plan, joint.policy_state = plan_with_curves(policy, request, joint.policy_state)
        else:
            plan, joint.policy_state = policy.plan(request, joint.policy_state)
        self.policy_state = joint.state()
        return plan

    def set_aims(self, aim: Aim | None, further: Mapping[str, Aim]) -> None:
        """Set the target errors of the main quantity and of the further quantities."""
        self.aim = aim
        self.quantities = {
            name: replace(each, aim=further.get(name)) for name, each in self.quantities.items()
        }

    def finish_links(self) -> None:
        """Update all links between the maps of quantities; they then use all readings."""
        for source in dict.fromkeys(self.links.sources.values()):
            self.links.follow(self.belief_of, source, now=True)

    def _measured(
        self, carried: Sequence[str] | None
    ) -> tuple[QuantityBelief, tuple[QuantityBelief, ...]]:
        main = QuantityBelief(self.name, self.belief, self.weight, aim=self.aim)
        if carried is None:
            return main, tuple(self.quantities.values())
        lead, *others = (self.quantities.get(name, main) for name in carried)
        return lead, tuple(others)

    def lead_of(self, carried: Sequence[str] | None) -> str:
        """Return the name of the first of a probe's quantities; "" = the main quantity.

        A reading of this quantity completes the probe's visit to a place. The probe measures the
        quantities `carried`; None = all quantities.
        """
        return carried[0] if carried is not None and carried[0] in self.quantities else ""

    def good_enough(self, measured: Sequence[QuantityBelief] | None = None) -> str:
        """Return the reason why the map is good enough; "" = a target error is not met.

        The target errors are those of the quantities `measured`; None = all quantities.
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
        """Return the number of unreserved readings that remain for a probe; None = no limit."""
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
        """Return whether an earlier plan fits into the remaining budget.

        Args:
            plan: plan with a waypoint.
            remaining: remaining budget of the probe; None = the loop's budget.
            observed: (n,) mask of observed places; None = places with a reading of `belief`.
        """
        left = self.remaining if remaining is None else remaining
        if left.readings is not None and left.readings < 1:
            return False
        observed = self.belief.observed if observed is None else observed
        goal = plan.waypoints[0]
        there = self.seen(goal, plan.heading)
        constraint = BudgetConstraint(there, in_metres(left, self.speed))
        # A visit of an observed goal costs one more reading.
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
        """Restore the policy state and the route of `probe` from a decision before a restart.

        `again` is True if the goal was already observed before the decision.
        """
        self.decisions += 1
        self.reservations.make(probe, path, self.lead_of(carried), again=again)
        self.policy_state = state

    def replay_way_home(self, probe: str = "") -> None:
        """Record, after a restart, that the newest plan led to the end place."""
        self.returning_home = True
        self.reservations.drop(probe)

    def release(self, probe: str = "") -> None:
        """Release the readings that are reserved for the newest plan of a probe."""
        self.reservations.drop(probe)

    def snapshot(self, clock: Clock | None = None) -> SensingLoop:
        """Return an independent copy that can plan while this loop uses readings; see `adopt`."""
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
        """Copy the decision for a probe from a snapshot into this loop."""
        self.decisions = snapshot.decisions
        self.policy_state = snapshot.policy_state
        self.returning_home = snapshot.returning_home
        self.set_limits(snapshot.declared, snapshot.began, snapshot.beyond)
        self.reservations.copy_from(snapshot.reservations, probe)


class FurtherReceiver:
    """Receiver of the readings of a further quantity.

    These readings count against the budget if `leads` is True.
    """

    def __init__(self, loop: SensingLoop, quantity: str, *, leads: bool = False) -> None:
        self._loop, self._quantity, self._leads = loop, quantity, leads
        self.place = loop.place
        self.amend = loop.amend
        self.reject = loop.reject

    @property
    def belief(self) -> Belief:
        """Belief about the quantity."""
        return self._loop.belief_of(self._quantity)

    @property
    def topology(self) -> Topology:
        """Map of the loop."""
        return self._loop.topology

    @property
    def clock_ns(self) -> int | None:
        """Present time [ns]; None = unknown."""
        return self._loop.clock_ns

    def check_budget(self, placed: PlacedReading) -> None:
        """Raise ReadingError if the budget of readings does not cover a reading."""
        if self._leads:
            self._loop.check_room(placed.place, self._quantity)

    def costs(self, location: int) -> bool:
        """Return True if the next reading of a place is the first one, or a planned further one."""
        due = self._leads and self._loop.reservations.is_due(location, self._quantity)
        return due or not self.belief.observed[location]

    def tell(self, readings: Iterable[Reading | PlacedReading]) -> TellReport:
        """Use readings. The report names the places that got a first reading of the quantity."""
        before = self.belief.observed.copy()
        with suppress(ActiveSensingError):
            # The weights are computed before each reading, for equal rounding after a restart.
            self.belief.weights  # noqa: B018  computed on being asked
        if self._leads:
            return self._loop.tell(readings, lead=self._quantity)
        report = self._loop.tell(readings)
        new = (self.belief.observed & ~before).nonzero()[0].tolist()
        return replace(report, new_places=tuple(new))


Receiver: TypeAlias = SensingLoop | FurtherReceiver
"""Type of the receiver of a quantity's readings."""
