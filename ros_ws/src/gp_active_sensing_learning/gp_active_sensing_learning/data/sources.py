"""Read rows for learning kernels or for testing a model."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gp_active_sensing.belief.prior import TRANSFORMS
from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.replay.options import ReplayOptions
from gp_active_sensing.replay.run import replay_bag
from gp_active_sensing.util.yaml_files import apply_overrides
from gp_active_sensing_learning.data.dataset import Dataset, ReadOptions, transformed
from gp_active_sensing_learning.data.readings import SNAP
from gp_active_sensing_learning.data.request import (
    DataRequest,
    RowRequest,
    found_map,
    is_bag,
    load_readings,
    refuse,
)
from gp_active_sensing_learning.data.table import is_wide, read_table, read_wide

_TABLES = (".csv", ".tsv", ".txt")
_SCENARIOS = (".yaml", ".yml")
_TRANSFORM = "belief.transform"


def load_rows(
    asked: RowRequest, folder: Path | None = None, origins: Mapping[str, str] | None = None
) -> Dataset:
    """Read the requested rows.

    The inputs of a row are the columns that the request names. Without such columns they are the
    features of the reading's place.

    Args:
        asked: the user's options.
        folder: folder for the rows of a large data set; None = keep all rows in memory.
        origins: time stamp of hour 0 for each input with time stamps; None = the first stamp.

    Raises:
        ActiveSensingError: the map or the data cannot be found or used.
    """
    path = Path(asked.data)
    how = ReadOptions(asked.scale, "identity", folder, origins, asked.held_out)
    table = is_table(asked.data)
    if asked.inputs and not table:
        msg = (
            f"--inputs are columns of a CSV file, and {asked.data} is none: its inputs are the "
            "features of its map; of a bag name the map with --scenario or --map"
        )
        raise ConfigError(msg)
    if is_bag(asked.data):
        return _of_bag(asked, how)
    if asked.of_bag:
        option = next(iter(asked.of_bag)).replace("_", "-")
        msg = f"--{option} is for a bag, and {asked.data} is none"
        raise ConfigError(msg)
    if asked.inputs and not asked.of_map:
        refuse(asked, ("place", "snap"), "a map; with --inputs the columns themselves are inputs")
        transform = asked.transform or transform_override(asked.overrides, alone=True)
        how = replace(how, transform=transform or how.transform)
        return read_table(path, asked.inputs, asked.value, how)
    if path.suffix.lower() in _TABLES and not asked.of_map:
        msg = (
            f"{asked.data}: say which columns are the inputs, such as --inputs x,y,hours, or whose "
            "map the places are of, with --scenario or --map"
        )
        raise ConfigError(msg)
    if asked.of_map and table and not asked.place:
        config, topology = found_map(asked)
        if is_wide(path, topology):
            one = f"a table with a row for each reading; {path} has a column for each place"
            refuse(asked, ("value", "snap"), f"{one}: leave it out")
            how = replace(how, transform=asked.transform or config.given_transform)
            rows = read_wide(path, topology, asked.inputs, how)
            return replace(rows, recipe={**rows.recipe, "scenario": asked.scenario or ""})
    if asked.inputs:
        msg = (
            "--inputs names the inputs themselves, --scenario and --map a map whose features they "
            "are: give one or the other; both are for a table with a column for each place"
        )
        raise ConfigError(msg)
    job = load_readings(asked)
    rows = map_rows(job, asked.value or "value", asked.transform)
    given = path.is_dir() or asked.of_map
    scenario = asked.scenario or ("" if given else asked.data)
    return replace(rows, recipe={**rows.recipe, "scale": asked.scale, "scenario": scenario})


def map_rows(job: DataRequest, output_name: str = "value", transform: str | None = None) -> Dataset:
    """Return readings as rows whose inputs are the features of the reading's place."""
    topology, readings = job.topology, job.readings
    transform = transform or job.config.given_transform
    values = transformed(readings.values, transform, readings.source)
    recipe: dict[str, Any] = {
        "kind": "map",
        "map": topology.name,
        "times": {},
        "transform": transform,
    }
    if readings.snap is not None:
        recipe["snap"] = readings.snap
    return Dataset(
        topology.features[readings.places],
        values,
        tuple(topology.feature_names),
        output_name,
        readings.source,
        readings.notes,
        recipe,
    ).checked(held_out=readings.held_out)


def is_table(data: str) -> bool:
    """Return whether `data` is a CSV table. The suffix decides for a missing file."""
    path = Path(data)
    suffix = path.suffix.lower()
    if path.is_dir() or is_bag(data):
        return False
    return suffix in _TABLES or (path.is_file() and suffix not in _SCENARIOS)


def transform_override(overrides: Sequence[str], *, alone: bool = False) -> str | None:
    """Return the transform that `overrides` set; None = no override sets a transform.

    Raises:
        ConfigError: the transform is unknown, or `alone` is True and an override sets another key.
    """
    for text in overrides:
        key = text.partition("=")[0].strip()
        if alone and key != _TRANSFORM:
            msg = f"{key}: without a map only {_TRANSFORM} and vbks.… can be set"
            raise ConfigError(msg)
    own = [text for text in overrides if text.strip().startswith("belief")]
    belief = apply_overrides({}, own).get("belief")
    word = belief.get("transform") if isinstance(belief, Mapping) else None
    if word is None:
        return None
    if word not in TRANSFORMS:
        hint = suggest(str(word), TRANSFORMS)
        msg = f"{_TRANSFORM}: expected one of {', '.join(TRANSFORMS)}, got {word!r}.{hint}"
        raise ConfigError(msg)
    return str(word)


def _of_bag(asked: RowRequest, how: ReadOptions) -> Dataset:
    refuse(asked, ("place", "value", "snap"), f"a table, and {asked.data} is a bag")
    given = ReplayOptions(
        scenario=asked.scenario or "",
        map_file=asked.map_file or "",
        overrides=asked.overrides,
        reading_topic=asked.reading_topic,
        reading_field=asked.reading_field,
        pose_topic=asked.pose_topic,
    )
    if asked.scale != 1.0:
        given = replace(given, overrides=(*given.overrides, f"reading.scale={asked.scale}"))
    with tempfile.TemporaryDirectory(dir=how.folder, prefix="bag-") as inside:
        run = Path(inside) / "run"
        # The replay finds the place of each reading in the same way as the node.
        replay_bag(asked.data, run, given, belief_only=True)
        job = load_readings(RowRequest(str(run), held_out=asked.held_out))
        rows = map_rows(job, transform=asked.transform)
    source = f"bag {asked.data} on map {rows.recipe['map']!r}"
    return replace(rows, source=source, recipe={**rows.recipe, "scale": asked.scale})


def asked_of(model: KernelModel, data: str, options: Mapping[str, Any]) -> RowRequest:
    """Return the request for rows that test a model. `options` replace fields of the request."""
    recipe = model.recipe
    bag, table = is_bag(data), is_table(data)
    of_map = "scenario" in options or "map_file" in options
    inputs = table and (not of_map or recipe.get("kind") == "wide")
    asked = RowRequest(
        data,
        inputs=model.input_names if inputs else (),
        value=model.output_name if table and not of_map else "",
        scale=float(recipe.get("scale", 1.0)) if table or bag else 1.0,
        usual_snap=float(recipe.get("snap", SNAP)),  # older models lack "snap"
        transform=str(model.settings.get("transform") or recipe.get("transform") or "identity"),
        held_out=True,
    )
    return replace(asked, **options)
