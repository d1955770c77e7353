"""Read rows from a wide CSV table: a line for each time, a column for each place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import ConfigError, ReadingError, suggest
from gp_active_sensing.learning.data.columns import listed
from gp_active_sensing.learning.data.csv_table import transformed
from gp_active_sensing.learning.data.dataset import Dataset, refuse_empty
from gp_active_sensing.learning.data.memmap_writer import MemmapWriter
from gp_active_sensing.learning.data.readings import PLACE_COLUMNS
from gp_active_sensing.learning.data.table import Table
from gp_active_sensing.topology import Topology

__all__ = ["HOURS", "is_wide", "read_wide"]

HOURS = "hours"
"""Input that is the time of a line."""
_SEARCHED, _HINTS = 12, 3
"""Columns that are no places: for so many a near name is looked for, so many are said, at most."""
_TIMES = (HOURS, "time", "timestamp", "date", "datetime")


def is_wide(path: Path, topology: Topology) -> bool:
    """Return whether columns of a table have the names of places, and none says the place of a row.

    Raises:
        ReadingError: a file that cannot be read.
    """
    with Table(path) as table:
        header = set(table.header)
    if header.intersection(PLACE_COLUMNS) or {"x", "y"} <= header:
        return False
    return bool(header.intersection(topology.names))


def read_wide(
    path: Path,
    topology: Topology,
    inputs: Sequence[str] = (),
    *,
    scale: float = 1.0,
    transform: str = "identity",
    folder: Path | None = None,
    origins: Mapping[str, str] | None = None,
    held_out: bool = False,
) -> Dataset:
    """Read a value of each place at each time, some lines at a time; a cell is a row.

    An empty cell is no row, nor is one of a line without a time where that is an input. Columns
    that are no place are left out. All that is counted, and said in `notes`.

    Args:
        path: of a CSV file with a header.
        topology: the map.
        inputs: (d,) features of the places, and `HOURS`: column hours as it is, or a column of time
            stamps (or of seconds, named time), from its first on; () = all features.
        scale: factor on the values.
        transform: of the values, after it.
        folder: where a long table is kept; None = in memory.
        origins: `HOURS`: stamp from which they are counted.
        held_out: nothing is learned from them, see `Dataset.checked`.

    Raises:
        ConfigError: inputs that the map does not have.
        ReadingError: a file, column or number that cannot be used; or rows that kernels cannot be
            learned from.
    """
    names = tuple(inputs) or tuple(topology.feature_names)
    known = {name: k for k, name in enumerate(topology.feature_names)}
    for name in names:
        if name != HOURS and name not in known:
            choice = (*known, HOURS)
            msg = (
                f"--inputs: places of map {topology.name!r} have {listed(choice)}, not {name!r}."
                f"{suggest(name, choice)}"
            )
            raise ConfigError(msg)
    if len(set(names)) < len(names):
        msg = f"--inputs: expected each once, got {','.join(names)}"
        raise ConfigError(msg)
    places = {name: k for k, name in enumerate(topology.names)}
    store = MemmapWriter(len(names), folder)
    cells = empty = timeless = 0
    try:
        with Table(path) as first:
            clock = _clock(path, first.header, set(places)) if HOURS in names else ""
        begins = (origins or {}).get(HOURS)
        stamps = {clock: begins} if clock and begins is not None else {}
        with Table(path, stamps) as table:
            columns = [name for name in table.header if name in places and name != clock]
            features = topology.features[[places[name] for name in columns]]
            for numbers in table.chunks((*columns, *([clock] if clock else []))):
                values = numbers[~np.isnan(numbers[:, -1])] if clock else numbers
                timeless += len(numbers) - len(values)
                read = values[:, : len(columns)]
                line, place = np.nonzero(~np.isnan(read))
                cells += read.size
                empty += read.size - len(line)
                found = np.empty((len(line), len(names) + 1))
                for column, name in enumerate(names):
                    if name == HOURS:
                        unit = 1.0 if clock == HOURS or clock in table.origins else 3600.0
                        found[:, column] = values[line, -1] / unit
                    else:
                        found[:, column] = features[place, known[name]]
                found[:, -1] = transformed(scale * read[line, place], transform, str(path))
                store.add(found)
        table.refuse_without(columns)
        if clock:
            refuse_empty(str(path), (clock,), np.array([table.rows - timeless]), table.rows)
        X, y = store.arrays()
    finally:
        store.close()
    notes = [f"a wide table: {table.rows} times of {len(columns)} places"]
    if timeless:
        notes.append(f"{timeless} of {table.rows} lines have no {clock} and are left out")
    if empty:
        notes.append(f"{empty} of {cells} cells are empty and are left out")
    if note := _no_places(table.header, topology):
        notes.append(note)
    times: dict[str, str] = {}
    if clock in table.origins:
        times[HOURS] = table.origins[clock].isoformat()
        notes.append(f"{HOURS} are counted since {times[HOURS]}")
    recipe = {
        "kind": "map" if HOURS not in names else "wide",
        "map": topology.name,
        "times": times,
        "scale": scale,
        "transform": transform,
    }
    rows = Dataset(X, y, names, "value", str(path), tuple(notes), recipe)
    return rows.checked(held_out=held_out)


def _no_places(header: Sequence[str], topology: Topology) -> str:
    """Return what is said about columns that are neither places nor the time; "" = there is none.

    Those that are nearly the name of a place that has no column may be misspelt.
    """
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


def _clock(path: Path, header: Sequence[str], places: set[str]) -> str:
    """Return the column with the times."""
    for name in _TIMES:
        if name in header and name not in places:
            return name
    msg = (
        f"{path}: {HOURS} are asked for, expected a column {' or '.join(_TIMES)}; "
        f"got {listed(header)}"
    )
    raise ReadingError("no_column", msg)
