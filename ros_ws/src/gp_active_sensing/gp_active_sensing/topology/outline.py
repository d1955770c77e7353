"""Outlines in metres: rectangles by two corners, polygons by three and more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gp_active_sensing.types import BoolArray, FloatArray

__all__ = ["Outline", "inside_of", "polygon", "widened"]

Outline = Sequence[tuple[float, float]]
"""Two opposite corners of a rectangle, or three and more corners of a polygon [m]."""

_HAIR = 1e-9
"""Part of an outline's size by which a place may lie outside of it (rounding)."""


def polygon(outline: Outline, key: str, problems: list[str]) -> Any:
    """Return the shape of an outline; None where it is none, and what is wrong in `problems`."""
    import shapely

    if len(outline) < 2:
        problems.append(
            f"{key}: expected 2 corners of a rectangle or the corners of a polygon, got "
            f"{len(outline)}"
        )
        return None
    if len(outline) == 2:
        (x0, y0), (x1, y1) = outline
        shape = shapely.box(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
    else:
        shape = shapely.Polygon(outline)
    if not shape.is_valid:  # without area is not valid either
        problems.append(f"{key}: is not a simple polygon ({shapely.is_valid_reason(shape)})")
        return None
    return shape


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
