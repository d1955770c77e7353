"""Weights of the places of a map: how much each counts in the error of the map."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.geometry import inside_of, polygon
from gp_active_sensing.topology.loaders import find_map
from gp_active_sensing.topology.loaders.areas import Areas, read_areas
from gp_active_sensing.topology.map_config import MOST_WEIGHT, WeightsConfig
from gp_active_sensing.types import FloatArray

__all__ = ["weights_of"]


def weights_of(config: WeightsConfig, places: Topology, base_dir: Path | None = None) -> FloatArray:
    """Return the (n,) weights of places, at least one of them above 0.

    A place lies in an area when its position does, edges included.

    Raises:
        ConfigError: no such column, a weight below 0, areas that are no polygons or hold no place,
            or nothing that counts.
        MapError: a column that a place lacks.
    """
    weights = _column(config.column, places) if config.column else np.ones(places.n)
    if config.areas:
        weights = weights * _areas(config, places, base_dir)
    if not weights.any():
        msg = f"weights: no place of map {places.name!r} counts, all weights are 0"
        raise ConfigError(msg)
    return weights


def _column(name: str, places: Topology) -> FloatArray:
    try:
        found, titles = places.columns([name])
    except ConfigError as error:
        problems = [problem.removeprefix("features: ") for problem in error.problems]
        raise ConfigError([f"weights.column: {problem}" for problem in problems]) from None
    if len(titles) != 1:
        msg = f"weights.column: {name!r} is no single number, but {', '.join(titles)}"
        raise ConfigError(msg)
    values: FloatArray = found[:, 0]
    wrong = ~((values >= 0.0) & (values <= MOST_WEIGHT))
    if wrong.any():
        first = int(np.argmax(wrong))
        msg = (
            f"weights.column: must be 0 … {MOST_WEIGHT:g}, but {name!r} of place "
            f"{places.names[first]!r} is {values[first]:g} ({int(wrong.sum())} of {places.n} "
            "places are so)"
        )
        raise ConfigError(msg)
    return values


def _areas(config: WeightsConfig, places: Topology, base_dir: Path | None) -> FloatArray:
    problems: list[str] = []
    factors = np.full(places.n, config.elsewhere)
    for number, area in enumerate(config.areas):
        key = f"weights.areas[{number}].outline"
        if isinstance(area.outline, str):
            shape = areas_on(places, find_map(area.outline, base_dir)).everything
        else:
            shape = polygon(area.outline, key, problems)
        if shape is None:
            continue
        held = inside_of(shape, places.positions)
        if not held.any():
            (x0, y0), (x1, y1) = places.positions.min(axis=0), places.positions.max(axis=0)
            problems.append(
                f"{key}: holds no place of map {places.name!r} (its places are at x {x0:g} … "
                f"{x1:g}, y {y0:g} … {y1:g} m)"
            )
        factors[held] = area.weight
    if problems:
        raise ConfigError(problems)
    return factors


def areas_on(places: Topology, path: Path) -> Areas:
    """Return the areas of a file in the metres of a map, or raise an error."""
    areas = read_areas(path, datum=places.datum)
    if areas.datum is not None and places.datum is None:
        msg = (
            f"{path}: is in degrees, and map {places.name!r} in metres of its own: say where their "
            "origin lies with map.datum: [latitude, longitude]"
        )
        raise MapError(msg)
    return areas
