"""Settings of a scenario's true field."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from gp_active_sensing.config import default_of, param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels import kernel_problems
from gp_active_sensing.sim.fields.formula import Formula
from gp_active_sensing.sim.fields.plume import PlumeConfig

HUGE = 1e12
"""Largest allowed absolute value of a number in a field's settings, so that sums stay finite."""

_KINDS = ("gp", "table", "raster", "formula", "plume", "sumo")
_ONLY = {
    "time_scale": ("gp",),
    "file": ("table", "raster"),
    "value_columns": ("table",),
    "time_column": ("table",),
    "between": ("table",),
    "start_time": ("table",),
    "fill": ("table",),
    "layer": ("raster",),
    "formula": ("formula",),
    "plume": ("plume",),
}
"""Field kinds that accept each kind-specific key."""


@dataclass(frozen=True)
class FieldConfig:
    """Noise-free field of a scenario."""

    REMOVED: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "layout": "was removed; give time_column for a table with a line for each time",
            "slots": "was removed; name the columns by their time slots: v_900_1800",
            "row_order": "was removed; the first row of a raster is the northern edge",
            "layers": "was removed; give a table of the places with time_column",
            "slot_seconds": "was removed; give a table of the places with time_column",
            "cell": "was removed; a raster says the size of its cells (gdal_translate -a_ullr)",
            "origin": "was removed; a raster says where it lies (gdal_translate -a_ullr)",
            "fit": "was removed; give the map the domain of the function (map.low, map.high)",
            "function": "was removed; give the formula: sim/README.md has Hartmann-6, the "
            "experiments in batch_5.yaml have Branin-Hoo and cosines",
        }
    )

    WERE: ClassVar[Mapping[str, Any]] = MappingProxyType({"slot_seconds": None})

    kind: str = param(
        "gp",
        help="gp: a draw from a Gaussian process. table: values of the places. raster: a file of "
        "pixels. formula: an expression. plume: a plume from a source. sumo: traffic of a running "
        "SUMO (see traffic)",
        choices=_KINDS,
    )
    quantity: str = param("value", help="name of the field, for reports")
    unit: str = param("", help="unit of the field's values, for reports")
    kernel: str = param(
        "se",
        help="covariance function of the draw (gp). graph_matern32 depends on the road graph, all "
        "others on the features",
    )
    length_scale: float | tuple[float, ...] | None = param(
        None,
        help="length-scale of the draw, or one per feature (gp)",
        unit="feature units, metres on a map",
        above=0.0,
    )
    time_scale: float | None = param(
        None,
        help="time after which the values have a correlation of 0.61 with their earlier values "
        "(gp). null = the draw does not change",
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
        help="name of a shipped file, or a path. table: a CSV file, or SUMO's edgeData (.xml, "
        ".xml.gz). raster: a .asc or .tif file",
    )
    id_column: str = param("id", help="column with the names of the places (table)")
    value_column: str = param(
        "value",
        help="column with the values (table). In XML: attribute of the edges, such as speed",
    )
    value_columns: tuple[str, ...] = param(
        (),
        help="columns with the values of a table that changes with time, in place of "
        "value_column. The name of each column contains its time slot (v_900_1800). * stands for "
        "any text: [v_*_mps]",
    )
    time_column: str = param(
        "",
        help="for a table with a line for each time and a column for each place: name of the "
        'column with the times, in seconds or as dates (2026-05-01T12:00:00Z). "" = the table has '
        "a line for each place",
    )
    between: str = param(
        "step",
        help="change of the values from slot to slot (table): step = constant within a slot; "
        "linear = interpolated between the middles of the slots. If time_column is set, linear "
        "interpolates between lines",
        choices=("step", "linear"),
    )
    start_time: float | None = param(
        None,
        help="time of the table when the mission begins. null = the start of the first slot",
        unit="s of the table's clock",
        low=-HUGE,
        high=HUGE,
    )
    fill: float | None = param(
        None,
        help="value of places that are not in the table. null = a missing place is an error",
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
        help="constant added after scaling (all kinds but gp)",
        unit="field unit",
        low=-HUGE,
        high=HUGE,
    )
    layer: int | None = param(None, help="number of the band of a .tif, from 0 (raster)", low=0)
    formula: str | None = param(
        None,
        help="expression in x and y [m], t [s of the mission] and the map's features, such as 20 + "
        "exp(-((x - 2*t)**2 + y**2) / 800) (formula)",
    )
    plume: PlumeConfig = dataclasses.field(default_factory=PlumeConfig)

    def __post_init__(self) -> None:
        problems = kernel_problems(self.kernel)
        if self.kind == "gp" and self.length_scale is None:
            problems.append("length_scale: is required for a field of kind gp")
        for key in ("file", "formula"):
            if self.kind in _ONLY[key] and not getattr(self, key):
                problems.append(f"{key}: is required for a field of kind {self.kind}")
        if self.formula and self.kind == "formula":
            try:
                Formula(self.formula)
            except ConfigError as error:
                problems += [f"formula: {problem}" for problem in error.problems]
        if self.time_column and self.value_columns:
            problems.append("value_columns: is for a line for each place, without a time_column")
        for field in dataclasses.fields(self):
            kinds = _ONLY.get(field.name, _KINDS)
            if self.kind not in kinds and getattr(self, field.name) != default_of(field):
                problems.append(
                    f"{field.name}: is for a field of kind {' or '.join(kinds)}, this one is of "
                    f"kind {self.kind}"
                )
        if problems:
            raise ConfigError(problems)
