"""The values of a field from a CSV table, a line for every place of the map."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import MapError, suggest
from gp_active_sensing.sim.field import FieldConfig
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import FloatArray

__all__ = ["table_values"]

_SHOWN = 5


def table_values(path: Path, config: FieldConfig, topology: Topology) -> FloatArray:
    """Return the (n,) values of a map's places, ``offset + scale * column``.

    Args:
        path: the table.
        config: its columns, scale and offset.
        topology: the map.

    Raises:
        MapError: a table that cannot be used; the message says the line, or the places without a
            value.
    """
    rows = _read(path, config.id_column, config.value_column)
    missing = [name for name in topology.names if name not in rows]
    if missing:
        shown = ", ".join(missing[:_SHOWN]) + (", …" if len(missing) > _SHOWN else "")
        msg = (
            f"{path}: no value in column {config.value_column!r} for {len(missing)} of "
            f"{topology.n} places of map {topology.name!r}: {shown}; give each place a value"
        )
        raise MapError(msg)
    column = np.array([rows[name] for name in topology.names])
    return np.asarray(config.offset + config.scale * column, dtype=np.float64)


def _read(path: Path, id_column: str, value_column: str) -> dict[str, float]:
    """Return the values by name; a place with an empty cell is left out (and missed later)."""
    rows: dict[str, float] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            table = csv.DictReader(stream)
            known = list(table.fieldnames or [])
            for column in (id_column, value_column):
                if column not in known:
                    msg = (
                        f"{path}: expected a column {column!r}.{suggest(column, known)} "
                        f"It has: {', '.join(known) or 'none'}"
                    )
                    raise MapError(msg)
            for row in table:
                name, text = (row[id_column] or "").strip(), (row[value_column] or "").strip()
                where = f"{path}, line {table.line_num} (place {name!r})"
                if name in rows:
                    msg = f"{where}: the place has a value already; keep one line for each"
                    raise MapError(msg)
                if text:
                    rows[name] = _number(text, where)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"{path}: cannot be read as a CSV table: {error}"
        raise MapError(msg) from error
    return rows


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        msg = f"{where}: expected a finite number, got {text!r}"
        raise MapError(msg)
    return value
