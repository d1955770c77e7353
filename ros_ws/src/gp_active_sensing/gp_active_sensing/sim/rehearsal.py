"""Run the mission of the nodes with simulated probes in virtual time, in one process.

The mission, its parts and the simulated probes are those of the nodes; only what carries messages
between them is left out, and computing takes no time. So an hour's mission takes seconds, and with
limits in expansions it is the same every time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.experts import AnswersConfig
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents, build_parts
from gp_active_sensing.mission.inbox import RawReading, raw_answer
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.requests import DecisionRequest, ExpertRequest, MissionOutput
from gp_active_sensing.sim.consulting import expert_of
from gp_active_sensing.sim.fleet import build_players
from gp_active_sensing.sim.known import known_of
from gp_active_sensing.sim.robot import EPOCH_NS
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.world import build_world, check_end_comes

__all__ = ["SimulationRunner", "asking_of", "parameters_of", "visits_of"]

_SECTIONS = ("map", "belief", "policy", "budget", "limit", "seed")
_LEFT_OUT = ("start",)
"""Keys of a scenario's probe that only the simulator has."""


def parameters_of(scenario: Scenario) -> dict[str, Any]:
    """Return what a scenario says of the parameters of the node ``active_sensing``."""
    whole = scenario.to_mapping()
    found = {section: whole[section] for section in _SECTIONS}
    found["probe"] = {k: v for k, v in whole["probe"].items() if k not in _LEFT_OUT}
    found["mission"] = visits_of(scenario)
    found["expert"] = asking_of(scenario)
    return found


def visits_of(scenario: Scenario) -> dict[str, Any]:
    """Return what a scenario says of visits, as parameters of the mission."""
    sensor = scenario.sensor
    patience = {"reading_timeout": sensor.seconds + 10.0} if sensor.seconds else {}
    # A scenario's sensor reads where it is sent, and says itself how often it drops out.
    silent = {"wait_for_reading": False, "silent_places": 0}
    return {"retries": sensor.retries, **silent, **patience}


def asking_of(scenario: Scenario) -> dict[str, Any]:
    """Return what a scenario says of how its expert is asked."""
    whole = to_mapping(scenario.expert)
    found = {field.name: whole[field.name] for field in dataclasses.fields(AnswersConfig)}
    return {**found, "ask": scenario.expert.kind != "none"}


class SimulationRunner:
    """Plays a mission step by step.

    Args:
        scenario: field, sensor, map and what the mission runs with.
        probes: names; empty = one without a name; None = as many as the scenario says.
        starts: places where the first ones begin, see `build_players`.
        period: between two poses [s].
        parameters: of the node, instead of the scenario's; sections are merged.
        driver: who drives the mission, for the records.

    Raises:
        ActiveSensingError: anything that cannot be used.
    """

    def __init__(
        self,
        scenario: Scenario,
        probes: Sequence[str] | None = None,
        starts: Sequence[str] = (),
        *,
        period: float = 0.5,
        parameters: Mapping[str, Any] | None = None,
        driver: str = "ros",
    ) -> None:
        check_end_comes(scenario, scenario.build_policy())
        self.world = world = build_world(scenario)
        probes = scenario.names if probes is None else tuple(probes)
        self.players = build_players(scenario, world, probes, starts)
        self.truth = world.truth
        self.expert = expert_of(scenario, world)
        self.period = period
        self.now_ns = EPOCH_NS
        self.silent: set[str] = set()
        """Probes whose messages get lost, both ways; they drive on to their last waypoint."""
        self.on_stage: Callable[[Mapping[str, Any]], None] = lambda record: None
        """Called with the record of each stage, where records are kept (parameter run_dir)."""
        self.sent: list[tuple[str, int]] = []
        """Every waypoint sent: to whom, and the place."""
        mapping = parameters_of(scenario)
        mapping.update(plan_ahead=False, probes=list(probes))
        for key, value in (parameters or {}).items():
            own = mapping.get(key)
            both = isinstance(own, dict) and isinstance(value, Mapping)
            mapping[key] = {**own, **value} if both else value  # type: ignore[dict-item]
        config = from_mapping(ActiveSensingConfig, mapping)
        self.parts: MissionComponents = build_parts(
            config, scenario.to_mapping(), clock=self.clock, driver=driver, known_of=known_of
        )
        self.mission = self.parts.mission

    def clock(self) -> float:
        """Return virtual seconds."""
        return 1e-9 * self.now_ns

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return 1e-9 * (self.now_ns - EPOCH_NS)

    def run(self, seconds: float) -> bool:
        """Go on until the mission is over or so much time has passed; say whether it is over."""
        until_ns = self.now_ns + round(1e9 * seconds)
        while self.mission.state != "ended" and self.now_ns < until_ns:
            self.step()
        return self.mission.state == "ended"

    def step(self) -> list[MissionOutput]:
        """Let a period pass; return what the mission asked for in it."""
        if self.mission.state == "idle":
            self.mission.start()
        self.now_ns += round(1e9 * self.period)
        frame = self.mission.loop.topology.frame
        for name, player in self.players.items():
            moment = player.step(self.period)
            if name in self.silent or name not in self.mission.probes:
                continue
            inbox, now = self.mission.inbox, self.clock()
            inbox.put(Pose(moment.stamp_ns, frame, *moment.pose), now, name)
            for reading in moment.readings:
                raw = RawReading(reading.stamp_ns, reading.value, reading.noise_variance)
                inbox.put(raw, now, name)
        self._hear_expert()
        steps = self.mission.step(self.now_ns)
        for step in steps:
            self._do(step)
        return steps

    def _hear_expert(self) -> None:
        """Take the expert's answers that have come by now."""
        if self.expert is None:
            return
        topology = self.mission.loop.topology
        for reading in self.expert.answers(self.clock()):
            answer = raw_answer(reading, topology)
            self.mission.inbox.put(answer, self.clock())

    def _do(self, step: MissionOutput) -> None:
        if step.query and self.expert is not None:
            self.expert.ask(step.query, self.clock())
        if step.plan is not None:
            self._send(step.probe, step.plan.path[-1])
        if step.again is not None:
            self._send(step.probe, step.again)
        if isinstance(step.job, ExpertRequest):
            self.mission.queried(step.job, step.job.ask())
        elif isinstance(step.job, DecisionRequest) and step.job.decide:
            plan = step.job.ask()
            if self.mission.decided(step.job, plan):
                if plan.path:
                    self._send(step.job.probe, plan.path[-1])
                self._record(step.job)
        elif isinstance(step.job, DecisionRequest):
            self._record(step.job)
            self.mission.showing = False

    def _record(self, job: DecisionRequest) -> None:
        """Write the record of the stage that ended, where records are kept."""
        stage, recorder = job.finished, self.parts.recorder
        if stage is None or recorder.run is None or not self.mission.claim(stage):
            return
        belief = job.loop.belief
        recorder.stage(stage, belief, belief.mixture())
        self.on_stage(recorder.stages.newest)

    def _send(self, probe: str, place: int) -> None:
        self.sent.append((probe, place))
        if probe not in self.silent:
            self.players[probe].go_to(place)

    def close(self) -> None:
        """Close the records."""
        self.parts.recorder.close()
