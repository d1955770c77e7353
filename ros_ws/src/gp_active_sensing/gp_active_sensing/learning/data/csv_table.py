"""Read rows from a CSV table whose columns are the inputs themselves, without a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gp_active_sensing.belief.transform import TRANSFORMS
from gp_active_sensing.errors import ConfigError, ReadingError
from gp_active_sensing.learning.data.columns import value_column
from gp_active_sensing.learning.data.dataset import Dataset, refuse_empty
from gp_active_sensing.learning.data.memmap_writer import MemmapWriter
from gp_active_sensing.learning.data.table import Table
from gp_active_sensing.types import FloatArray

__all__ = ["read_table", "transformed"]


def read_table(
    path: Path,
    inputs: Sequence[str],
    value: str = "",
    *,
    scale: float = 1.0,
    transform: str = "identity",
    folder: Path | None = None,
    origins: Mapping[str, str] | None = None,
    held_out: bool = False,
) -> Dataset:
    """Read the rows of a table in one pass, some at a time.

    Rows without a number in one of the columns are left out, and `notes` says how many and where.

    Args:
        path: of a CSV file with a header.
        inputs: (d,) columns; one of time stamps becomes hours since its first.
        value: column of the outputs; "" = value, reading or speed, or the only other one.
        scale: factor on the outputs.
        transform: of the outputs, after it; as of a belief.
        folder: where a long table is kept, so that memory does not grow with it; None = in memory.
        origins: of columns of time stamps: from when hours are counted.
        held_out: nothing is learned from them, see `Dataset.checked`.

    Raises:
        ConfigError: no inputs, or one of them twice.
        ReadingError: a file, column or number that cannot be used; or rows that kernels cannot be
            learned from, see `Dataset.checked`.
    """
    _check_inputs(inputs, value)
    store = MemmapWriter(len(inputs), folder)
    try:
        with Table(path, origins) as table:
            value = value_column(path, table.header, value, set(inputs))
            columns = (*inputs, value)
            known = np.zeros(len(columns), dtype=np.int64)
            for values in table.chunks(columns):
                present = ~np.isnan(values)
                known += present.sum(axis=0)
                whole = values[present.all(axis=1)]
                whole[:, -1] = transformed(scale * whole[:, -1], transform, f"{path}: {value}")
                store.add(whole)
        table.refuse_without(columns)
        refuse_empty(str(path), columns, known, table.rows)
        if value in table.origins:
            msg = f"{path}: {value} has times; expected numbers. Say which column with --value"
            raise ReadingError("not_a_number", msg)
        X, y = store.arrays()
    finally:
        store.close()
    notes = []
    if lost := table.rows - len(y):
        where = table.where_lacking()
        notes.append(f"{lost} of {table.rows} rows lack a number and are left out: {where}")
    times = {name: stamp.isoformat() for name, stamp in table.origins.items()}
    notes += [f"{name} is in hours since {stamp}" for name, stamp in times.items()]
    recipe = {"kind": "table", "times": times, "scale": scale, "transform": transform}
    return Dataset(X, y, tuple(inputs), value, str(path), tuple(notes), recipe).checked(
        held_out=held_out
    )


def transformed(values: FloatArray, transform: str, where: str) -> FloatArray:
    """Return values (m,) as the Gaussian process sees them.

    Raises:
        ReadingError: one that the transform does not take.
    """
    if transform == "identity":
        return values
    forward = TRANSFORMS[transform].forward
    try:
        return np.array([forward(value, None)[0] for value in values.tolist()])
    except ReadingError as error:
        raise ReadingError(error.reason, f"{where}: {error}") from error


def _check_inputs(inputs: Sequence[str], value: str) -> None:
    if not inputs:
        msg = "--inputs: expected names of columns with commas between them, such as x,y,hours"
        raise ConfigError(msg)
    twice = [name for name in inputs if list(inputs).count(name) > 1]
    if twice or value in inputs:
        name = twice[0] if twice else value
        msg = f"--inputs: {name!r} is named twice; each column is one input, or the value"
        raise ConfigError(msg)
