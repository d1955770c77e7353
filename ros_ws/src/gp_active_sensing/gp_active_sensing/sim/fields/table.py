"""Values of a field from a table: each place has a CSV line or an edge of SUMO's edgeData."""

from __future__ import annotations

import fnmatch
import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gp_active_sensing.errors import MapError, listed, suggest
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.loaders import number_of
from gp_active_sensing.types import BoolArray, FloatArray
from gp_active_sensing.util.tables import EPOCH, Table
from gp_active_sensing.util.xml_files import elements, tag_of

logger = logging.getLogger(__name__)

_SHOWN = 5
_EMPTY = ("",)
"""Cell texts that mean a missing value."""


@dataclass(frozen=True)
class _Cells:
    """Contents of a table.

    Args:
        rows: for each place, its (k,) values at k times; a table without times has one value.
        slots: the k time intervals; () = a table without times.
        what: description of the columns that have the values, for error messages.
    """

    rows: Mapping[str, Sequence[float] | FloatArray]
    slots: tuple[Slot, ...]
    what: str


def table_truth(path: Path, config: FieldConfig, topology: Topology) -> GroundTruth:
    """Return the field ``offset + scale * column`` at a map's places.

    A missing value is copied from the nearest time slot in which the place has a value. A place
    without any value gets ``fill``. Both substitutes are logged and do not count as known values.
    With several columns or intervals the field changes with time.

    Raises:
        MapError: a table that cannot be used; the message has the line, or the places without a
            value.
    """
    if config.time_column:
        cells = _wide(path, config, topology)
    else:
        cells = _edges(path, config) if is_xml(path) else _columns(path, config)
    k = max(1, len(cells.slots))
    nothing = [math.nan] * k
    raw = np.array([cells.rows.get(name, nothing) for name in topology.names]).T
    values = np.asarray(config.offset + config.scale * raw, dtype=np.float64)
    known = ~np.isnan(values)
    values, filled = fill_from_other_slots(cells.slots, values)
    if filled:
        text = "%s: %d of %d cells are empty and filled from other slots of the same place"
        logger.warning(text, path, filled, values.size)
    values = _without_gaps(values, cells, path, config, topology)
    if len(cells.slots) < 2:
        return GroundTruth(values[0], known[0])
    start = cells.slots[0].begin if config.start_time is None else config.start_time
    first, last = cells.slots[0].begin, cells.slots[-1].end
    if not first <= start <= last:
        text = "%s: field.start_time %g s is outside its slots, %g to %g s; the nearest slot counts"
        logger.warning(text, path, start, first, last)
    linear = config.between == "linear"
    return TimeSeriesField(cells.slots, values, linear=linear, start=start, known=known)


def _without_gaps(
    values: FloatArray, cells: _Cells, path: Path, config: FieldConfig, topology: Topology
) -> FloatArray:
    """Replace missing values by ``fill``. Raises MapError if ``fill`` is needed and missing."""
    gaps = np.isnan(values[0])
    missing = [name for name, gap in zip(topology.names, gaps.tolist(), strict=True) if gap]
    if not missing:
        return values
    where = (
        f"{path}: no value in {cells.what} for {len(missing)} of {topology.n} places of map "
        f"{topology.name!r}: {listed(missing, _SHOWN)}"
    )
    if config.fill is None or len(missing) == topology.n:
        msg = f"{where}; give each place a value, or one for all that lack it as field.fill"
        raise MapError(msg)
    logger.warning("%s; filled with %g", where, config.fill)
    values[:, gaps] = config.fill
    return values


def _wide(path: Path, config: FieldConfig, topology: Topology) -> _Cells:
    """Read a CSV table with one line per time."""
    if is_xml(path):
        msg = f"{path}: field.time_column: is for CSV tables; XML says its times itself"
        raise MapError(msg)
    clock = config.time_column
    with Table(path, MapError, missing=_EMPTY) as table:
        table.column(clock, "; name the one with the times as field.time_column")
        known = set(table.header) - {clock}
        names = [name for name in topology.names if name in known]
        parts, lines = [np.empty((0, len(names) + 1))], list[int]()
        every = {clock: EPOCH}
        for chunk in table.chunks((*names, clock), (clock,), every, unit=1.0, measured=names):
            parts.append(chunk.values)
            lines += chunk.lines
        table.check_rows()
    values = np.concatenate(parts)
    times = values[:, -1].tolist()
    for line, (one, two) in zip(lines, pairwise([-math.inf, *times]), strict=True):
        if not two > one:  # also true for NaN
            msg = f"{path}, line {line}: expected a time after {one:g} s, got {two:g} s"
            raise MapError(msg)
    slots = tuple(Slot(time, time) for time in times)
    return _Cells(dict(zip(names, values.T, strict=False)), slots, "a column of its own")


def _edges(path: Path, config: FieldConfig) -> _Cells:
    if config.value_columns:
        msg = (
            f"{path}: field.value_columns: is for CSV tables; XML says its time slots itself "
            "(field.value_column names the attribute, such as speed)"
        )
        raise MapError(msg)
    slots, rows = read_edgedata(path, config.value_column)
    check_slots(slots, str(path))
    return _Cells(rows, slots, f"attribute {config.value_column!r}")


def _columns(path: Path, config: FieldConfig) -> _Cells:
    """Read a CSV table with one line per place."""
    rows: dict[str, FloatArray] = {}
    with Table(path, MapError, ragged=True, missing=_EMPTY) as table:
        at = table.column(config.id_column)
        columns, slots = _chosen(table, config)
        for values, cells, lines in table.chunks(columns, measured=columns):
            for row, line, found in zip(cells, lines, values, strict=True):
                name = row[at].strip()
                if name in rows:
                    msg = (
                        f"{path}, line {line}: place {name!r} has a value already; keep one line "
                        "for each"
                    )
                    raise MapError(msg)
                rows[name] = found
    names = "column" if len(columns) == 1 else "columns"
    return _Cells(rows, slots, f"{names} {', '.join(map(repr, columns))}")


def _chosen(table: Table, config: FieldConfig) -> tuple[list[str], tuple[Slot, ...]]:
    path, known = table.path, table.header
    columns: list[str] = []
    for pattern in config.value_columns or (config.value_column,):
        found = [pattern] if pattern in known else fnmatch.filter(known, pattern)
        if not found:
            table.column(pattern)  # raises MapError
        columns += [name for name in found if name not in columns]
    if not config.value_columns:
        return columns, ()
    timed = [(slot_in(name), name) for name in columns]
    without = [name for slot, name in timed if slot is None]
    if without:
        msg = (
            f"{path}: column {without[0]!r} of field.value_columns does not say its time slot, as "
            "v_900_1800 does; name it like that, or name other columns"
        )
        raise MapError(msg)
    ordered = sorted((slot, name) for slot, name in timed if slot is not None)
    slots = tuple(slot for slot, _ in ordered)
    check_slots(slots, f"{path}: field.value_columns")
    return [name for _, name in ordered], slots


def is_xml(path: Path) -> bool:
    """Return whether a file's name ends in .xml or .xml.gz."""
    return path.name.lower().endswith((".xml", ".xml.gz"))


def read_edgedata(path: Path, attribute: str) -> tuple[tuple[Slot, ...], dict[str, list[float]]]:
    """Return time intervals, and each edge's values of an attribute (NaN = missing).

    The file is SUMO's edgeData, ``.xml`` or ``.xml.gz``. An attribute is for example ``speed``
    [m/s].

    Raises:
        MapError: the file cannot be read, is damaged, or lacks the attribute.
    """
    slots: list[Slot] = []
    rows: dict[str, list[float]] = {}
    seen: set[str] = set()
    for element in elements(path, ("edge",), root="meandata", opened=("interval",)):
        if tag_of(element) == "interval":
            slots.append(_slot(element, path))
        elif slots:
            seen.update(element.attrib)
            _append(rows, element, attribute, len(slots) - 1, path)
    if not slots:
        msg = f"{path}: expected SUMO's edgeData, <meandata> with <interval>s, got none of them"
        raise MapError(msg)
    if attribute not in seen:
        known = sorted(seen - {"id"})
        msg = (
            f"{path}: no edge has an attribute {attribute!r} (field.value_column)."
            f"{suggest(attribute, known)} They have: {', '.join(known) or 'none'}"
        )
        raise MapError(msg)
    k = len(slots)
    return tuple(slots), {name: row + [math.nan] * (k - len(row)) for name, row in rows.items()}


def _slot(element: Any, path: Path) -> Slot:
    bounds = [_number(element.get(key)) for key in ("begin", "end")]
    if any(math.isnan(bound) for bound in bounds):
        msg = (
            f"{path}: expected numbers as begin and end of an interval, got "
            f"{element.get('begin')!r} and {element.get('end')!r}"
        )
        raise MapError(msg)
    return Slot(*bounds)


def _append(
    rows: dict[str, list[float]], element: Any, attribute: str, index: int, path: Path
) -> None:
    name, text = element.get("id"), element.get(attribute)
    where = f"{path}: edge {name!r} of interval {index + 1}"
    if name is None:
        msg = f"{path}: an edge of interval {index + 1} has no id"
        raise MapError(msg)
    row = rows.setdefault(name, [])
    if len(row) > index:
        msg = f"{where} is there twice; keep the output of one edgeData in a file"
        raise MapError(msg)
    row += [math.nan] * (index - len(row))
    value = math.nan if text is None else _number(text)
    if text is not None and math.isnan(value):
        msg = f"{where}: expected a finite number as {attribute!r}, got {text!r}"
        raise MapError(msg)
    row.append(value)


def _number(text: str | None) -> float:
    """Return a finite number, NaN for anything else."""
    value = number_of(text)
    return math.nan if value is None or math.isinf(value) else value


_TIMES = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)_(\d+(?:\.\d+)?)(?![\d.])")


class Slot(NamedTuple):
    """Time interval on the table's clock [s]."""

    begin: float
    end: float


class TimeSeriesField(GroundTruth):
    """Field known in time slots, such as recorded traffic.

    Args:
        slots: (k,) slots in order.
        values: (k, n) finite values.
        linear: True = interpolate linearly between the middles of the slots; False = keep each
            value until the next slot begins.
        start: time of the slots' clock at the start of the mission [s].
        known: (k, n) False for a substitute value.
    """

    changes = True

    def __init__(
        self,
        slots: Sequence[Slot],
        values: FloatArray,
        *,
        linear: bool,
        start: float,
        known: BoolArray,
    ) -> None:
        self._begins = np.array([slot.begin for slot in slots])
        self._middles = np.array([0.5 * (slot.begin + slot.end) for slot in slots])
        self._table, self._linear, self._start = values, linear, start
        self._given = known
        super().__init__(self.at(0.0))

    def at(self, seconds: float) -> FloatArray:
        """Return the (n,) values at a time of the mission [s]; read-only. O(n + k) for k slots.

        Before the first slot, the first slot's values apply; after the last slot, the last slot's.
        """
        k, after, share = self._between(seconds)
        values = np.array(self._table[k])
        if share:
            values = (1.0 - share) * values + share * self._table[after]
        values.setflags(write=False)
        return values

    def known(self, seconds: float) -> BoolArray:
        """Return (n,) True for places with a known value at a mission time [s]. O(n + k).

        A value interpolated between two slots is known if both their values are known.
        """
        k, after, share = self._between(seconds)
        return np.asarray(self._given[k] & self._given[after]) if share else self._given[k].copy()

    def _between(self, seconds: float) -> tuple[int, int, float]:
        """Return the two slots around a mission time [s], and the weight of the second slot."""
        time = self._start + seconds
        last = len(self._begins) - 1
        if not self._linear:
            k = min(max(int(np.searchsorted(self._begins, time, side="right")) - 1, 0), last)
            return k, k, 0.0
        where = float(np.interp(time, self._middles, np.arange(last + 1)))
        k = min(int(where), max(last - 1, 0))
        return k, min(k + 1, last), where - k


def slot_in(name: str) -> Slot | None:
    """Return the slot in a column's name (v_900_1800: 900 to 1800 s); None = no slot."""
    found = _TIMES.search(name)
    return None if found is None else Slot(*map(float, found.groups()))


def check_slots(slots: Sequence[Slot], source: str) -> None:
    """Raise MapError if slots are not in order or overlap."""
    for slot in slots:
        if not slot.end > slot.begin:
            msg = f"{source}: a time slot from {slot.begin:g} to {slot.end:g} s has no length"
            raise MapError(msg)
    for one, two in pairwise(slots):
        if two.begin < one.end:
            msg = (
                f"{source}: expected time slots in order that do not overlap, got "
                f"{one.begin:g} to {one.end:g} s and then {two.begin:g} to {two.end:g} s"
            )
            raise MapError(msg)


def fill_from_other_slots(slots: Sequence[Slot], values: FloatArray) -> tuple[FloatArray, int]:
    """Fill gaps (NaN) in (k, n) values from other slots of the same place.

    The slot with the nearest middle is used; of two equally near slots, the earlier one. A place
    without any value keeps NaN.

    Returns:
        The (k, n) filled values, and the number of filled cells.
    """
    filled = np.array(values, dtype=np.float64)
    empty = np.isnan(filled)
    middles = np.array([0.5 * (slot.begin + slot.end) for slot in slots])
    for place in np.flatnonzero(empty.any(axis=0) & ~empty.all(axis=0)).tolist():
        gaps, known = np.flatnonzero(empty[:, place]), np.flatnonzero(~empty[:, place])
        after = np.searchsorted(known, gaps)
        earlier = known[np.maximum(after - 1, 0)]
        later = known[np.minimum(after, known.size - 1)]
        is_later = np.abs(middles[later] - middles[gaps]) < np.abs(middles[earlier] - middles[gaps])
        filled[gaps, place] = values[np.where(is_later, later, earlier), place]
    return filled, int(np.count_nonzero(empty & ~np.isnan(filled)))
