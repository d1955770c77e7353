"""The noise-free field of a scenario: a draw from a Gaussian process, or a table."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError, ResourceError, suggest
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.resources import find_resource
from gp_active_sensing.sim.scenario import FieldConfig
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import FloatArray

__all__ = ["build_truth"]

_STREAM = 0xF1E1D
_SHOWN = 5


def build_truth(config: FieldConfig, topology: Topology, seed: int) -> FloatArray:
    """Return the (n,) noise-free values of the field at the places of a map.

    Raises:
        ConfigError: length-scales that do not fit the map's features, a file that is not there.
        MapError: a table that cannot be used; the message names the places without a value.
    """
    if config.kind == "gp":
        return _draw(config, topology, seed)
    return _table(config, topology)


def _draw(config: FieldConfig, topology: Topology, seed: int) -> FloatArray:
    """``f = mean + signal_std K^(1/2) w`` with standard normal w keyed by the seed. O(n³)."""
    features = topology.features
    scales = np.atleast_1d(np.asarray(config.length_scale, dtype=np.float64))
    if scales.size not in (1, features.shape[1]):
        msg = (
            f"field.length_scale: expected 1 or {features.shape[1]} entries (the features of map "
            f"{topology.name!r}), got {scales.size}"
        )
        raise ConfigError(msg)
    correlation = build_kernel(config.kernel).correlation(features, features, scales)
    # The symmetric root does not depend on the signs that a library gives to eigenvectors, and
    # needs no jitter where places are so close together that the matrix is singular.
    values, vectors = np.linalg.eigh(correlation)
    rng = np.random.default_rng([seed, _STREAM])
    white = rng.standard_normal(topology.n)
    draw = vectors @ (np.sqrt(np.maximum(values, 0.0)) * (vectors.T @ white))
    return np.asarray(config.mean + config.signal_std * draw, dtype=np.float64)


def _table(config: FieldConfig, topology: Topology) -> FloatArray:
    """``f = offset + scale * column``, a value for every place."""
    path = _find(config.file or "")
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


def _find(file: str) -> Path:
    try:
        return find_resource("maps", file)
    except ResourceError as error:
        msg = f"field.file: {error}"
        raise ConfigError(msg) from error


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
