"""Read CSV tables in chunks, recognise usual fill values, and write CSV tables."""

from __future__ import annotations

import csv
import io
import logging
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timezone
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from gp_active_sensing.errors import ActiveSensingError, listed, suggest
from gp_active_sensing.types import BoolArray, FloatArray
from gp_active_sensing.util.files import open_file

logger = logging.getLogger(__name__)

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none"})
"""Cell texts that mean a missing value, in lower case."""
HOUR = 3600.0
EPOCH = "1970-01-01T00:00:00Z"

_FILLS = (
    *(-999.0, -999.25, -999.9, -9999.0, -9999.9, -99999.0, -999999.0),
    *(-32767.0, -32768.0, -2147483647.0, -2147483648.0),
)
_FILL_VALUES = frozenset(form for value in _FILLS for form in (value, float(np.float32(value))))
"""Numbers that usually mean a missing value, in single and double precision."""
_FORMULA = frozenset("=+-@＝＋－＠")
_LEAST_FILL = 0.999999e20
"""Magnitude from which a number counts as a fill value; many formats use 1e20 or more."""

_CELLS = 50_000
"""Number of cells in a chunk, counting all columns of the file."""
_LONGEST = 1 << 22
"""Largest number of characters in a cell."""
_FIRST = 1 << 16
"""Largest number of characters that are searched for the delimiter."""
_DELIMITERS = ",;\t"
_STAMP = "such as 2024-03-01T06:30:00Z"
_FRACTION = re.compile(r"\.(\d+)")
_OFFSET = re.compile(r"(:\d\d(?:\.\d+)?[+-]\d\d):?(\d\d)?$")


def is_fill(value: float) -> bool:
    """Return True if a number usually means a missing value; False for NaN."""
    return value in _FILL_VALUES or abs(value) >= _LEAST_FILL


def are_fills(values: FloatArray) -> BoolArray:
    """Return flags: True for each of `values` that usually means a missing value."""
    with np.errstate(invalid="ignore"):
        large = np.abs(values) >= _LEAST_FILL
    return np.asarray(np.isin(values, tuple(_FILL_VALUES)) | large)


class Chunk(NamedTuple):
    """Consecutive rows of a table.

    Args:
        values: (m, c) numbers of the requested columns; NaN = missing.
        rows: (m,) all cells of each row, as text.
        lines: (m,) line number at which each row begins.
    """

    values: FloatArray
    rows: list[list[str]]
    lines: list[int]


class Table:
    """CSV file with a header, opened by ``with Table(path, MapError) as table:``.

    The delimiter is a comma, semicolon or tab, whichever is most frequent in the first line. Rows
    are read on demand: memory does not grow with the file.

    Args:
        path: path of the file, in UTF-8 with or without a byte order mark.
        error: exception class of all errors.
        ragged: True = fill short rows with empty cells and cut long rows. False = raise an error
            for short and long rows, and skip rows of empty cells.
        missing: cell texts that mean a missing value, in lower case.
    """

    def __init__(
        self,
        path: Path,
        error: Callable[[str], ActiveSensingError],
        *,
        ragged: bool = False,
        missing: Collection[str] = MISSING,
    ) -> None:
        self.path = path
        self.header: list[str] = []
        self.origins: dict[str, datetime] = {}
        """Time stamp of time 0 in each time column; the keys are the names of the columns."""
        self.rows = 0
        """Number of rows that `chunks` has read."""
        self.fill_values = 0
        """Number of fill values in measured columns, see `chunks`."""
        self._error, self._ragged, self._missing = error, ragged, missing
        self._stamped: dict[str, bool] = {}
        self._places: dict[str, list[int]] = {}
        self._reader: Any = None
        self._stack = ExitStack()

    def __enter__(self) -> Table:
        csv.field_size_limit(_LONGEST)
        with self._stack, self._reading():
            text = io.TextIOWrapper(open_file(self.path), encoding="utf-8-sig", newline="")
            stream = self._stack.enter_context(text)
            first = stream.readline(_FIRST)
            stream.seek(0)
            delimiter = max(_DELIMITERS, key=first.count)
            self._reader = csv.reader(stream, delimiter=delimiter, strict=True)
            self.header = [name.strip() for name in next(self._reader, [])]
            self._stack = self._stack.pop_all()  # the file stays open
        for at, name in enumerate(self.header):
            self._places.setdefault(name, []).append(at)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        if self.fill_values:
            text = "%s: %d values are fill values, such as -9999: they count as missing"
            logger.warning(text, self.path, self.fill_values)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line number, cells) of each remaining row.

        Raises:
            ActiveSensingError, of class `error`: a row has another length, a quote is not closed,
                or the file cannot be read.
        """
        width, ragged, reader = len(self.header), self._ragged, self._reader
        end = reader.line_num
        with self._reading():
            for cells in reader:
                line, end = end + 1, reader.line_num  # a quoted cell may span lines
                if len(cells) != width:
                    if not any(map(str.strip, cells)):
                        continue
                    if not ragged:
                        where = f"{self.path}, line {line}"
                        msg = f"{where}: expected {width} cells as in line 1, got {len(cells)}"
                        raise self._error(msg)
                    yield line, [*cells[:width], *[""] * (width - len(cells))]
                elif ragged or any(map(str.strip, cells)):
                    yield line, cells

    def column(self, name: str, hint: str = "") -> int:
        """Return the index of a column; `hint` is added to the error for a missing column.

        Raises:
            ActiveSensingError, of class `error`: no column or several columns have the name.
        """
        found = self._places.get(name, [])
        if not found:
            msg = (
                f"{self.path}: expected a column {name!r}.{suggest(name, self.header)} It has: "
                f"{listed(self.header)}{hint}"
            )
            raise self._error(msg)
        if len(found) > 1:
            msg = f"{self.path}: {len(found)} columns have the name {name!r}; rename all but one"
            raise self._error(msg)
        return found[0]

    def chunks(
        self,
        columns: Sequence[str],
        times: Collection[str] = (),
        origins: Mapping[str, str] | None = None,
        unit: float = HOUR,
        *,
        measured: Collection[str] = (),
    ) -> Iterator[Chunk]:
        """Yield the remaining rows in chunks, with the numbers of `columns`.

        Args:
            columns: (c,) names of the columns.
            times: columns that may have time stamps in ISO 8601, by default in UTC. The first value
                decides whether the column has stamps or numbers.
            origins: time stamp of time 0, by column; default: the first stamp of the column.
            unit: length of the unit of the times [s].
            measured: columns in which usual fill values, such as -9999, count as missing.

        Raises:
            ActiveSensingError, of class `error`: a column is missing, a cell has no finite number,
            or a row is malformed.
        """
        at = [self.column(name) for name in columns]
        self.origins |= {k: stamp(v) for k, v in (origins or {}).items() if k in times}
        found = iter(self)
        while piece := list(islice(found, max(64, _CELLS // max(1, len(self.header))))):
            lines, rows = [line for line, _ in piece], [row for _, row in piece]
            self.rows += len(rows)
            values = np.empty((len(rows), len(columns)))
            for k, name in enumerate(columns):
                cells = list(map(itemgetter(at[k]), rows))
                if name not in times:
                    values[:, k] = self._numbers(name, cells, lines, "a finite number or nothing")
                elif self._has_stamps(name, cells):
                    read = _since(self.origins[name], unit)
                    values[:, k] = self._each(name, cells, lines, read, f"a time {_STAMP}")
                else:
                    what = f"a finite number, or a time {_STAMP}"
                    values[:, k] = self._numbers(name, cells, lines, what)
                if name in measured:
                    filled = are_fills(values[:, k])
                    values[filled, k] = math.nan
                    self.fill_values += int(np.count_nonzero(filled))
            yield Chunk(values, rows, lines)

    def check_rows(self) -> None:
        """Raise `error` if no rows were read."""
        if not self.rows:
            msg = f"{self.path}: expected rows below the header ({listed(self.header)}), found none"
            raise self._error(msg)

    def _has_stamps(self, name: str, cells: Sequence[str]) -> bool:
        if name not in self._stamped:
            first = next((c for c in cells if c.strip().lower() not in self._missing), None)
            if first is None:
                return False
            begin = _moment(first)
            self._stamped[name] = begin is not None
            if begin is not None:
                self.origins.setdefault(name, begin)
        return self._stamped[name]

    def _numbers(
        self, name: str, cells: Sequence[str], lines: Sequence[int], what: str
    ) -> FloatArray:
        gaps = cells.count("")
        words = [cell or "nan" for cell in cells] if gaps else cells
        with suppress(ValueError):
            found = np.fromiter(map(float, words), dtype=np.float64, count=len(words))
            named = "nan" in self._missing or np.isnan(found).sum() == gaps
            if named and not np.isinf(found).any():
                return found
        return self._each(name, cells, lines, _finite, what)

    def _each(
        self,
        name: str,
        cells: Sequence[str],
        lines: Sequence[int],
        read: Callable[[str], float],
        what: str,
    ) -> FloatArray:
        found = [math.nan] * len(cells)
        for k, word in enumerate(map(str.strip, cells)):
            if word.lower() in self._missing:
                continue
            try:
                found[k] = read(word)
            except (ValueError, OverflowError):
                where = f"{self.path}, line {lines[k]}, column {name!r}"
                msg = f"{where}: expected {what}, got {word[:40]!r}"
                raise self._error(msg) from None
        return np.array(found)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            msg = f"{self.path}: cannot be read: {error.strerror or error}"
            raise self._error(msg) from error
        except UnicodeDecodeError as error:
            msg = f"{self.path}: cannot be read: {error.reason}; expected text in UTF-8"
            raise self._error(msg) from error
        except csv.Error as error:
            msg = f"{self.path}, line {self._reader.line_num}: {error}; is the file cut short?"
            raise self._error(msg) from error


def safe_cell(value: object) -> object:
    """Return a cell that no spreadsheet evaluates: a formula gets a leading ``'``.

    Carriage returns become line feeds.
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    if (begin := text.lstrip())[:1] in _FORMULA and len(begin) > 1:
        try:
            float(text)
        except ValueError:
            return f"'{text}"
    return text


def write_rows(stream: IO[str], rows: Iterable[Iterable[object]]) -> None:
    """Write rows of a CSV table; `safe_cell` converts each cell."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows(map(safe_cell, row) for row in rows)


def stamp(text: str) -> datetime:
    """Parse a time stamp in ISO 8601, by default in UTC. Raises ValueError."""
    word = text.strip()
    word = f"{word[:-1]}+00:00" if word[-1:] in "zZ" else word
    # Python 3.10 needs fractions of three or six digits and offsets with a colon.
    word = _OFFSET.sub(lambda found: f"{found[1]}:{found[2] or '00'}", word)
    word = _FRACTION.sub(lambda found: f".{found[1][:6]:<06}", word, count=1)
    found = datetime.fromisoformat(word)
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)


def _moment(text: str) -> datetime | None:
    with suppress(ValueError):
        float(text)
        return None
    with suppress(ValueError):
        return stamp(text)
    return None


def _since(origin: datetime, unit: float) -> Callable[[str], float]:
    return lambda word: (stamp(word) - origin).total_seconds() / unit


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError
    return value
