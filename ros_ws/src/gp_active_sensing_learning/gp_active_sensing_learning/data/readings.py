"""Prior readings at places of a map, from a table, a scenario or a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import ConfigError, ReadingError, listed, suggest
from gp_active_sensing.records.event_lines import parse_events
from gp_active_sensing.records.events import ReadingUsed
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.world import build_world
from gp_active_sensing.topology import Topology
from gp_active_sensing.topology.base import SAME_DISTANCE
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.tables import MISSING, Chunk, Table
from gp_active_sensing_learning.data.table import PLACE_COLUMNS, WholeRows, open_table, value_column

LEAST_PLACES = 8
"""Smallest number of places with a reading for learning hyper-parameters."""
SNAP = 50.0
"""Default of the largest distance between a position and the nearest place [m]."""
_SHOWN = 5
_TIES = 6
"""Largest number of equally near places that are compared."""


@dataclass(frozen=True, eq=False)
class PriorReadings:
    """Readings at places of a map.

    Args:
        places: (r,) place of each reading. A place may have several readings.
        values: (r,) values in the sensor's unit.
        held_out: True for test readings, which are not used for learning.
        snap: largest distance of a position from a place [m]; None = the source names places.
    """

    places: IntArray
    values: FloatArray
    source: str
    held_out: bool = False
    notes: tuple[str, ...] = ()
    snap: float | None = None

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
        """Return the readings of at most `places` random places."""
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
    snap: float | None = None,
    usual_snap: float = SNAP,
    held_out: bool = False,
) -> PriorReadings:
    """Read a table of values at named places, or at positions in the columns x and y.

    Columns are separated by commas, semicolons or tabs. Rows without a place or a value are
    skipped. Rows farther than `snap` from every place are skipped. `notes` gives the numbers of
    skipped rows.

    Args:
        path: CSV file with a header.
        topology: the map.
        place: column with the names of places; "" = the first of `PLACE_COLUMNS` in the table, or
            the columns x and y.
        value: column with the values; "" = ``value``, ``reading`` or ``speed``, or the only column
            left.
        scale: factor on the values.
        snap: largest distance of a position from a place [m]; None = `usual_snap`.
        usual_snap: default of `snap` [m].
        held_out: True for test readings, which are not used for learning.

    Raises:
        ConfigError: `snap` is given for a table with names of places.
        ReadingError: a file, column, name or value cannot be used, or there are too few readings.
    """
    names = {name: i for i, name in enumerate(topology.names)}
    reach = usual_snap if snap is None else snap
    places, values = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    unknown: dict[str, int] = {}
    nowhere = 0
    with open_table(path) as table:
        by_place = _place_column(table, place)
        if by_place and snap is not None:
            msg = (
                f"--snap is for positions, columns x and y: {path} has the names of places in "
                f"column {by_place!r}; leave it out"
            )
            raise ConfigError(msg)
        column = value_column(table, value, {by_place, "x", "y"})
        columns = (column,) if by_place else ("x", "y", column)
        whole = WholeRows(table, columns)
        snap_all = None if by_place else _snapping(topology, reach)
        for chunk in table.chunks(columns, measured={column}):
            rows = whole.of(chunk)
            if snap_all is None:
                at = _named(chunk, rows, table.column(by_place), names, unknown)
            else:
                at = snap_all(chunk.values[rows, :2])
            there = at >= 0
            nowhere += int(np.count_nonzero(~there))
            places.append(at[there])
            values.append(scale * chunk.values[rows, -1][there])
    if unknown:
        raise _unknown_places(path, by_place, unknown, topology)
    notes = whole.notes()
    if nowhere:
        why = f"have no {by_place}" if by_place else f"are more than {reach:g} m from any place"
        notes.append(f"{nowhere} of {table.rows} rows {why} and are left out")
    return PriorReadings(
        np.concatenate(places),
        np.concatenate(values),
        str(path),
        held_out,
        tuple(notes),
        None if by_place else reach,
    )


def read_scenario(scenario: Scenario, topology: Topology) -> PriorReadings:
    """Return a simulated reading at each place, at the start of the scenario's mission."""
    world = build_world(scenario)
    found = [(x, world.sensor.read(x, 0, 0)) for x in range(topology.n)]
    read = [(x, reading.value) for x, reading in found if reading is not None]
    places = np.array([x for x, _ in read], dtype=np.int64)
    values = np.array([v for _, v in read])
    lost = topology.n - len(read)
    note = f"{lost} of {topology.n} places gave no reading: the sensor drops some"
    notes = (note,) if lost else ()
    return PriorReadings(places, values, f"scenario {scenario.name!r}", notes=notes)


def read_run(
    path: Path, topology: Topology, *, quantity: str = "", held_out: bool = False
) -> PriorReadings:
    """Return the readings of a quantity in the journal of a run.

    The quantity "" is the main quantity.

    Raises:
        RunError: `path` is not a run directory.
        ReadingError: there are too few readings.
    """
    events = parse_events(RunDirectory.open(path).events())
    every = (event.reading for event in events if isinstance(event, ReadingUsed))
    readings = [reading for reading in every if reading.quantity == quantity]
    used = [
        (reading.location, reading.value)
        for reading in readings
        if reading.location is not None
        and 0 <= reading.location < topology.n
        and math.isfinite(reading.value)
    ]
    places = np.array([x for x, _ in used], dtype=np.int64)
    values = np.array([v for _, v in used])
    lost = len(readings) - len(used)
    why = "have no place of the map, or no finite value, and are left out"
    note = f"{lost} of {len(readings)} readings {why}"
    return PriorReadings(places, values, str(path), held_out, (note,) if lost else ())


def _snapping(topology: Topology, reach: float) -> Callable[[FloatArray], IntArray]:
    """Return a function that finds the nearest places (m,) of positions (m, 2).

    The function returns -1 for a position farther than `reach` [m] from every place.
    """
    from scipy.spatial import cKDTree

    where, first = np.unique(topology.positions, axis=0, return_index=True)
    tree, several = cKDTree(where), list(range(1, min(_TIES, len(where)) + 1))

    def snap(points: FloatArray) -> IntArray:
        apart, at = map(np.asarray, tree.query(points, k=several))
        found = np.where(apart <= apart[:, :1] + SAME_DISTANCE, first[at], topology.n).min(axis=1)
        return np.where(apart[:, 0] <= reach, found, -1)

    return snap


def _place_column(table: Table, given: str) -> str:
    """Return the column with the names of places; "" for a table with positions."""
    name = given or next((name for name in PLACE_COLUMNS if name in table.header), "")
    if name:
        table.column(name)
    elif not {"x", "y"} <= set(table.header):
        msg = (
            f"{table.path}: expected a column with the names of places "
            f"({', '.join(PLACE_COLUMNS)}), or x and y [m]; got {listed(table.header)}. Say which "
            "with --place"
        )
        raise ReadingError("no_place", msg)
    return name


def _named(
    chunk: Chunk, rows: IntArray, at: int, places: Mapping[str, int], unknown: dict[str, int]
) -> IntArray:
    """Return the place of each row; -1 = unknown name. Count unknown names in `unknown`."""
    found: list[int] = []
    for k in rows.tolist():
        name = chunk.rows[k][at].strip()
        found.append(places.get(name, -1))
        if name not in places and name.lower() not in MISSING:
            unknown.setdefault(name, chunk.lines[k])
    return np.array(found, dtype=np.int64)


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
