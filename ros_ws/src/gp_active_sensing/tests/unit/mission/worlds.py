from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.engine.config import SortieConfig
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.config import MissionConfig
from gp_active_sensing.mission.inbox import Inbox, RawReading
from gp_active_sensing.mission.ingestion.ingestion import Ingestion
from gp_active_sensing.mission.matching import MapMatcher
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.poses import Pose, PoseTrack
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.requests import DecisionRequest, MissionOutput
from gp_active_sensing.mission.sorties import Sortie
from gp_active_sensing.mission.stream_config import BatteryConfig, PoseConfig, ReadingConfig
from gp_active_sensing.planning import build_policy
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import Event
from gp_active_sensing.topology import MapConfig, RoadMap, Roads, Segment, Topology, build_topology
from gp_active_sensing.types import Budget, PlacedReading, Reading

SECOND = 1_000_000_000


def placed(reading: Reading) -> PlacedReading:
    """Return a reading as one that was checked, on a belief without a transform."""
    assert reading.location is not None
    return PlacedReading(reading, reading.location, reading.value, reading.noise_variance)


def grid(columns: int = 4, rows: int = 1, spacing: float = 10.0) -> Topology:
    config = MapConfig("grid", columns=columns, rows=rows, spacing=spacing)
    return build_topology(config)


def chain() -> Roads:
    """A road of three segments of 100 m, both ways: a1 a2 a3 there, b3 b2 b1 back."""
    xs = (0.0, 100.0, 200.0, 300.0)
    segments = []
    for i in range(3):
        line = ((xs[i], 0.0), (xs[i + 1], 0.0))
        segments.append(Segment(f"a{i + 1}", f"J{i}", f"J{i + 1}", line, 100.0, speed_limit=10.0))
        back = line[::-1]
        segments.append(Segment(f"b{i + 1}", f"J{i + 1}", f"J{i}", back, 100.0, speed_limit=10.0))
    return Roads(RoadMap("chain", "map", tuple(segments)))


def place(topology: Topology, name: str) -> int:
    return topology.names.index(name)


def job_of(steps: list[MissionOutput]) -> DecisionRequest | None:
    jobs = [step.job for step in steps if step.job is not None]
    assert len(jobs) < 2
    return jobs[0] if jobs else None


class Rig:
    """A mission without threads: `pose` and `reading` arrive, `step` does what is to be done."""

    def __init__(
        self,
        topology: Topology,
        *,
        budget: int | Budget | None = None,
        back_to_start: bool = False,
        max_age: float = 1.0,
        pose_wait: float = 0.1,
        inbox: int = 1000,
        taking: dict[str, Any] | None = None,
        **mission: Any,
    ) -> None:
        self.topology = topology
        belief = BeliefConfig(
            length_scales=(20.0, 60.0), signal_std=(1.0,), noise_std=(0.1,), mean_std=10.0
        )
        self.config = MissionConfig(**({"wait_for_reading": False} | mission))
        whole = budget if isinstance(budget, Budget) else Budget(readings=budget)
        self.loop = SensingLoop(
            topology,
            build_belief(belief, topology.features),
            build_policy({"name": "ie"}),
            budget=Budget(readings=whole.readings),
            retries=self.config.retries,
        )
        self.loop.belief.place_at(topology.points, topology.feature_names)
        matcher = MapMatcher(topology, self.config.snap_distance)
        taking = dict(taking or {})
        max_ahead = taking.pop("max_ahead", None)
        self.loop.snap_distance = matcher.snap_distance
        self.events: list[dict[str, Any]] = []
        self.seconds = 0.0
        clock: Callable[[], float] = lambda: self.seconds  # noqa: E731
        self.ingestion = Ingestion(
            self.loop,
            matcher,
            PoseTrack(max_age, 60.0),
            coverage=self.config.coverage,
            reading=ReadingConfig(**({"gate": 0.0, "window": 0.0} | taking)),
            pose=PoseConfig(wait=pose_wait, max_ahead=max_ahead),
            clock=clock,
            running=clock,
            journal=self._journal,
        )
        self.probe = ProbeState(
            "",
            self.loop,
            self.ingestion,
            self.config,
            arrival_radius=self.config.arrival_radius or 2.0,
            own_budget=replace(whole, readings=None),
            clock=clock,
            journal=self._journal,
            sortie=Sortie(SortieConfig(), BatteryConfig()),
            back_to_start=back_to_start,
        )
        self.mission = Mission(
            self.loop, [self.probe], Inbox(inbox), self.config, clock=clock, journal=self._journal
        )
        self.reports: list[DecisionRequest] = []
        self.sent: list[int] = []
        self.over = False
        self.asked: DecisionRequest | None = None

    def _journal(self, event: Event) -> None:
        self.events.append(to_line(event))

    def pose(
        self, t: float, x: float, y: float = 0.0, heading: float = 0.0, frame: str = "map"
    ) -> None:
        what = Pose(round(t * SECOND), frame, x, y, heading)
        self.mission.inbox.put(what, self.seconds)

    def reading(self, t: float, value: float = 1.0, variance: float | None = None) -> None:
        self.mission.inbox.put(RawReading(round(t * SECOND), value, variance), self.seconds)

    def read(
        self,
        t: float,
        x: float,
        y: float = 0.0,
        heading: float = 0.0,
        *,
        value: float = 1.0,
        variance: float | None = None,
    ) -> None:
        """Let a pose and a reading of one time arrive, and step."""
        self.pose(t, x, y, heading)
        self.reading(t, value, variance)
        self.step(t)

    def step(self, t: float, *, plan: bool = True) -> None:
        for step in self.mission.step(round(t * SECOND)):
            self._do(step, plan=plan)

    def _do(self, step: MissionOutput, *, plan: bool) -> None:
        if step.again is not None:
            self.sent.append(step.again)
        self.over = self.over or bool(isinstance(step.job, DecisionRequest) and step.job.last)
        if step.job is not None and step.job.decide:
            self.asked = step.job
            if plan:
                self.plan()
        elif step.job is not None:
            self.reports.append(step.job)

    def plan(self) -> None:
        job, self.asked = self.asked, None
        answer = job.ask()
        if self.mission.decided(job, answer) and answer.path:
            self.sent.append(answer.path[-1])

    @property
    def accepted(self) -> int:
        return self.loop.counts["accepted"]

    @property
    def observed(self) -> list[str]:
        return [self.topology.names[i] for i in np.flatnonzero(self.loop.belief.observed)]


def begun(rig: Rig, x: float = 0.0, y: float = 0.0, t: float = 1.0) -> Rig:
    """Start the mission of a probe that stands at (x, y); it is sent to its first place."""
    rig.mission.start()
    rig.pose(t, x, y)
    rig.step(t)
    return rig


def drive_to(
    rig: Rig, t: float, target: int | None = None, value: float | None = 5.0, *, plan: bool = True
) -> None:
    x, y = rig.topology.positions[rig.sent[-1] if target is None else target].tolist()
    rig.pose(t, x, y)
    if value is not None:
        rig.reading(t, value)
    rig.step(t, plan=plan)
