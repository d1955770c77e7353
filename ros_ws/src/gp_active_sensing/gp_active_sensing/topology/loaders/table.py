"""Road maps from a table of edges (CSV); ``maps/README.md`` describes the columns.

If the edges have no polylines, a second table lists the positions of the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gp_active_sensing.errors import MapError, listed, suggest
from gp_active_sensing.topology.loaders import MOST_TEXT, check_file, fault, number_of, tables
from gp_active_sensing.topology.loaders.drafts import KMH, MPH, Drafts
from gp_active_sensing.topology.projection import LOCAL, LONLAT
from gp_active_sensing.topology.segments import RoadMap
from gp_active_sensing.util.tables import Table

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "edge", "edge_id", "segment"),
    "from": ("from", "from_node", "u", "source"),
    "to": ("to", "to_node", "v", "target"),
    "length": ("length_m", "length"),
    "line": ("wkt", "wkt_m", "geometry"),
    "line_lonlat": ("wkt_lonlat",),
    "lanes": ("lanes",),
    "limit_mps": ("speed_limit_mps", "limit_mps"),
    "limit_kmh": ("speed_limit_kmh", "limit_kmh", "maxspeed_kmh"),
    "limit_mph": ("speed_limit_mph", "limit_mph", "maxspeed_mph"),
    "oneway": ("oneway",),
    "successors": ("successors",),
    "class": ("class", "type", "highway"),
    "name": ("name", "street"),
}
"""Accepted titles of each column; the first match counts. Words of `_GUESSED` are ignored."""
LIMITS: Mapping[str, float] = {"limit_mps": 1.0, "limit_kmh": KMH, "limit_mph": MPH}
"""Unit of each column with speed limits [m/s]; the first column with a value counts."""

_NODES: Mapping[str, tuple[str, ...]] = {
    "node": ("node", "id", "node_id"),
    "x": ("x_m", "x"),
    "y": ("y_m", "y"),
    "lon": ("lon", "longitude"),
    "lat": ("lat", "latitude"),
}
_YES = {"1", "true", "yes"}
_NO = {"0", "false", "no"}
_GUESSED = ("_guess", "_inferred")
"""Words in the names of columns with estimated values, such as `lanes_guess`."""


def load(path: Path, *, crs: str = "") -> RoadMap:
    """Read a table of edges; if the edges have no lines, also read a table of nodes.

    `crs` is the coordinate system. "" = degrees or metres, according to the titles of the columns.
    """
    check_file(path, MOST_TEXT)
    with Table(path, MapError) as table:
        reader = _Reader(table)
        for line, cells in table:
            reader.row(line, dict(zip(table.header, cells, strict=True)))
    return reader.finish(crs)


def is_edges(path: Path) -> bool:
    """Return whether a table lists edges; otherwise it lists places."""
    check_file(path, MOST_TEXT)
    with Table(path, MapError) as table:
        titles = {title.lower() for title in table.header}
    pairs = ("x", "y"), ("lon", "lat")
    placed = any(all(titles.intersection(tables.COLUMNS[key]) for key in pair) for pair in pairs)
    return not placed or all(titles.intersection(COLUMNS[key]) for key in ("from", "to"))


class _Reader:
    def __init__(self, table: Table) -> None:
        self.path = table.path
        self.drafts = Drafts(table.path)
        self._columns = _columns_of(table, COLUMNS)
        missing = [name for name in ("from", "to") if name not in self._columns]
        if missing:
            where = f"{table.path}, line 1"
            raise fault(
                where,
                f"expected columns from and to, got {listed(table.header)}."
                f"{suggest(missing[0], table.header)} See the columns in maps/README.md; a "
                "table of places has columns x and y, or longitude and latitude; map.columns_of "
                "names them where they have other names",
            )
        guessed = sorted(title for title in self._columns.values() if _plain(title) != title)
        if guessed:
            self.drafts.notes.append(f"guessed, as the file says: {', '.join(guessed)}")
        used = set(self._columns.values())
        self._others = [name for name in table.header if name not in used and name]
        self._text = set[str]()
        self._row = 0
        self._drawn = next((k for k in ("line", "line_lonlat") if k in self._columns), "")
        self._lonlat = self._drawn == "line_lonlat" or (not self._drawn and self._read_nodes())

    def _cell(self, row: Mapping[str, str], key: str) -> str:
        title = self._columns.get(key)
        return row[title].strip() if title else ""

    def row(self, number: int, row: Mapping[str, str]) -> None:
        """Add a row as an edge."""
        identity = self._cell(row, "id") or ("" if "id" in self._columns else f"e{self._row}")
        self._row += 1
        where = f"line {number} (id {identity!r})"
        ends = self._cell(row, "from"), self._cell(row, "to")
        oneway = self._cell(row, "oneway").lower()
        if oneway and oneway not in _YES | _NO:
            self.drafts.problems.append(f"{where}: oneway: expected 0 or 1, got {oneway!r}")
            return
        successors = self._cell(row, "successors").split()
        limit = next((key for key in LIMITS if self._cell(row, key)), "limit_mps")
        speed = self._value(row, limit)
        if isinstance(speed, float):
            speed *= LIMITS[limit]
        extra: dict[str, float] = {}
        for name in self._others:
            text = (row.get(name) or "").strip()
            if (value := number_of(text)) is not None:
                extra[name] = value
            elif text:
                self._text.add(name)
        self.drafts.edge(
            where,
            (identity, *ends),
            self.drafts.wkt(self._cell(row, self._drawn), self._columns[self._drawn], where)
            if self._drawn
            else self.drafts.between(where, *ends),
            {
                "length": self._value(row, "length"),
                "lanes": self._value(row, "lanes"),
                "speed_limit": speed,
                "successors": successors if "successors" in self._columns else None,
                "name": self._cell(row, "name"),
                "road_class": self._cell(row, "class"),
            },
            keys={**self._columns, "speed_limit": self._columns.get(limit, limit)},
            extra=extra,
            two_way=oneway in _NO,
        )

    def _value(self, row: Mapping[str, str], key: str) -> float | str | None:
        """Return a cell as a number, or as text if it is no number; None = empty."""
        text = self._cell(row, key)
        return (text if (value := number_of(text)) is None else value) if text else None

    def _read_nodes(self) -> bool:
        """Read the table of nodes; return whether positions are longitude and latitude."""
        path = _nodes_file(self.path)
        check_file(path, MOST_TEXT)
        with Table(path, MapError) as table:
            columns = _columns_of(table, _NODES)
            keys = ("x", "y") if {"x", "y"} <= columns.keys() else ("lon", "lat")
            if not {"node", *keys} <= columns.keys():
                where = f"{path}, line 1"
                what = "expected columns node and x_m, y_m (or lon, lat)"
                raise fault(where, f"{what}, got {listed(table.header)}")
            at = table.column(columns["node"])
            for values, rows, lines in table.chunks([columns[key] for key in keys]):
                for position, row, line in zip(values.tolist(), rows, lines, strict=True):
                    node = row[at].strip()
                    self.drafts.node(f"{path}, line {line} (node {node!r})", node, position)
        self.drafts.notes.append(f"edges are straight between the nodes of {path.name}")
        return keys == ("lon", "lat")

    def finish(self, crs: str) -> RoadMap:
        if self._text:
            self.drafts.notes.append(
                f"columns left out, since they hold text: {', '.join(sorted(self._text))}"
            )
        declared = LONLAT if self._lonlat else ""
        return self.drafts.finish(
            crs or declared or (LOCAL if "wkt_m" in self._columns.values() else ""),
            nothing="expected a line an edge",
        )


def _columns_of(table: Table, names: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    for title in filter(None, table.header):
        table.column(title)
    by_name = {_plain(title): title for title in table.header} | {t: t for t in table.header}
    found = {key: next(filter(by_name.get, titles), "") for key, titles in names.items()}
    return {key: by_name[title] for key, title in found.items() if title}


def _plain(title: str) -> str:
    for word in _GUESSED:
        title = title.replace(word, "")
    return title


def _nodes_file(path: Path) -> Path:
    names = [f"{path.stem}_nodes.csv", f"{path.stem}.nodes.csv", "nodes.csv"]
    for word in ("edges", "segments", "links"):
        if word in path.name:
            names.insert(0, path.name.replace(word, "nodes"))
    for name in dict.fromkeys(names):
        if (path.parent / name).is_file():
            return path.parent / name
    raise fault(
        path,
        "edges have no line (column wkt or wkt_lonlat), and no table of nodes is beside: "
        f"{', '.join(names)}",
    )
