"""What a scenario says about its field: the truth that the sensor reads."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.kernels import kernels

__all__ = ["HUGE", "FieldConfig"]

HUGE = 1e12
"""Largest size of anything added to a value: sums stay far from infinity."""

_KINDS = ("gp", "table", "raster")
_ONLY = {
    "time_scale": "gp",
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
        help="a draw from a Gaussian process, a table of the places, or a raster",
        choices=_KINDS,
    )
    quantity: str = param("value", help="what the field is, for reports")
    unit: str = param("", help="unit of the field's values, for reports")
    kernel: str = param("se", help="covariance function of the draw (gp)")
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
        help="CSV file (table), or .asc, .npy, .npz file (raster): one that ships with the maps, "
        "or a path",
    )
    id_column: str = param("id", help="column with the names of the places (table)")
    value_column: str = param(
        "value",
        help="column with the values (table); the array of a .npz that has several (raster)",
    )
    scale: float = param(
        1.0,
        help="factor on the values (table, raster)",
        unit="field unit per file unit",
        low=-HUGE,
        high=HUGE,
    )
    offset: float = param(
        0.0, help="added after scaling (table, raster)", unit="field unit", low=-HUGE, high=HUGE
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
        problems = []
        if self.kernel not in kernels:
            hint = suggest(self.kernel, kernels)
            problems.append(
                f"kernel: unknown kernel {self.kernel!r}.{hint} "
                f"Registered: {', '.join(kernels.names())}"
            )
        if self.kind == "gp" and self.length_scale is None:
            problems.append("length_scale: is required for a field of kind gp")
        if self.kind == "gp" and self.file is not None:
            problems.append("file: is for a field of kind table or raster, this one is of kind gp")
        if self.kind in ("table", "raster") and not self.file:
            problems.append(f"file: is required for a field of kind {self.kind}")
        for field in dataclasses.fields(self):
            kind = _ONLY.get(field.name, self.kind)
            if kind != self.kind and getattr(self, field.name) != field.default:
                problems.append(
                    f"{field.name}: is for a field of kind {kind}, this one is of kind {self.kind}"
                )
        if problems:
            raise ConfigError(problems)
