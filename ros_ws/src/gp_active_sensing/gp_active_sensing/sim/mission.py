"""A simulated mission as a sequence of events, taken live or from the journal of an earlier run.

Both ways lead through the same bookkeeping, and the belief is asked at the same moments, so a
resumed mission is equal to the bit to one that was never interrupted.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gp_active_sensing.belief.leave_one_out import Explained
from gp_active_sensing.belief.promise import to_record
from gp_active_sensing.errors import RunError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.records.events import (
    cost_of,
    decision_event,
    dropout_event,
    end_event,
    home_event,
    home_of,
    miss_event,
    moved_event,
    plan_of,
    reading_event,
    reading_of,
    stage_record,
)
from gp_active_sensing.records.metrics import Scorer
from gp_active_sensing.records.regret import regret_of
from gp_active_sensing.sim.consulting import SimulatedQueries, expert_of
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.world import World
from gp_active_sensing.types import Cost, Plan, Reading, Route
from gp_active_sensing.util.versions import versions

if TYPE_CHECKING:
    from gp_active_sensing.sim.sumo import Trip

__all__ = ["EventMission"]

logger = logging.getLogger(__name__)


class EventMission:
    """Ask, drive, read, tell: one event at a time.

    Args:
        scenario: what is simulated.
        world: its map, truth and sensor.
        loop: the engine, before its first reading.
    """

    def __init__(self, scenario: Scenario, world: World, loop: SensingLoop) -> None:
        self.scenario = scenario
        self.world = world
        self.loop = loop
        self.probe = world.probe()
        if world.traffic is not None:
            world.traffic.start()
        self.stage = 0
        self.driven = Cost(0.0, 0.0)
        self.reason = ""
        """Why the mission ended; "" while it goes on."""
        self.dropouts = 0
        self.scorer = Scorer(world.truth, world.sensor)
        self.regret = regret_of(loop, world.truth, scenario.seek)
        expert = expert_of(scenario, world)
        self.consulting = None if expert is None else SimulatedQueries(expert, scenario, loop)
        self._explained = Explained()
        self._started = False
        """Of a mission from a journal: its first event was taken."""
        self._visits: Counter[int] = Counter()
        self._plan: Plan | None = None
        self._to_read: list[tuple[int, int]] | None = None
        self._asked = 0
        self._got: list[float] = []
        self._exact: dict[int, float | None] = {}
        """What was measured on each place of a trip through traffic, None = nothing."""

    def close(self) -> None:
        """End the traffic, if there is any; the mission cannot go on."""
        if self.world.traffic is not None:
            self.world.traffic.close()

    @property
    def ended(self) -> bool:
        """No further event will come."""
        return bool(self.reason)

    @property
    def now_ns(self) -> int:
        """Time of the mission: what was driven so far [ns]."""
        return round(1e9 * self.driven.seconds)

    # -- live ----------------------------------------------------------------------------------

    def step(self) -> dict[str, Any]:
        """Do the next thing and return its event; not to be called once the mission has ended."""
        if self._plan is None:
            return self._consult() or self._decide()
        if self._to_read is None:
            return self._drive(self._plan)
        if not self._to_read:  # it is back where it has to end
            self.reason = self._plan.reason
            return end_event(self.reason)
        return self._read(self._to_read)

    def _consult(self) -> dict[str, Any] | None:
        """Ask the expert, if there is one and the policy wants to; return the event of it."""
        if self.consulting is None:
            return None
        event = self.consulting.consult(self.probe.at, self.driven.seconds)
        if event is not None:
            self.driven = self.driven.plus(Cost(0.0, event["waited"]))
        return event

    def _decide(self) -> dict[str, Any]:
        plan = self.loop.ask(self.probe.at, now_ns=self.now_ns)
        # What the journal gives back after a restart, so that a restart changes nothing.
        self.loop.policy_state = _as_read_back(self.loop.policy_state)
        if plan.waypoint is None and plan.path:
            self._begin(plan)
            return home_event(plan, at=self.probe.at)
        if plan.waypoint is None:
            self.reason = plan.reason or "nothing is left to observe"
            return end_event(self.reason)
        self._begin_stage(plan)
        again = self.loop.reservations.is_due(plan.path[-1])
        return decision_event(
            self.stage, plan, self.loop.policy_state, at=self.probe.at, again=again
        )

    def _drive(self, plan: Plan) -> dict[str, Any]:
        if self.world.traffic is not None:
            trip = self.world.traffic.drive(plan)
            self._move(plan, trip.cost, trip)
            return moved_event(trip.cost, **trip.to_mapping())
        cost = self.probe.cost(Route(plan.path, plan.cost))
        self._move(plan, cost)
        return moved_event(cost)

    def _read(self, to_read: list[tuple[int, int]]) -> dict[str, Any]:
        location, stamp_ns = to_read[0]
        if self._asked == self.scenario.sensor.readings:
            return self._give_up_or_again(location)
        visit = self._visits[location]
        exact = self._exact.get(location)
        reading = None
        if exact is not None or self.world.traffic is None:
            reading = self.world.sensor.read(location, visit, stamp_ns, exact)
        if reading is None:
            self._note_dropout(location)
            return dropout_event(location, stamp_ns=stamp_ns, visit=visit)
        self._tell(location, reading)
        return reading_event(reading, visit=visit)

    def _give_up_or_again(self, location: int) -> dict[str, Any]:
        again = self.loop.miss(location)
        self._note_miss(again)
        return miss_event(location, again=again)

    # -- from the journal ----------------------------------------------------------------------

    def replay(self, event: Mapping[str, Any]) -> None:
        """Take an event of an earlier run without planning, driving or sensing again.

        Raises:
            RunError: the event does not follow from the ones before it.
        """
        try:
            self._take(str(event.get("event")), event)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            msg = f"journal: an event cannot be used ({error!r}): {dict(event)}"
            raise RunError(msg) from error

    def _take(self, kind: str, event: Mapping[str, Any]) -> None:
        plan = self._plan
        if self.ended or (kind == "start") == self._started:
            raise self._out_of_order(event)
        self._started = True
        if kind == "decision":
            decided = plan_of(event)
            if plan is not None or not decided.path or event["stage"] != self.stage + 1:
                raise self._out_of_order(event)
            again = bool(event.get("again", False))
            self.loop.advance(self.now_ns)
            self.loop.replay_decision(event["policy_state"], decided.path, again=again)
            self._begin_stage(decided)
        elif kind == "moved":
            if plan is None or self._to_read is not None:
                raise self._out_of_order(event)
            # Traffic has no memory of its own: what was driven is driven again, and compared.
            traffic = self.world.traffic
            trip = None if traffic is None else traffic.drive_again(plan, event)
            self._move(plan, cost_of(event), trip)
        elif kind in ("reading", "dropout", "miss"):
            location = int(event["location"])
            if not self._to_read or self._to_read[0][0] != location:
                raise self._out_of_order(event)
            if kind == "reading":
                self._tell(location, reading_of(event))
            elif kind == "dropout":
                self._note_dropout(location)
            else:
                self._note_miss(self.loop.miss(location))
        elif kind == "expert":
            if plan is not None or self.consulting is None:
                raise self._out_of_order(event)
            waited = self.consulting.replay(event, self.driven.seconds)
            self.driven = self.driven.plus(Cost(0.0, waited))
        elif kind == "home":
            if plan is not None:
                raise self._out_of_order(event)
            self.loop.replay_way_home()
            self._begin(home_of(event))
        elif kind == "end":
            self.reason = str(event["reason"])
        elif kind == "start":
            self._check_start(event)
        else:
            raise self._out_of_order(event)

    def _check_start(self, event: Mapping[str, Any]) -> None:
        if int(event["seed"]) != self.scenario.seed:
            msg = (
                f"journal: the run was started with seed {event['seed']}, its configuration says "
                f"{self.scenario.seed}; give it back its seed, or start again in another directory"
            )
            raise RunError(msg)
        now, then = versions(), dict(event["versions"])
        if now != then:
            changed = ", ".join(
                f"{name} {then.get(name, 'none')} -> {now.get(name, 'none')}"
                for name in sorted({*now, *then})
                if now.get(name) != then.get(name)
            )
            logger.warning(
                "the run was started with other versions, so digits may differ: %s", changed
            )

    def _out_of_order(self, event: Mapping[str, Any]) -> RunError:
        return RunError(
            f"journal: event {event.get('event')!r} does not follow from the ones before it "
            f"(stage {self.stage}): {dict(event)}; the journal is damaged, start the run again"
        )

    # -- both ----------------------------------------------------------------------------------

    def _begin_stage(self, plan: Plan) -> None:
        self.stage += 1
        self._begin(plan)

    def _begin(self, plan: Plan) -> None:
        self._plan = plan
        if self.consulting is not None:
            self.consulting.settle()
        self._to_read = None
        self._asked = 0
        self._got = []

    def _move(self, plan: Plan, cost: Cost, trip: Trip | None = None) -> None:
        """Drive the plan's path, and note which places are to be read when [ns].

        A trip through traffic says itself when that is, and what was measured.
        """
        started = self.driven.seconds
        self.probe.drive(Route(plan.path, cost))
        passed: list[tuple[int, int]] = []
        elapsed = 0.0
        while not self.probe.arrived:
            dt = self.probe.seconds_to_next
            elapsed += dt
            stamp = round(1e9 * (started + min(elapsed, cost.seconds)))
            passed.extend((place, stamp) for place in self.probe.advance(dt))
        self.loop.moved(cost)
        self.driven = self.driven.plus(cost)
        if plan.waypoints and passed:  # stops there, and reads at the end of that time
            stop = self.scenario.sensor.seconds
            self.driven = self.driven.plus(Cost(0.0, stop))
            goal, stamp = passed[-1]
            passed[-1] = goal, stamp + round(1e9 * stop)
        if trip is not None:
            passed = [(place, stamp) for place, stamp, _ in trip.visits]
            self._exact = {place: value for place, _, value in trip.visits}
        on_the_way = self.scenario.sensor.on_the_way
        if on_the_way:
            self._to_read = passed
        else:
            self._to_read = passed[-1:] if plan.waypoints else []
        self._skip_unwanted()

    def _tell(self, location: int, reading: Reading) -> None:
        """Hand a reading to the loop; one that it rejects leaves the visit without a reading."""
        self._visits[location] += 1
        self._asked += 1
        if self.loop.tell([reading]).accepted:
            self._got.append(reading.value)
        self._next_if_done()

    def _note_dropout(self, location: int) -> None:
        self._visits[location] += 1
        self._asked += 1
        self.dropouts += 1
        self._next_if_done()

    def _note_miss(self, again: bool) -> None:
        self._asked = 0
        if not again and self._to_read:
            self._to_read = []

    def _next_if_done(self) -> None:
        """Go on to the next place of the path; a goal without a reading stays (a miss follows)."""
        to_read = self._to_read
        if not to_read or self._asked < self.scenario.sensor.readings:
            return
        at_goal = len(to_read) == 1 and not self.loop.returning_home
        if at_goal and not self._got:
            return
        self._to_read = to_read[1:]
        self._asked = 0
        if not at_goal:
            self._got = []
        self._skip_unwanted()

    def _skip_unwanted(self) -> None:
        """Pass by the places whose readings the budget does not allow."""
        while self._to_read and not self.loop.wants(self._to_read[0][0]):
            self._to_read = self._to_read[1:]

    def finish_stage(self) -> dict[str, Any] | None:
        """Return the record of the stage that is complete now, None when none is."""
        plan = self._plan
        if plan is None or not plan.waypoints or self._to_read is None or self._to_read:
            return None
        self._plan = None
        goal = plan.path[-1]
        belief = self.loop.belief
        found, truth = belief.mixture(), self.world.truth
        seconds = self.driven.seconds
        topology = self.world.topology
        went = goal if self._got else None
        self._explained = self._explained.after(belief)
        return stage_record(
            stage=self.stage,
            plan=plan,
            name=topology.names[goal],
            position=topology.positions[goal].tolist(),
            value=sum(self._got) / len(self._got) if self._got else None,
            weights=belief.weights.tolist(),
            length_scales=[h.length_scales for h in belief.hyperparameters],
            kernels=[h.kernel for h in belief.hyperparameters],
            **self.scorer.of(belief, seconds, found),
            **to_record(belief.promise(topology.weights, found)),
            **self._explained.to_record(),
            observed=int(belief.observed.sum()),
            set_aside=goal in self.loop.set_aside,
            driven_metres=self.driven.metres,
            driven_seconds=seconds,
            **({} if self.loop.visits is None else {"visits": self.loop.visits}),
            **({"truth_seconds": seconds} if truth.changes else {}),
            **({} if self.consulting is None else self.consulting.record()),
            **({} if self.regret is None else self.regret.stage(went, found.moments()[0], seconds)),
        )


def _as_read_back(state: Any) -> Any:
    return json.loads(json.dumps(state))
