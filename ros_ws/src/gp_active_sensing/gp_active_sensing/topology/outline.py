"""Outlines in metres: two corners of a rectangle, corners of a polygon, or shapes of shapely."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gp_active_sensing.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from shapely import MultiPolygon, Polygon

__all__ = ["Outline", "bounds_of", "inside_of", "polygon", "widened"]

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
    if not shape.is_valid:  # without area is not valid either
        problems.append(f"{key}: is not a simple polygon ({shapely.is_valid_reason(shape)})")
        return None
    return shape


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
    return np.asarray(shapely.intersects_xy(wide, points[:, 0], points[:, 1]))
