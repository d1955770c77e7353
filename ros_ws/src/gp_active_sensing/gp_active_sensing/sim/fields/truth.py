"""Build the noise-free field of a scenario: a draw, table, raster, formula or plume."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from gp_active_sensing.errors import ConfigError, ResourceError
from gp_active_sensing.kernels import build_graph_kernel, build_kernel, graph_kernels
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.sim.fields.config import HUGE, FieldConfig
from gp_active_sensing.sim.fields.formula import CONSTANTS, FUNCTION_NAMES, Formula
from gp_active_sensing.sim.fields.plume import PlumeField
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.resources import find_resource


class ComputedField(GroundTruth):
    """Field of a formula or a plume at the places of a map: ``offset + scale * value``.

    Raises:
        ConfigError: a formula has an unknown variable, or a value is not finite or too large.
    """

    def __init__(self, config: FieldConfig, topology: Topology) -> None:
        self._config, self._topology = config, topology
        if config.kind == "formula":
            self._value, self.changes = _of_formula(config, topology)
        else:
            plume = PlumeField(config.plume, topology.positions)
            self._value, self.changes = plume.at, plume.changes
        super().__init__(self._computed(0.0))

    def at(self, seconds: float) -> FloatArray:
        """Return the (n,) noise-free values at a time of the mission [s]; read-only.

        Raises:
            ConfigError: values at that time are not finite or too large.
        """
        if not self.changes:
            return super().at(seconds)
        values = self._computed(seconds)
        values.setflags(write=False)
        return values

    def _computed(self, seconds: float) -> FloatArray:
        config, topology = self._config, self._topology
        values = np.asarray(config.offset + config.scale * self._value(seconds))
        wrong = ~(np.abs(values) <= HUGE)  # also for NaN
        if wrong.any():
            place = int(np.argmax(wrong))
            more = int(wrong.sum()) - 1
            msg = (
                f"field.{config.kind}: expected values within ±{HUGE:g}, got {values[place]:g} at "
                f"place {topology.names[place]!r} ({_shown(topology, place)}, t = {seconds:g} s)"
                + (f" and {more} others" if more else "")
            )
            raise ConfigError(msg)
        return values


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


def _shown(topology: Topology, place: int) -> str:
    shown = dict(zip(("x", "y"), topology.positions[place].tolist(), strict=True))
    shown |= dict(zip(topology.feature_names, topology.features[place].tolist(), strict=True))
    return ", ".join(f"{name} = {value:g}" for name, value in shown.items())


_STREAM = 0xF1E1D
_DRIFT_STREAM = 0xD21F7


_LEAST = 1e-10
"""Smallest eigenvalue kept in a matrix root, as a fraction of the largest eigenvalue."""


_Root: TypeAlias = Callable[[FloatArray], FloatArray]
"""Function ``w -> R w`` with ``R Rᵀ = K`` for a correlation matrix K."""


def _symmetric_root(correlation: FloatArray) -> _Root:
    """Return the function ``w -> K^(1/2) w`` of a correlation matrix K.

    A call of the function costs O(n²), computing the root O(n³). The symmetric root does not
    depend on the signs of eigenvectors, and needs no jitter.
    """
    values, vectors = np.linalg.eigh(correlation)
    # Smaller eigenvalues are rounding errors, which the root amplifies: 1e-15 to 3e-8.
    roots = np.sqrt(np.where(values > _LEAST * values[-1], values, 0.0))
    return lambda white: np.asarray(vectors @ (roots * (vectors.T @ white)))


class DriftingField(GroundTruth):
    """Field drawn from a drifting Gaussian process: ``f(t) = mean + signal_std K^(1/2) w(t)``.

    Here ``w_j(t) = a_j cos(ω_j t) + b_j sin(ω_j t)``; a_j and b_j are standard normal, and ω_j is
    normal with mean 0 and standard deviation ``1 / time_scale``. At every t the field is an exact
    draw from the process. Values at times Δt apart have the correlation
    ``exp(-Δt² / (2 time_scale²))``. At t = 0 the field equals the constant field of the same seed.

    Args:
        root: function ``w -> K^(1/2) w`` with the correlation matrix K of the places.
        white: (n,) coefficients a, which are w(0).
        config: mean, standard deviation and time-scale.
        seed: seed of b and ω.
    """

    changes = True

    def __init__(self, root: _Root, white: FloatArray, config: FieldConfig, seed: int) -> None:
        super().__init__(config.mean + config.signal_std * root(white))
        rng = np.random.default_rng([seed, _DRIFT_STREAM])
        n = white.size
        self._root, self._cos = root, white
        self._sin = rng.standard_normal(n)
        self._rates = rng.standard_normal(n) / (config.time_scale or np.inf)
        self._mean, self._std = config.mean, config.signal_std

    def at(self, seconds: float) -> FloatArray:
        """Return the (n,) noise-free values at a time of the mission [s]; read-only. O(n²)."""
        phase = self._rates * seconds
        white = self._cos * np.cos(phase) + self._sin * np.sin(phase)
        values = np.asarray(self._mean + self._std * self._root(white))
        values.setflags(write=False)
        return values


def build_truth(config: FieldConfig, topology: Topology, seed: int) -> GroundTruth:
    """Return the noise-free field of a scenario at the places of a map.

    Raises:
        ConfigError: the file is missing, or length-scales or formula do not fit the map's features.
        MapError: the table or raster cannot be used; the message names places without a value.
    """
    if config.kind == "gp":
        return _draw(config, topology, seed)
    if config.kind == "sumo":
        msg = "field.kind: sumo is known only while SUMO runs; nothing can be said of it before"
        raise ConfigError(msg)
    if config.kind in ("formula", "plume"):
        return ComputedField(config, topology)
    try:
        path = find_resource("maps", config.file or "")
    except ResourceError as error:
        msg = f"field.file: {error}"
        raise ConfigError(msg) from error
    if config.kind == "raster":
        from gp_active_sensing.sim.fields.raster import raster_truth

        return raster_truth(path, config, topology)
    from gp_active_sensing.sim.fields.table import table_truth

    return table_truth(path, config, topology)


def _draw(config: FieldConfig, topology: Topology, seed: int) -> GroundTruth:
    """Return ``mean + signal_std K^(1/2) w`` with standard normal w from the seed. O(n³)."""
    root = _root(config, topology)
    white = np.random.default_rng([seed, _STREAM]).standard_normal(topology.n)
    if config.time_scale is not None:
        return DriftingField(root, white, config, seed)
    return GroundTruth(config.mean + config.signal_std * root(white))


def _root(config: FieldConfig, topology: Topology) -> _Root:
    scales = np.atleast_1d(np.asarray(config.length_scale, dtype=np.float64))
    if config.kernel in graph_kernels:
        if topology.links is None or scales.size != 1:
            expected = "one length_scale [m]" if scales.size != 1 else "a map with moves"
            msg = f"field.kernel: {config.kernel} needs {expected} (map {topology.name!r})"
            raise ConfigError(msg)
        from gp_active_sensing.belief import HyperParameters
        from gp_active_sensing.belief.graph_covariance import GraphCovariance, laplacian_spectrum

        kernel = build_graph_kernel(config.kernel)
        one = [HyperParameters((float(scales[0]),), 1.0, 1.0)]
        return GraphCovariance(kernel, laplacian_spectrum(topology.links), one).times_root
    features = topology.features
    if scales.size not in (1, features.shape[1]):
        msg = (
            f"field.length_scale: expected 1 or {features.shape[1]} entries (the features of map "
            f"{topology.name!r}), got {scales.size}"
        )
        raise ConfigError(msg)
    return _symmetric_root(build_kernel(config.kernel).correlation(features, features, scales))
