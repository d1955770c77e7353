"""Areas from files: outlines, geofences, obstacles and regions of interest, in local metres.

One reader a format gives `Shape`s in the coordinates of its file (``area_files``). What they are
for is said by their role; a shape without one is an outline, or a hole in one where it lies within
another: lake, island, pond on the island.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.geometry import fault_of
from gp_active_sensing.topology.loaders.area_files import AREA_ENDS, AreaFile, Shape, read_shapes
from gp_active_sensing.topology.loaders.drafts import fail
from gp_active_sensing.topology.projection import place
from gp_active_sensing.topology.segments import Point

__all__ = ["AREA_ENDS", "Areas", "holds_areas", "name_problems", "read_areas"]

_FAR = 500e3
"""Areas farther from the origin of the map are those of another place [m]."""
_CIRCLE = 16
"""Sides of a quarter of a circle, and of the bend of a corridor."""


@dataclass(frozen=True)
class Areas:
    """What a file says of the ground, in metres.

    Args:
        name: of the file.
        outline: Polygon or MultiPolygon of shapely that places lie in; None where the file has
            obstacles or regions only.
        obstacles: Polygons that they avoid.
        regions: name, Polygon and weight of each part that counts more or less than the rest.
        datum: longitude and latitude of the frame's origin [degree], None for metres of its own.
        home: where the file says that a mission begins [m], None where it does not.
        notes: what was taken for granted or left out, a sentence each.
    """

    name: str
    outline: Any
    obstacles: tuple[Any, ...]
    regions: tuple[tuple[str, Any, float], ...]
    datum: Point | None
    home: Point | None
    notes: tuple[str, ...]

    @property
    def everything(self) -> Any:
        """All its polygons as one: what they are for does not matter."""
        import shapely

        shapes = [shape for _, shape, _ in self.regions]
        return shapely.union_all([s for s in (self.outline, *self.obstacles, *shapes) if s])


def name_problems(key: str, given: object) -> list[str]:
    """Return what is wrong with a text that stands for corners: it has to name a file of areas."""
    if not isinstance(given, str) or given.lower().endswith(AREA_ENDS):
        return []
    ends = ", ".join(AREA_ENDS)
    return [f"{key}: expected a list of corners, or a file ending in {ends}; got {given!r:.60}"]


def holds_areas(path: Path) -> bool:
    """Return whether a file of GeoJSON holds areas and no lines."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False  # it is refused when it is read
    return 'Polygon"' in text and 'LineString"' not in text


def read_areas(path: Path, *, datum: Point | None = None) -> Areas:
    """Read the areas of a file.

    Args:
        path: ``.kml``, ``.kmz``, ``.plan`` of QGroundControl, ``.geojson`` or ``.json``.
        datum: longitude and latitude of the origin of the map's frame [degree]; None = the middle
            of the areas, where they are in degrees.

    Raises:
        MapError: no such file, no polygon, or polygons that cannot be used; all problems at once.
        MissingDependencyError: coordinates are not metres, and pyproj is missing.
    """
    found = read_shapes(path)
    if not found.shapes:
        has = ", ".join(f"{count} {what}" for what, count in found.others.items())
        msg = (
            f"{path}: has no polygon{f', but {has}' if has else ''}; expected the outline of an "
            "area. Draw it as a polygon, not as a path or line"
        )
        raise MapError(msg)
    problems = [p for shape in found.shapes if (p := _problem(shape))]
    fail(path, problems)
    located = _placed(found, path, datum)
    notes = [*located.notes, *found.notes]
    if found.others:
        has = ", ".join(f"{count} {what}" for what, count in found.others.items())
        notes.append(f"left out: {has}")
    outline, holes = _outline(found.shapes, located.shapes, path)
    if holes:
        notes.append(
            f"taken for holes in the outline, since they lie within it: {', '.join(holes)}"
        )
    of = list(zip(found.shapes, located.shapes, strict=True))
    if located.home is not None:
        where = ", ".join(f"{c:.1f}" for c in located.home)
        notes.append(f"the planned home is at ({where}) m: probe.start: [{where}] begins there")
    return Areas(
        path.name.partition(".")[0],
        outline,
        tuple(made for shape, made in of if shape.role == "obstacle"),
        tuple(
            (shape.name or shape.where, made, shape.weight)
            for shape, made in of
            if shape.role == "region" and shape.weight is not None
        ),
        located.datum,
        located.home,
        tuple(notes),
    )


def _problem(shape: Shape) -> str:
    """Return what is wrong with a polygon in the coordinates of its file, "" if nothing is."""
    import shapely

    if shape.radius:
        return ""
    if shape.width:
        count = len(set(shape.shell))
        return "" if count > 1 else f"{shape.where}: expected 2 points or more, got {count}"
    for ring in (shape.shell, *shape.holes):
        if len(set(ring)) < 3:
            return f"{shape.where}: expected 3 corners or more, got {len(set(ring))}"
    fault = fault_of(shapely.Polygon(shape.shell, shape.holes))
    return f"{shape.where}: {fault}" if fault else ""


@dataclass(frozen=True)
class _Located:
    shapes: list[Any]
    datum: Point | None
    home: Point | None
    notes: tuple[str, ...]


def _placed(found: AreaFile, path: Path, datum: Point | None) -> _Located:
    """Return the shapes in local metres, in their order."""
    import shapely

    rings = [ring for shape in found.shapes for ring in (shape.shell, *shape.holes)]
    sides = [list(zip(r, (*r[1:], r[0]), strict=True)) if len(r) > 1 else [(r[0],)] for r in rings]
    lines: list[Sequence[Point]] = list(chain.from_iterable(sides))
    if found.home is not None:
        lines.append((found.home,))
    made = place(lines, found.crs, where=str(path), datum=datum)
    firsts = iter([line[0] for line in made.lines])
    shapes = []
    for shape in found.shapes:
        shell, *holes = ([next(firsts) for _ in ring] for ring in (shape.shell, *shape.holes))
        if shape.radius:
            shapes.append(shapely.Point(shell[0]).buffer(shape.radius, quad_segs=_CIRCLE))
        elif shape.width:
            middle = shapely.LineString(shell)
            band = middle.buffer(shape.width / 2.0, quad_segs=_CIRCLE, cap_style="flat")
            if band.is_empty:
                msg = f"{path}: {shape.where}: expected a line of some metres, got one of 0 m"
                raise MapError(msg)
            shapes.append(band)
        else:
            shapes.append(shapely.Polygon(shell, holes))
    home = next(firsts) if found.home is not None else None
    far = max(math.hypot(*point) for shape in shapes for point in shape.exterior.coords)
    if datum is not None and made.datum is not None and far > _FAR:
        (x0, y0), (x1, y1) = min(chain(*rings)), max(chain(*rings))
        msg = (
            f"{path}: lies {far / 1000:.0f} km from the origin of the map, longitude {datum[0]:g}, "
            f"latitude {datum[1]:g}: its corners are about ({x0:g}, {y0:g}) and ({x1:g}, {y1:g}). "
            "Is it the right file, and does the longitude come first?"
        )
        raise MapError(msg)
    return _Located(shapes, made.datum, home, made.notes)


def _outline(shapes: Sequence[Shape], made: Sequence[Any], path: Path) -> tuple[Any, list[str]]:
    """Return the ground of all outlines within the geofences, and the names of holes in it."""
    import shapely

    of = list(zip(shapes, made, strict=True))
    plain = sorted(
        ((m, s) for s, m in of if s.role in ("", "outline")), key=lambda pair: -pair[0].area
    )
    ground: Any = None
    holes: list[str] = []
    for index, (polygon, shape) in enumerate(plain):
        inside = [p for p, other in plain[:index] if p.covers(polygon)]
        if shape.role == "" and len(inside) % 2:
            ground = ground.difference(polygon)
            holes.append(shape.name or shape.where)
        else:
            ground = polygon if ground is None else ground.union(polygon)
    fences = [m for s, m in of if s.role == "fence"]
    if fences:
        fence = shapely.union_all(fences)
        ground = fence if ground is None else ground.intersection(fence)
    if ground is None:
        return None, holes
    parts = [g for g in shapely.get_parts(ground) if g.area > 0.0]
    if not parts:
        msg = f"{path}: the area to survey and the geofence have nothing in common"
        raise MapError(msg)
    return (parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)), holes
