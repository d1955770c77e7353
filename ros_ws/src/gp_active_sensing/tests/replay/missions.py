"""Missions in virtual time with a hazardous planner and transport, recorded as a node's would be.

Messages overtake each other on their way to the node, decisions take a while, commands come in
between: whatever happens, the bag has to give the same mission again.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import build_parts
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.input_log import InputLog
from gp_active_sensing.mission.live_map import FirstMap
from gp_active_sensing.mission.live_parameters import adjust
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.requests import DecisionRequest
from gp_active_sensing.records.run_map import GridMap
from gp_active_sensing.util.files import json_ready
from tests.replay.bags import header, message, write_bag

TICK = 0.05
SPEED = 8.0
CONFIG: dict[str, Any] = {
    "map": {"kind": "grid", "columns": 5, "rows": 4, "spacing": 10.0},
    "belief": {
        "length_scales": [10.0, 20.0, 40.0],
        "signal_std": [3.0],
        "noise_std": [0.3],
        "mean_std": 20.0,
    },
    "policy": {"name": "bal", "horizon": 2, "samples": 3, "alpha": 0.01},
    "limit": {"expansions": 40},
    "reading": {"variance_field": "variance"},
    "mission": {
        "wait_for_reading": False,
        "reading_timeout": 1.0,
        "drive_timeout": 6.0,
        "block_seconds": 5.0,
    },
}


def odometry(stamp: int, x: float, y: float, heading: float = 0.0) -> Any:
    zero = message("geometry_msgs/msg/Vector3", x=0.0, y=0.0, z=0.0)
    turned = (math.sin(0.5 * heading), math.cos(0.5 * heading))
    pose = message(
        "geometry_msgs/msg/Pose",
        position=message("geometry_msgs/msg/Point", x=x, y=y, z=0.0),
        orientation=message("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=turned[0], w=turned[1]),
    )
    return message(
        "nav_msgs/msg/Odometry",
        header=header(stamp),
        child_frame_id="base_link",
        pose=message("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=np.zeros(36)),
        twist=message(
            "geometry_msgs/msg/TwistWithCovariance",
            twist=message("geometry_msgs/msg/Twist", linear=zero, angular=zero),
            covariance=np.zeros(36),
        ),
    )


def temperature(stamp: int, value: float, variance: float = 0.09) -> Any:
    return message(
        "sensor_msgs/msg/Temperature",
        header=header(stamp, "sensor"),
        temperature=value,
        variance=variance,
    )


def occupancy(found: GridMap) -> Any:
    grid = found.grid
    rows, columns = grid.shape
    x, y = grid.origin
    turned = message("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0)
    where = message("geometry_msgs/msg/Point", x=x, y=y, z=0.0)
    return message(
        "nav_msgs/msg/OccupancyGrid",
        header=header(0, found.frame),
        info=message(
            "nav_msgs/msg/MapMetaData",
            map_load_time=message("builtin_interfaces/msg/Time", sec=0, nanosec=0),
            resolution=grid.resolution,
            width=columns,
            height=rows,
            origin=message("geometry_msgs/msg/Pose", position=where, orientation=turned),
        ),
        data=grid.values.ravel(),
    )


@dataclass
class _Body:
    x: float
    y: float
    target: tuple[float, float] | None = None
    read_at: int | None = None


@dataclass
class Recorder:
    """Plays a mission and keeps what a bag of it would hold.

    Args:
        seed: of all chances.
        config: laid over `CONFIG`.
        probes: names.
        seconds: how long it is played.
        commands: time [s] -> what is done to the mission then.
        dropout: share of visits without a reading.
        outliers: share of readings that are far off.
        ahead_ns: how far the node's clock has been set forward [ns].
        slowness: how much later it is each time the mission looks at its clock [s].
        maps: time [s] -> map that is published then, where the map comes by a topic; 0 = first.
    """

    seed: int
    config: dict[str, Any] = field(default_factory=dict)
    probes: tuple[str, ...] = ()
    seconds: float = 60.0
    commands: dict[float, Callable[[Any], Any]] = field(default_factory=dict)
    dropout: float = 0.1
    outliers: float = 0.0
    ahead_ns: int = 0
    slowness: float = 1e-7
    maps: dict[float, GridMap] = field(default_factory=dict)
    messages: list[tuple[str, int, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng([self.seed, 77])
        self._time = 100.0
        self._coming: list[tuple[float, int, str, Any]] = []
        self._answers: list[tuple[float, DecisionRequest]] = []
        self.whole = {**CONFIG, **self.config, "probes": list(self.probes)}
        self.settings = from_mapping(ActiveSensingConfig, self.whole)
        began = self.maps.get(0.0)
        first = None if began is None else FirstMap.of(self.settings.map, began)
        self.parts = build_parts(self.settings, None, clock=self._clock, first=first)
        self.mission = self.parts.mission
        trace = InputLog(self._publish, self._clock)
        self.mission.trace = trace
        self.parts.recorder.listener = trace.event
        names = self.probes or ("",)
        topics = {n: {k: self._topic(n, k) for k in ("reading", "pose")} for n in names}
        said = dataclasses.replace(self.settings, belief=self.parts.belief, map=self.parts.map)
        more = {}
        if self.mission.map is not None and first is not None:
            more["map"] = {"topic": "/map", "mark": self.mission.map.places.mark}
            self.messages.append(("/map", self._now_ns, occupancy(first.found)))
        setup = dict(
            config=to_mapping(said),
            scenario=None,
            topics=topics,
            process="1",
            earlier=0,
            places=self.parts.places,
            **more,
        )
        self._publish({"n": 0, "setup": setup})
        self._bodies = {n: _Body(10.0 * i, 0.0) for i, n in enumerate(names)}

    def _clock(self) -> float:
        self._time += self.slowness
        return self._time

    @property
    def _now_ns(self) -> int:
        return round(1e9 * self._time) + self.ahead_ns

    def _topic(self, probe: str, kind: str) -> str:
        return f"/{probe}/{kind}" if probe else f"/{kind}"

    def _publish(self, frame: dict[str, Any]) -> None:
        text = json.dumps(json_ready([frame]))
        self.messages.append(
            ("/active_sensing/journal", self._now_ns, message("std_msgs/msg/String", data=text))
        )

    def run(self) -> Recorder:
        self.mission.start()
        start, count = self._time, 0
        todo = dict(sorted(self.commands.items()))
        while self._time - start < self.seconds and self.mission.state != "ended":
            count += 1
            self._time = max(self._time, start + count * TICK)
            for at in [at for at in todo if at <= self._time - start]:
                todo.pop(at)(self.mission)
            for at in [at for at in self.maps if 0.0 < at <= self._time - start]:
                self._take_map(self.maps.pop(at))
            self._deliver()
            self._do(self.mission.step(self._now_ns))
            self._answer()
            for name, body in self._bodies.items():
                self._move(name, body)
        return self

    def _take_map(self, found: GridMap) -> None:
        assert self.mission.map is not None
        self.messages.append(("/map", self._now_ns, occupancy(found)))
        self.mission.map.adopt(self.mission, found)

    def change(self, config: dict[str, Any]) -> None:
        self.whole = {**self.whole, **config}
        before, self.settings = self.settings, from_mapping(ActiveSensingConfig, self.whole)
        trace = self.mission.trace
        assert trace is not None
        with self.mission.lock:
            trace.changed(**to_mapping(self.settings))
            adjust(self.parts, before, self.settings)

    def _do(self, steps: list[Any]) -> None:
        for step in steps:
            if step.again is not None:
                self._send(step.probe, step.again)
                self._bodies[step.probe].read_at = None
            if step.job is not None and step.job.decide:
                self._answers.append((self._time + self._some(0.6), step.job))
            elif step.job is not None:
                self.mission.showing = False

    def _some(self, most: float) -> float:
        return float(most * self._rng.random())

    def _answer(self) -> None:
        for at, job in list(self._answers):
            if at <= self._time:
                self._answers.remove((at, job))
                plan = job.ask()
                if self.mission.decided(job, plan) and plan.path:
                    self._send(job.probe, plan.path[-1])

    def _send(self, probe: str, place: int) -> None:
        x, y, _ = self.mission.loop.topology.goals[place]
        self._bodies[probe].target = (float(x), float(y))

    def _move(self, name: str, body: _Body) -> None:
        if body.target is not None:
            dx, dy = body.target[0] - body.x, body.target[1] - body.y
            far = math.hypot(dx, dy)
            part = min(1.0, SPEED * TICK / far) if far else 1.0
            body.x, body.y = body.x + part * dx, body.y + part * dy
        stamp = self._now_ns
        pose = odometry(stamp, body.x, body.y)
        self._put(name, "pose", pose, Pose(stamp, "map", body.x, body.y, 0.0))
        place = self.mission.loop.topology.snap(body.x, body.y, 0.5)
        if place is None or place == body.read_at:
            return
        body.read_at = place
        if self._rng.random() < self.dropout:
            return
        value = 10.0 + math.sin(0.1 * body.x) + math.cos(0.13 * body.y) + self._some(0.3)
        if self.outliers and self._rng.random() < self.outliers:
            value += 50.0
        reading = temperature(stamp - 1, value)
        self._put(name, "reading", reading, RawReading(stamp - 1, value, 0.09))

    def _put(self, name: str, kind: str, content: Any, what: Any) -> None:
        """Send a message: to the node and to the recorder, each with a delay of its own."""
        self._coming.append((self._time + self._some(0.12), len(self.messages), name, what))
        late = round(1e9 * self._some(0.3))
        self.messages.append((self._topic(name, kind), self._now_ns + late, content))

    def _deliver(self) -> None:
        due = sorted(entry for entry in self._coming if entry[0] <= self._time)
        for at, number, name, what in due:
            self._coming.remove((at, number, name, what))
            self.mission.inbox.put(what, at, name)

    def bag(self, path: Path, *, storage: str = "mcap") -> Path:
        ordered = sorted(self.messages, key=lambda entry: entry[1])
        return write_bag(path, ordered, storage=storage)
