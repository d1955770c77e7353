"""Project the coordinates of a map file to local metres.

All coordinate systems that PROJ knows are projected to one frame. The frame is a transverse
Mercator projection of WGS 84 about the middle of the map, with a scale of 1 in the middle. The
projection is conformal: headings and angles are true. At 50 km from the middle, lengths have a
relative error of 3e-5. [Snyder1987, section 8]
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.segments import Point, length_of
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.lazy import library

LOCAL = "local"
"""Name of a map's own metric frame, in place of a coordinate system."""
LONLAT = "EPSG:4326"
"""Coordinate system of longitude and latitude, longitude first."""

DEGREE = 111_320.0
"""Approximate length of a degree of latitude [m]."""
_TINY = 0.05
"""Median length of segments [m]; below it, coordinates declared as metres must be degrees."""
_FACTOR = 50.0
"""Ratio between drawn and stated lengths; above it, the declared unit must be wrong."""
_LONGEST = 100e3
"""Median length of segments [m]; above it, coordinates declared as degrees must be metres."""
_FAR = 500e3
"""Largest extent of a map [m]; beyond it, the relative error of lengths exceeds 0.001."""
_BEYOND = 1e9
"""Largest absolute coordinate on Earth, in any unit."""


@dataclass(frozen=True)
class LocalPoints:
    """Points in local metres."""

    points: FloatArray  # (n, 2) [m]
    crs: str  # coordinate system of the input
    datum: Point | None  # longitude and latitude of the origin [degree], None for `LOCAL`
    notes: tuple[str, ...] = ()  # assumptions, a sentence each


def locate(
    points: FloatArray,
    crs: str,
    *,
    where: str,
    datum: Point | None = None,
    degrees: bool | None = None,
    chosen: bool = False,
) -> LocalPoints:
    """Return points (n, 2) in local metres; raise an error if they cannot be in the unit of `crs`.

    Args:
        points: (n, 2) coordinates, longitude first.
        crs: `LOCAL` or any name that PROJ knows, such as "EPSG:4326". "" = `LONLAT` if the points
            look like degrees, else `LOCAL`.
        where: beginning of messages.
        datum: longitude and latitude of the origin [degree]; None = the middle of the points.
        degrees: True = the points look like longitude and latitude; None = decide by their range.
        chosen: True = the user named the coordinate system; the map may then have any size.

    Raises:
        MapError: the system is unknown, the declared unit is wrong, or the map is too large.
        MissingDependencyError: pyproj is needed and missing.
    """
    if np.abs(points).max() > _BEYOND:
        msg = f"{where}: coordinates ({_extent(points)}) lie outside the Earth; expected metres"
        raise MapError(msg)
    if degrees is None:
        degrees = not chosen and looks_like_degrees(points)
    if crs == LOCAL or (not crs and not degrees):
        if degrees:
            msg = (
                f"{where}: coordinates look like longitude and latitude ({_extent(points)}); "
                "expected metres in a local frame. Declare them as EPSG:4326 (map.crs, or the crs "
                'of the file); a map that is this small in metres says map.crs: local, or "allow_'
                'small": true in its header'
            )
            raise MapError(msg)
        if not crs and float(np.ptp(points, axis=0).max()) > _FAR:
            _refuse_far(points, where)
        return LocalPoints(points, LOCAL, None)
    notes: tuple[str, ...] = ()
    if not crs:
        crs = LONLAT
        note = (
            f"no coordinate system is declared; {_extent(points)} look like longitude and latitude "
            f"and were taken as {LONLAT}"
        )
        notes = (note,)
    system = _system(crs, where)
    if system.is_geographic:
        points = _in_range(points, where, crs)
    elif degrees:
        msg = (
            f"{where}: coordinates are declared as {crs}, whose unit is metres, but look like "
            f"longitude and latitude ({_extent(points)}); declare them as {LONLAT}"
        )
        raise MapError(msg)
    lonlat = points if crs == LONLAT else _transform(system, LONLAT, points, where)
    datum = _middle(lonlat) if datum is None else datum
    metres = np.round(_transform(LONLAT, local_system(datum), lonlat, where), 3)
    extent = float(np.ptp(metres, axis=0).max())
    if extent > _FAR:
        if not chosen:
            _refuse_far(metres, where, f" ({_extent(points)} in {system.name})")
        note = (
            f"the map is {extent / 1000:.0f} km across; in a local frame lengths far from its "
            "middle are off by more than one in a thousand"
        )
        notes += (note,)
    return LocalPoints(metres, crs, datum, notes)


def _refuse_far(metres: FloatArray, where: str, given: str = "") -> None:
    msg = (
        f"{where}: is {float(np.ptp(metres, axis=0).max()) / 1000:.0f} km across{given}, and a map "
        f"has at most {_FAR / 1000:.0f} km: is a point at another place, or the coordinate system "
        "another one? map.crs: NAME of the system says that it is meant"
    )
    raise MapError(msg)


def place(
    lines: Sequence[Sequence[Point]],
    crs: str,
    *,
    where: str,
    lengths: Sequence[float | None] = (),
    allow_small: bool = False,
) -> tuple[list[tuple[Point, ...]], LocalPoints]:
    """Return lines in local metres; raise an error if they cannot be in the unit of `crs`.

    `lengths` are the stated lengths of the lines [m]; None = not stated, () = none is stated. With
    `allow_small`, metres are accepted even if they are so small that they look like degrees. The
    other arguments and the errors are those of `locate`, but the map may have any size.
    """
    points = np.array([point for line in lines for point in line], dtype=np.float64)
    drawn, stated = _totals(lines, lengths)
    alike = stated > 0.0 and 1.0 / _FACTOR < drawn / stated < _FACTOR
    usual = float(np.median([length_of(line) for line in lines]))
    x, y = np.abs(points).max(axis=0)
    degrees = not (allow_small or x > 360.0 or y > 90.0 or alike) and (
        looks_like_degrees(points) or 0.0 < usual < _TINY or stated > _FACTOR * drawn
    )
    made = locate(points, crs, where=where, degrees=degrees, chosen=True)
    flat = iter(map(tuple, made.points.tolist()))
    placed = [tuple(islice(flat, len(line))) for line in lines]
    if made.crs == LOCAL:
        if alike or not stated > 0.0:
            return placed, made
        note = (
            f"segments are {drawn / stated:.3g} times as long as they say: are coordinates and "
            "lengths both in metres?"
        )
        return placed, replace(made, notes=(note,))
    # Metres declared as degrees would make segments 100 km long.
    drawn, stated = _totals(placed, lengths)
    usual = float(np.median([length_of(line) for line in placed]))
    if (stated > 0.0 and drawn > _FACTOR * stated) or usual > _LONGEST:
        msg = (
            f"{where}: coordinates are declared as {made.crs}, but then a segment is usually "
            f"{usual / 1000:.0f} km long; {_extent(points)} look like metres, which are declared "
            f'as "{LOCAL}"'
        )
        raise MapError(msg)
    return placed, made


def geographic_of(points: Sequence[Point], crs: str, *, where: str) -> FloatArray:
    """Return longitude and latitude (n, 2) of points in the coordinate system `crs` [degree]."""
    given = np.array(points, dtype=np.float64).reshape(-1, 2)
    return _transform(_system(crs, where), LONLAT, given, where)


def local_metres(longitude: float, latitude: float, datum: Point) -> Point:
    """Return x and y [m] of a position in the local frame of a datum; (inf, inf) if too far away.

    `datum` is longitude and latitude [degree]. Raises MissingDependencyError without pyproj.
    """
    x, y = _change(LONLAT, local_system(datum)).transform(longitude, latitude)
    return float(x), float(y)


def in_system(points: FloatArray, datum: Point, crs: str, *, where: str) -> FloatArray:
    """Convert points (n, 2) in local metres to coordinates (n, 2) of `crs`, longitude first.

    Raises:
        MapError: the system is unknown, or points are outside the area of the system.
        MissingDependencyError: pyproj is missing.
    """
    return _transform(local_system(datum), _system(crs, where), points, where)


def own_origin(crs: str, *, where: str) -> Point | None:
    """Return the origin (longitude, latitude) if `crs` is a `local_system`; None otherwise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # to_dict loses details
        terms = _system(crs, where).to_dict()
    scale = float(terms.get("k", terms.get("k_0", 1.0)))
    plain = scale == 1.0 and not terms.get("x_0") and not terms.get("y_0")
    metres = terms.get("units", "m") == "m" and "WGS84" in (terms.get("ellps"), terms.get("datum"))
    if terms.get("proj") != "tmerc" or not (plain and metres):
        return None
    return float(terms.get("lon_0", 0.0)), float(terms.get("lat_0", 0.0))


def frame_error(points: Sequence[Point], crs: str, datum_at: Point, *, where: str) -> float:
    """Return the largest error [m] if coordinates in `crs` are used as metres about `datum_at`.

    The error of a point is the distance between its coordinates minus `datum_at` and its exact
    position in the local frame about `datum_at`. All coordinates are in `crs`.
    """
    lonlat = geographic_of([datum_at, *points], crs, where=where)
    origin = (float(lonlat[0, 0]), float(lonlat[0, 1]))
    local = _transform(LONLAT, local_system(origin), lonlat[1:], where)
    shifted = np.array(points, dtype=np.float64) - np.array(datum_at)
    return float(np.hypot(*(local - shifted).T).max())


def _proj() -> Any:
    return library("pyproj", "longitude and latitude are projected with pyproj")


def _system(crs: str, where: str) -> Any:
    pyproj = _proj()
    try:
        system = pyproj.CRS.from_user_input(crs)
    except pyproj.exceptions.CRSError as error:
        msg = (
            f'{where}: unknown coordinate system {crs!r}; expected "{LOCAL}" for metres, or a name '
            f"that PROJ knows, such as {LONLAT} (longitude, latitude) or EPSG:32633"
        )
        raise MapError(msg) from error
    if not (system.is_geographic or system.is_projected):
        msg = (
            f"{where}: coordinate system {crs!r} is a {system.type_name}; expected a geographic or "
            f'projected one, such as {LONLAT}, or "{LOCAL}" for metres in a frame of your own'
        )
        raise MapError(msg)
    return system


def local_system(datum: tuple[float, float]) -> str:
    """Return the PROJ string of the local frame centred at a longitude and latitude [degree]."""
    longitude, latitude = datum
    return f"+proj=tmerc +lon_0={longitude} +lat_0={latitude} +k=1 +ellps=WGS84 +units=m +no_defs"


@lru_cache(maxsize=64)
def _change(source: Any, target: Any) -> Any:
    return _proj().Transformer.from_crs(source, target, always_xy=True)


def _transform(source: Any, target: Any, points: FloatArray, where: str) -> FloatArray:
    change = _change(source, target)
    # Use lists: pyproj makes a number of an array with one point, which numpy 1 warns about.
    done = np.column_stack(change.transform(points[:, 0].tolist(), points[:, 1].tolist()))
    bad = np.flatnonzero(~np.isfinite(done).all(axis=1))
    if len(bad):
        x, y = points[bad[0]]
        msg = (
            f"{where}: ({x:g}, {y:g}) lies outside the area of its coordinate system; "
            "is the system the right one?"
        )
        raise MapError(msg)
    return np.asarray(done, dtype=np.float64)


def _middle(lonlat: FloatArray) -> tuple[float, float]:
    """Return the middle of the bounding box of points [degree], rounded to about 0.1 m."""
    longitude, latitude = (lonlat.min(axis=0) + lonlat.max(axis=0)) / 2.0
    if np.ptp(lonlat[:, 0]) > 180.0:  # it lies across the 180th meridian
        east = lonlat[:, 0] % 360.0
        longitude = (float(east.min() + east.max()) / 2.0 + 180.0) % 360.0 - 180.0
    return round(float(longitude), 6), round(float(latitude), 6)


def _totals(
    lines: Sequence[Sequence[Point]], lengths: Sequence[float | None]
) -> tuple[float, float]:
    """Return the drawn and the stated total length [m] of those lines whose length is stated."""
    pairs = zip(lines, lengths or [None] * len(lines), strict=True)
    known = [(length_of(line), stated) for line, stated in pairs if stated is not None]
    both = [(drawn, stated) for drawn, stated in known if drawn > 0.0 and stated > 0.0]
    return math.fsum(drawn for drawn, _ in both), math.fsum(stated for _, stated in both)


def looks_like_degrees(points: FloatArray) -> bool:
    """Return whether coordinates (n, 2) can be degrees on a map with an extent below `_FAR` [m]."""
    low, high = points.min(axis=0), points.max(axis=0)
    within = low[0] >= -180.0 and high[0] <= 360.0 and low[1] >= -90.0 and high[1] <= 90.0
    lonlat = (points[:, 0] + 180.0) % 360.0 - 180.0
    across = min(float(np.ptp(lonlat)), float(np.ptp(lonlat % 360.0)))
    across *= math.cos(math.radians(0.5 * float(low[1] + high[1])))
    return bool(within) and DEGREE * max(across, float(high[1] - low[1])) < _FAR


def _in_range(points: FloatArray, where: str, crs: str) -> FloatArray:
    """Return degrees with longitudes of -180 … 180; longitudes of 0 … 360 are converted."""
    x, y = np.abs(points).max(axis=0)
    if x <= 360.0 and y <= 90.0 and (x <= 180.0 or points[:, 0].min() >= 0.0):
        wrapped = np.where(points[:, 0] > 180.0, points[:, 0] - 360.0, points[:, 0])
        return np.column_stack([wrapped, points[:, 1]])
    swapped = x <= 90.0 and y <= 180.0
    hint = (
        "latitude and longitude may have changed places; the first number is the longitude"
        if swapped
        else f'metres are declared as "{LOCAL}", or with the name of their projection'
    )
    msg = (
        f"{where}: coordinates are declared as {crs} (longitude, latitude), "
        f"but {_extent(points)} are no degrees; {hint}"
    )
    raise MapError(msg)


def _extent(points: FloatArray) -> str:
    (x0, y0), (x1, y1) = points.min(axis=0), points.max(axis=0)
    return f"x {x0:g} … {x1:g}, y {y0:g} … {y1:g}"
