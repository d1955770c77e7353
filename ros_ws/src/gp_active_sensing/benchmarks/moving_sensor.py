"""A mission with a fast sensor that moves: fields between the places, a robot, messages in time.

The mission and its parts are those of the node; poses and readings come as a robot sends them, with
the field at the very point where the sensor is rather than that of the place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents, build_parts
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.requests import DecisionRequest
from gp_active_sensing.types import FloatArray

Field = Callable[[FloatArray], FloatArray]
"""(m, 2) positions [m] to (m,) values."""
POSE_PERIOD_NS = 50_000_000
READING_PERIOD_NS = 100_000_000
GPS_SECONDS = 10.0
"""How long the errors of a GPS last."""


def drawn_field(seed: int, length_scale: float, std: float = 1.88, kind: str = "se") -> Field:
    """Return a draw of a Gaussian process on the plane, known everywhere (random features).

    Args:
        seed: key of the draw.
        length_scale: [m].
        std: standard deviation.
        kind: se, or matern32.
    """
    rng = np.random.default_rng([seed, 71])
    count = 600
    waves = rng.standard_normal((count, 2)) / length_scale
    if kind == "matern32":  # a multivariate t with 3 degrees of freedom
        waves /= np.sqrt(rng.chisquare(3, count) / 3.0)[:, None]
    phases = rng.uniform(0.0, math.tau, count)
    size = std * math.sqrt(2.0 / count)

    def at(positions: FloatArray) -> FloatArray:
        return 15.0 + size * np.cos(positions @ waves.T + phases).sum(axis=1)

    return at


def raster_field(values: FloatArray, low: FloatArray, high: FloatArray, std: float = 1.88) -> Field:
    """Return a measured raster stretched over a box, interpolated, scaled to a deviation."""
    from scipy.interpolate import RegularGridInterpolator

    rows, columns = values.shape
    scaled = 15.0 + std * (values - values.mean()) / values.std()
    axes = np.linspace(low[1], high[1], rows), np.linspace(low[0], high[0], columns)
    look = RegularGridInterpolator(axes, scaled, method="linear", bounds_error=False,
                                   fill_value=None)  # fmt: skip
    return lambda positions: np.asarray(look(positions[:, ::-1]))


def blocks(path: Path, crossings: int = 6, metres: float = 60.0) -> Path:
    """Write a road map of square blocks, each road both ways; return its path."""
    features = []

    def road(a: tuple[int, int], b: tuple[int, int]) -> None:
        for one, other in ((a, b), (b, a)):
            name = f"{one[0]}.{one[1]}-{other[0]}.{other[1]}"
            features.append(
                {
                    "type": "Feature",
                    "properties": {
                        "id": name,
                        "from": f"{one[0]}.{one[1]}",
                        "to": f"{other[0]}.{other[1]}",
                        "speed_limit_mps": 10.0,
                    },
                    "geometry": {
                        "type": "LineString",
                        "coordinates": [[metres * c for c in one], [metres * c for c in other]],
                    },
                }
            )

    for i in range(crossings):
        for j in range(crossings):
            if i + 1 < crossings:
                road((i, j), (i + 1, j))
            if j + 1 < crossings:
                road((i, j), (i, j + 1))
    head = {"schema": 1, "name": "blocks", "crs": "local", "frame": "map", "units": "metre"}
    text = json.dumps(
        {"type": "FeatureCollection", "gp_active_sensing": head, "features": features}
    )
    path.write_text(text, encoding="utf-8")
    return path


@dataclass
class Robot:
    """Drives along points at a speed; knows nothing of the mission.

    Args:
        x, y: where it is [m].
        speed: [m/s].
    """

    x: float
    y: float
    speed: float
    heading: float = 0.0

    def __post_init__(self) -> None:
        self.way: list[tuple[float, float]] = []

    def step(self, seconds: float) -> None:
        left = self.speed * seconds
        while self.way and left > 0.0:
            dx, dy = self.way[0][0] - self.x, self.way[0][1] - self.y
            apart = math.hypot(dx, dy)
            if apart > 1e-9:
                self.heading = math.atan2(dy, dx)
            if apart <= left:
                (self.x, self.y), left = self.way.pop(0), left - apart
            else:
                self.x += left * dx / apart
                self.y += left * dy / apart
                return


class MovingMission:
    """A mission of one robot, step by step in virtual time.

    Args:
        parameters: of the node.
        field: the truth.
        start: where the robot is [m].
        speed: of the robot [m/s].
        noise_std: of the sensor.
        lag: how much later than its moment a reading is stamped [s].
        step: of the sensor's scale; 0 = continuous.
        gps: standard deviation of each coordinate of a pose, an error that lasts for 10 s [m].
        seed: key of the noise.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any],
        field: Field,
        start: tuple[float, float],
        *,
        speed: float,
        noise_std: float,
        lag: float = 0.0,
        step: float = 0.0,
        gps: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.now_ns = 1_000_000_000
        whole = {"plan_ahead": False, "run_dir": "", **parameters}
        config = from_mapping(ActiveSensingConfig, whole)
        self.parts: MissionComponents = build_parts(config, None, clock=lambda: 1e-9 * self.now_ns)
        self.mission = self.parts.mission
        self.topology = self.mission.loop.topology
        self.field = field
        self.robot = Robot(*start, speed)
        self._noise_std, self._lag_ns, self._scale = noise_std, round(1e9 * lag), step
        self._rng = np.random.default_rng([seed, 72])
        self._late: list[tuple[int, float]] = []
        self._gps, self._gps_rng = gps, np.random.default_rng([seed, 74])
        self._gps_off = gps * self._gps_rng.standard_normal(2)
        self.truth = self._truth()

    def _truth(self) -> FloatArray:
        """(n,) the field at the points; of roads its average along each."""
        parts = np.linspace(0.0, 1.0, 41)[:, None]
        lines = [np.asarray(self.topology.geometry(place)) for place in range(self.topology.n)]
        along = [
            line[0] + parts * (line[-1] - line[0]) if len(line) > 1 else line for line in lines
        ]
        return np.array([self.field(points).mean() for points in along])

    def run(self, seconds: float) -> bool:
        """Go on until the mission is over; say whether it is."""
        until_ns = self.now_ns + round(1e9 * seconds)
        self.mission.start()
        while self.mission.state != "ended" and self.now_ns < until_ns:
            self.step()
        return self.mission.state == "ended"

    def step(self) -> None:
        """Let one period of the poses pass."""
        self.now_ns += POSE_PERIOD_NS
        self.robot.step(1e-9 * POSE_PERIOD_NS)
        now, robot, inbox = 1e-9 * self.now_ns, self.robot, self.mission.inbox
        x, y = robot.x + self._gps_off[0], robot.y + self._gps_off[1]
        inbox.put(Pose(self.now_ns, self.topology.frame, x, y, robot.heading), now, "")
        keeps = math.exp(-1e-9 * POSE_PERIOD_NS / GPS_SECONDS)
        change = self._gps * math.sqrt(1.0 - keeps**2) * self._gps_rng.standard_normal(2)
        self._gps_off = keeps * self._gps_off + change
        if self.now_ns % READING_PERIOD_NS == 0:
            exact = float(self.field(np.array([[robot.x, robot.y]]))[0])
            value = exact + self._noise_std * self._rng.standard_normal()
            if self._scale:
                value = self._scale * round(value / self._scale)
            self._late.append((self.now_ns + self._lag_ns, value))
        while self._late and self._late[0][0] <= self.now_ns:
            stamp_ns, value = self._late.pop(0)
            inbox.put(RawReading(stamp_ns, value, None), now, "")
        for step in self.mission.step(self.now_ns):
            if step.plan is not None:
                self._drive(step.plan.path)
            if isinstance(step.job, DecisionRequest):
                self._answer(step.job)

    def _answer(self, job: DecisionRequest) -> None:
        if not job.decide:
            self.mission.showing = False
            return
        plan = job.ask()
        if self.mission.decided(job, plan) and plan.path:
            self._drive(plan.path)

    def _drive(self, path: tuple[int, ...]) -> None:
        """Drive to a waypoint: straight, or along the roads."""
        if not self.parts.matcher.has_lines:
            x, y, _ = self.topology.goals[path[-1]].tolist()
            self.robot.way = [(x, y)]
            return
        way: list[tuple[float, float]] = []
        here = self.mission.probes[""].standing()
        if here is not None:  # to the end of the road that it is on
            way.append(tuple(self.topology.geometry(here)[-1]))
        for place in path:
            if place != here:
                way += [tuple(point) for point in self.topology.geometry(place)]
        self.robot.way = way

    def scores(self) -> dict[str, float]:
        """Return what the map is worth: z-scores, coverage, error over all places."""
        mean, variance = self.mission.loop.belief.predict()
        z = (self.truth - mean) / np.sqrt(variance)
        seen = self.mission.loop.belief.observed
        return {
            "z": float(np.sqrt(np.mean(z**2))),
            "z_seen": float(np.sqrt(np.mean(z[seen] ** 2))),
            "z_unseen": float(np.sqrt(np.mean(z[~seen] ** 2))),
            "cover90": float(np.mean(np.abs(z) <= 1.6449)),
            "rmse": float(np.sqrt(np.mean((self.truth - mean) ** 2))),
            "sd": float(self.truth.std()),
        }
