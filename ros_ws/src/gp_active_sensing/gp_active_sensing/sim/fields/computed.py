"""Fields that are computed: from a formula, a test function, or a source and its plume."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.sim.fields.config import HUGE, FieldConfig
from gp_active_sensing.sim.fields.formula import CONSTANTS, FUNCTION_NAMES, Formula
from gp_active_sensing.sim.fields.functions import FUNCTIONS
from gp_active_sensing.sim.fields.plume import PlumeField
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import FloatArray

__all__ = ["FunctionField", "computed_truth"]

_EDGE = 1e-9
"""Part of a domain by which a place may lie beyond its edge (rounding)."""


class FunctionField(GroundTruth):
    """A field that is computed again for each time.

    Args:
        values: time of the mission [s] -> (n,) values.
        changes: the field changes as time goes by.
        check: refuses values that cannot be used.

    Raises:
        ConfigError: `check` refuses the values at the beginning.
    """

    def __init__(
        self,
        values: Callable[[float], FloatArray],
        *,
        changes: bool,
        check: Callable[[FloatArray, float], None],
    ) -> None:
        first = values(0.0)
        check(first, 0.0)
        super().__init__(first)
        self._compute, self._check, self._changes = values, check, changes

    @property
    def changes(self) -> bool:
        """The field changes as time goes by."""
        return self._changes

    def at(self, seconds: float) -> FloatArray:
        """Return the (n,) noise-free values at a time of the mission [s]; read-only.

        Raises:
            ConfigError: values at that time that are not finite, or too large.
        """
        if not self._changes:
            return super().at(seconds)
        values = np.array(self._compute(seconds), dtype=np.float64)
        self._check(values, seconds)
        values.setflags(write=False)
        return values


def computed_truth(config: FieldConfig, topology: Topology) -> FunctionField:
    """Return the field of a formula, a test function or a plume at the places of a map.

    Raises:
        ConfigError: a formula with a variable that the map does not have, or without a value at
            some place; a function of another number of features, or places outside its domain.
    """
    if config.kind == "formula":
        values, changes = _of_formula(config, topology)
    elif config.kind == "function":
        standing = _of_function(config, topology)
        values, changes = (lambda seconds: standing), False
    else:
        plume = PlumeField(config.plume, topology.positions)
        values, changes = plume.at, plume.changes

    def scaled(seconds: float) -> FloatArray:
        return np.asarray(config.offset + config.scale * values(seconds))

    def check(found: FloatArray, seconds: float) -> None:
        _check_values(found, seconds, config, topology)

    return FunctionField(scaled, changes=changes, check=check)


def _of_formula(
    config: FieldConfig, topology: Topology
) -> tuple[Callable[[float], FloatArray], bool]:
    formula = Formula(config.formula or "")
    variables: dict[str, FloatArray | float] = {
        name: topology.features[:, column]
        for column, name in enumerate(topology.feature_names)
        if name not in CONSTANTS and name not in FUNCTION_NAMES
    }
    variables |= {"x": topology.positions[:, 0], "y": topology.positions[:, 1], "t": 0.0}
    try:
        formula.check_variables(variables)
    except ConfigError as error:
        raise ConfigError([f"field.formula: {problem}" for problem in error.problems]) from error

    def values(seconds: float) -> FloatArray:
        found = formula.value({**variables, "t": seconds})
        return np.array(np.broadcast_to(found, (topology.n,)))

    return values, "t" in formula.variables


def _of_function(config: FieldConfig, topology: Topology) -> FloatArray:
    function = FUNCTIONS[str(config.function)]
    features = topology.features
    d = function.dimensions
    if features.shape[1] != d:
        msg = (
            f"field.function: {config.function} is a function of {d} variables, map "
            f"{topology.name!r} has {features.shape[1]} features "
            f"({', '.join(topology.feature_names)}); map.kind points has as many as its low and "
            "high"
        )
        raise ConfigError(msg)
    low, high = np.array(function.low), np.array(function.high)
    if config.fit:
        start, end = features.min(axis=0), features.max(axis=0)
        share = (features - start) / np.where(end > start, end - start, 1.0)
        return function.value(low + share * (high - low))
    margin = _EDGE * (high - low)
    outside = ((features < low - margin) | (features > high + margin)).any(axis=1)
    if outside.any():
        place = int(np.argmax(outside))
        box = " × ".join(f"[{a:g}, {b:g}]" for a, b in zip(low, high, strict=True))
        msg = (
            f"field.function: {config.function} has the domain {box}, {int(outside.sum())} of "
            f"{topology.n} places lie outside, such as {topology.names[place]!r} "
            f"({_shown(topology, place)}); give the map that extent, or stretch it with "
            "field.fit: true"
        )
        raise ConfigError(msg)
    return function.value(features)


def _check_values(
    values: FloatArray, seconds: float, config: FieldConfig, topology: Topology
) -> None:
    """Refuse values that spoil a belief; the message names the first place."""
    wrong = ~(np.abs(values) <= HUGE)  # NaN compares with nothing
    if not wrong.any():
        return
    place = int(np.argmax(wrong))
    more = int(wrong.sum()) - 1
    msg = (
        f"field.{config.kind}: expected values within ±{HUGE:g}, got {values[place]:g} at place "
        f"{topology.names[place]!r} ({_shown(topology, place)}, t = {seconds:g} s)"
        + (f" and {more} others" if more else "")
    )
    raise ConfigError(msg)


def _shown(topology: Topology, place: int) -> str:
    """Return a place's coordinates and features in words."""
    shown = dict(zip(("x", "y"), topology.positions[place].tolist(), strict=True))
    shown |= dict(zip(topology.feature_names, topology.features[place].tolist(), strict=True))
    return ", ".join(f"{name} = {value:g}" for name, value in shown.items())
