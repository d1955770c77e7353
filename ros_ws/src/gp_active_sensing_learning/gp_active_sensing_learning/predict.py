"""Write a table of a model's predictions for the rows of another table."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.belief.prior import TRANSFORMS
from gp_active_sensing.errors import ConfigError, ReadingError, listed, suggest
from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.files import cannot, making_whole
from gp_active_sensing.util.tables import Table, write_rows
from gp_active_sensing_learning.data.table import PLACE_COLUMNS, check_stamps, open_table
from gp_active_sensing_learning.kernel_predictor import predict

COLUMNS = ("mean", "std", "reading_std")
"""Names of the columns for the mean and the standard deviation of the field, and for the standard
deviation of a reading."""


@dataclass(frozen=True)
class PredictionSummary:
    """Summary of a table of predictions."""

    rows: int
    notes: tuple[str, ...] = ()


def predict_table(
    model: KernelModel,
    source: Path,
    out: Path,
    *,
    topology: Topology | None = None,
    place: str = "",
    progress: Callable[[int], None] = lambda rows: None,
) -> PredictionSummary:
    """Copy a CSV table and add `COLUMNS` with a model's predictions.

    A row that lacks an input gets empty cells.

    Args:
        model: the model.
        source: CSV table with the model's inputs as columns, or with names of places of the map.
        out: file to write.
        topology: map whose features are the model's inputs; None = no map.
        place: column with the names of places; "" = a column with a usual name.
        progress: callback with the number of finished rows.

    Raises:
        ConfigError: the features of the map are not the inputs of the model.
        ReadingError: a table, column, name or number cannot be used, or a column has time stamps in
            place of numbers.
        RunError: the file cannot be written.
    """
    if out.exists() and source.exists() and out.samefile(source):
        msg = f"{out}: is the table that is read; write to another file"
        raise ConfigError(msg)
    rows = lacking = 0
    with open_table(source) as table:
        chunks = (
            _of_columns(model, table)
            if topology is None
            else _of_places(model, table, topology, place)
        )
        try:
            with making_whole(out) as binary:
                stream = io.TextIOWrapper(binary, encoding="utf-8", newline="")
                write_rows(stream, [[*table.header, *_names(table.header)]])
                noise: float | None = None
                for cells, X in chunks:
                    if noise is None and np.isfinite(X).all(axis=1).any():
                        noise = _noise(model, X)
                    found = _predicted(model, X, noise or 0.0)
                    both = zip(cells, found.tolist(), strict=True)
                    write_rows(stream, ([*row, *map(_text, values)] for row, values in both))
                    rows += len(cells)
                    lacking += int(np.isnan(found[:, 0]).sum())
                    progress(rows)
                table.check_rows()
                stream.detach()  # write_rows has flushed the file
        except OSError as error:
            raise cannot(out, "write", error) from error
        notes = _stamp_notes(model, table) if topology is None else ()
    if lacking:
        notes = (f"{lacking} of them lack an input and have no prediction", *notes)
    return PredictionSummary(rows, notes)


def _stamp_notes(model: KernelModel, table: Table) -> tuple[str, ...]:
    stamps = {name: stamp.isoformat() for name, stamp in table.origins.items()}
    return check_stamps(model, stamps, str(table.path))


def _of_columns(model: KernelModel, table: Table) -> Iterator[tuple[list[list[str]], FloatArray]]:
    lacking = [name for name in model.input_names if name not in table.header]
    if lacking:
        hint = suggest(lacking[0], table.header)
        msg = (
            f"{table.path}: the model's inputs are {listed(model.input_names)}; there is no column "
            f"{lacking[0]!r}.{hint} Got {listed(table.header)}"
        )
        if model.recipe.get("kind") == "map":
            msg += ". Of places of a map: say which with --map or --scenario"
        raise ReadingError("no_column", msg)
    for X, rows, _ in table.chunks(model.input_names, model.input_names, model.time_origins):
        _stamp_notes(model, table)
        yield rows, X


def _of_places(
    model: KernelModel, table: Table, topology: Topology, place: str
) -> Iterator[tuple[list[list[str]], FloatArray]]:
    names = list(topology.feature_names)
    if set(names) != set(model.input_names):
        msg = (
            f"map {topology.name!r} has the features {listed(names)}, the model's inputs are "
            f"{listed(model.input_names)}; give the map, and the map.features, it was learned on"
        )
        raise ConfigError(msg)
    features = topology.features[:, [names.index(name) for name in model.input_names]]
    at = table.column(
        place or next((name for name in PLACE_COLUMNS if name in table.header), PLACE_COLUMNS[0])
    )
    known = {name: k for k, name in enumerate(topology.names)}
    for _, rows, lines in table.chunks(()):
        words = [row[at].strip() for row in rows]
        for word, line in zip(words, lines, strict=True):
            if word not in known:
                msg = (
                    f"{table.path}, line {line}: {word!r} is no place of map {topology.name!r}."
                    f"{suggest(word, topology.names)}"
                )
                raise ReadingError("unknown_place", msg)
        yield rows, features[[known[word] for word in words]]


def _noise(model: KernelModel, X: FloatArray) -> float:
    """Return the noise variance of a reading, which is the same for all rows."""
    one = X[np.isfinite(X).all(axis=1)][:1]
    return float(predict(model, one, noisy=True)[1][0] - predict(model, one)[1][0])


def _predicted(model: KernelModel, X: FloatArray, noise: float) -> FloatArray:
    """Return the values (m, 3) of `COLUMNS` in the readings' unit; NaN if an input is missing."""
    found = np.full((len(X), len(COLUMNS)), np.nan)
    whole = np.isfinite(X).all(axis=1)
    if whole.any():
        transform = TRANSFORMS[str(model.settings.get("transform", "identity"))]
        expected, variance = predict(model, X[whole])
        mean, of_field = transform.moments(expected, variance)
        _, of_reading = transform.moments(expected, variance + noise)
        found[whole] = np.column_stack([mean, np.sqrt(of_field), np.sqrt(of_reading)])
    return found


def _names(header: Sequence[str]) -> list[str]:
    """Return names for the added columns that differ from those in the header."""
    found = list(COLUMNS)
    for k in range(len(found)):
        while found[k] in header:
            found[k] = f"model_{found[k]}"
    return found


def _text(value: Any) -> str:
    return f"{value:.9g}" if np.isfinite(value) else ""
