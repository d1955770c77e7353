"""Tables (CSV): titles, rows with the number of their line, and columns by any of their names."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.loaders.limits import read_text

__all__ = ["columns_of", "number_of", "plain_title", "read_table"]

_GUESSED = ("_guess", "_inferred")
"""Words in the title of a column whose values nobody measured."""
_FIELD = 1 << 22
"""Longest cell [characters]; a line of 100 000 points fits."""


def read_table(path: Path) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Return the titles of a table and its rows, each with the number of its line.

    Raises:
        MapError: a file that cannot be read or is no table; while the rows are taken, a row that
            is cut short.
    """
    text = read_text(path)
    csv.field_size_limit(_FIELD)
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [title.strip() for title in next(lines, [])]
    except csv.Error as error:
        msg = f"{path}, line 1: {error}; expected a table with commas (CSV)"
        raise MapError(msg) from error
    if len(header) < 2:
        msg = f"{path}, line 1: expected titles of columns with commas between, got {text[:60]!r}"
        raise MapError(msg)
    twice = sorted({title for title in header if title and header.count(title) > 1})
    if twice:
        msg = f"{path}, line 1: column {twice[0]!r} is there twice; rename one"
        raise MapError(msg)

    def rows() -> Iterator[tuple[int, dict[str, str]]]:
        while True:
            try:
                cells = next(lines, None)
            except csv.Error as error:
                msg = f"{path}, line {lines.line_num}: {error}; is the file cut short?"
                raise MapError(msg) from error
            if cells is None:
                return
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                msg = (
                    f"{path}, line {lines.line_num}: expected {len(header)} cells, as there are "
                    f"titles, got {len(cells)}"
                )
                raise MapError(msg)
            yield lines.line_num, dict(zip(header, cells, strict=True))

    return header, rows()


def columns_of(header: Sequence[str], names: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return what is known -> the title of its column.

    Args:
        header: the titles.
        names: what is known -> the titles it may have; the first that is there counts. A title may
            hold a word besides that says that its values are guessed.
    """
    by_name = {plain_title(title): title for title in header} | {title: title for title in header}
    found: dict[str, str] = {}
    for key, titles in names.items():
        title = next((by_name[title] for title in titles if title in by_name), None)
        if title is not None:
            found[key] = title
    return found


def plain_title(title: str) -> str:
    """Return the title of a column without the words that say it is guessed."""
    for word in _GUESSED:
        title = title.replace(word, "")
    return title


def number_of(text: str) -> float | None:
    """Return a number, None where there is none."""
    try:
        return float(text)
    except ValueError:
        return None
