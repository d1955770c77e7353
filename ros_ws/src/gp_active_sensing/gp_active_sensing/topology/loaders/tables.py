"""Places from a table, or from the points of a GIS file."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import compress, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError, listed, suggest
from gp_active_sensing.topology.geometry import below_water, upwards_of
from gp_active_sensing.topology.loaders import fail, fault, number_of
from gp_active_sensing.topology.projection import (
    LOCAL,
    LONLAT,
    LocalPoints,
    geographic_of,
    in_system,
    locate,
    looks_like_degrees,
)
from gp_active_sensing.types import BoolArray, FloatArray
from gp_active_sensing.util.tables import MISSING, Table, are_fills

logger = logging.getLogger(__name__)

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "name": ("name", "station", "site", "id", "place"),
    "x": ("x", "x_m", "easting"),
    "y": ("y", "y_m", "northing"),
    "lon": ("lon", "longitude", "lng"),
    "lat": ("lat", "latitude"),
}
"""Accepted titles of each column (case-insensitive); the first match counts."""
_MEANING: Mapping[str, str] = {
    "name": "name",
    "x": "x",
    "y": "y",
    "longitude": "lon",
    "latitude": "lat",
    "height": "z",
    "depth": "z",
}
"""Key of `COLUMNS`, or "z", for each key of the configuration `map.columns_of`."""


def named_columns(entries: Iterable[str]) -> dict[str, str]:
    """Parse entries such as "x=E"; return the title of a column for each key.

    Raises:
        ConfigError: an entry is wrong, a key is unknown or repeated, or a title is repeated.
    """
    found: dict[str, str] = {}
    problems: list[str] = []
    for entry in entries:
        key, _, title = (part.strip() for part in entry.partition("="))
        if key not in _MEANING or not title or key in found:
            problems.append(
                f"columns_of: expected entries such as x=E, one for each of {', '.join(_MEANING)}, "
                f"got {entry!r:.60}.{suggest(key, _MEANING)}"
            )
        elif title.lower() in map(str.lower, found.values()):
            problems.append(f"columns_of: {entry!r:.60}: another entry names this column")
        else:
            found[key] = title
    if {"height", "depth"} <= found.keys():
        problems.append("columns_of: height and depth both say how high a place is; name one")
    if problems:
        raise ConfigError(problems)
    return found


@dataclass(frozen=True)
class Sites:
    """Places of a table."""

    names: tuple[str, ...]  # (n,) names of the places
    points: FloatArray  # (n, 2) x, y, or (n, 3) with z upwards [m]
    datum: tuple[float, float] | None = None  # longitude and latitude of the origin [degree]
    # (n,) further numbers by name; NaN = missing
    numbers: Mapping[str, FloatArray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # sentences on assumptions and omissions


class PlaceTable(NamedTuple):
    """Table of places; a row has its position in the file and its cells; `crs` "" = not known."""

    header: Sequence[str]
    rows: Iterable[tuple[int | str, Sequence[str]]]
    crs: str = ""


def of_csv(path: Path) -> PlaceTable:
    """Read the table of a CSV file."""
    with Table(path, MapError) as table:
        header = list(table.header)
    if len(header) > _MOST_COLUMNS:
        raise fault(path, f"{len(header)} columns are more than {_MOST_COLUMNS}")

    def rows() -> Iterator[tuple[int, list[str]]]:
        with Table(path, MapError) as table:
            yield from table

    return PlaceTable(header, rows())


def of_features(path: Path) -> PlaceTable:
    """Read the points of a GIS file as a table."""
    from gp_active_sensing.topology.geometry import simple
    from gp_active_sensing.topology.loaders.vector import read_features

    file = read_features(path)
    points = [(f, p) for f in file.features for p in simple(f.geometry) if p.geom_type == "Point"]
    if not points:
        raise fault(path, "has no points; expected one for each place")
    degrees = looks_like_degrees(np.array([(p.x, p.y) for _, p in points]))
    pair = ["longitude", "latitude"] if file.crs in ("", LONLAT) and degrees else ["x", "y"]
    all_keys = dict.fromkeys(key for f, _ in points for key in f.tags)
    keys = [key for key in all_keys if key not in (*pair, "name")]
    names = [f.name for f, _ in points]
    named = all(names) and len(set(names)) == len(names)
    rows = []
    for f, p in points:
        numbers = [repr(p.x), repr(p.y), *(f.tags.get(key, "") for key in keys)]
        rows.append((f.where, [f.name, *numbers] if named else numbers))
    header = [*(["name"] if named else []), *pair, *keys]
    return PlaceTable(header, rows, "" if pair[0] == "longitude" else file.crs)


_MOST_COLUMNS, _MOST_PLACES = 1_000, 1_000_000
_AT_ONCE = 300
"""Number of rows in a chunk; with 1,000 rows, garbage collection takes three times as long."""
_NOWHERE, _NOWHERE_METRES = 1.0, 1e5
"""Places at (0, 0) had no fix if all other places are farther away than this [degree, m]."""
_SAME = 0.05
"""Largest accepted distance between the positions of a place in metres and in degrees [m]."""
_ABOUT = 100.0
"""Largest accepted distance between the positions of a place in UTM and in degrees [m]."""


class SitesReader:
    """Reader of a table of places; `own` maps keys of `map.columns_of` to column titles."""

    def __init__(self, path: Path, table: PlaceTable, own: Mapping[str, str]) -> None:
        where = str(path)
        self._path, self._header, self._crs = where, list(table.header), table.crs
        self._columns, self._upwards = _columns_of(where, self._header, own)
        lower = [title.strip().lower() for title in self._header]
        self._text = {key: lower.index(t) for key, ts in _ZONE.items() for t in ts if t in lower}
        if "name" in self._columns:
            self._text["name"] = self._columns["name"][0]
        self._words: dict[str, list[str]] = {key: [] for key in self._text}
        self._parts: dict[int, list[FloatArray]] = {
            at: []
            for at, title in enumerate(self._header)
            if title and at not in self._text.values()
        }
        self._bad: dict[int, dict[int, str]] = {}
        self._notes: list[str] = []
        self._lines: list[int | str] = []
        rows = iter(table.rows)
        while piece := list(islice(rows, _AT_ONCE)):
            self._add(piece)

    def _add(self, rows: Sequence[tuple[int | str, Sequence[str]]]) -> None:
        if len(self._lines) + len(rows) > _MOST_PLACES:
            raise fault(self._path, f"has more than {_MOST_PLACES} places")
        first = len(self._lines)
        self._lines += [line for line, _ in rows]
        columns = list(zip(*(row for _, row in rows), strict=True))
        for key, at in self._text.items():
            self._words[key] += map(str.strip, columns[at])
        for at, parts in self._parts.items():
            parts.append(self._numbers(at, columns[at], first))

    def _numbers(self, at: int, cells: Sequence[str], first: int) -> FloatArray:
        with suppress(ValueError):
            found = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
            if np.isfinite(found).all():
                return found
        found = np.full(len(cells), math.nan)
        for k, word in enumerate(cells):
            value = number_of(word) if word.strip().lower() not in MISSING else math.nan
            if value is None or math.isinf(value):
                self._bad.setdefault(at, {})[first + k] = word.strip()
            else:
                found[k] = value
        return found

    def finish(self, crs: str) -> Sites:
        """Return the places; `crs` overrides the coordinate system of the table."""
        path, columns, n = self._path, self._columns, len(self._lines)
        crs = crs or self._crs
        if not n:
            raise fault(path, "expected a row for each place below the header, found none")
        values = {at: np.concatenate(parts) for at, parts in self._parts.items()}
        problems: list[str] = []
        keys: list[str] = [key for key in ("lon", "lat", "x", "y", "z") if key in columns]
        of = {key: self._checked(columns[key], values, problems) for key in keys}
        names = self._names(problems)
        fail(path, problems)
        pair = ("lon", "lat") if "lon" in of else ("x", "y")
        points = np.column_stack([of[key] for key in pair])
        kept = self._somewhere(points, names, degrees=pair[0] == "lon" or crs == LONLAT)
        names = tuple(compress(names, kept))
        self._words = {key: list(compress(words, kept)) for key, words in self._words.items()}
        of = {key: column[kept] for key, column in of.items()}
        located = self._placed(points[kept], of, crs)
        self._notes += located.notes
        found = located.points
        if "z" in of:
            where = f"{path}, column {columns['z'][1]!r}"
            height = of["z"] * abs(self._upwards)
            if self._upwards < 0.0:
                height, notes = below_water(height, where)
                self._notes += notes
            found = np.column_stack([found, height])
        used = {at for at, _ in columns.values()}
        used |= {at for at, title in enumerate(self._header) if title in ("x", "y", "z")}
        numbers = self._others(values, used, kept)
        return Sites(names, found, located.datum, numbers, tuple(self._notes))

    def _checked(
        self, column: tuple[int, str], values: Mapping[int, FloatArray], problems: list[str]
    ) -> FloatArray:
        at, title = column
        found = values[at]
        fills = are_fills(found)
        for k in np.flatnonzero(~np.isfinite(found) | fills).tolist():
            word = self._bad.get(at, {}).get(k, "")
            what = f"got {word!r:.60}" if word else "it is missing"
            if fills[k]:
                what = f"{found[k]:g} is a fill value"
            line = self._lines[k]
            where = f"line {line}" if isinstance(line, int) else line
            problems.append(f"{where}, column {title!r}: expected a finite number, {what}")
        return found

    def _names(self, problems: list[str]) -> tuple[str, ...]:
        names = self._words.get("name")
        if names is None:
            return tuple(map(str, range(1, len(self._lines) + 1)))
        seen: dict[str, int | str] = {}
        for line, name in zip(self._lines, names, strict=True):
            if not name:
                column = self._columns["name"][1]
                problems.append(f"line {line}, column {column!r}: the name is missing")
            elif seen.setdefault(name, line) != line:
                problems.append(
                    f"lines {seen[name]} and {line}: both places are called {name!r}; give each a "
                    "name of its own"
                )
        return tuple(names)

    def _somewhere(self, points: FloatArray, names: Sequence[str], *, degrees: bool) -> BoolArray:
        """Return flags (n,): False for places at (0, 0) if all other places are far from there.

        A receiver without a fix reports the position (0, 0).
        """
        nowhere = (points == 0.0).all(axis=1)
        if degrees and nowhere.all():
            raise fault(self._path, "all places are at 0, 0, as a receiver without a fix writes it")
        far = np.abs(points[~nowhere]).max(axis=1) > (_NOWHERE if degrees else _NOWHERE_METRES)
        if not nowhere.any() or nowhere.all() or not far.all():
            return np.ones(len(points), dtype=np.bool_)
        left = [names[k] for k in np.flatnonzero(nowhere).tolist()]
        note = (
            f"{listed(left)}: at 0, 0, far from all others, as a receiver without a fix writes it; "
            f"left out ({len(left)})"
        )
        logger.warning("%s: %s", self._path, note)
        self._notes.append(note)
        return np.asarray(~nowhere)

    def _placed(self, points: FloatArray, of: Mapping[str, FloatArray], crs: str) -> LocalPoints:
        where = self._path
        if "lon" in of:
            made = locate(points, crs or LONLAT, where=where, chosen=bool(crs))
            if "x" in of:
                return self._of_both(made, np.column_stack([of["x"], of["y"]]), points)
            return made
        if crs:
            return locate(points, crs, where=where, chosen=True)
        if "zone" in self._words:
            return locate(self._of_zones(points), LONLAT, where=where)
        plain = not self._columns["x"][1].lower().endswith("_m")
        if plain and np.ptp(points, axis=0).max() > 0.0 and looks_like_degrees(points):
            locate(points, LOCAL, where=where, degrees=True)  # raises MapError
        return locate(points, "", where=where, degrees=False)

    def _of_zones(self, points: FloatArray) -> FloatArray:
        zones = [word.upper().replace(" ", "") for word in self._words["zone"]]
        halves = self._words.get("hemisphere", [""] * len(zones))
        labels = [zone + half[:1].upper() for zone, half in zip(zones, halves, strict=True)]
        bands = any(re.search(r"\d[C-HJ-MP-RT-X]$", word) for word in zones)
        lonlat, notes = np.empty_like(points), []
        for zone in dict.fromkeys(labels):
            plain = re.sub("UTM|ZONE|[-_:]", "", zone)
            if code := re.fullmatch(r"EPSG(32[67])(\d\d)", plain):  # EPSG codes of zones
                plain = f"{code[2]}{'N' if code[1] == '326' else 'S'}"
            match = re.fullmatch(r"(\d{1,2})([C-HJ-NP-X]?)([NS]?)", plain)
            if match is None or not 1 <= int(match[1]) <= 60:
                raise fault(self._path, f"zone: expected one of UTM, such as 32N, got {zone!r:.20}")
            band, half = match[2], match[3] or ("" if bands else match[2])
            south = half == "S" or (not half and bool(band) and band < "N")
            if not band and not half:
                notes.append(f"zone {zone} was taken as one north of the equator ({zone}N)")
            rows = np.array([word == zone for word in labels])
            system = f"EPSG:{32700 if south else 32600}".replace("00", f"{int(match[1]):02d}", 1)
            given = [(x, y) for x, y in points[rows].tolist()]
            lonlat[rows] = geographic_of(given, system, where=self._path)
        self._notes += [f"x and y are UTM, zone {', '.join(dict.fromkeys(zones))}", *notes]
        return lonlat

    def _of_both(self, made: LocalPoints, metres: FloatArray, degrees: FloatArray) -> LocalPoints:
        """Check that metres and degrees of a table agree; return the places.

        If the metres are in a local frame, as in an export, they become the positions. If they are
        UTM coordinates, the degrees become the positions.
        """
        where = self._path
        middle = made.datum or (0.0, 0.0)
        shift = np.mean(made.points - metres, axis=0, keepdims=True)
        if float(np.abs(shift).max()) < 1e6:
            exact = in_system(shift, middle, LONLAT, where=where)[0]
            for decimals in (6, 9):  # most origins have six decimals
                origin = round(float(exact[0]), decimals), round(float(exact[1]), decimals)
                again = locate(degrees, LONLAT, where=where, datum=origin, chosen=True).points
                if float(np.hypot(*(again - metres).T).max()) <= _SAME:
                    return LocalPoints(metres, LONLAT, origin)
        zone = int((middle[0] + 180.0) // 6.0) + 1
        for number in (zone, zone % 60 + 1, (zone - 2) % 60 + 1):
            system = f"EPSG:{(32700 if middle[1] < 0.0 else 32600) + number}"
            utm = in_system(made.points, middle, system, where=where)
            if float(np.hypot(*(utm - metres).T).max()) <= _ABOUT:
                half = "S" if middle[1] < 0.0 else "N"
                note = f"x and y are those of UTM zone {number}{half}; the degrees count"
                return replace(made, notes=(*made.notes, note))
        raise fault(
            where,
            "has x and y and longitude and latitude, and they are not of the same "
            "places, neither in metres of a frame of their own nor in UTM; keep one pair, of which "
            "the positions are made, or name its columns in columns_of",
        )

    def _others(
        self, values: Mapping[int, FloatArray], used: set[int], kept: BoolArray
    ) -> dict[str, FloatArray]:
        """Return the columns of numbers that are not `used`; among equal names, only the first."""
        found: dict[str, FloatArray] = {}
        text: list[str] = []
        fills: list[str] = []
        for at, title in enumerate(self._header):
            if at in used or at not in values or title in found:
                continue
            if self._bad.get(at):
                text.append(title)
                continue
            column = values[at][kept]
            if (none := are_fills(column)).any():
                column = np.where(none, math.nan, column)
                fills.append(f"column {title!r}: {int(none.sum())} fill values count as none")
            if np.isfinite(column).any():
                found[title] = column
        if text:
            self._notes.append(f"columns that are no numbers are left out: {listed(text)}")
        self._notes += fills
        return found


_ZONE = {
    "zone": ("zone", "utm_zone", "utm zone", "utmzone", "zona"),
    "hemisphere": ("hemisphere", "hemi"),
}
"""Column titles, in lower case, that are accepted for each column of text."""


def _columns_of(
    path: str, header: Sequence[str], own: Mapping[str, str]
) -> tuple[dict[str, tuple[int, str]], float]:
    """Return index and title of each column, and the factor that converts heights to z [m].

    The keys are name, z, and one or both of the pairs x, y and lon, lat.

    Raises:
        MapError: a column is missing or repeated.
    """
    found: dict[str, tuple[int, str]] = {}
    plain = [title.lower() for title in header]
    problems: list[str] = []
    for key, word in own.items():
        # An exact match counts before a match in another case.
        places = [list(t).index(w) for t, w in ((header, word), (plain, word.lower())) if w in t]
        if places:
            found[_MEANING[key]] = places[0], header[places[0]]
        else:
            problems.append(
                f"line 1: no column {word!r}, which columns_of names as {key}, but "
                f"{listed(header)}.{suggest(word, header)}"
            )
    fail(path, problems)
    taken = {at for at, _ in found.values()}
    titles = ["" if at in taken else title.lower() for at, title in enumerate(header)]
    own_pair = {"x", "y"} & found.keys(), {"lon", "lat"} & found.keys()
    unwanted = set[str]()  # the pair that columns_of does not name
    if any(own_pair) and not all(own_pair):
        unwanted = {"lon", "lat"} if own_pair[0] else {"x", "y"}
    for key, names in COLUMNS.items():
        title = next((name for name in names if name in titles), None)
        if title is not None and key not in found.keys() | unwanted:
            found[key] = titles.index(title), header[titles.index(title)]
    upwards = -1.0 if "depth" in own else 1.0
    heights = [at for at, title in enumerate(titles) if upwards_of(title) is not None]
    if "z" not in found and heights:
        if len(heights) > 1:
            both = " and ".join(repr(header[at]) for at in heights)
            raise fault(
                path,
                f"columns {both} both say how high a place is; keep one of them, or "
                "name it as height or depth in columns_of",
            )
        found["z"] = heights[0], header[heights[0]]
        upwards = upwards_of(titles[heights[0]]) or 1.0
    pairs = [{"x", "y"} <= found.keys(), {"lon", "lat"} <= found.keys()]
    if not any(pairs):
        hint = suggest("longitude" if "lat" in found else "x", header)
        where = f"{path}, line 1"
        raise fault(
            where,
            "expected columns x and y [m], or longitude and latitude [degree], got "
            f"{listed(header)}.{hint} Columns with other names are given by columns_of, such as "
            "[x=E, y=N]",
        )
    for half in () if all(pairs) else {"x", "y"} if pairs[1] else {"lon", "lat"}:
        found.pop(half, None)
    return found, upwards
