"""Places on a straight line: the one-dimensional experiments, or a boat on a transect."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.topology.free import FreeTopology
from gp_active_sensing.topology.graph import GraphTopology, Move

__all__ = ["make_line"]


def make_line(
    count: int,
    spacing: float,
    *,
    moves: str = "adjacent",
    origin: tuple[float, float] = (0.0, 0.0),
    speed: float = 1.0,
    reach: float = 0.0,
    name: str = "line",
    frame: str = "map",
) -> FreeTopology | GraphTopology:
    """Make a line of places along x; its one feature is x.

    Args:
        count: number of places.
        spacing: between neighbours [m].
        moves: "free" (any place next) or "adjacent" (the next place to either side).
        origin: position of the first place [m].
        speed: of the probe [m/s].
        reach: places within so many metres may be next, too; 0 = adjacent ones only.
        name: name of the map.
        frame: metric frame of the positions.
    """
    x = origin[0] + spacing * np.arange(count)
    positions = np.column_stack([x, np.full(count, origin[1])])
    names = [str(i) for i in range(count)]
    if moves == "free":
        return FreeTopology(
            name,
            frame,
            names,
            positions,
            features=positions[:, :1],
            feature_names=("x",),
            speed=speed,
        )
    steps = [
        [Move(j, spacing, spacing / speed) for j in (i - 1, i + 1) if 0 <= j < count]
        for i in range(count)
    ]
    return GraphTopology(
        name,
        frame,
        names,
        positions,
        steps,
        features=positions[:, :1],
        feature_names=("x",),
        reach=reach,
    )
