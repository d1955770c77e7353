"""Other rows for a model: read as those that it was learned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model import KernelModel
from gp_active_sensing.learning.data.bag import is_bag
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.learning.data.readings import SNAP
from gp_active_sensing.learning.data.request import RowRequest
from gp_active_sensing.learning.data.sources import is_table, transform_said
from gp_active_sensing.learning.data.table import check_stamps

__all__ = ["as_before", "asked_as_before", "asked_of"]

_KINDS = {
    "table": "columns of a table",
    "map": "places of a map",
    "wide": "places of a map, and hours",
    "bag": "positions of a bag",
}
_OF_MAPS = ("map", "wide")
_UNNAMED = "value"
"""Output of a map's readings where no column was named."""


def asked_as_before(asked: RowRequest, earlier: KernelModel, *, scale_given: bool) -> RowRequest:
    """Return what is asked for, with what is not said taken from an earlier model.

    Args:
        asked: what the user said.
        earlier: the model to be continued.
        scale_given: the scale is the user's, not the default one.

    Raises:
        ConfigError: another transform, scale or output than the model's.
    """
    recipe = earlier.recipe
    transform = _transform(earlier)
    said = transform_said(asked.overrides)
    if said is not None and said != transform:
        raise _differs("belief.transform", transform, said)
    scale = float(recipe.get("scale", 1.0))
    if scale_given and asked.scale != scale:
        raise _differs("--scale", f"{scale:g}", f"{asked.scale:g}")
    kind, name = recipe.get("kind"), earlier.output_name
    named = name != _UNNAMED or kind not in _OF_MAPS
    if asked.value and named and asked.value != name:
        raise _differs("--value", name, asked.value)
    table = is_table(asked.data)
    inputs = asked.inputs
    of_map = asked.scenario is not None or asked.map_file is not None
    if table and of_map == (kind == "wide") and kind in ("table", "wide"):
        inputs = inputs or earlier.input_names
    return replace(
        asked,
        inputs=inputs,
        value=asked.value or (name if table and named else ""),
        scale=scale if table or is_bag(asked.data) else asked.scale,
        usual_snap=_snap(earlier),
        transform=transform,
    )


def as_before(rows: Dataset, earlier: KernelModel) -> Dataset:
    """Return the rows that were read, named as those of an earlier model.

    Raises:
        ConfigError: they are of another kind, or another quantity.
        ReadingError: time stamps where there were numbers.
    """
    recipe = earlier.recipe
    kind = recipe.get("kind")
    if kind not in (None, rows.recipe.get("kind")):
        is_now = _KINDS.get(str(rows.recipe.get("kind")), "something else")
        msg = (
            f"the model to be continued was learned from {_KINDS.get(str(kind), kind)}, "
            f"{rows.source} gives {is_now}: give rows of the same kind, all of them, old and new"
        )
        raise ConfigError(msg)
    told = check_stamps(earlier, rows.recipe.get("times") or {}, rows.source)
    if kind is None:
        return replace(rows, notes=(*rows.notes, *told))
    if kind not in _OF_MAPS and rows.output_name != earlier.output_name:
        raise _differs("the values", earlier.output_name, rows.output_name)
    kept = {key: recipe[key] for key in ("scale", "scenario") if recipe.get(key)}
    snap = {"snap": recipe["snap"]} if "snap" in recipe else {}
    return replace(rows, output_name=earlier.output_name, recipe=snap | {**rows.recipe, **kept})


def asked_of(model: KernelModel, data: str, said: Mapping[str, Any]) -> RowRequest:
    """Return how rows are read that a model is held against, and nothing is learned from.

    Args:
        model: whose inputs, transform, scale and snap they have.
        data: a CSV file, a run directory, a scenario or a bag.
        said: fields of `RowRequest` that the user gave.
    """
    recipe = model.recipe
    bag, table = is_bag(data), is_table(data)
    kind = recipe.get("kind")
    of_map = "scenario" in said or "map_file" in said
    inputs = (table and (not of_map or kind == "wide")) or (bag and not of_map and kind != "map")
    asked = RowRequest(
        data,
        inputs=model.input_names if inputs else (),
        value=model.output_name if table and not of_map else "",
        scale=float(recipe.get("scale", 1.0)) if table or bag else 1.0,
        usual_snap=_snap(model),
        transform=_transform(model),
        held_out=True,
    )
    return replace(asked, **said)


def _snap(model: KernelModel) -> float:
    """Return how far from their places positions were; older models do not say."""
    return float(model.recipe.get("snap", SNAP))


def _transform(model: KernelModel) -> str:
    return str(model.settings.get("transform") or model.recipe.get("transform") or "identity")


def _differs(what: str, before: str, now: str) -> ConfigError:
    msg = (
        f"{what}: the model to be continued has {before}, this says {now}; its old rows and the "
        "new ones must be the same quantity: leave it out, or learn again without --continue"
    )
    return ConfigError(msg)
