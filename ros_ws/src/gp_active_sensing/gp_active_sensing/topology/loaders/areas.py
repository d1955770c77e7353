"""Areas from files: outlines, geofences, obstacles and regions of interest, in local metres.

The role of a polygon is outline, fence, obstacle or region. The reader takes the role from the
properties, from the folder or layer, or from the name. A name such as "Exclusion zone A" gives a
role; the name of a feature of the ground, such as "Rock Lake", gives none. A polygon without a role
is an outline, or a hole if it lies inside another outline.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.errors import ConfigError, listed
from gp_active_sensing.topology.base import T, Topology
from gp_active_sensing.topology.geometry import NEAR, fault_of, inside_of, polygon, simple
from gp_active_sensing.topology.loaders import MOST_TEXT, fail, fault, find_map, number_of, read_as
from gp_active_sensing.topology.loaders.vector import (
    MOST_FEATURES,
    Drawing,
    Feature,
    Shape,
    read_features,
)
from gp_active_sensing.topology.map_config import MOST_WEIGHT, WeightsConfig
from gp_active_sensing.topology.projection import LONLAT, locate
from gp_active_sensing.topology.segments import Point
from gp_active_sensing.types import FloatArray

_FAR = 500e3
"""Largest distance of an area from the given origin of the map [m]."""
_CIRCLE = 16
"""Number of straight sides that approximate a quarter of a circle."""
_MOST_BENDS = 10_000
"""Largest number of points in all corridors of a plan together."""
_SAME = 1e-3
"""Largest difference between two polygons that count as equal, as a fraction of their area."""
_MEET = 1e-6
"""Largest distance between the ends of a closed path [degree], about 0.1 m."""


@dataclass(frozen=True)
class Areas:
    """Areas of a file, in metres."""

    outline: Any  # Polygon or MultiPolygon around all places; None = no outline in the file
    obstacles: tuple[Any, ...]  # Polygons without places
    regions: tuple[tuple[str, Any, float], ...]  # name, Polygon and weight of each region
    # longitude and latitude of the frame's origin [degree]; None = metres of a local frame
    datum: Point | None
    home: Point | None  # start of a mission [m]; None = not in the file
    notes: tuple[str, ...]  # roles, assumptions and omissions, as sentences

    @property
    def everything(self) -> Any:
        """Union of all polygons, whatever their roles."""
        import shapely

        shapes = [shape for _, shape, _ in self.regions]
        return shapely.union_all([s for s in (self.outline, *self.obstacles, *shapes) if s])


def read_areas(path: Path, *, datum: Point | None = None, crs: str = "") -> Areas:
    """Read the areas of a file.

    `datum` is longitude and latitude of the frame's origin [degree]; None = the middle of the
    areas. `crs` is the coordinate system; "" = the declared system.

    Raises:
        MapError: the file is missing, has no polygon, or has polygons that cannot be used.
        MissingDependencyError: a library that the format or the coordinates need is missing.
    """
    import shapely

    found: Drawing = read_as("areas", path, most=MOST_TEXT)
    if not found.shapes:
        has = ", ".join(f"{count} {what}" for what, count in found.others.items())
        raise fault(
            path,
            f"has no polygon{f', but {has}' if has else ''}; expected the outline of an "
            "area. Draw it as a polygon, not as a path or line; map.kind: points takes points as "
            "places",
        )
    if len(found.shapes) > MOST_FEATURES:
        raise fault(path, f"has {len(found.shapes)} areas; expected at most {MOST_FEATURES}")
    made, origin, home, notes = _in_metres(found, crs or found.crs, path, datum, chosen=bool(crs))
    shapes = found.shapes
    fail(path, [f"{s.where}: {f}" for s, m in zip(shapes, made, strict=True) if (f := fault_of(m))])
    shapes, made, twice = _once(shapes, made)
    outline, roles, taken = _outline(shapes, made, path)
    notes += [*taken, *twice, *found.notes]
    if found.others:
        notes.append(f"left out: {', '.join(f'{n} {what}' for what, n in found.others.items())}")
    if home is not None:
        where = ", ".join(f"{c:.1f}" for c in home)
        note = f"the planned home is at ({where}) m"
        low, high = np.array(shapely.total_bounds(made)).reshape(2, 2)
        off = math.dist(home, np.clip(home, low, high))
        if off <= NEAR * math.dist(low, high):
            note += f": probe.start: [{where}] begins there"
        else:
            note += f", {off / 1000:.3g} km from the areas, too far for probe.start"
        notes.append(note)
    of = list(zip(shapes, made, roles, strict=True))
    return Areas(
        outline,
        tuple(m for _, m, role in of if role == "obstacle"),
        tuple(
            (shape.name or shape.where, m, shape.weight)
            for shape, m, role in of
            if role == "region" and shape.weight is not None
        ),
        origin,
        home,
        (*_role_sentences(of), *notes),
    )


# -- roles of shapes -------------------------------------------------------------------------------

_LABEL = r"( ?(zones?|areas?|polygons?|regions?|rings?|boundary|line|(geo ?)?fences?))*"
_WORDS = {
    "obstacle": r"(obstacles?|exclu[a-z]*|keep ?outs?|no ?go|no ?fly|avoid|islands?"
    r"|islets?|rocks?|holes?|restricted|forbidden)",
    "fence": r"((geo ?)?fences?|geofence|inclu[a-z]*)",
    "outline": r"(outlines?|boundary|boundaries|perimeter|shores?|shorelines?|surveys?)",
}
"""Pattern of the words for each role."""
_WHOLE = {
    role: re.compile(rf"{words}{_LABEL}( ?[#:]?( ?\d+| ?[a-z]))?", re.IGNORECASE)
    for role, words in _WORDS.items()
}
"""Patterns of names that consist of the word for a role and perhaps a number or letter."""
_FIRST = {
    role: re.compile(rf"{words}( ?(zones?|areas?|polygons?|regions?))( .*)|{words} ?[:(] ?.*")
    for role, words in _WORDS.items()
}
"""Patterns of names that begin with the word for a role, such as "rock: low"."""
_WATERS = (
    r"(lakes?|bay|ponds?|islands?|creek|river|lagoon|cove|loch|tarn|reservoir|harbou?r|marsh|basin"
    r"|waters?|quarry|canal|sound|reef|beach|dam)"
)
_ALWAYS = {
    "obstacle": re.compile(rf"(no ?go|no ?fly|keep ?out)\b(?!.* {_WATERS}$).*"),
    "fence": re.compile(rf"geo ?fence\b(?!.* {_WATERS}$).*"),
}
"""Patterns of names that begin with a clear word for a role and are no names of waters."""
_ROLE_KEYS = ("role", "type", "kind", "class", "category", "fence_type")
_REGION = re.compile(r"regions?( of interest)?|roi|interest")


def _plain(text: str) -> str:
    """Return the words of a text in lower case, separated by blanks."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return re.sub(r"[\s_\-–]+", " ", split).strip().lower()


def _role_of_name(name: str) -> str:
    text = _plain(name)
    for table in (_WHOLE, _FIRST, _ALWAYS):
        for role, words in table.items():
            if words.fullmatch(text):
                return "obstacle" if re.search(r"\bexclu", text) else role
    return ""


def _role(feature: Feature, notes: list[str]) -> str:
    for key in filter(feature.tags.get, _ROLE_KEYS):
        text = _plain(feature.tags[key])
        for role, words in _WORDS.items():
            if re.search(rf"\b{words}\b", text):
                return role
        if _REGION.fullmatch(text):
            return "region"
        if key == "role" and text:
            notes.append(
                f"{feature.where}: role {text!r:.40} is none of outline, fence, obstacle, region "
                "and says nothing"
            )
    inclusion = feature.tags.get("inclusion", "").lower()
    if inclusion in ("true", "false", "1", "0"):
        return "fence" if inclusion in ("true", "1") else "obstacle"
    by_name = _role_of_name(feature.folder) or _role_of_name(feature.name)
    return by_name or ("region" if "weight" in feature.tags else "")


def of_features(path: Path) -> Drawing:
    """Return the polygons of a GIS file; if it has no polygon, closed paths count as polygons."""
    import shapely

    file = read_features(path)
    found = Drawing(file.crs)
    closed: list[Shape] = []
    for feature in file.features:
        weight = number_of(feature.tags.get("weight") or None)
        if weight is not None and not 0.0 <= weight <= MOST_WEIGHT:
            raise fault(path, f"{feature.where}: weight: must be 0 … 1e12, got {weight:g}")
        role = _role(feature, found.notes)
        shape = Shape(feature.where, None, feature.name, role, weight)
        if role == "region" and weight is None:
            found.notes.append(f"{feature.where}: a region without a weight counts like the rest")
        if feature.geometry is None:
            found.others["features without a shape"] += 1
        for part in simple(feature.geometry):
            if part.geom_type == "Polygon" and not part.is_empty:
                found.shapes.append(replace(shape, geometry=part))
            elif (ring := _closed(part)) is not None:
                closed.append(replace(shape, geometry=shapely.Polygon(ring)))
            else:
                found.others[_KINDS.get(part.geom_type, part.geom_type)] += 1
    taken = [shape for shape in closed if shape.role] if found.shapes else closed
    found.shapes += taken
    found.notes += [f"{s.where}: a path whose ends meet was taken as an area" for s in taken]
    if len(taken) < len(closed):
        found.others["closed paths beside polygons"] = len(closed) - len(taken)
    return found


_KINDS = {"Point": "points", "LineString": "lines", "LinearRing": "lines"}


def _closed(line: Any) -> FloatArray | None:
    import shapely

    points = shapely.get_coordinates(line)
    if line.geom_type not in ("LineString", "LinearRing") or len(points) < 4:
        return None
    apart = float(np.hypot(*(points[-1] - points[0])))
    degrees = bool((np.abs(points) <= (360.0, 90.0)).all())
    if apart > (_MEET if degrees else 0.1) or len(np.unique(points[:-1], axis=0)) < 3:
        return None  # A path there and back has no area.
    return np.asarray(points[:-1])


# -- positions of shapes ---------------------------------------------------------------------------


def _in_metres(
    found: Drawing, crs: str, path: Path, datum: Point | None, *, chosen: bool
) -> tuple[list[Any], Point | None, Point | None, list[str]]:
    """Return the shapes in local metres, the datum, the home position and notes."""
    import shapely

    shapes = np.array([shape.geometry for shape in found.shapes], dtype=object)
    given = shapely.get_coordinates(shapes)
    made = locate(given, crs, where=str(path), datum=datum, chosen=chosen)
    far = float(np.hypot(*made.points.T).max())
    if datum is not None and made.datum is not None and far > _FAR:
        (x0, y0), (x1, y1) = given.min(axis=0), given.max(axis=0)
        raise fault(
            path,
            f"lies {far / 1000:.0f} km from the origin of the map, longitude {datum[0]:g}, "
            f"latitude {datum[1]:g}: its corners are about ({x0:g}, {y0:g}) and ({x1:g}, {y1:g}). "
            "Is it the right file, and does the longitude come first?",
        )
    placed = shapely.set_coordinates(shapes, made.points)
    bends = sum(len(s.geometry.coords) for s in found.shapes if s.width)
    if bends > _MOST_BENDS:
        raise fault(path, f"its corridors have {bends} points; expected at most {_MOST_BENDS}")
    wide = [_widened(s, g, path) for s, g in zip(found.shapes, placed, strict=True)]
    home, notes = None, list(made.notes)
    if found.home is not None and made.datum is not None:
        at = locate(np.array([found.home]), LONLAT, where=str(path), datum=made.datum, degrees=True)
        home = float(at.points[0, 0]), float(at.points[0, 1])
    return wide, made.datum, home, notes


def _widened(shape: Shape, geometry: Any, path: Path) -> Any:
    if shape.radius:
        return geometry.buffer(shape.radius, quad_segs=_CIRCLE)
    if not shape.width:
        return geometry
    import shapely

    # Buffer each leg and each bend: the buffer of a long line that crosses itself takes minutes.
    points = shapely.get_coordinates(geometry)
    legs = shapely.linestrings(np.stack([points[:-1], points[1:]], axis=1))
    bands = shapely.buffer(legs, shape.width / 2.0, cap_style="flat")
    discs = shapely.buffer(shapely.points(points[1:-1]), shape.width / 2.0, quad_segs=_CIRCLE)
    band = shapely.union_all(np.concatenate([bands, discs]))
    if not shapely.length(geometry) > 0.0:
        raise fault(path, f"{shape.where}: expected a line of some metres, got one of 0 m")
    return band


def _once(shapes: list[Shape], made: list[Any]) -> tuple[list[Shape], list[Any], list[str]]:
    """Drop shapes that repeat an earlier shape of the same role; also return notes."""
    import shapely

    tree = shapely.STRtree(made)
    areas = shapely.area(made)
    firsts, others = tree.query(made, predicate="intersects")
    close = np.abs(areas[firsts] - areas[others]) <= _SAME * areas[firsts]
    dropped: dict[int, int] = {}
    for i, j in zip(firsts[close].tolist(), others[close].tolist(), strict=True):
        alike = i < j and shapes[i].role == shapes[j].role and i not in dropped
        if alike and made[i].symmetric_difference(made[j]).area <= _SAME * areas[i]:
            dropped[j] = i
    notes = [
        f"{shapes[j].where} is the polygon of {shapes[i].where} again and counts once"
        for j, i in dropped.items()
    ]
    left = [k for k in range(len(shapes)) if k not in dropped]
    return [shapes[k] for k in left], [made[k] for k in left], notes


def _outline(
    shapes: Sequence[Shape], made: Sequence[Any], path: Path
) -> tuple[Any, list[str], list[str]]:
    """Return the ground within outlines and geofences, the role of each shape, and notes."""
    import shapely

    roles = [shape.role or "outline" for shape in shapes]
    plain = [k for k, role in enumerate(roles) if role == "outline"]
    ground: Any = None
    holes: list[str] = []
    if plain:
        polygons = [made[k] for k in plain]
        inner, outer = shapely.STRtree(polygons).query(polygons, predicate="covered_by")
        depth = np.bincount(inner[inner != outer], minlength=len(plain))
        for index, k in enumerate(plain):
            if shapes[k].role == "" and depth[index] % 2:
                roles[k] = "hole"
                holes.append(shapes[k].name or shapes[k].where)
        for level in range(int(depth.max()) + 1):
            for role in ("hole", "outline"):
                at = [p for p, k in enumerate(plain) if depth[p] == level and roles[k] == role]
                part = shapely.union_all([polygons[p] for p in at])
                if at and role == "hole":
                    ground = ground.difference(part)
                elif at:
                    ground = part if ground is None else ground.union(part)
    notes = []
    if holes:
        shown = listed(holes, 10) + (f" ({len(holes)})" if len(holes) > 10 else "")
        notes.append(f"taken for holes in the outline, since they lie within it: {shown}")
    fences = [m for m, role in zip(made, roles, strict=True) if role == "fence"]
    if len(fences) > 1:
        notes.append(f"places lie within all {len(fences)} inclusion fences, as autopilots have it")
    for fence in fences:
        ground = fence if ground is None else ground.intersection(fence)
    if ground is None:
        return None, roles, notes
    parts = [g for g in simple(ground) if g.area > 0.0]
    if not parts:
        what = "the area to survey and the geofence" if plain else f"its {len(fences)} geofences"
        raise fault(path, f"{what} have nothing in common")
    return (parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)), roles, notes


def _role_sentences(of: Sequence[tuple[Shape, Any, str]]) -> Iterator[str]:
    for role, count in Counter(role for *_, role in of).items():
        each = [(s.name or s.where, m.area) for s, m, r in of if r == role]
        named = ", ".join(dict.fromkeys(name for name, _ in each[:5]))
        more = ", …" if count > 5 else ""
        area = sum(a for _, a in each)
        size = f"{area / 1e6:.3g} km²" if area >= 1e5 else f"{area:.6g} m²"
        yield f"taken as {role}: {count} ({named}{more}), {size}"


# -- weights of the places of a map ----------------------------------------------------------------


def weighted(places: T, config: WeightsConfig, base_dir: Path | None = None) -> T:
    """Return places with the weights of a configuration; at least one weight is above 0.

    A place on the edge of an area counts as inside the area.

    Raises:
        ConfigError: a column is missing, a weight is below 0, no weight is above 0, an area is no
            polygon, or an area contains no place.
        MapError: a place has no value in the column.
    """
    if not (config.column or config.areas):
        return places
    weights = _column(config.column, places) if config.column else np.ones(places.n)
    if config.areas:
        weights = weights * _areas(config, places, base_dir)
    if not weights.any():
        msg = f"weights: no place of map {places.name!r} counts, all weights are 0"
        raise ConfigError(msg)
    return places.weighted(weights)


def _column(name: str, places: Topology) -> FloatArray:
    try:
        found, titles = places.columns([name])
    except ConfigError as error:
        problems = [problem.removeprefix("features: ") for problem in error.problems]
        raise ConfigError([f"weights.column: {problem}" for problem in problems]) from None
    if len(titles) != 1:
        msg = f"weights.column: {name!r} is no single number, but {', '.join(titles)}"
        raise ConfigError(msg)
    values: FloatArray = found[:, 0]
    wrong = ~((values >= 0.0) & (values <= MOST_WEIGHT))
    if wrong.any():
        first = int(np.argmax(wrong))
        msg = (
            f"weights.column: must be 0 … {MOST_WEIGHT:g}, but {name!r} of place "
            f"{places.names[first]!r} is {values[first]:g} ({int(wrong.sum())} of {places.n} "
            "places are so)"
        )
        raise ConfigError(msg)
    return values


def _areas(config: WeightsConfig, places: Topology, base_dir: Path | None) -> FloatArray:
    problems: list[str] = []
    factors = np.full(places.n, config.elsewhere)
    for number, area in enumerate(config.areas):
        key = f"weights.areas[{number}].outline"
        if isinstance(area.outline, str):
            path = find_map(area.outline, base_dir)
            areas = read_areas(path, datum=places.datum)
            if areas.datum is not None and places.datum is None:
                raise fault(
                    path,
                    f"is in degrees, and map {places.name!r} in metres of its own: say "
                    "where their origin lies with map.datum: [latitude, longitude]",
                )
            shape = areas.everything
        else:
            shape = polygon(area.outline, key, problems)
        if shape is None:
            continue
        inside = inside_of(shape, places.positions)
        if not inside.any():
            (x0, y0), (x1, y1) = places.positions.min(axis=0), places.positions.max(axis=0)
            problems.append(
                f"{key}: holds no place of map {places.name!r} (its places are at x {x0:g} … "
                f"{x1:g}, y {y0:g} … {y1:g} m)"
            )
        factors[inside] = area.weight
    if problems:
        raise ConfigError(problems)
    return factors
