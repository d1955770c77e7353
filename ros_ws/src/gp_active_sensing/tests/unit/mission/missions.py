"""Whole missions in virtual time, without nodes: a probe that obeys, kills that spare nothing."""

from __future__ import annotations

from collections import Counter, deque
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents, build_parts
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.live_map import FirstMap
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.requests import DecisionRequest, MissionOutput
from gp_active_sensing.records.run_map import GridMap
from gp_active_sensing.types import FloatArray

SECOND = 1_000_000_000
D = TypeVar("D", bound="Drive")
CONFIG: dict[str, Any] = {
    "map": {"kind": "grid", "columns": 6, "rows": 5, "spacing": 10.0, "speed": 5.0},
    "belief": {
        "length_scales": [10.0, 20.0, 40.0],
        "signal_std": [2.0],
        "noise_std": [0.3],
        "mean_std": 20.0,
    },
    "policy": {"name": "bal", "horizon": 3},
    "limit": {"expansions": 20},
    "budget": {"readings": 12},
    "mission": {"wait_for_reading": False},
}


class Killed(Exception):
    """The process is gone: nothing after this line happened."""


class Drive:
    """A probe that drives to each waypoint; its messages are kept for a node that starts again."""

    def __init__(
        self, run_dir: Path | None, *, dropout: float = 0.0, lag: float = 0.0, **config: Any
    ) -> None:
        config["mission"] = {**CONFIG["mission"], **config.get("mission", {})}
        self.config = {**CONFIG, **config, "run_dir": "" if run_dir is None else str(run_dir)}
        self.dropout = dropout
        self.lag_ns = round(SECOND * lag)
        self.late: deque[RawReading] = deque()
        """Readings that come so much later than they were taken."""
        self.now_ns = SECOND
        self.sent: list[Pose | RawReading] = []
        self.visits: Counter[int] = Counter()
        self.obeyed: tuple[int, int] | None = None
        self.decided: list[int] = []
        self.die_at: int | None = None
        """Number of the decision that is being computed when the process is killed."""
        self.parts: MissionComponents | None = None
        self.first: GridMap | None = None
        """The first map, of a mission whose map comes by a topic."""

    @property
    def built(self) -> MissionComponents:
        assert self.parts is not None
        return self.parts

    def start(self: D) -> D:
        config = from_mapping(ActiveSensingConfig, self.config)
        first = None if self.first is None else FirstMap.of(config.map, self.first)
        self.parts = build_parts(config, None, clock=lambda: 1e-9 * self.now_ns, first=first)
        mission = self.parts.mission
        if mission.state == "idle":
            mission.start()
        if not self.sent:
            self._send(Pose(self.now_ns, "map", 0.0, 0.0, 0.0))
        else:
            for what in self.sent:
                mission.inbox.put(what, 0.0)
        return self

    def start_again(self) -> None:
        self.kill()
        self.start()

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def decide(self, stage: int) -> None:
        while self.built.mission.decisions.stage < stage:
            self.step()

    def run(self, steps: int = 10_000) -> None:
        for _ in range(steps):
            if self.built.mission.state == "ended":
                return
            self.step()
        msg = "the mission does not end"
        raise AssertionError(msg)

    def step(self) -> None:
        self.now_ns += SECOND // 10
        while self.late and self.now_ns - self.late[0].stamp_ns >= self.lag_ns:
            self._send(self.late.popleft())
        for step in self.built.mission.step(self.now_ns):
            self._do(step)

    def _do(self, step: MissionOutput) -> None:
        mission = self.built.mission
        if isinstance(step.job, DecisionRequest) and step.job.decide:
            if len(self.decided) == self.die_at:
                self.die_at = None
                raise Killed
            plan = step.job.ask()
            if mission.decided(step.job, plan) and plan.path:
                self.decided.append(plan.path[-1])
                self._obey()
        elif step.again is not None:
            self._obey()

    def _obey(self) -> None:
        probe = self.built.mission.probe
        place = probe.target
        assert place is not None
        if (place, probe.sent_ns) == self.obeyed:
            return
        self.obeyed = (place, probe.sent_ns)
        x, y = self.built.mission.loop.topology.positions[place].tolist()
        self._send(Pose(self.now_ns, "map", x, y, 0.0))
        visit = self.visits[place]
        self.visits[place] += 1
        rng = np.random.default_rng([7, place, visit])
        if rng.random() >= self.dropout:
            value = 10.0 + np.sin(0.1 * x) + np.cos(0.07 * y) + 0.3 * rng.normal()
            self.late.append(RawReading(self.now_ns, float(value), None))
            if not self.lag_ns:
                self._send(self.late.popleft())
        for number, quantity in enumerate(list(self.config.get("readings", ()))[1:]):
            draw = np.random.default_rng([8, place, visit, number])
            if draw.random() >= self.dropout:
                own = 5.0 * number + np.cos(0.1 * x + number) + 0.1 * draw.normal()
                self._send(RawReading(self.now_ns, float(own), None, quantity=quantity))

    def _send(self, what: Pose | RawReading) -> None:
        self.sent.append(what)
        self.built.mission.inbox.put(what, 0.0)

    def kill(self) -> None:
        recorder = self.built.recorder
        if recorder.run is not None:
            recorder.close()  # the operating system closes files, and stops threads
        self.parts = None

    def outcome(self) -> tuple[list[int], FloatArray, FloatArray]:
        """Return places decided, weights of the belief and the field believed in."""
        belief = self.built.mission.loop.belief
        return self.decided, belief.weights, belief.predict()[0]


def same(one: Drive, other: Drive) -> None:
    """Fail unless two missions took the same decisions and believe the same."""
    assert one.decided == other.decided
    mine, theirs = (d.built.mission.loop.quantities for d in (one, other))
    for name, each in mine.items():
        np.testing.assert_array_equal(each.belief.readings, theirs[name].belief.readings)
        np.testing.assert_array_equal(each.belief.weights, theirs[name].belief.weights)
    np.testing.assert_array_equal(one.outcome()[1], other.outcome()[1])
    # The field is computed from what is kept of earlier looks at it, so up to rounding.
    np.testing.assert_allclose(one.outcome()[2], other.outcome()[2], rtol=1e-12)
