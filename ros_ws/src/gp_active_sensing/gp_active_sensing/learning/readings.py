"""Prior readings: values at places of a map, from a table, a scenario or a run."""

from __future__ import annotations

import csv
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import ReadingError, suggest
from gp_active_sensing.learning.columns import check_column, listed, value_column
from gp_active_sensing.records import RunDirectory
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.world import build_world
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray, IntArray

__all__ = [
    "LEAST_PLACES",
    "PLACE_COLUMNS",
    "PriorReadings",
    "read_csv",
    "read_run",
    "read_scenario",
]

logger = logging.getLogger(__name__)

LEAST_PLACES = 8
"""Places with a reading that hyper-parameters can be learned from, at least."""
PLACE_COLUMNS = ("place", "id", "segment", "name", "edge", "location")
"""Usual names of a column with the names of places."""
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class PriorReadings:
    """Readings of some places of a map.

    Args:
        places: (r,) place of each reading; a place may have several.
        values: (r,) in the sensor's unit.
        source: where they are from, for messages.
        held_out: nothing is learned from them: one will do, and nothing has to vary.
    """

    places: IntArray
    values: FloatArray
    source: str
    held_out: bool = False

    def __post_init__(self) -> None:
        if self.held_out:
            if not len(self.places):
                msg = f"{self.source}: has no reading of any place of the map"
                raise ReadingError("too_few", msg)
            return
        count = len(np.unique(self.places))
        if count < LEAST_PLACES:
            msg = (
                f"{self.source}: expected readings of {LEAST_PLACES} places or more to learn from, "
                f"got {count}"
            )
            raise ReadingError("too_few", msg)
        if np.ptp(self.values) <= 1e-9 * np.abs(self.values).max():
            msg = (
                f"{self.source}: all {len(self.values)} values are {self.values[0]:g}; a field "
                "that does not vary has no length-scale to learn"
            )
            raise ReadingError("constant", msg)

    def subset(self, places: int, seed: int) -> PriorReadings:
        """Return the readings of so many places, drawn by the seed."""
        known = np.unique(self.places)
        if places >= len(known):
            return self
        rng = np.random.default_rng([seed, 0x1EA2])
        chosen = np.isin(self.places, rng.permutation(known)[:places])
        return replace(self, places=self.places[chosen], values=self.values[chosen])


def read_csv(
    path: Path,
    topology: Topology,
    *,
    place: str = "",
    value: str = "",
    scale: float = 1.0,
    snap: float = 50.0,
    held_out: bool = False,
) -> PriorReadings:
    """Read a table with a column of place names, or columns x and y, and a column of values.

    A row without a value is passed over; so is one farther than `snap` from every place. Both are
    counted and said.

    Args:
        path: of a CSV file with a header.
        topology: the map.
        place: column with the names of places; "" = the first of place, id, segment, name, edge,
            location that is there, else x and y.
        value: column with the values; "" = value, reading or speed, or the only other one.
        scale: factor on the values.
        snap: farthest that a position may be from its place [m].
        held_out: nothing is learned from them, see `PriorReadings`.

    Raises:
        ReadingError: a file, column, name or value that cannot be used; or too few readings.
    """
    rows = _table(path)
    header = list(next(rows)[1])
    by_place = _place_column(path, header, place)
    column = value_column(path, header, value, {by_place, "x", "y"})
    places: list[int] = []
    values: list[float] = []
    unknown: dict[str, int] = {}
    empty = far = 0
    names = {name: i for i, name in enumerate(topology.names)}
    for number, row in rows:
        text = (row.get(column) or "").strip()
        if not text or text.lower() == "nan":
            empty += 1
            continue
        reading = scale * _number(path, number, column, text)
        if by_place:
            name = (row.get(by_place) or "").strip()
            if name not in names:
                unknown.setdefault(name, number)
                continue
            places.append(names[name])
        else:
            x, y = (_number(path, number, axis, row.get(axis) or "") for axis in ("x", "y"))
            nearest = topology.snap(x, y, snap)
            if nearest is None:
                far += 1
                continue
            places.append(nearest)
        values.append(reading)
    if unknown:
        raise _unknown_places(path, by_place, unknown, topology)
    if empty:
        logger.warning("%s: %d rows have no %s and are passed over", path, empty, column)
    if far:
        logger.warning("%s: %d rows are more than %g m from any place", path, far, snap)
    return PriorReadings(np.array(places, dtype=np.int64), np.array(values), str(path), held_out)


def read_scenario(scenario: Scenario, topology: Topology) -> PriorReadings:
    """Return one reading of the scenario's sensor at every place, at the mission's start."""
    world = build_world(scenario)
    found = [(x, world.sensor.read(x, 0, 0)) for x in range(topology.n)]
    read = [(x, reading.value) for x, reading in found if reading is not None]
    places = np.array([x for x, _ in read], dtype=np.int64)
    return PriorReadings(places, np.array([v for _, v in read]), f"scenario {scenario.name!r}")


def read_run(path: Path, topology: Topology, *, held_out: bool = False) -> PriorReadings:
    """Return the readings of a run, from its journal; `held_out` as of `PriorReadings`.

    Raises:
        RunError: not a run directory.
        ReadingError: too few readings.
    """
    events = [e for e in RunDirectory.open(path).events() if e.get("event") == "reading"]
    used = [
        (int(e["location"]), float(e["value"]))
        for e in events
        if e.get("location") is not None
        and 0 <= int(e["location"]) < topology.n
        and math.isfinite(float(e["value"]))
    ]
    places = np.array([x for x, _ in used], dtype=np.int64)
    return PriorReadings(places, np.array([v for _, v in used]), str(path), held_out)


def _table(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the header, its names as keys, and then every row with its line."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            header = [name.strip() for name in reader.fieldnames or []]
            reader.fieldnames = header
            yield 1, dict.fromkeys(header, "")
            for row in reader:
                yield reader.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"{path}: cannot be read: {error}"
        raise ReadingError("unreadable", msg) from error


def _place_column(path: Path, header: Sequence[str], given: str) -> str:
    if given:
        check_column(path, header, given)
        return given
    for name in PLACE_COLUMNS:
        if name in header:
            return name
    if {"x", "y"} <= set(header):
        return ""
    msg = (
        f"{path}: expected a column with the names of places ({', '.join(PLACE_COLUMNS)}), or x "
        f"and y [m]; got {listed(header)}. Say which with --place"
    )
    raise ReadingError("no_place", msg)


def _number(path: Path, line: int, column: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        msg = f"{path}, line {line}: {column}: expected a finite number, got {text!r}"
        raise ReadingError("not_a_number", msg)
    return number


def _unknown_places(
    path: Path, column: str, unknown: Mapping[str, int], topology: Topology
) -> ReadingError:
    shown = [f"line {line}: {name!r}" for name, line in list(unknown.items())[:_SHOWN]]
    more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
    hint = suggest(next(iter(unknown)), topology.names)
    msg = (
        f"{path}: column {column!r} has {len(unknown)} names that are no places of map "
        f"{topology.name!r}: {', '.join(shown)}{more}.{hint}"
    )
    return ReadingError("unknown_place", msg)
