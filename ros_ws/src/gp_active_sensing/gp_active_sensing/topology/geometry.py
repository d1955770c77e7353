"""Shapes in metres: outlines of areas, free ground, straight legs and how long they take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from shapely import MultiPolygon, Polygon

__all__ = [
    "FreeGround",
    "Outline",
    "Spacing",
    "Speeds",
    "bounds_of",
    "common",
    "fault_of",
    "inside_of",
    "polygon",
    "spacing_of",
    "widened",
]


class FreeGround:
    """The outline and the obstacles, with shapely loaded only when there are any.

    Args:
        outline: of the area with places [m]; None = everywhere.
        obstacles: their outlines [m].

    Raises:
        ConfigError: outlines that are no polygons.
    """

    def __init__(self, outline: Outline | None, obstacles: Sequence[Outline]) -> None:
        self._area: Any = None
        self._obstacles: Any = None
        if outline is None and not obstacles:
            return
        import shapely

        problems: list[str] = []
        shapes = [
            polygon(obstacle, f"obstacles[{number}]", problems)
            for number, obstacle in enumerate(obstacles)
        ]
        area = None if outline is None else polygon(outline, "outline", problems)
        if problems:
            raise ConfigError(problems)
        if shapes:
            self._obstacles = shapely.union_all(shapes)
            shapely.prepare(self._obstacles)
        if area is not None:
            self._area = widened(area)
            shapely.prepare(self._area)

    @property
    def bounded(self) -> bool:
        """Whether some points are not free."""
        return self._area is not None or self._obstacles is not None

    def inside(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(m,) points inside or on the edge of the outline."""
        return _touched(self._area, points, if_none=True)

    def blocked(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(m,) points inside or on the edge of an obstacle."""
        return _touched(self._obstacles, points, if_none=False)

    def free(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(m,) points inside the outline that no obstacle covers."""
        return self.inside(points) & ~self.blocked(points)

    def passable(
        self, points: npt.NDArray[np.float64], pairs: Sequence[tuple[int, int]] | IntArray
    ) -> npt.NDArray[np.bool_]:
        """(len(pairs),) straight lines between two points that stay inside and touch nothing."""
        free = np.ones(len(pairs), dtype=np.bool_)
        if not len(pairs) or (self._area is None and self._obstacles is None):
            return free
        import shapely

        lines = shapely.linestrings(points[np.asarray(pairs)])
        if self._obstacles is not None:
            free &= ~shapely.intersects(self._obstacles, lines)
        if self._area is not None:
            free &= shapely.covers(self._area, lines)
        return free

    def in_sight(self, start: FloatArray, ends: FloatArray) -> BoolArray:
        """(m,) whether straight lines from (2,) `start` to (m, 2) `ends` are passable [m]."""
        points = np.vstack([start[None, :2], ends[:, :2]])
        pairs = np.column_stack([np.zeros(len(ends), np.int64), np.arange(1, len(points))])
        return self.passable(points, pairs)

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """Return a free point near a position, at most 5 % farther than the nearest one [m].

        The position itself where it is free, or where nothing within 1,000 km is.
        """
        here = np.array([[x, y]])
        if self.free(here)[0]:
            return x, y
        around = np.column_stack([np.cos(_AROUND), np.sin(_AROUND)])
        radius = _NEAREST
        while radius < _FARTHEST:
            ring = here + radius * around
            if (free := np.flatnonzero(self.free(ring))).size:
                return float(ring[free[0], 0]), float(ring[free[0], 1])
            radius *= 1.05
        return x, y


_AROUND = np.linspace(0.0, math.tau, 128, endpoint=False)
_NEAREST, _FARTHEST = 0.01, 1e6
"""Radii within which free ground is looked for [m]."""


Outline: TypeAlias = "Sequence[tuple[float, float]] | Polygon | MultiPolygon"
"""Two opposite corners of a rectangle, three and more corners of a polygon, or a polygon of shapely
(holes are outside), in metres."""

_HAIR = 1e-9
"""Part of an outline's size by which a place may lie outside of it (rounding)."""


def polygon(outline: Outline, key: str, problems: list[str]) -> Any:
    """Return the shape of an outline; None where it is none, and what is wrong in `problems`."""
    import shapely

    shape: Any
    if isinstance(outline, shapely.Geometry):
        shape = outline
        if shape.is_empty or not isinstance(shape, shapely.Polygon | shapely.MultiPolygon):
            problems.append(f"{key}: expected a Polygon or a MultiPolygon, got {shape.wkt:.60}")
            return None
    elif len(outline) < 2:
        problems.append(
            f"{key}: expected 2 corners of a rectangle or the corners of a polygon, got "
            f"{len(outline)}"
        )
        return None
    elif len(outline) == 2:
        shape = shapely.box(*bounds_of(outline))
    else:
        shape = shapely.Polygon(outline)
    if fault := fault_of(shape):
        problems.append(f"{key}: is not a simple polygon: {fault}")
        return None
    return shape


def common(outline: Outline | None, other: Outline, key: str) -> Any:
    """Return what two outlines [m] have in common as a shape of shapely; None = everywhere.

    Raises:
        ConfigError: one is no polygon, or they have no area in common; `key` names the other.
    """
    import shapely

    problems: list[str] = []
    before = None if outline is None else polygon(outline, "outline", problems)
    shape = polygon(other, key, problems)
    if problems:
        raise ConfigError(problems)
    if before is None:
        return shape
    parts = [part for part in shapely.get_parts(before.intersection(shape)) if part.area > 0.0]
    if not parts:
        msg = f"{key}: has nothing in common with the outline; do both lie where they should?"
        raise ConfigError(msg)
    return shapely.MultiPolygon(parts) if len(parts) > 1 else parts[0]


def fault_of(shape: Any) -> str:
    """Return why a shape is no simple polygon, and where; "" when it is one."""
    import shapely

    if shape.is_valid:  # without area it is not
        return ""
    reason, _, where = shapely.is_valid_reason(shape).rstrip("]").partition("[")
    at = f" at ({', '.join(f'{float(c):.8g}' for c in where.split())})" if where else ""
    if "elf-intersection" in reason:
        return f"its edges cross or touch each other{at}; move its corners there"
    return f"{reason.strip().lower()}{at}"


def bounds_of(outline: Outline) -> tuple[float, float, float, float]:
    """Return the least x and y and the largest x and y of an outline [m]."""
    if isinstance(outline, Sequence):
        xs, ys = zip(*outline, strict=True)
        return min(xs), min(ys), max(xs), max(ys)
    return outline.bounds


def widened(shape: Any) -> Any:
    """Return a shape a hair wider, so that rounding does not decide about what is on its edge."""
    import shapely

    return shapely.buffer(shape, _HAIR * math.sqrt(shapely.area(shape)), join_style="mitre")


def inside_of(shape: Any, points: FloatArray) -> BoolArray:
    """(m,) points inside a shape or on its edge, for points (m, 2)."""
    import shapely

    wide = widened(shape)
    shapely.prepare(wide)
    return _touched(wide, points, if_none=False)


def _touched(shape: Any, points: FloatArray, *, if_none: bool) -> BoolArray:
    """(m,) points (m, 2) inside a shape or on its edge."""
    if shape is None:
        return np.full(len(points), if_none)
    import shapely

    return np.asarray(shapely.intersects_xy(shape, points[:, 0], points[:, 1]))


@dataclass(frozen=True)
class Speeds:
    """How fast a probe is on a leg, and at most up and down [m/s]; None = no less there."""

    along: float = 1.0
    climb: float | None = None
    descent: float | None = None

    @property
    def least(self) -> float:
        """No leg is slower than this [m/s]."""
        return min(self.along, self.climb or self.along, self.descent or self.along)

    def metres(self, offsets: FloatArray) -> FloatArray:
        """Return (…) lengths of legs given by their offsets (…, 2 or 3): x, y, z upwards [m]."""
        flat = np.hypot(offsets[..., 0], offsets[..., 1])
        return np.asarray(flat if offsets.shape[-1] == 2 else np.hypot(flat, offsets[..., 2]))

    def seconds(self, offsets: FloatArray, metres: FloatArray) -> FloatArray:
        """Return (…) durations of legs of offsets (…, 2 or 3) and lengths [m], climbs included."""
        seconds = metres / self.along
        if offsets.shape[-1] == 3:
            up = offsets[..., 2]
            if self.climb is not None:
                seconds = np.maximum(seconds, up / self.climb)
            if self.descent is not None:
                seconds = np.maximum(seconds, -up / self.descent)
        return np.asarray(seconds)

    def leg(self, start: FloatArray, end: FloatArray) -> tuple[float, float]:
        """Return metres and seconds from one point (2 or 3,) to another."""
        offset = np.asarray(end - start)
        metres = self.metres(offset)
        return float(metres), float(self.seconds(offset, metres))


class Spacing(NamedTuple):
    """How far apart neighbouring places are [m]: in plan view, and above one another or None."""

    across: float
    up: float | None

    @property
    def ratio(self) -> float:
        """Of a step up to one across; 1 where there is only one kind."""
        return 1.0 if self.up is None or not self.across else self.up / self.across


def spacing_of(points: FloatArray) -> Spacing:
    """Return the steps between places at (n, 3) points: x, y, z [m]."""
    from scipy.spatial import cKDTree  # slow to import, and seldom wanted

    plan, column = np.unique(np.round(points[:, :2], 6), axis=0, return_inverse=True)
    across = 0.0
    if len(plan) > 1:
        distances, _ = cKDTree(plan).query(plan, k=2)
        across = float(np.median(np.asarray(distances)[:, 1]))
    order = np.lexsort((points[:, 2], column.reshape(-1)))
    same = np.diff(column.reshape(-1)[order]) == 0
    gaps = np.diff(points[order, 2])[same]
    gaps = gaps[gaps > 1e-9]
    return Spacing(across, float(np.median(gaps)) if gaps.size else None)
