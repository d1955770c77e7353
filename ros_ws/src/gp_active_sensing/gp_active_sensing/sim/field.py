"""What a scenario says about its field: the truth that the sensor reads."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import pairwise

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels import SMOOTHNESS, kernel_problems

__all__ = ["HUGE", "WILD", "FieldConfig"]

HUGE = 1e12
"""Largest size of anything added to a value: sums stay far from infinity."""

WILD = "*?["
"""Characters by which a column's name stands for several."""

_KINDS = ("gp", "table", "raster", "sumo")
_ONLY = {
    "time_scale": "gp",
    "value_columns": "table",
    "slots": "table",
    "between": "table",
    "start_time": "table",
    "fill": "table",
    "cell": "raster",
    "origin": "raster",
    "row_order": "raster",
    "layer": "raster",
}
"""Keys that mean something for one kind only."""


@dataclass(frozen=True)
class FieldConfig:
    """The truth: what the sensor would read without noise."""

    kind: str = param(
        "gp",
        help="a draw from a Gaussian process, a table of the places, a raster, or the traffic of a "
        "running SUMO (see traffic)",
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
        SMOOTHNESS, help="graph_matern: ν of the draw (gp)", above=0.0, high=20.0
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
        help="CSV file or SUMO's edgeData as .xml, .xml.gz (table), or .asc, .npy, .npz file "
        "(raster): one that ships with the maps, or a path",
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
    between: str = param(
        "step",
        help="a table's value between slots: that of the slot, or linear from middle to middle",
        choices=("step", "linear"),
    )
    start_time: float | None = param(
        None,
        help="the table's clock when the mission begins; null = where the first slot begins",
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
        help="factor on the values (table, raster, sumo)",
        unit="field unit per file unit",
        low=-HUGE,
        high=HUGE,
    )
    offset: float = param(
        0.0,
        help="added after scaling (table, raster, sumo)",
        unit="field unit",
        low=-HUGE,
        high=HUGE,
    )
    cell: float | None = param(
        None,
        help="size of a cell (raster); null = what the .asc file says, arrays need it",
        unit="m",
        above=0.0,
    )
    origin: tuple[float, float] | None = param(
        None,
        help="south-west corner of the south-west cell in the map's frame (raster); null = what "
        "the .asc file says, arrays need it",
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

    def __post_init__(self) -> None:
        problems = kernel_problems(self.kernel, self.smoothness)
        if self.kind == "gp" and self.length_scale is None:
            problems.append("length_scale: is required for a field of kind gp")
        if self.kind in ("gp", "sumo") and self.file is not None:
            problems.append(
                f"file: is for a field of kind table or raster, this one is of kind {self.kind}"
            )
        if self.kind in ("table", "raster") and not self.file:
            problems.append(f"file: is required for a field of kind {self.kind}")
        problems += self._slot_problems()
        for field in dataclasses.fields(self):
            kind = _ONLY.get(field.name, self.kind)
            if kind != self.kind and getattr(self, field.name) != field.default:
                problems.append(
                    f"{field.name}: is for a field of kind {kind}, this one is of kind {self.kind}"
                )
        if problems:
            raise ConfigError(problems)

    def _slot_problems(self) -> list[str]:
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
