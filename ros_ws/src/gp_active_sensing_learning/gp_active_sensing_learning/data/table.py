"""Read rows from CSV tables. A wide table has a column for each place of a map."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import ConfigError, ReadingError, listed, suggest
from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import IntArray
from gp_active_sensing.util.tables import HOUR, Chunk, Table
from gp_active_sensing_learning.data.dataset import (
    Dataset,
    MemmapWriter,
    ReadOptions,
    check_inputs,
    refuse_empty,
)

PLACE_COLUMNS = ("place", "id", "segment", "name", "edge", "location")
"""Usual names of a column with the names of places."""
HOURS = "hours"
"""Name of the input with the time of a row [h]."""
_VALUE_COLUMNS = ("value", "reading", "speed")
_TIMES = (HOURS, "time", "timestamp", "date", "datetime")
_LINES = 3
"""Largest number of incomplete lines that a note lists for each column."""
_SEARCHED, _HINTS = 12, 3
"""Largest number of columns that are compared with names of places, and of hints in a note."""


def open_table(path: Path) -> Table:
    """Open a table of readings. A row that is too short has missing values."""
    return Table(path, partial(ReadingError, "table"), ragged=True)


def value_column(table: Table, given: str, taken: Collection[str]) -> str:
    """Return the name of the column with values.

    If `given` is "", the name is value, reading or speed, or the only one that is not in `taken`.

    Raises:
        ReadingError: there is no column with values, or several are possible.
    """
    left = [name for name in table.header if name not in taken]
    usual = [given] if given else [name for name in _VALUE_COLUMNS if name in left]
    if usual or len(left) == 1:
        found = (usual or left)[0]
        table.column(found)
        return found
    msg = f"{table.path}: which column has the values? Say it with --value; got {listed(left)}"
    raise ReadingError("no_value", msg)


class WholeRows:
    """Filter for complete rows of a table. A complete row has a number in each of `columns`."""

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        self._table, self._columns = table, columns
        self._known = np.zeros(len(columns), dtype=np.int64)
        self._lacking: dict[str, list[int]] = {name: [] for name in columns}
        self._count = 0

    def of(self, chunk: Chunk) -> IntArray:
        """Return the indices (k,) of the complete rows of the next chunk."""
        present = ~np.isnan(chunk.values)
        self._known += present.sum(axis=0)
        whole = present.all(axis=1)
        self._count += int(whole.sum())
        lost = np.flatnonzero(~whole)
        first = present[lost].argmin(axis=1)
        for column, lines in enumerate(self._lacking.values()):
            found = lost[first == column][: _LINES - len(lines)]
            lines += [chunk.lines[row] for row in found.tolist()]
        return np.flatnonzero(whole)

    def notes(self) -> list[str]:
        """Return notes on the incomplete rows, after all chunks were read.

        Raises:
            ReadingError: there are no rows, or a column has no numeric value.
        """
        rows = self._table.rows
        self._table.check_rows()
        refuse_empty(str(self._table.path), self._columns, self._known, rows)
        if self._count == rows:
            return []
        where = "; ".join(
            f"{name} in line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
            + (" …" if len(lines) >= _LINES else "")
            for name, lines in self._lacking.items()
            if lines
        )
        return [f"{rows - self._count} of {rows} rows lack a number and are left out: {where}"]


def read_table(path: Path, inputs: Sequence[str], value: str, how: ReadOptions) -> Dataset:
    """Read the rows of a table. No map is needed.

    A row that lacks a number is skipped. `notes` gives the lines of skipped rows.

    Args:
        path: CSV file with a header.
        inputs: (d,) columns of inputs. Time stamps become hours since the first stamp.
        value: column of outputs; "" = ``value``, ``reading`` or ``speed``, or the only column left.
        how: options such as scale and transform of the outputs.

    Raises:
        ConfigError: there are no inputs, or an input is repeated.
        ReadingError: a file, column or number cannot be used, or `Dataset.checked` rejects the
            rows.
    """
    _check_inputs(inputs, value)
    with open_table(path) as table, closing(MemmapWriter(len(inputs), how.folder)) as store:
        value = value_column(table, value, set(inputs))
        columns = (*inputs, value)
        whole = WholeRows(table, columns)
        for chunk in table.chunks(columns, inputs, how.origins, measured={value}):
            found = chunk.values[whole.of(chunk)]
            found[:, -1] = how.output(found[:, -1], f"{path}: {value}")
            store.add(found)
        notes = whole.notes()
        X, y = store.arrays()
    times = {name: origin.isoformat() for name, origin in table.origins.items()}
    notes += [f"{name} is in hours since {origin}" for name, origin in times.items()]
    recipe = {"kind": "table", "times": times, "scale": how.scale, "transform": how.transform}
    rows = Dataset(X, y, tuple(inputs), value, str(path), tuple(notes), recipe)
    return rows.checked(held_out=how.held_out)


def _check_inputs(inputs: Sequence[str], value: str) -> None:
    if not inputs:
        msg = "--inputs: expected names of columns with commas between them, such as x,y,hours"
        raise ConfigError(msg)
    twice = [name for name in inputs if list(inputs).count(name) > 1]
    if twice or value in inputs:
        name = twice[0] if twice else value
        msg = f"--inputs: {name!r} is named twice; each column is one input, or the value"
        raise ConfigError(msg)


def is_wide(path: Path, topology: Topology) -> bool:
    """Return whether a table has a column for each place of a map.

    Raises:
        ReadingError: the file cannot be read.
    """
    with open_table(path) as table:
        header = set(table.header)
    if header.intersection(PLACE_COLUMNS) or {"x", "y"} <= header:
        return False
    return bool(header.intersection(topology.names))


def read_wide(path: Path, topology: Topology, inputs: Sequence[str], how: ReadOptions) -> Dataset:
    """Read a table that has a line for each time and a column for each place.

    Each cell becomes a row of the data set. Empty cells are skipped. If `HOURS` is an input, lines
    without a time are skipped. Columns that name no place are ignored. `notes` reports skipped
    cells, skipped lines and ignored columns.

    Args:
        path: CSV file with a header.
        topology: the map.
        inputs: (d,) features of the places, and `HOURS`; () = all features. The time of a line
            comes from a column hours [h], a column time [s], or a column of time stamps. Stamps
            become hours since the first stamp.
        how: options such as scale and transform of the values.

    Raises:
        ConfigError: an input is not a feature of the map.
        ReadingError: a file, column or number cannot be used, or `Dataset.checked` rejects the
            rows.
    """
    names = tuple(inputs) or tuple(topology.feature_names)
    known = {name: k for k, name in enumerate(topology.feature_names)}
    check_inputs(names, (*known, HOURS), f"places of map {topology.name!r} have")
    places = {name: k for k, name in enumerate(topology.names)}
    cells = empty = timeless = 0
    with open_table(path) as table, closing(MemmapWriter(len(names), how.folder)) as store:
        clock = [_clock(table, places)] if HOURS in names else []
        columns = [name for name in table.header if name in places and name not in clock]
        features = topology.features[[places[name] for name in columns]]
        begin = (how.origins or {}).get(HOURS)
        origins = dict.fromkeys(clock, begin) if begin is not None else {}
        for chunk in table.chunks((*columns, *clock), clock, origins, measured=places):
            values = chunk.values[~np.isnan(chunk.values[:, -1])] if clock else chunk.values
            timeless += len(chunk.values) - len(values)
            read = values[:, : len(columns)]
            line, place = np.nonzero(~np.isnan(read))
            cells += read.size
            empty += read.size - len(line)
            found = np.empty((len(line), len(names) + 1))
            for column, name in enumerate(names):
                if name == HOURS:
                    unit = 1.0 if clock[0] == HOURS or clock[0] in table.origins else HOUR
                    found[:, column] = values[line, -1] / unit
                else:
                    found[:, column] = features[place, known[name]]
            found[:, -1] = how.output(read[line, place], str(path))
            store.add(found)
        table.check_rows()
        if clock:
            refuse_empty(str(path), clock, np.array([table.rows - timeless]), table.rows)
        X, y = store.arrays()
    notes = [f"a wide table: {table.rows} times of {len(columns)} places"]
    if timeless:
        notes.append(f"{timeless} of {table.rows} lines have no {clock[0]} and are left out")
    if empty:
        notes.append(f"{empty} of {cells} cells are empty and are left out")
    if note := _no_places(table.header, topology):
        notes.append(note)
    times: dict[str, str] = {}
    for origin in table.origins.values():
        times[HOURS] = origin.isoformat()
        notes.append(f"{HOURS} are counted since {times[HOURS]}")
    recipe = {
        "kind": "map" if HOURS not in names else "wide",
        "map": topology.name,
        "times": times,
        "scale": how.scale,
        "transform": how.transform,
    }
    rows = Dataset(X, y, names, "value", str(path), tuple(notes), recipe)
    return rows.checked(held_out=how.held_out)


def _no_places(header: Sequence[str], topology: Topology) -> str:
    """Return a message on columns without a place, with hints on misspelt names."""
    free = [name for name in topology.names if name not in header]
    places = set(topology.names)
    clock = next((name for name in _TIMES if name in header), None)
    other = [name for name in header if name != clock and name not in places]
    if not other:
        return ""
    be, what = ("is", "column is no place") if len(other) == 1 else ("are", "columns are no places")
    hints = [f" {name}:{hint}" for name in other[:_SEARCHED] if (hint := suggest(name, free))]
    return (
        f"{len(other)} {what} of map {topology.name!r} and {be} left out: "
        f"{listed([name or '(no name)' for name in other])}.{''.join(hints[:_HINTS])}"
    )


def _clock(table: Table, places: Collection[str]) -> str:
    for name in _TIMES:
        if name in table.header and name not in places:
            return name
    msg = (
        f"{table.path}: {HOURS} are asked for, expected a column {' or '.join(_TIMES)}; "
        f"got {listed(table.header)}"
    )
    raise ReadingError("no_column", msg)


def check_stamps(model: KernelModel, stamps: Mapping[str, str], source: str) -> tuple[str, ...]:
    """Reject time stamps for an input that had numbers when the model was trained.

    Stamps cannot be converted for such an input, because the time at which its numbers are 0 is
    unknown.

    Args:
        model: the model.
        stamps: time stamp of hour 0 for each column with time stamps.
        source: source of the stamps, for the message.

    Returns:
        Warnings. A model that was not learned from files does not record whether an input was a
        time stamp.

    Raises:
        ReadingError: an input that had numbers has time stamps.
    """
    known = model.time_origins
    strange = [name for name in stamps if name in model.input_names and name not in known]
    if strange and "times" in model.recipe:
        name = strange[0]
        msg = (
            f"{source}: {name} is given by time stamps, and the model was learned from {name} as "
            "numbers, which do not say when they are 0; write numbers that are counted as those "
            "were, or learn a model from rows with stamps"
        )
        raise ReadingError("time_stamps", msg)
    return tuple(
        f"{name} is in hours since {stamps[name]}, the first stamp of {source}: the model does not "
        "say since when its own are counted"
        for name in strange
    )
