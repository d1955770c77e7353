"""Find the columns of a table by name, with clear errors for missing ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from gp_active_sensing.errors import ReadingError, suggest

__all__ = ["check_column", "listed", "value_column"]

_VALUE_COLUMNS = ("value", "reading", "speed")
_MOST = 12
"""Columns that are listed."""


def value_column(path: Path, header: Sequence[str], given: str, taken: Collection[str]) -> str:
    """Return the column with the values: the given one, a usual one, or the only one left.

    Raises:
        ReadingError: no such column, or which one is meant cannot be said.
    """
    if given:
        check_column(path, header, given)
        return given
    left = [name for name in header if name not in taken]
    usual = [name for name in _VALUE_COLUMNS if name in left]
    if usual or len(left) == 1:
        found = usual[0] if usual else left[0]
        check_column(path, header, found)
        return found
    msg = f"{path}: which column has the values? Say it with --value; got {listed(left)}"
    raise ReadingError("no_value", msg)


def check_column(path: Path, header: Sequence[str], name: str) -> None:
    """Refuse a name that no column has, or more than one.

    Raises:
        ReadingError: naming the nearest one.
    """
    if name not in header:
        msg = f"{path}: no column {name!r}.{suggest(name, header)} Got {listed(header)}"
        raise ReadingError("no_column", msg)
    if header.count(name) > 1:
        msg = f"{path}: {header.count(name)} columns have the name {name!r}; rename all but one"
        raise ReadingError("no_column", msg)


def listed(names: Sequence[str]) -> str:
    """Return names for a message."""
    more = f", … ({len(names)} in all)" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more if names else "no columns"
