"""A mission of several probes without threads: each is put where the test says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import build_parts
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.requests import DecisionRequest, MissionOutput

SECOND = 1_000_000_000
CONFIG: dict[str, Any] = {
    "map": {"kind": "grid", "columns": 6, "rows": 3, "spacing": 10.0, "speed": 5.0},
    "belief": {"length_scales": [20.0], "signal_std": [1.0], "noise_std": [0.1], "mean_std": 9.0},
    "policy": {"name": "max_entropy"},
    "mission": {"wait_for_reading": False},
    "pose": {"max_age": 100.0, "wait": 0.0},
}


class Team:
    """Probes on a grid; sections of `parameters` are merged into `CONFIG`."""

    def __init__(
        self, names: Sequence[str] = ("a", "b", "c"), run_dir: Path | None = None, **parameters: Any
    ) -> None:
        self.config = {**CONFIG, "probes": list(names), "run_dir": str(run_dir or "")}
        for key, value in parameters.items():
            own = self.config.get(key)
            self.config[key] = {**own, **value} if isinstance(own, dict) else value
        self.t = 1.0
        self.sent: dict[str, list[int]] = {}
        self.asked: DecisionRequest | None = None
        self.begin()

    def begin(self) -> None:
        config = from_mapping(ActiveSensingConfig, self.config)
        self.parts = build_parts(config, None, clock=lambda: self.t)
        self.mission = self.parts.mission
        self.loop = self.mission.loop
        if self.mission.state == "idle":
            self.mission.start()

    def probe(self, name: str) -> ProbeState:
        return self.mission.probes[name]

    def target(self, name: str) -> int:
        place = self.probe(name).target
        assert place is not None, f"{name} is sent nowhere"
        return place

    def put(self, name: str, place: int, *, read: bool = True, pose: bool = True) -> None:
        x, y = self.loop.topology.positions[place].tolist()
        stamp = round(self.t * SECOND)
        if pose:
            self.mission.inbox.put(Pose(stamp, "map", x, y, 0.0), self.t, name)
        if read:
            self.mission.inbox.put(RawReading(stamp, 5.0, None), self.t, name)

    def here(self, *names: str) -> None:
        """Put probes on places of their own, without a reading."""
        for number, name in enumerate(names):
            self.put(name, 5 * number, read=False)

    def step(self, seconds: float = 1.0, *, plan: bool = True) -> None:
        """Let time pass until nothing is to be planned any more."""
        self.t += seconds
        for _ in range(10):
            jobs = [self._do(step, plan=plan) for step in self.mission.step(self.now_ns)]
            if not any(jobs):
                return
        pytest.fail("it asks for decisions again and again")

    def obey(self, *names: str) -> None:
        for name in names:
            self.put(name, self.target(name))
        self.step()

    @property
    def now_ns(self) -> int:
        return round(self.t * SECOND)

    def _do(self, step: MissionOutput, *, plan: bool) -> bool:
        if step.again is not None:
            self.sent.setdefault(step.probe, []).append(step.again)
        if not isinstance(step.job, DecisionRequest):
            return False
        if step.job.decide:
            self.asked = step.job
            if plan:
                self.plan()
            return plan
        self.mission.showing = False
        return False

    def plan(self) -> bool:
        job, self.asked = self.asked, None
        answer = job.ask()
        used = self.mission.decided(job, answer)
        if used and answer.path:
            self.sent.setdefault(job.probe, []).append(answer.path[-1])
        return used

    @property
    def over(self) -> bool:
        return self.mission.state == "ended"

    @property
    def observed(self) -> list[int]:
        return np.flatnonzero(self.loop.belief.observed).tolist()

    @property
    def pending(self) -> list[int]:
        return [p.plan.waypoints[0] for p in self.mission.fleet.present if p.plan is not None]
