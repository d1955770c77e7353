"""Configuration of a scenario's true field."""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, dataclass
from itertools import pairwise
from typing import Any

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels import SMOOTHNESS, kernel_problems
from gp_active_sensing.sim.fields.formula import FUNCTIONS, Formula
from gp_active_sensing.sim.fields.plume import PlumeConfig

__all__ = ["HUGE", "WILD", "FieldConfig"]

HUGE = 1e12
"""Largest size of anything added to a value: sums stay far from infinity."""

WILD = "*?["
"""Characters by which a column's name stands for several."""

_KINDS = ("gp", "table", "raster", "formula", "function", "plume", "sumo")
_ONLY = {
    "time_scale": ("gp",),
    "file": ("table", "raster"),
    "value_columns": ("table",),
    "slots": ("table",),
    "layout": ("table",),
    "time_column": ("table",),
    "between": ("table", "raster"),
    "start_time": ("table", "raster"),
    "fill": ("table",),
    "cell": ("raster",),
    "origin": ("raster",),
    "row_order": ("raster",),
    "layer": ("raster",),
    "layers": ("raster",),
    "slot_seconds": ("raster",),
    "formula": ("formula",),
    "function": ("function",),
    "fit": ("function",),
    "plume": ("plume",),
}
"""Keys that mean something for some kinds only."""
_REQUIRED = {
    "file": ("table", "raster"),
    "formula": ("formula",),
    "function": ("function",),
}
"""Keys that some kinds cannot do without."""


@dataclass(frozen=True)
class FieldConfig:
    """The truth: what the sensor would read without noise."""

    kind: str = param(
        "gp",
        help="a draw from a Gaussian process, a table of the places, a raster, a formula, a test "
        "function for optimisation, a plume from a source, or the traffic of a running SUMO (see "
        "traffic)",
        choices=_KINDS,
    )
    quantity: str = param("value", help="what the field is, for reports")
    unit: str = param("", help="unit of the field's values, for reports")
    kernel: str = param(
        "se",
        help="covariance function of the draw (gp): of the features, or graph_matern, of how "
        "places are joined",
    )
    smoothness: float = param(
        SMOOTHNESS, help="graph_matern: smoothness of the draw (gp)", above=0.0, high=20.0
    )
    length_scale: float | tuple[float, ...] | None = param(
        None,
        help="length-scale of the draw, or one per feature (gp)",
        unit="feature units, metres on a map",
        above=0.0,
    )
    time_scale: float | None = param(
        None,
        help="the draw drifts: values so far apart in time have correlation 0.61; null = it "
        "stands still (gp)",
        unit="s",
        above=0.0,
    )
    signal_std: float = param(
        1.0, help="standard deviation of the draw (gp)", unit="field unit", low=0.0, high=HUGE
    )
    mean: float = param(
        0.0, help="constant added to the draw (gp)", unit="field unit", low=-HUGE, high=HUGE
    )
    file: str | None = param(
        None,
        help="CSV file or SUMO's edgeData as .xml, .xml.gz (table), or .asc, .tif, .npy, .npz "
        "file (raster): one that ships with the maps, or a path",
    )
    id_column: str = param("id", help="column with the names of the places (table)")
    value_column: str = param(
        "value",
        help="column with the values, or attribute of the edges in XML, such as speed (table); the "
        "array of a .npz that has several (raster)",
    )
    value_columns: tuple[str, ...] = param(
        (),
        help="instead of value_column, the columns of a table whose values change with time, one "
        "a time slot; * stands for anything: [v_*_mps]",
    )
    slots: tuple[float, ...] = param(
        (),
        help="when each of value_columns begins; [] = the two numbers in its name (v_900_1800)",
        unit="s of the table's clock",
        low=-HUGE,
        high=HUGE,
    )
    layout: str = param(
        "long",
        help="long: a line for each place (table); wide: a line for each time, a column for each "
        "place under its name",
        choices=("long", "wide"),
    )
    time_column: str = param(
        "time",
        help="layout wide: column with the times, in seconds or as dates (2026-05-01T12:00:00Z)",
    )
    between: str = param(
        "step",
        help="the value between slots: that of the slot, or linear from middle to middle (table, "
        "layers of a raster); in a wide table from line to line",
        choices=("step", "linear"),
    )
    start_time: float | None = param(
        None,
        help="the clock of the table, or of the layers, when the mission begins; null = where the "
        "first slot begins",
        unit="s of the table's clock",
        low=-HUGE,
        high=HUGE,
    )
    fill: float | None = param(
        None,
        help="value of places that the table has none for; null = that is an error",
        unit="field unit",
        low=-HUGE,
        high=HUGE,
    )
    scale: float = param(
        1.0,
        help="factor on the values (all kinds but gp)",
        unit="field unit per file unit",
        low=-HUGE,
        high=HUGE,
    )
    offset: float = param(
        0.0,
        help="added after scaling (all kinds but gp)",
        unit="field unit",
        low=-HUGE,
        high=HUGE,
    )
    cell: float | tuple[float, float] | None = param(
        None,
        help="size of a cell, or [along x, along y] (raster); null = what the .asc or .tif file "
        "says, arrays need it",
        unit="m",
        above=0.0,
    )
    origin: tuple[float, float] | None = param(
        None,
        help="south-west corner of the south-west cell in the map's frame (raster); null = what "
        "the .asc or .tif file says, arrays need it",
        unit="m",
    )
    row_order: str = param(
        "north_first",
        help="what an array's first row is, the northern edge or the southern one (raster)",
        choices=("north_first", "south_first"),
    )
    layer: int | None = param(
        None, help="which layer of an array with three axes, from 0 (raster)", low=0
    )
    layers: str = param(
        "one",
        help="one: the field stands still; all: the first of three axes is time (raster)",
        choices=("one", "all"),
    )
    slot_seconds: float | None = param(
        None, help="layers all: how long each layer counts", unit="s", above=0.0, high=HUGE
    )
    formula: str | None = param(
        None,
        help="expression in x and y [m], t [s of the mission] and the map's features, such as "
        "20 + exp(-((x - 2*t)**2 + y**2) / 800) (formula)",
    )
    function: str | None = param(
        None,
        help="test function of the map's features, whose sign is such that the maximum is sought "
        "(function)",
        choices=tuple(FUNCTIONS),
    )
    fit: bool = param(
        False,
        help="stretch the map to the function's own domain, feature by feature (function)",
    )
    plume: PlumeConfig = dataclasses.field(default_factory=PlumeConfig)

    def __post_init__(self) -> None:
        problems = kernel_problems(self.kernel, self.smoothness)
        if self.kind == "gp" and self.length_scale is None:
            problems.append("length_scale: is required for a field of kind gp")
        for key, kinds in _REQUIRED.items():
            if self.kind in kinds and not getattr(self, key):
                problems.append(f"{key}: is required for a field of kind {self.kind}")
        if self.formula and self.kind == "formula":
            try:
                Formula(self.formula)
            except ConfigError as error:
                problems += [f"formula: {problem}" for problem in error.problems]
        problems += self._slot_problems() + self._layer_problems()
        for field in dataclasses.fields(self):
            kinds = _ONLY.get(field.name, _KINDS)
            if self.kind not in kinds and getattr(self, field.name) != _default(field):
                problems.append(
                    f"{field.name}: is for a field of kind {' or '.join(kinds)}, this one is of "
                    f"kind {self.kind}"
                )
        if problems:
            raise ConfigError(problems)

    @property
    def cell_size(self) -> tuple[float, float] | None:
        """Width and height of a cell [m]; None = as the file says."""
        return (self.cell, self.cell) if isinstance(self.cell, float) else self.cell

    def _layer_problems(self) -> list[str]:
        if self.kind != "raster":
            return []
        if self.layers == "all":
            problems = [] if self.slot_seconds else ["slot_seconds: is required for layers: all"]
            if self.layer is not None:
                problems.append("layer: picks one layer, and layers: all takes them all")
            return problems
        return [
            f"{key}: is for layers: all, which change with time"
            for key, default in (("slot_seconds", None), ("between", "step"), ("start_time", None))
            if getattr(self, key) != default
        ]

    def _slot_problems(self) -> list[str]:
        if self.layout == "wide":
            return [
                f"{key}: is for layout: long; a wide table says its times in time_column"
                for key in ("slots", "value_columns")
                if getattr(self, key)
            ]
        if self.kind == "table" and self.time_column != "time":
            return ["time_column: is for layout: wide"]
        slots, columns = self.slots, self.value_columns
        if not slots:
            return []
        if not columns:
            return ["slots: needs value_columns, the column of each slot"]
        if any(b <= a for a, b in pairwise(slots)):
            return [f"slots: expected times that increase, got {list(slots)}"]
        if len(slots) != len(columns) and not any(set(c) & set(WILD) for c in columns):
            return [f"slots: expected one for each of {len(columns)} columns, got {len(slots)}"]
        return []


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
