"""Run a mission with simulated probes in virtual time, in one process without ROS.

Time jumps to the next event, such as an arrival or a reading. Computing takes no virtual time,
except for `traffic.planning_time` in live traffic. If `limit.expansions` is set, two runs of a
scenario are equal.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.engine.config import SortieConfig
from gp_active_sensing.errors import ConfigError, RunError
from gp_active_sensing.experts.base import AnswersConfig
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission import changes
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents, OpenRun, build_parts
from gp_active_sensing.mission.inbox import BATCH, RawBattery, RawReading, raw_answer
from gp_active_sensing.mission.names import probe_names
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.requests import DecisionRequest, ExpertRequest, MissionOutput
from gp_active_sensing.mission.stream_config import PlannedConfig
from gp_active_sensing.records.earlier import EarlierRun
from gp_active_sensing.records.event_lines import parse_event
from gp_active_sensing.records.events import DecisionTaken, LimitsMoved, ReturnBegun
from gp_active_sensing.sim.robot import (
    CHANGE_SECONDS,
    EPOCH_NS,
    POSES,
    Observation,
    PlannedWay,
    SharedWorld,
    SimulatedBattery,
    SimulatedRobot,
    home_of,
)
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.world import (
    RANDOM,
    World,
    begun_elsewhere,
    build_world,
    check_mission_ends,
    expert_of,
    knowledge_of,
)
from gp_active_sensing.types import Clock, Plan, Route
from gp_active_sensing.util.files import json_ready


def build_players(
    scenario: Scenario,
    world: World,
    names: Sequence[str] | None = None,
    starts: Sequence[str] = (),
) -> dict[str, SimulatedRobot]:
    """Return the simulated robots by probe name, each at its start.

    `starts` has the starts of the first probes: place names, indices or the word "random". Without
    `starts`, the first probe starts at ``probe.start``. All other starts are drawn from the seed.
    Empty `names` mean one probe without a name; None = the scenario's names.

    Raises:
        ConfigError: names or starts that cannot be used; several probes in live traffic.
    """
    names = probe_names(scenario.names if names is None else names) or ("",)
    if len(starts) > len(names):
        msg = f"starts: expected at most one a probe, {len(names)}, got {len(starts)}"
        raise ConfigError(msg)
    if world.traffic is not None:
        if len(names) > 1 or starts:
            msg = (
                "probes: in live traffic there is one car, which begins at probe.start; several "
                "probes and starts of their own need a field that is known (a table or a draw)"
            )
            raise ConfigError(msg)
        return {names[0]: world.traffic.robot(world)}
    traces = SharedWorld.on(world.topology)
    players: dict[str, SimulatedRobot] = {}
    taken: list[int] = []
    for number, name in enumerate(names):
        if number < len(starts):
            own = begun_elsewhere(world, scenario, _place(world, starts[number]), number, taken)
        elif number:
            own = begun_elsewhere(world, scenario, RANDOM, number, taken)
        else:
            own = world
        if own.start is not None:
            taken.append(own.start)
        players[name] = SimulatedRobot(own, name=name, traces=traces)
    return players


def _place(world: World, given: str) -> str | int:
    """Return `given`, converted to an index if it has only digits and no place has this name."""
    is_name = given in world.topology.names
    return int(given) if given.isascii() and given.isdigit() and not is_name else given


_SECTIONS = ("map", "belief", "policy", "budget", "limits", "limit", "seed", "drive")
"""Sections of a scenario that are also parameters of the node."""
_OF_DECISIONS = (DecisionTaken.KIND, ReturnBegun.KIND, LimitsMoved.KIND)
"""Kinds of events that belong to a decision."""
IDLE = 10.0
"""Simulated time step while no next event is known [s]."""
MOST_ROUNDS = 10_000
"""Largest number of mission steps at one simulated time."""
_DIGITS = 3
"""Number of decimals of live-traffic speeds in the records."""


def parameters_of(scenario: Scenario) -> dict[str, Any]:
    """Return the parameters of the node ``active_sensing`` that a scenario sets."""
    whole = scenario.to_mapping()
    found = {section: whole[section] for section in _SECTIONS}
    found["probe"] = {k: v for k, v in whole["probe"].items() if k != "start"}
    if scenario.quantities:
        planned = {field.name for field in dataclasses.fields(PlannedConfig)}
        further = {
            name: {"topic": name, **{key: each[key] for key in planned}}
            for name, each in whole["quantities"].items()
        }
        found["readings"] = {scenario.main: {}, **further}
    found["mission"] = visits_of(scenario)
    found["expert"] = asking_of(scenario)
    return found


def visits_of(scenario: Scenario) -> dict[str, Any]:
    """Convert a scenario's settings for visits to parameters of the mission."""
    sensor = scenario.sensor
    patience = {"reading_timeout": sensor.seconds + 10.0} if sensor.seconds else {}
    silent = {"wait_for_reading": False, "silent_places": 0}
    return {"retries": sensor.retries, **silent, **patience}


def asking_of(scenario: Scenario) -> dict[str, Any]:
    """Convert a scenario's settings for expert questions to parameters of the mission."""
    whole = to_mapping(scenario.expert)
    found = {field.name: whole[field.name] for field in dataclasses.fields(AnswersConfig)}
    return {**found, "ask": scenario.expert.kind != "none"}


class SimulationRunner:
    """Simulated mission, step by step.

    Args:
        scenario: field, sensor, map and settings of the mission.
        probes: names of the probes; empty = one probe without a name; None = the scenario's names.
        period: time between two poses [s]; None = time jumps to the next event.
        parameters: parameters of the node, which override values of the scenario.
        driver: name of the driver in the records.
        clock: monotonic clock for planning times [s].
        open_run: function that opens the directory of a new or resumed run. A resumed run repeats
            the decisions of its journal.

    Raises:
        ActiveSensingError: a scenario or parameters that cannot be used.
    """

    def __init__(
        self,
        scenario: Scenario,
        probes: Sequence[str] | None = None,
        *,
        period: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        driver: str = "ros",
        clock: Clock = time.monotonic,
        open_run: OpenRun | None = None,
    ) -> None:
        check_mission_ends(scenario, scenario.build_policy())
        self.world = world = build_world(scenario)
        probes = scenario.names if probes is None else tuple(probes)
        self.players = build_players(scenario, world, probes)
        self.truth = world.truth
        self.expert = expert_of(scenario, world)
        self.period = period
        self.now_ns = EPOCH_NS
        self.silent: set[str] = set()
        """Names of probes whose messages are lost in both directions."""
        self.on_stage: Callable[[Mapping[str, Any]], None] | None = None
        """Callback for the record of each stage."""
        self.on_home: Callable[[Plan, str], None] | None = None
        """Callback that receives the plan of a drive to the end place, and the probe's name."""
        sortie, home = scenario.probe.sortie, home_of(world.topology, scenario.probe.end)
        with_battery = self.players if sortie != SortieConfig() else ()
        self.batteries = {name: SimulatedBattery(sortie, home) for name in with_battery}
        self.changing: dict[str, int] = {}
        """Time at which each current battery change ends [ns], by probe."""
        self.sent: list[tuple[str, int]] = []
        """Probe and place of each published waypoint."""
        self.waited = 0.0
        """Time spent waiting for answers of the expert [s]."""
        self._earlier: EarlierRun | None = None
        self._begun = False
        self._deciding: deque[tuple[int, DecisionRequest]] = deque()
        """Time at which each decision is ready [ns], and the request for the decision."""
        self._asked_and_used: dict[str, int] = {}
        self._of_stage: dict[str, dict[str, int]] = {}
        """Numbers of expert questions and used answers for each probe's current decision."""
        self._true_at = 0
        """Number of the last stage with recorded live-traffic speeds."""
        mapping = parameters_of(scenario)
        mapping["probes"] = list(probes)
        for key, value in (parameters or {}).items():
            own = mapping.get(key)
            both = isinstance(own, dict) and isinstance(value, Mapping)
            mapping[key] = {**own, **value} if both else value  # type: ignore[dict-item]
        config = from_mapping(ActiveSensingConfig, mapping)
        self._uses_battery = bool(config.battery.topic)

        def opened() -> EarlierRun:
            assert open_run is not None  # `opened` is called only with an `open_run`
            self._earlier = open_run()
            return self._earlier

        with ExitStack() as undo:
            undo.callback(self._end_traffic)
            self.parts: MissionComponents = build_parts(
                config,
                scenario.to_mapping(),
                clock=self.clock,
                driver=driver,
                field_knowledge=lambda _: knowledge_of(world, scenario),
                topology=world.topology,
                settled=world.map,
                open_run=None if open_run is None else opened,
            )
            undo.pop_all()
        self.mission = self.parts.mission
        self.mission.loop.clock = clock

    def clock(self) -> float:
        """Return the virtual time [s]."""
        return 1e-9 * self.now_ns

    @property
    def seconds(self) -> float:
        """Virtual time since the start [s]."""
        return 1e-9 * (self.now_ns - EPOCH_NS)

    @property
    def dropouts(self) -> int:
        """Number of dropouts of all sensors."""
        return sum(player.dropouts for player in self.players.values())

    def run(self, seconds: float) -> bool:
        """Simulate at most this time [s]; return True if the mission has ended."""
        until_ns = self.now_ns + round(1e9 * seconds)
        while self.mission.state != "ended" and self.now_ns < until_ns:
            self.step()
        return self.mission.state == "ended"

    def step(self) -> list[MissionOutput]:
        """Advance to the next event; return the outputs of the mission."""
        if self.mission.state == "idle":
            self.mission.start()
        if not self._begun:
            self._begun = True
            for name, player in self.players.items():
                if player.at is not None:
                    self._enqueue(name, Observation(self.now_ns, player.pose, 0.0, ()))
                elif name in self.mission.probes:
                    self.mission.fleet.put_in(self.mission.probes[name], self.now_ns)
            return self._step_mission()
        seconds = self._seconds_to_next() if self.period is None else self.period
        passed_ns = max(1, math.ceil(1e9 * seconds - 1e-3))
        consulting = self.mission.consulting
        if consulting is not None and consulting.books.waits(self.clock()):
            self.waited += 1e-9 * passed_ns
        self.now_ns += passed_ns
        for name, player in self.players.items():
            self._enqueue(name, player.step(1e-9 * passed_ns))
        self._change_batteries()
        return self._step_mission()

    def _change_batteries(self) -> None:
        for name, probe in self.mission.probes.items():
            if not probe.sortie.waiting:
                continue
            done_ns = self.now_ns + round(1e9 * CHANGE_SECONDS)
            if self.changing.setdefault(name, done_ns) > self.now_ns:
                continue
            del self.changing[name]
            if name in self.batteries:
                self.batteries[name].fill()
            if name:
                changes.join(self.mission, name)
            else:
                self.mission.resume("its simulated battery is changed")

    def _seconds_to_next(self) -> float:
        # With this bound the inbox has room for all poses of a step: no probe counts as silent.
        most = 0.5 * BATCH * POSES / len(self.players)
        found = [1e-9 * (due_ns - self.now_ns) for due_ns, _ in self._deciding]
        for name, player in self.players.items():
            probe = self.mission.probes.get(name)
            if (seconds := player.seconds_to_event) is not None:
                found.append(seconds)
            elif probe is not None and probe.plan is not None:
                found.append(probe.arrival.remaining(self.now_ns))
        if self.expert is not None and self.expert.due is not None:
            found.append(self.expert.due - self.clock())
        found += [1e-9 * (done_ns - self.now_ns) for done_ns in self.changing.values()]
        consulting = self.mission.consulting
        if consulting is not None and (until := consulting.until) is not None:
            found.append(until - self.clock())
        return max(0.0, min(most, min(found, default=IDLE)))

    def _enqueue(self, name: str, moment: Observation) -> None:
        battery = self.batteries.get(name)
        if battery is not None:
            battery.step(moment)
        if name in self.silent or name not in self.mission.probes:
            return
        if self.players[name].at is None and not moment.way:
            return  # the probe is not on the map yet
        inbox, now, frame = self.mission.inbox, self.clock(), self.mission.loop.topology.frame
        way = [*moment.way, (moment.stamp_ns, moment.pose)]
        if len(way) > 1 and way[-2][0] == moment.stamp_ns:
            way.pop()
        for stamp_ns, pose in way:
            x, y, heading, *up = pose
            z = up[0] if up else math.nan
            inbox.put(Pose(stamp_ns, frame, x, y, heading, z=z), now, name)
        if battery is not None and self._uses_battery:
            inbox.put(RawBattery(moment.stamp_ns, battery.level), now, name)
        for reading in moment.readings:
            value = reading.stamp_ns, reading.value, reading.noise_variance
            inbox.put(RawReading(*value, quantity=reading.quantity), now, name)

    def _step_mission(self) -> list[MissionOutput]:
        """Step the mission until it has no output. Raises RunError after `MOST_ROUNDS` steps."""
        done: list[MissionOutput] = []
        for _ in range(MOST_ROUNDS):
            self._process_answers()
            outputs = self.mission.step(self.now_ns)
            self._record_truth()
            for output in outputs:
                self._do(output)
            self._process_decisions()
            done += outputs
            if not outputs and not len(self.mission.inbox):
                return done
        msg = f"the mission does not come to rest at {self.seconds:g} s"
        raise RunError(msg)

    def _process_answers(self) -> None:
        if self.expert is None:
            return
        topology = self.mission.loop.topology
        for reading in self.expert.answers(self.clock()):
            self.mission.inbox.put(raw_answer(reading, topology), self.clock())

    def _do(self, step: MissionOutput) -> None:
        if step.query and self.expert is not None:
            self.expert.ask(step.query, self.clock())
        if step.again is not None:
            self._send(step.probe, step.again)
        if isinstance(step.job, ExpertRequest):
            self.mission.queried(step.job, step.job.ask())
        elif isinstance(step.job, DecisionRequest) and step.job.decide:
            traffic = self.world.traffic
            seconds = 0.0 if traffic is None else traffic.traffic.planning_time
            self._deciding.append((self.now_ns + round(1e9 * seconds), step.job))
        elif isinstance(step.job, DecisionRequest):
            self._record(step.job)
            self.mission.showing = False

    def _process_decisions(self) -> None:
        while self._deciding and self._deciding[0][0] <= self.now_ns:
            _, job = self._deciding.popleft()
            plan = self._decide(job)
            if self.mission.decided(job, plan):
                if plan.path:
                    self._send(job.probe, plan.path[-1], job.at, plan)
                self._record(job)
                self._of_stage[job.probe] = self._of_expert()
                if plan.path and plan.waypoint is None and self.on_home is not None:
                    self.on_home(plan, job.probe)

    def _recorded(self, loop: SensingLoop) -> DecisionTaken | ReturnBegun | None:
        """Return the journal's next decision; None = the journal's next event is no decision.

        Changes of the limits that precede the decision are applied to `loop`.
        """
        for line in () if self._earlier is None else self._earlier.next:
            if line.get("event") not in _OF_DECISIONS:
                return None
            event = parse_event(line)
            if isinstance(event, DecisionTaken | ReturnBegun):
                return event
            assert isinstance(event, LimitsMoved)
            loop.replay_limits(event.closed, event.opened, event.declared, event.began)
        return None

    def _decide(self, job: DecisionRequest) -> Plan:
        """Return the next decision of a resumed run's journal, or else a new decision."""
        event = self._recorded(job.loop)
        if isinstance(event, DecisionTaken):
            path, again = event.plan.path, event.again
            job.loop.replay_decision(
                event.policy_state, path, job.probe, again=again, carried=job.carried
            )
            return event.plan
        if event is not None:
            job.loop.replay_way_home(job.probe)
            return event.plan
        plan = job.ask()
        # Encode and decode as JSON: a resumed run reads this state from JSON.
        job.loop.policy_state = json.loads(json.dumps(json_ready(job.loop.policy_state)))
        return plan

    def _record(self, job: DecisionRequest) -> None:
        stage, recorder = job.finished, self.parts.recorder
        wanted = recorder.run is not None or self.on_stage is not None
        if stage is None or not wanted or not self.mission.claim(stage):
            return
        loop = job.loop
        recorder.stage(stage, loop, None, **self._of_stage.get(job.probe, {}))
        if self.on_stage is not None:
            self.on_stage(recorder.stages.newest)

    def _record_truth(self) -> None:
        run, traffic = self.parts.recorder.run, self.world.traffic
        if traffic is None:
            return
        (probe,) = self.mission.probes.values()  # live traffic has one car
        stage = probe.finished
        if stage is None or stage.number == self._true_at:
            return
        self._true_at = stage.number
        seconds = 1e-9 * stage.stamp_ns
        traffic.truth.add(seconds, traffic.values())
        if run is not None:
            values = self.truth.at(seconds).round(_DIGITS).tolist()
            run.append_truth({"seconds": seconds, "values": values})

    def _of_expert(self) -> dict[str, int]:
        consulting = self.mission.consulting
        if consulting is None:
            return {}
        counts, before = consulting.books.counts, self._asked_and_used
        self._asked_and_used = {word: counts[word] for word in ("asked", "used")}
        return {f"expert_{w}": n - before.get(w, 0) for w, n in self._asked_and_used.items()}

    def _send(
        self, probe: str, place: int, at: int | None = None, plan: Plan | None = None
    ) -> None:
        self.sent.append((probe, place))
        if probe not in self.silent:
            planned = None
            if plan is not None:
                planned = PlannedWay(at, Route(plan.path, plan.cost), plan.waypoints[1:])
            self.players[probe].go_to(place, planned)

    def close(self) -> None:
        """Close the records and end live traffic."""
        self._end_traffic()
        self.parts.recorder.close()

    def _end_traffic(self) -> None:
        for player in self.players.values():
            player.close()
