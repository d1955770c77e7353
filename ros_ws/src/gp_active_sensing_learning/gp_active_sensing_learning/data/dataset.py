"""Data set for learning kernels, in memory or on disk."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from gp_active_sensing.belief.prior import TRANSFORMS
from gp_active_sensing.errors import ConfigError, ReadingError, listed, suggest
from gp_active_sensing.kernel_model.schema import LARGEST
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.files import cannot

LEAST_ROWS = 8
"""Smallest number of rows for learning kernels."""
_CHUNK = 65_536
"""Number of rows that are loaded at a time from a data set on disk."""
_VARIES = 1e-9
"""Relative spread below which a column counts as constant."""


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading rows from any source.

    Args:
        scale: factor on the outputs.
        transform: name of the transform of the outputs, which is applied after `scale`.
        folder: folder for the rows of a large data set; None = keep all rows in memory.
        origins: time stamp of hour 0 for each input with time stamps; None = the first stamp.
        held_out: True for test rows, which are not used for learning.
    """

    scale: float = 1.0
    transform: str = "identity"
    folder: Path | None = None
    origins: Mapping[str, str] | None = None
    held_out: bool = False

    def output(self, values: FloatArray, where: str) -> FloatArray:
        """Return the scaled and transformed outputs (m,) for values in the sensor's unit."""
        return transformed(self.scale * values, self.transform, where)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of inputs, with one output each.

    Args:
        inputs: (n, d) inputs in the original units, as an array or memmap of float64 or float32.
        outputs: (n,) outputs, as an array or memmap.
        input_names: (d,) names of the inputs, such as x and y.
        source: source of the rows, for messages.
        notes: notes about the rows, a sentence each.
        recipe: settings for reading test rows in the same way, as plain data.

    Raises:
        ValueError: the shapes do not fit together.
    """

    inputs: FloatArray
    outputs: FloatArray
    input_names: tuple[str, ...]
    output_name: str
    source: str
    notes: tuple[str, ...] = ()
    recipe: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = len(self.input_names)
        if self.inputs.ndim != 2 or self.inputs.shape[1] != names or names < 1:
            msg = (
                f"inputs: expected (n, {names}), a column for each of "
                f"{', '.join(self.input_names) or 'no names'}; got {self.inputs.shape}"
            )
            raise ValueError(msg)
        if self.outputs.shape != (len(self.inputs),):
            msg = f"outputs: expected ({len(self.inputs)},), got {self.outputs.shape}"
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.outputs)

    @property
    def dimensions(self) -> int:
        """Number d of inputs."""
        return len(self.input_names)

    def take(self, index: IntArray | slice) -> tuple[FloatArray, FloatArray]:
        """Return the inputs (m, d) and outputs (m,) of some rows, in memory as float64."""
        return (
            np.array(self.inputs[index], dtype=np.float64),
            np.array(self.outputs[index], dtype=np.float64),
        )

    def head(self, count: int) -> Dataset:
        """Return the first `count` rows, without a copy."""
        return dataclasses.replace(self, inputs=self.inputs[:count], outputs=self.outputs[:count])

    def permutation(self, seed: int) -> IntArray:
        """Return the indices (n,) of the rows in random order."""
        return np.random.default_rng([seed, 0x5045]).permutation(len(self))

    def sample(self, count: int, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return inputs and outputs of at most `count` random rows, in their original order."""
        if count >= len(self):
            return self.take(slice(None))
        rng = np.random.default_rng([seed, 0x5341])
        return self.take(np.sort(rng.choice(len(self), count, replace=False)))

    def chunks(self, size: int = _CHUNK) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield inputs and outputs of all rows, `size` rows at a time, as float64."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))

    def digest(self) -> str:
        """Return a hash of all numbers in the order of the rows. The first call is O(n)."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        found = hashlib.sha256()
        for X, y in self.chunks():
            found.update(np.column_stack([X, y]).tobytes())
        return found.hexdigest()

    def checked(self, *, held_out: bool = False) -> Dataset:
        """Return a data set whose rows have a number in every column.

        Rows that lack a number are skipped. `notes` reports skipped rows, repeated inputs and
        constant inputs.

        Args:
            held_out: True for test rows. A single test row suffices, and values need not vary.

        Raises:
            ReadingError: a column has no number, a number is too large, there are fewer than
                `LEAST_ROWS` rows, or the outputs do not vary.
        """
        columns = (*self.input_names, self.output_name)
        present = np.ones(len(self), dtype=np.bool_)
        known = np.zeros(len(columns), dtype=np.int64)
        start = 0
        for X, y in self.chunks():
            whole = np.column_stack([X, y])
            wrong = np.abs(whole) > LARGEST
            if wrong.any():
                row, column = np.argwhere(wrong)[0].tolist()
                value = whole[row, column]
                what = "infinite" if np.isinf(value) else f"{value:g}"
                msg = (
                    f"{self.source}: {columns[column]} of row {start + row} is {what}; expected "
                    f"a number within ±{LARGEST:g}, or NaN for none"
                )
                raise ReadingError("not_a_number", msg)
            missing = np.isnan(whole)
            known += (~missing).sum(axis=0)
            present[start : start + len(y)] = ~missing.any(axis=1)
            start += len(y)
        refuse_empty(self.source, columns, known, len(self))
        found, lost = self, int((~present).sum())
        if lost:
            note = f"{lost} of {len(self)} rows lack a number and are left out"
            found = dataclasses.replace(
                self,
                inputs=self.inputs[present],
                outputs=self.outputs[present],
                notes=(*self.notes, note),
            )
        if held_out:
            if not len(found):
                msg = f"{self.source}: has no row with a number in every column"
                raise ReadingError("too_few", msg)
            return found
        return found._with_remarks()

    def _with_remarks(self) -> Dataset:
        if len(self) < LEAST_ROWS:
            msg = (
                f"{self.source}: expected {LEAST_ROWS} rows or more with a number in every column, "
                f"got {len(self)}"
            )
            raise ReadingError("too_few", msg)
        low = np.full(self.dimensions + 1, np.inf)
        high = -low
        hashes = np.empty(len(self), dtype=np.uint64)
        start = 0
        for X, y in self.chunks():
            whole = np.column_stack([X, y])
            low = np.minimum(low, whole.min(axis=0))
            high = np.maximum(high, whole.max(axis=0))
            hashes[start : start + len(y)] = _hashes(X)
            start += len(y)
        still = high - low <= _VARIES * np.maximum(np.abs(low), np.abs(high))
        if still[-1]:
            msg = (
                f"{self.source}: {self.output_name} is {low[-1]:g} in all {len(self)} rows; a "
                "field that does not vary has no kernel to learn"
            )
            raise ReadingError("constant", msg)
        notes = list(self.notes)
        for name, value, constant in zip(self.input_names, low, still, strict=False):
            if constant:
                notes.append(
                    f"{name} is {value:g} in every row: nothing can be learned along it, and a "
                    "prediction elsewhere is a guess"
                )
        again = len(self) - len(np.unique(hashes))
        if again:
            notes.append(f"{again} of {len(self)} rows have inputs that came before; all are used")
        if tuple(notes) == self.notes:
            return self
        return dataclasses.replace(self, notes=tuple(notes))


def transformed(values: FloatArray, transform: str, where: str) -> FloatArray:
    """Return transformed values (m,). `where` begins the message of an error.

    Raises:
        ReadingError: a value is outside the transform's domain.
    """
    if transform == "identity":
        return values
    forward = TRANSFORMS[transform].forward
    try:
        return np.array([forward(value, None)[0] for value in values.tolist()])
    except ReadingError as error:
        raise ReadingError(error.reason, f"{where}: {error}") from error


def check_inputs(inputs: Sequence[str], known: Sequence[str], whose: str) -> None:
    """Raise ConfigError for names in `inputs` that are repeated or not in `known`."""
    for name in inputs:
        if name not in known:
            hint = suggest(name, known)
            msg = f"--inputs: {whose} {listed(known)}, not {name!r}.{hint}"
            raise ConfigError(msg)
    if not inputs or len(set(inputs)) < len(inputs):
        msg = f"--inputs: expected some of {listed(known)}, each once; got {','.join(inputs)!r}"
        raise ConfigError(msg)


def refuse_empty(source: str, columns: Sequence[str], known: IntArray, total: int) -> None:
    """Reject a column that has no number. `known` (c,) counts the numbers in each column.

    Raises:
        ReadingError: a column has no number. The message names the column.
    """
    for name, count in zip(columns, known.tolist(), strict=True):
        if total and not count:
            msg = (
                f"{source}: column {name!r} has no number in any of its {total} rows; leave it out "
                "or give another one"
            )
            raise ReadingError("no_numbers", msg)


def _hashes(X: FloatArray) -> Any:
    """Return a hash (m,) of each row of X (m, d)."""
    words = np.ascontiguousarray(X + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0
    found = np.zeros(len(X), dtype=np.uint64)
    for column in words.T:
        found = (found ^ column) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
    return found


logger = logging.getLogger(__name__)

IN_MEMORY = 100_000
"""Largest number of rows in memory. A larger data set is stored on disk."""


class MemmapWriter:
    """Writer that collects rows and returns them as two arrays.

    Args:
        folder: existing folder for a data set of more than `IN_MEMORY` rows; None = keep all rows
            in memory.
    """

    def __init__(self, dimensions: int, folder: Path | None) -> None:
        self._width = dimensions + 1
        self._folder = folder
        self._chunks: list[FloatArray] = []
        self._stream: IO[bytes] | None = None
        self.rows = 0

    def add(self, values: FloatArray) -> None:
        """Add rows (m, d + 1), with the output in the last column.

        Raises:
            RunError: the disk is full, or the folder cannot be written to.
        """
        self.rows += len(values)
        self._chunks.append(values)
        if self._folder is not None and self.rows > IN_MEMORY:
            self._write(self._folder)

    def arrays(self) -> tuple[FloatArray, FloatArray]:
        """Return inputs (n, d) and outputs (n,). Arrays on disk are read-only memmaps."""
        if self._stream is not None:
            stored = np.memmap(self._stream.name, np.float64, "r", shape=(self.rows, self._width))
            return stored[:, :-1], stored[:, -1]
        whole = np.concatenate([np.empty((0, self._width)), *self._chunks])
        return np.ascontiguousarray(whole[:, :-1]), np.ascontiguousarray(whole[:, -1])

    def close(self) -> None:
        """Close the file. The results of `arrays` stay valid."""
        if self._stream is not None:
            self._stream.close()

    def _write(self, folder: Path) -> None:
        try:
            if self._stream is None:
                logger.info("more than %d rows: they are kept in %s", IN_MEMORY, folder)
                # Parallel processes open the file by name.
                self._stream = tempfile.NamedTemporaryFile(
                    dir=folder, prefix="rows-", suffix=".f64", delete=False
                )
            for chunk in self._chunks:
                self._stream.write(np.ascontiguousarray(chunk, dtype=np.float64).tobytes())
            self._stream.flush()
        except OSError as error:
            raise cannot(folder, "write", error) from error
        self._chunks.clear()
