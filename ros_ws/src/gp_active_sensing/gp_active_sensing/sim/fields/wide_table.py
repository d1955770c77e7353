"""Tables over time as loggers write them: a line for each time, a column for each place."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

from gp_active_sensing.errors import MapError, suggest
from gp_active_sensing.sim.fields.slots import Slot

__all__ = ["read_wide"]


def read_wide(
    path: Path, time_column: str, names: Sequence[str]
) -> tuple[dict[str, array[float]], tuple[Slot, ...]]:
    """Read the columns of some places.

    Args:
        path: a CSV table.
        time_column: column with the times, in seconds or as ISO dates; a date without a zone is
            taken as UTC.
        names: of the places; other columns are left alone.

    Returns:
        (k,) values of each place that has a column, NaN = an empty cell; and the k times, as slots
        without a length: a value is what was read at that moment.

    Raises:
        MapError: a table that cannot be used; the message says the line.
    """
    wanted = set(names)
    rows: dict[str, array[float]] = {}
    times: list[float] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            table = csv.reader(stream)
            head = [cell.strip() for cell in next(table, [])]
            columns = _columns(path, head, time_column, wanted)
            at = head.index(time_column)
            rows = {name: array("d") for name in columns}
            for row in table:
                if not any(cell.strip() for cell in row):
                    continue
                where = f"{path}, line {table.line_num}"
                if len(row) != len(head):
                    msg = f"{where}: expected {len(head)} cells as in line 1, got {len(row)}"
                    raise MapError(msg)
                times.append(_time(row[at].strip(), where))
                for name, column in columns.items():
                    rows[name].append(_number(row[column].strip(), f"{where} (place {name!r})"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"{path}: cannot be read as a CSV table: {error}"
        raise MapError(msg) from error
    if not times:
        msg = f"{path}: expected a line for each time below the first, found none"
        raise MapError(msg)
    for one, two in pairwise(times):
        if two <= one:
            msg = f"{path}: expected times that increase, got {one:g} s and then {two:g} s"
            raise MapError(msg)
    return rows, tuple(Slot(time, time) for time in times)


def _columns(path: Path, head: Sequence[str], time_column: str, wanted: set[str]) -> dict[str, int]:
    if time_column not in head:
        msg = (
            f"{path}: expected a column {time_column!r} with the times."
            f"{suggest(time_column, head)} It has: {', '.join(head[:20]) or 'none'}; name it with "
            "field.time_column"
        )
        raise MapError(msg)
    twice = sorted({name for name in head if name in wanted and head.count(name) > 1})
    if twice:
        msg = f"{path}: column {twice[0]!r} comes more than once; keep one for each place"
        raise MapError(msg)
    return {name: i for i, name in enumerate(head) if name in wanted and name != time_column}


def _time(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = _date(text, where)
    if not math.isfinite(value):
        msg = f"{where}: expected a time, got {text!r}"
        raise MapError(msg)
    return value


def _date(text: str, where: str) -> float:
    try:
        # Python 3.10 does not know the letter for UTC.
        found = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)
    except ValueError:
        msg = f"{where}: expected a time in seconds or a date (2026-05-01T12:00:00Z), got {text!r}"
        raise MapError(msg) from None
    return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()


def _number(text: str, where: str) -> float:
    if not text:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        msg = f"{where}: expected a finite number, got {text!r}"
        raise MapError(msg)
    return value
