"""A probe that turns, and a sensor whose stamps are late."""

from __future__ import annotations

import math

import numpy as np

from tests.unit.mission.worlds import Rig, grid

PERIOD = 0.1


def field(x: float, y: float) -> float:
    return 20.0 + 2.0 * math.sin(x / 9.0 + 0.3) * math.cos(y / 7.0) + 0.5 * math.sin((x + y) / 4.0)


def turning(t: float, speed: float = 2.0) -> tuple[float, float]:
    """Go round a square of 12 m, and round another one across it, for ever."""
    corners = [(0.0, 0.0), (12.0, 0.0), (12.0, 12.0), (0.0, 12.0), (6.0, 6.0), (18.0, 6.0)]
    lengths = [math.dist(a, b) for a, b in zip(corners, corners[1:] + corners[:1], strict=True)]
    left = (speed * t) % sum(lengths)
    for (x, y), (a, b), length in zip(corners, corners[1:] + corners[:1], lengths, strict=True):
        if left <= length:
            return x + (a - x) * left / length, y + (b - y) * left / length
        left -= length
    return corners[0]


def mission(late: float, delay: float = 0.0, window: float | None = None) -> Rig:
    """Drive 200 s over a grid; readings come stamped `late` s too late.

    Args:
        late: [s].
        delay: parameter `reading.delay` [s].
        window: parameter `reading.window` [s].
    """
    rng = np.random.default_rng(7)
    rig = Rig(grid(3, 2), taking={"window": window, "delay": delay})
    for i in range(2000):
        t = 1.0 + PERIOD * i
        rig.seconds = t
        rig.pose(t, *turning(t))
        if t >= late:
            rig.reading(t, field(*turning(t - late)) + 0.1 * float(rng.standard_normal()))
        rig.step(t)
    return rig
