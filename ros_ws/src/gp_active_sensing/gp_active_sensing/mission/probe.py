"""State of one probe of a mission: position, current plan, readings and budget.

The state is used under the mission's lock. A single probe has no name and always takes part. In a
fleet, a probe takes part from its first pose on, until it leaves or is silent for too long.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.checkers import (
    FurtherMonitor,
    GoalChecker,
    GroundMonitor,
    ProgressChecker,
    SensorMonitor,
)
from gp_active_sensing.mission.config import MissionConfig
from gp_active_sensing.mission.course import corners, places_ahead, places_along
from gp_active_sensing.mission.drives import DriveRecord
from gp_active_sensing.mission.flow import PassedPlaces
from gp_active_sensing.mission.inbox import BATCH
from gp_active_sensing.mission.inbox import Envelope as Message
from gp_active_sensing.mission.ingestion.ingestion import Ingestion
from gp_active_sensing.mission.requests import Stage
from gp_active_sensing.mission.sorties import Sortie
from gp_active_sensing.mission.stages import StageLog
from gp_active_sensing.planning.base import crosses
from gp_active_sensing.planning.budget import BudgetConstraint, allowed, in_metres, least_of
from gp_active_sensing.planning.request import Sorties
from gp_active_sensing.records.events import (
    BatteryNoted,
    Event,
    Moved,
    ProbePosition,
    ProbeStatus,
    ReturnBegun,
    SortieChanged,
    VisitMissed,
)
from gp_active_sensing.types import BoolArray, Budget, Clock, Cost, Plan, Reading

logger = logging.getLogger(__name__)

NO_POSE = "no pose yet"
"""Reason why a probe takes no part in the mission: it has sent no pose."""
_WASTED = 0.1
"""Tolerated excess of a drive over its planned length, as a fraction of the planned length."""


class ProbeState:
    """State of one probe.

    Args:
        name: namespace of the probe; "" for a single probe.
        arrival_radius: radius around a waypoint within which the probe counts as arrived [m].
        own_budget: remaining metres and seconds of the probe, and its end place. The budget of
            readings belongs to the whole mission.
        back_to_start: True = the end place is the place of the first decision.
        off_map: an alarm starts beyond this distance from the free area; see `GroundMonitor`.
        flows: True = the probe drives on when it arrives, and does not wait for the reading.
        sortie: range of the probe's battery.
        carried: names of the quantities that the probe measures; None = all.
    """

    def __init__(
        self,
        name: str,
        loop: SensingLoop,
        ingestion: Ingestion,
        config: MissionConfig,
        *,
        arrival_radius: float,
        own_budget: Budget,
        clock: Clock,
        journal: Callable[[Event], None],
        sortie: Sortie,
        back_to_start: bool = False,
        off_map: float | None = None,
        flows: bool = False,
        carried: tuple[str, ...] | None = None,
    ) -> None:
        self.name = name
        self.carried = carried
        self.lead = loop.lead_of(carried)
        """Name of the quantity whose readings complete a visit; "" = the main quantity."""
        self.loop = loop
        self.ingestion = ingestion
        self.config = config
        self.own_budget = own_budget
        self.arrival = GoalChecker(loop, ingestion, arrival_radius, config.reading_timeout)
        self.set_config(config)
        self.progress = ProgressChecker(loop, ingestion)
        self.ground = GroundMonitor(loop, ingestion, off_map)
        self.stages = StageLog(name)
        self.sortie = sortie
        self.drive = DriveRecord()
        self.flows = flows
        self.passed = PassedPlaces(loop, name, self.lead)
        self.sensor = SensorMonitor(self.lead)
        driving = {q for q in ingestion.further if not loop.quantities[q].sampled}
        self.further = FurtherMonitor(driving - {self.lead}, self.lead)
        self._back_to_start = back_to_start
        self.last_plan: Plan | None = None
        self.at: int | None = None
        """Place from which the next decision starts; None = unknown."""
        self.anywhere = False
        """True while a simulated probe has no position; its first waypoint may be any place."""
        self.finished: Stage | None = None
        """Stage that ended last; None after the next decision."""
        self.since = 0.0
        """Arrival of the message that caused the next decision (monotonic seconds)."""
        self.waypoints: tuple[int, ...] = ()
        """Remaining waypoints up to the target; each is in sight of the previous waypoint."""
        self._nearest = math.inf
        """Smallest distance so far between the probe and the present waypoint [m]."""
        self._looked_ns = 0
        """Stamp of the last pose that was compared with the present waypoint [ns]."""
        self.content = False
        """True if the controller has reported the arrival at a waypoint before the target."""
        self.send_again = False
        self.sent_ns = 0
        """Stamp of the waypoint: time of the decision or of a request to repeat the visit [ns]."""
        self.resting = ""
        """Reason why the newest plan had no waypoint; "" = the probe does not rest."""
        self.home = False
        """True when the probe is at its end place."""
        self.gone = NO_POSE if name else ""
        """Reason why the probe takes no part in the mission; "" = the probe takes part."""
        self.last_message = clock()
        self._clock = clock
        self.journal = journal

    @property
    def plan(self) -> Plan | None:
        """Plan that the probe carries out; None = none."""
        return self.stages.plan

    @property
    def observed(self) -> BoolArray:
        """Flags (n,): True at places with a reading of the probe's quantity `lead`."""
        return self.loop.belief_of(self.lead).observed

    @property
    def unread(self) -> BoolArray:
        """Flags (n,): True at available places without a reading of `lead`."""
        unread = ~self.observed
        unread[list(self.loop.unavailable)] = False
        return unread

    @property
    def target(self) -> int | None:
        """Place that the probe drives to; None = none."""
        return self.stages.target

    @property
    def is_still(self) -> bool:
        """True if the probe may be at rest and its localisation sends poses only in motion."""
        return self.ingestion.poses_only_in_motion and (
            self.target is None or self.arrival.inside(self.target)
        )

    @property
    def waypoint(self) -> int | None:
        """Present waypoint: the target or a corner of the way; None = none."""
        return self.waypoints[0] if self.waypoints else self.target

    @property
    def position(self) -> tuple[float, float] | None:
        """Newest position (x, y) [m]; after a restart, the last recorded one; None = unknown."""
        pose = self.ingestion.track.newest or self.ingestion.counted
        return None if pose is None else (pose.x, pose.y)

    @property
    def remaining(self) -> Budget:
        """Remaining budget of this sortie, including the mission's remaining readings."""
        return self.sortie.limit(self.remaining_in_all)

    @property
    def remaining_in_all(self) -> Budget:
        """Remaining readings of the mission, and remaining metres and seconds of the probe."""
        return replace(self.own_budget, readings=self.loop.remaining.readings)

    def pay(self, cost: Cost, now_ns: int, plan: Plan | None = None) -> None:
        """Subtract a drive's cost from budget and battery; `plan` None = the drive was given up."""
        self.own_budget = self.own_budget.minus(cost=cost)
        self.sortie.count(now_ns, self.ingestion.metres)
        if plan is None:
            return
        rest = Cost(0.0, 0.0)
        if plan.waypoints and self.loop.topology.roads:  # half of the last road is not driven yet
            rest = self.loop.topology.route(None, plan.path[-1], self.observed).cost
        self.sortie.note_drive(plan, cost, Cost(0.5 * rest.metres, 0.5 * rest.seconds))

    def sorties_left(self, owed: Cost) -> Sorties | None:
        """Return the budgets for later sorties; None = the battery is not changed.

        `owed` is the cost that has not been subtracted from the budget yet.
        """
        if not self.sortie.limited or self.own_budget.end is None:
            return None
        return Sorties(self.remaining_in_all.minus(cost=owed), self.sortie.fresh())

    def renew(self, number: int) -> None:
        """Begin sortie `number` with another battery."""
        self.sortie.change(number)
        self.home, self.resting = False, ""
        self.since = self._clock()

    @property
    def needs_reading(self) -> bool:
        """True while the probe has no reading and must therefore not drive to a waypoint yet."""
        wanted = self.config.wait_for_reading and self.config.follow == "waypoint"
        return wanted and not self.sensor.received and not self.stages.number

    @property
    def lacks_readings(self) -> bool:
        """True if `mission.silent_places` places in a row had no reading."""
        return 0 < self.config.silent_places <= len(self.sensor.silent)

    def set_config(self, config: MissionConfig) -> None:
        """Apply a changed configuration to all checks."""
        self.config = config
        self._set_timeout()
        if config.arrival_radius is not None:
            self.arrival.radius = config.arrival_radius
        self.ingestion.dwelling.seconds = config.settle
        self.ingestion.dwelling.radius = self.arrival.radius

    def set_delay(self, seconds: float) -> None:
        """Set the sensor's delay [s]."""
        self.ingestion.delay = seconds
        self._set_timeout()

    def _set_timeout(self) -> None:
        config = self.config
        self.arrival.timeout = config.reading_timeout + config.settle + self.ingestion.delay

    def process(self, messages: Collection[Message], most: int = BATCH) -> list[Reading]:
        """Use the probe's messages; return the accepted readings."""
        if messages:
            self.last_message = self._clock()
        self.sensor.record(messages)
        accepted = self.ingestion.process(messages, most)
        self.record_used(accepted)
        return accepted

    def forget_messages(self) -> None:
        """After the probe has left, use or reject its waiting readings and drop its poses."""
        self.record_used(self.ingestion.stop_waiting())
        self.ingestion.track.clear()

    def accept_gated(self) -> int:
        """Use the readings that the outlier gate has stored; return their number."""
        found, accepted = self.ingestion.accept_gated()
        self.record_used(accepted)
        return found

    def record_used(self, accepted: list[Reading]) -> None:
        """Record used readings; readings of the `lead` quantity complete visits."""
        self.further.note(accepted)
        used = [reading for reading in accepted if reading.quantity == self.lead]
        self.stages.note(used)
        self.sensor.note(used)
        for reading in used:
            self.passed.note(reading)

    def whereabouts(self) -> ProbePosition:
        """Return the probe's position and odometer for an event."""
        counted = self.ingestion.counted
        pose = None if counted is None else (counted.stamp_ns, counted.x, counted.y)
        return ProbePosition(self.ingestion.metres, pose, self.ingestion.odometer.memory)

    def status(self) -> ProbeStatus:
        """Return the probe's position and its counts of rejected messages, for an event."""
        return ProbeStatus(self.whereabouts(), dict(self.ingestion.counts))

    def set_out(self, plan: Plan, number: int, now_ns: int) -> None:
        """Start the drive of the mission's decision `number`."""
        self.stages.begin(plan, number, now_ns, self.ingestion.metres)
        self.sortie.begin(now_ns, self.ingestion.metres)
        self.sortie.due = False
        self.last_plan = plan
        self.home, self.resting = False, ""
        self._begin_drive(plan, now_ns)

    def restart_checks(self) -> None:
        """Restart the checks of arrival and progress."""
        self.arrival.forget()
        self.progress.forget()

    def _begin_drive(self, plan: Plan, now_ns: int) -> None:
        self.sent_ns, self.finished = now_ns, None
        self.restart_checks()
        self.drive.begin(plan, self, now_ns)
        self.ingestion.set_out([*plan.path, *self.passed.ways])
        self.update_waypoints()

    @property
    def alarm(self) -> str:
        """Text of the alarm if the probe is off the map; "" = no alarm."""
        if (metres := self.ground.astray) is None or self.gone:
            return ""
        shore = "nearest road" if self.ingestion.matcher.has_lines else "shore"
        return f"{self.name or 'the probe'} is off the map, {metres:.0f} m from the {shore}"

    def turn_back(self) -> None:
        """Set the probe's next waypoint to the nearest place."""
        if self.target is None or (here := self.position) is None:
            return
        place, _ = self.ingestion.matcher.nearest(*here)
        plan, topology = self.plan or self.stages.home, self.loop.topology
        self.update_waypoints()
        if self.waypoint != place:
            there = topology.positions[place]  # lines of sight start at that place
            way = () if plan is None else places_along(topology, there, plan.path)
            self.waypoints = self._by(place, way or (self.target,))
        self.send_again = True

    def _by(self, place: int, way: Sequence[int]) -> tuple[int, ...]:
        """Return `place`, followed by the waypoints of a way that begins at `place`."""
        topology = self.loop.topology
        after = corners(topology, topology.positions[place], way)
        return (place, *(p for i, p in enumerate(after) if i or p != place))

    def update_waypoints(self) -> None:
        """Compute the waypoints again from the probe's position."""
        plan, topology, start = self.plan or self.stages.home, self.loop.topology, self.position
        places = () if plan is None else places_along(topology, start, plan.path)
        self.waypoints = corners(topology, start, places)
        beyond = self.loop.beyond
        if places and beyond and start and self.ingestion.matcher.nearest(*start)[0] in beyond:
            # From a place beyond the limits, the probe drives straight to the next place. Lines of
            # sight start at the nearest open ground, not at the probe's position.
            self.waypoints = self._by(places[0], places)
        self.content, self._nearest = False, math.inf
        if len(self.waypoints) > 1 and topology.ground is not None:
            names = [topology.names[place] for place in self.waypoints]
            whose = f"{self.name}: " if self.name else ""
            logger.info("%sthe way leads by %s to %s", whose, ", ".join(names[:-1]), names[-1])

    def places_ahead(self, count: int) -> tuple[int, ...]:
        """Return the waypoints from the present one to the `count`-th place that the plan chose."""
        waypoints, plan = self.waypoints, self.plan
        if plan is None or not waypoints:
            return waypoints or (() if self.target is None else (self.target,))
        more = self.observed, self.loop.unavailable
        return places_ahead(self.loop.topology, waypoints, plan, *more, count=count)

    def advance(self) -> int | None:
        """Return the next waypoint if the present waypoint is passed; otherwise None.

        On a map with ground, a waypoint is passed when the probe is in the waypoint's cell and the
        next waypoint is in sight. It is also passed when the probe has arrived and moves away
        again. A road is passed when the fraction `mission.coverage` of its length is driven.
        """
        there, self.content = self.content, False
        pose, here = self.ingestion.track.newest, self.ingestion.here
        if len(self.waypoints) < 2 or pose is None or self.config.follow == "probe":
            return None
        if pose.stamp_ns == self._looked_ns and not there:
            return None
        self._looked_ns = pose.stamp_ns
        first, second = self.waypoints[:2]
        matcher, ground = self.ingestion.matcher, self.loop.topology.ground
        place = None if here is None or self.ingestion.off_map else here.place
        arrived = there or self.arrival.inside(first)
        if ground is None or not ground.bounded:
            driven = here is not None and here.fraction >= self.config.coverage
            passed = arrived or place in self.waypoints[1:]
            passed |= place == first and driven and matcher.is_line(first)
        else:
            metres = math.hypot(*(self.loop.topology.positions[first] - (pose.x, pose.y)))
            passed = there or (arrived and metres >= self._nearest)
            self._nearest = min(self._nearest, metres)
            if not passed and (arrived or place == first):
                end = self.loop.topology.positions[[second]]
                passed = bool(ground.in_sight(np.array([pose.x, pose.y]), end)[0])
        if not passed:
            return None
        self.waypoints, self._nearest = self.waypoints[1:], math.inf
        return second

    def check_visit(self, now_ns: int, received: float | None) -> int | None:
        """End the stage if its place has been read, or if no reading came in time.

        Return the place if the visit is to be repeated, otherwise None. `received` is the arrival
        of the newest message (monotonic seconds); None = no message.
        """
        plan = self.plan
        if plan is None:
            return None
        target = plan.waypoints[0]
        newest = self.ingestion.of(self.lead).pipeline.newest_place
        went = newest if self.config.follow == "probe" else None
        done = self.observed[target] and not self.loop.reservations.is_due(target, self.lead)
        if went is not None or done:
            self.complete(now_ns, received, went=went)
        elif self.flows and not self.config.settle and self.arrival.inside(target):
            self.pass_by(now_ns, received)
        elif self.config.follow == "waypoint" and self.arrival.overdue(target, now_ns):
            again = self.loop.miss(target)
            self.journal(VisitMissed(location=target, again=again, stamp_ns=now_ns))
            if again:
                self.sent_ns = now_ns
                return target
            self.sensor.miss(target)
            self.complete(now_ns, received)
        return None

    def complete(self, now_ns: int, received: float | None = None, went: int | None = None) -> None:
        """End the stage. `went` = place that was observed instead of the waypoint."""
        plan = self.plan
        assert plan is not None
        self.waypoints = ()
        metres, visits = self.ingestion.metres, self.loop.visits
        self.finished, cost = self.stages.complete(plan, now_ns, metres, went=went, visits=visits)
        self.pay(cost, now_ns, plan)
        self.journal(Moved(cost=cost, where=self.whereabouts(), went=went, stamp_ns=now_ns))
        self.at = self.standing_after(self.finished)
        self.since = self._clock() if received is None else received

    def pass_by(self, now_ns: int, received: float | None) -> None:
        """End the stage at the arrival, before the reading has come."""
        plan = self.plan
        assert plan is not None
        stage, cost = self.stages.pass_by(plan, now_ns, self.ingestion.metres)
        self.journal(Moved(cost=cost, where=self.whereabouts(), passed=True, stamp_ns=now_ns))
        self.queue_passed(stage, cost, now_ns)
        self.since = self._clock() if received is None else received

    def queue_passed(self, stage: Stage, cost: Cost, now_ns: int) -> None:
        """Queue a stage until its reading comes; the next decision starts at the stage's place."""
        self.waypoints = ()
        self.pay(cost, now_ns, stage.plan)
        self.passed.add(stage, now_ns)
        self.at = stage.plan.waypoint

    def settle_read(self) -> list[Stage]:
        """Return the stages in `passed` that now have a reading, and queue them for recording."""
        read = self.passed.pop_read()
        for stage in read:
            self.stages.settle(stage)
        return read

    def settle_all(self) -> None:
        """At the end of the mission, queue all stages in `passed` for recording."""
        self.settle_read()
        for stage in self.passed.pop_all():
            self.stages.settle(stage)

    def miss_passed(self, place: int, now_ns: int) -> None:
        """Record that no reading of a passed place will come."""
        again = self.loop.miss(place)
        self.journal(VisitMissed(location=place, again=again, passed=True, stamp_ns=now_ns))
        self.sensor.miss(place)
        self.stages.settle(self.passed.miss(place, again=again))

    def standing_after(self, stage: Stage) -> int | None:
        """Return the place of the probe at the end of a stage; None = use the pose."""
        if stage.went is not None:
            return stage.went
        place = stage.plan.waypoint
        if stage.value is None and place is not None and self.observed[place]:
            return None  # the probe may not have reached the place
        return place

    def drop_decision(self, now_ns: int) -> None:
        """Drop the present decision and charge the driven metres."""
        if self.plan is not None or self.stages.home is not None:
            self._charge(now_ns)
        self.forget_decision()
        self.since = self._clock()

    def call_back(self, now_ns: int) -> None:
        """Request a new decision, even if the probe rests or is at its end place."""
        if self.home:
            self._charge(now_ns)
        self.drop_decision(now_ns)
        self.home, self.resting = False, ""

    def _charge(self, now_ns: int, plan: Plan | None = None, *, given_up: bool = True) -> None:
        cost = self.stages.charge(now_ns, self.ingestion.metres)
        self.pay(cost, now_ns, plan)
        self.journal(Moved(cost=cost, where=self.whereabouts(), given_up=given_up, stamp_ns=now_ns))

    def forget_decision(self) -> None:
        """Drop the present decision; the caller charges the drive."""
        self.waypoints = ()
        self.stages.drop()
        self.loop.release(self.name)
        self.restart_checks()
        self.finished = None
        self.at = None

    def set_out_home(self, plan: Plan, now_ns: int) -> None:
        """Start the drive to the end place."""
        self.stages.home = plan
        self._begin_drive(plan, now_ns)

    def remaining_way(self, plan: Plan) -> float:
        """Return the remaining length of a plan's way [m].

        If the probe is off this way, return the length of the shortest way to its last place.
        """
        here = self.standing()
        if here is not None and here not in plan.path:
            cost = self.loop.topology.ways_to(plan.path[-1], "metres").costs[here]
            return math.inf if cost is None else cost.metres
        return self.progress.remaining(plan)

    def overdrawn(self, now_ns: int) -> str:
        """Return why the probe must not continue to its waypoint; "" = it may continue.

        A probe that has used more than planned must turn back when the remaining budget does not
        cover its way and the way home. Seconds are checked only if the battery limits them.
        """
        plan, drive, left = self.plan, self.drive, self.remaining
        by_time = self.sortie.whole.seconds is not None
        if plan is None or left.end is None or drive.plan is not plan:
            return ""
        if left.metres is None and not by_time:
            return ""
        if drive.start is None and self.standing() is None:
            return ""  # off the map, a new decision would have the same result
        metres, planned = self.ingestion.metres, plan.cost
        have = left.minus(cost=self.stages.owed(now_ns, metres))
        driven = Cost(metres - drive.metres, 1e-9 * (now_ns - drive.begun_ns))
        rest = self.remaining_way(plan)
        ways = self.loop.topology.ways_to(left.end, "metres")
        home = ways.costs[plan.path[-1]] or Cost(math.inf, math.inf)
        if self.loop.speed is not None:
            home = Cost(home.metres, home.metres / self.loop.speed)
        pace = planned.seconds / planned.metres if planned.metres > 0.0 else 0.0
        rows = [
            ("m", have.metres, drive.left.metres, driven.metres, planned.metres, rest, home.metres)
        ]
        if by_time:
            times = (driven.seconds, planned.seconds, pace * rest, home.seconds)
            rows.append(("s", have.seconds, drive.left.seconds, *times))
        for unit, now, then, done, whole, to_go, way in rows:
            if now is None or to_go + way <= now:
                continue
            used = done if then is None else max(done, then - now)
            if used + to_go - whole > max(drive.spacing if unit == "m" else 1.0, _WASTED * whole):
                return (
                    f"{self.name or 'the probe'} has used {used:.0f} {unit} where {whole:.0f} "
                    f"{unit} were planned, and the {now:.0f} {unit} that are left are needed for "
                    "the way home"
                )
        return ""

    def standing(self) -> int | None:
        """Return the place of the probe; None = off the map or no position yet."""
        here = self.ingestion.here
        return None if here is None or self.ingestion.off_map else here.place

    # -- end place -----------------------------------------------------------------------------

    @property
    def needs_start(self) -> bool:
        """True while the end place is unknown because the first place is not known yet."""
        return self._back_to_start and self.own_budget.end is None

    def note_start(self, at: int | None) -> None:
        """Set the end place to `at` if the probe must return to its start."""
        if self.needs_start:
            self.own_budget = replace(self.own_budget, end=at)

    def remaining_of_place(self, at: int | None) -> Cost:
        """Return the cost of the rest of the present road segment; 0 for other places.

        On a road the next decision is taken halfway along a segment. The rest of the segment is
        charged to the next drive.
        """
        here, loop = self.ingestion.here, self.loop
        if here is None or at is None or here.place != at:
            return Cost(0.0, 0.0)
        metres, seconds = loop.topology.route(None, at, self.observed).cost
        if loop.speed is not None:
            seconds = metres / loop.speed
        return Cost((1.0 - here.fraction) * metres, (1.0 - here.fraction) * seconds)

    def snapshot(self, now_ns: int) -> SensingLoop:
        """Return a copy of the engine for the next decision, with the probe's remaining budget.

        The cost since the last stage and the rest of a road segment are subtracted from the budget.
        """
        copy, owed = self.loop.snapshot(), self.stages.owed(now_ns, self.ingestion.metres)
        owed = owed.plus(self.remaining_of_place(self.at))
        copy.remaining = self.remaining.minus(cost=owed)
        copy.sorties = self.sorties_left(owed)
        return copy

    def begin_return(self, plan: Plan, at: int | None, now_ns: int, *, sortie: bool) -> None:
        """Start the drive to the end place. `sortie` True = the battery will be changed there."""
        self.sortie.due = sortie
        self.journal(
            ReturnBegun(
                reason=plan.reason,
                path=plan.path,
                cost=plan.cost,
                at=at,
                where=self.whereabouts(),
                sortie=sortie,
                stamp_ns=now_ns,
            )
        )
        self.set_out_home(plan, now_ns)
        logger.info(
            "nothing more is chosen%s (%s); on the way to the end place %s, %.0f m",
            f" for {self.name}" if self.name else "",
            plan.reason,
            self.loop.topology.names[plan.path[-1]],
            plan.cost.metres,
        )

    def arrive_home(self, now_ns: int) -> None:
        """Record the arrival at the end place; charge the cost of the drive to the budget."""
        plan, self.stages.home, self.waypoints = self.stages.home, None, ()
        self.home = True
        self._charge(now_ns, plan, given_up=False)

    # -- battery -------------------------------------------------------------------------------

    def can_read_more(self, at: int | None, pending: tuple[int, ...], owed: Cost) -> bool:
        """Return whether the probe can read further places with another battery.

        `pending` are the waypoints of other probes. `owed` is the cost not yet subtracted from the
        budget.
        """
        loop, sortie, end = self.loop, self.sortie, self.own_budget.end
        if not sortie.limited or end is None or at is None or loop.good_enough():
            return False
        if sortie.number > 1 and not sortie.stages:
            return False  # no stage was completed with the last battery
        readings = loop.readings_for(self.name, pending)
        left = replace(in_metres(self.own_budget.minus(cost=owed), loop.speed), readings=readings)
        home = BudgetConstraint(loop.topology, left).way_home(at)
        if home is None or (readings is not None and readings <= 0):
            return False
        left = least_of(in_metres(sortie.fresh(), loop.speed), left.minus(cost=home.cost))
        constraint, known = BudgetConstraint(loop.topology, left), self.observed.copy()
        if not (crosses(loop.policy) or loop.revisits):
            known[list(pending)] = True
            return bool(constraint.drives(end, known, loop.unavailable))
        known[[*pending, *loop.unavailable]] = True
        ways = loop.topology.ways_from(end)
        there = ~known & np.isfinite(ways.seconds)
        return bool((there & allowed(constraint, ways, there.astype(np.int64))).any())

    def begin_change(self, now_ns: int) -> str:
        """Begin to wait for another battery; return the task for the operator."""
        sortie, name = self.sortie, self.name
        if not sortie.waiting:
            self.journal(SortieChanged(number=sortie.number, over=True, stamp_ns=now_ns))
            sortie.waiting = True
        how = f" of {name}, then call ~/resume or ~/{name}/join" if name else ", then call ~/resume"
        return f"sortie {sortie.number} is over: change the battery{how}"

    def end_change(self, now_ns: int) -> None:
        """Continue the mission with another battery."""
        number = self.sortie.number + 1
        self.journal(SortieChanged(number=number, over=False, stamp_ns=now_ns))
        self.renew(number)
        logger.info("%ssortie %d begins", f"{self.name}: " if self.name else "", number)

    def note_charge(self, level: float, now_ns: int) -> None:
        """Record the battery's state of charge, 0 to 1."""
        if self.sortie.is_news(level):
            where = self.whereabouts()
            self.journal(BatteryNoted(level=level, where=where, stamp_ns=now_ns))
            self.sortie.note_level(level, where.odometer)
