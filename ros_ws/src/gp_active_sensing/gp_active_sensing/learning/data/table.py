"""Read numbers from a CSV table in chunks, with bounded memory."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.learning.data.columns import check_column, listed
from gp_active_sensing.types import FloatArray

__all__ = ["MISSING", "Table"]

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none"})
"""Words, in any case, for a value that is not there."""
_CELLS = 200_000
"""Cells in memory at a time, of all columns of the file."""
_SHOWN = 3
_DELIMITERS = ",;\t"
_FRACTION = re.compile(r"\.(\d+)")
_OFFSET = re.compile(r"(:\d\d(?:\.\d+)?[+-]\d\d):?(\d\d)?$")


class Table:
    """A CSV file with a header, opened by ``with Table(path) as table:``.

    Columns are divided by commas, semicolons or tabs, whichever its header has most of. A column
    whose first value is a time stamp (ISO 8601; UTC where it does not say) is one of times, which
    become hours since that first one.

    Args:
        path: of the file.
        origins: stamp from which the hours of a column are counted, where it is not the first; such
            a column may have the hours themselves.

    Raises:
        ReadingError: a file that cannot be read.
    """

    def __init__(self, path: Path, origins: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.header: list[str] = []
        self.origins: dict[str, datetime] = {
            name: _stamp(text) for name, text in (origins or {}).items()
        }
        """Of the columns of times that were met."""
        self._given = set(self.origins)
        self._hours_given: set[str] = set()
        self.rows = 0
        """Read so far."""
        self.cells: list[list[str]] = []
        """All cells of the rows that were yielded last."""
        self.lacking: dict[str, list[int]] = {}
        """Lines of the first few rows that lack a number, by the first column that lacks it."""
        self._piece: tuple[list[list[str]], list[int], int] = ([], [], 0)
        """What was read last: all rows, which are no empty lines, and the line before them."""
        self._stream: IO[str] | None = None
        self._reader: Any = None

    def __enter__(self) -> Table:
        try:
            self._stream = self.path.open(newline="", encoding="utf-8-sig")
            first = self._stream.readline()
            self._stream.seek(0)
            mark = max(_DELIMITERS, key=first.count)
            self._reader = csv.reader(self._stream, delimiter=mark)
            self.header = [name.strip() for name in next(self._reader, [])]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            self._close()
            raise self._unreadable(error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def chunks(self, columns: Sequence[str]) -> Iterator[FloatArray]:
        """Yield the numbers of some columns, (m, c) each time, NaN where there is none.

        Args:
            columns: (c,) their names.

        Raises:
            ReadingError: no such column, a text in it, an infinite number, or a file that cannot
                be read further.
        """
        for name in columns:
            check_column(self.path, self.header, name)
        where = [self.header.index(name) for name in columns]
        size = max(64, _CELLS // max(1, len(self.header)))
        while True:
            before = self._reader.line_num
            self.cells, rows = [], []  # else two pieces would be in memory at once
            self._piece = ([], [], 0)
            try:
                rows = list(islice(self._reader, size))
            except (OSError, UnicodeDecodeError, csv.Error) as error:
                raise self._unreadable(error) from error
            if not rows:
                return
            kept = [k for k, row in enumerate(rows) if row]
            values = np.empty((len(kept), len(columns)))
            for column, (name, at) in enumerate(zip(columns, where, strict=True)):
                cells = [rows[k][at] if at < len(rows[k]) else "" for k in kept]
                try:
                    values[:, column] = self._numbers(name, cells)
                except _BadCellError as bad:
                    line = _line(rows, kept[bad.index], before)
                    msg = f"{self.path}, line {line}: {name}: {bad}"
                    raise ReadingError("not_a_number", msg) from None
            self._note(columns, values, rows, kept, before)
            self.rows += len(kept)
            self.cells = [rows[k] for k in kept]
            self._piece = (rows, kept, before)
            if kept:
                yield values

    def line_of(self, index: int) -> int:
        """Return the line of one of the rows that were yielded last."""
        rows, kept, before = self._piece
        return _line(rows, kept[index], before)

    def _numbers(self, name: str, cells: Sequence[str]) -> FloatArray:
        """Return a column's numbers (m,); fast where all cells are numbers."""
        if name not in self.origins or name in self._hours_given:
            try:
                found = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
                if not np.isinf(found).any():
                    return found
            except ValueError:
                pass
        first = next((c for c in cells if c.strip().lower() not in MISSING), "")
        if name not in self.origins:
            if not _is_number(first) and _is_stamp(first):
                self.origins[name] = _stamp(first)
        elif name in self._given and _is_number(first):
            self._hours_given.add(name)
        self._given.discard(name)
        if name in self.origins and name not in self._hours_given:
            return self._hours(self.origins[name], cells)
        return np.array([_number(k, cell) for k, cell in enumerate(cells)])

    def _hours(self, origin: datetime, cells: Sequence[str]) -> FloatArray:
        found = np.full(len(cells), np.nan)
        for k, cell in enumerate(cells):
            if cell.strip().lower() in MISSING:
                continue
            try:
                found[k] = (_stamp(cell) - origin).total_seconds() / 3600.0
            except (ValueError, OverflowError):
                what = f"expected a time such as 2024-03-01T06:30:00, got {cell.strip()[:40]!r}"
                raise _BadCellError(k, what) from None
        return found

    def _note(
        self,
        columns: Sequence[str],
        values: FloatArray,
        rows: Sequence[Sequence[str]],
        kept: Sequence[int],
        before: int,
    ) -> None:
        """Remember where numbers are missing."""
        if not columns:
            return
        missing = np.isnan(values)
        first = np.where(missing.any(axis=1), missing.argmax(axis=1), -1)
        for column, name in enumerate(columns):
            found = np.flatnonzero(first == column)
            if len(found):
                lines = self.lacking.setdefault(name, [])
                room = max(0, _SHOWN - len(lines))
                lines += [_line(rows, kept[k], before) for k in found[:room].tolist()]

    def where_lacking(self) -> str:
        """Return in which lines numbers are missing, for a message; "" where none is."""
        return "; ".join(
            f"{name} in line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
            + (" …" if len(lines) >= _SHOWN else "")
            for name, lines in self.lacking.items()
        )

    def _unreadable(self, error: Exception) -> ReadingError:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        return ReadingError("unreadable", f"{self.path}: cannot be read: {why}")

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def refuse_without(self, columns: Sequence[str]) -> None:
        """Refuse a table without rows.

        Raises:
            ReadingError: there was none.
        """
        if not self.rows:
            msg = (
                f"{self.path}: has a header ({listed(self.header)}) and no rows of "
                f"{', '.join(columns)}"
            )
            raise ReadingError("too_few", msg)


class _BadCellError(Exception):
    """A cell of a column that is no number; the message says what it is."""

    def __init__(self, index: int, what: str) -> None:
        self.index = index
        super().__init__(what)


def _number(index: int, cell: str) -> float:
    word = cell.strip()
    if word.lower() in MISSING:
        return math.nan
    try:
        number = float(word)
    except ValueError:
        number = math.inf
    if math.isinf(number):
        what = f"expected a finite number or nothing, got {word[:40]!r}"
        raise _BadCellError(index, what)
    return number


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_stamp(cell: str) -> bool:
    try:
        _stamp(cell)
    except ValueError:
        return False
    return True


def _stamp(text: str) -> datetime:
    """Return a time; UTC where it does not say. Raises ValueError."""
    word = text.strip()
    word = f"{word[:-1]}+00:00" if word[-1:] in "zZ" else word
    # Python 3.10 knows fractions of three or six digits only, and offsets with a colon only.
    word = _OFFSET.sub(lambda found: f"{found[1]}:{found[2] or '00'}", word)
    word = _FRACTION.sub(lambda found: f".{found[1][:6]:<06}", word, count=1)
    found = datetime.fromisoformat(word)
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)


def _line(rows: Sequence[Sequence[str]], index: int, before: int) -> int:
    """Return the line of a row: cells in quotes may go over several."""
    return before + 1 + sum(1 + sum(cell.count("\n") for cell in row) for row in rows[:index])
