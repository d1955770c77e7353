"""Rows for a model that goes on, or that is held against others: read as its own were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError, ReadingError
from gp_active_sensing.kernel_model import KernelModel
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.learning.data.request import RowRequest
from gp_active_sensing.learning.data.sources import load_rows
from gp_active_sensing.learning.warm_start import as_before, asked_as_before, asked_of
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.topology import build_topology
from tests.kernel_models import make_model, rows


def model(kind: str = "table", **more: Any) -> KernelModel:
    recipe = {"kind": kind, "scale": 3.6, "transform": "log", "times": {}} | more
    X, y = rows()
    settings = {"recipe": recipe, "transform": recipe["transform"]}
    return make_model(["SE"], X, y, input_names=("x", "y"), settings=settings)


def test_what_is_not_said_is_as_before(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    lines = [f"{k},{k % 3},{1 + k % 5},0" for k in range(12)]
    log.write_text("\n".join(["x,y,value,other", *lines]), encoding="utf-8")
    earlier = model()
    asked = asked_as_before(RowRequest(str(log)), earlier, scale_given=False)
    assert asked.inputs == ("x", "y")
    found = as_before(load_rows(asked), earlier)
    assert found.outputs == pytest.approx([np.log(3.6 * (1 + k % 5)) for k in range(12)])
    assert found.output_name == earlier.output_name
    assert {"kind": "table", "scale": 3.6, "transform": "log"}.items() <= found.recipe.items()


def test_a_scenario_takes_the_transform_of_the_model() -> None:
    earlier = model("map", scale=1.0)
    asked = asked_as_before(RowRequest("town"), earlier, scale_given=False)
    plain, found = load_rows(RowRequest("town")), load_rows(asked)
    assert plain.recipe["transform"] == "identity"
    assert np.exp(found.outputs) == pytest.approx(plain.outputs)
    assert as_before(found, earlier).recipe["transform"] == "log"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"overrides": ("belief.transform=identity",)}, "belief.transform: .*log, .* identity"),
        ({"overrides": ("belief={transform: identity}",)}, "belief.transform: .*log, .* identity"),
        ({"scale": 1.0}, "--scale: the model to be continued has 3.6, this says 1;"),
        ({"value": "other"}, "--value: the model to be continued has value, this says other;"),
    ],
)
def test_differences_are_refused(said: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        asked_as_before(RowRequest("log.csv", **said), model(), scale_given="scale" in said)
    same = {"overrides": ("belief.transform=log",), "scale": 3.6, "value": "value"}
    found = asked_as_before(RowRequest("log.csv", **same), model(), scale_given=True)  # type: ignore[arg-type]
    assert (found.transform, found.scale, found.value) == ("log", 3.6, "value")


def test_rows_of_another_kind_are_refused() -> None:
    X, y = rows()
    found = Dataset(X, y, ("x", "y"), "value", "a test", recipe={"kind": "map"})
    with pytest.raises(ConfigError, match="learned from columns of a table, a test gives places"):
        as_before(found, model())
    bag = Dataset(X, y, ("x", "y"), "temperature", "a test", recipe={"kind": "bag"})
    with pytest.raises(ConfigError, match="has value, this says temperature"):
        as_before(bag, model("bag"))


def test_stamps_go_on_only_where_there_were_stamps() -> None:
    X, y = rows()
    recipe = {"kind": "table", "times": {"y": "2024-03-01T00:00:00+00:00"}}
    found = Dataset(X, y, ("x", "y"), "value", "log.csv", recipe=recipe)
    with pytest.raises(ReadingError, match="y is given by time stamps, and the model was"):
        as_before(found, model())
    known = as_before(found, model(times={"y": "2024-02-01T00:00:00+00:00"}))
    assert known.notes == ()
    older = make_model(["SE"], X, y)
    assert "since 2024-03-01T00:00:00+00:00, the first stamp" in as_before(found, older).notes[0]


def test_how_rows_are_read_that_a_model_is_held_against(tmp_path: Path) -> None:
    log = str(tmp_path / "log.csv")
    found = asked_of(model(), log, {})
    assert (found.inputs, found.value, found.scale) == (("x", "y"), "value", 3.6)
    assert (found.transform, found.held_out) == ("log", True)
    of_map = asked_of(model("map"), log, {"map_file": "town", "scale": 2.0})
    assert (of_map.inputs, of_map.value, of_map.scale) == ((), "", 2.0)
    run = asked_of(model(), str(tmp_path), {})
    assert (run.inputs, run.scale, run.transform) == ((), 1.0, "log")
    assert asked_of(model("bag"), "town_sample", {}).inputs == ("x", "y")
    assert asked_of(model("map"), "town_sample", {}).inputs == ()
    of_scenario = asked_of(model(), str(Path(log).with_suffix(".yaml")), {})
    assert (of_scenario.inputs, of_scenario.value, of_scenario.scale) == ((), "", 1.0)
    wide = asked_of(model("wide"), log, {"scenario": "town"})
    assert (wide.inputs, wide.value) == (("x", "y"), "")


def test_how_far_positions_are_from_their_places_is_kept(tmp_path: Path) -> None:
    """What a model was learned from is found again: the same rows, not those within 50 m."""
    town = build_topology(load_scenario("town").map)
    lines = [f"{x},{y},{1 + k % 7}" for k, (x, y) in enumerate(town.positions[:20].tolist())]
    west = float(town.positions[:, 0].min()) - 300.0
    lines += [f"{west},{town.positions[town.positions[:, 0].argmin(), 1]},{k}" for k in (2, 3)]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["x,y,value", *lines]), encoding="utf-8")
    given: dict[str, Any] = {"map_file": "town"}
    first = load_rows(RowRequest(str(log), snap=400.0, **given))
    earlier = model(**{**first.recipe, "kind": "map"})
    older = model("map", transform="identity")
    assert (len(first), first.recipe["snap"]) == (22, 400.0)
    for known, count in ((earlier, 22), (older, 20)):
        again = load_rows(asked_as_before(RowRequest(str(log), **given), known, scale_given=False))
        assert len(as_before(again, known)) == count
        assert len(load_rows(asked_of(known, str(log), given))) == count
        said = asked_of(known, str(log), {**given, "snap": 1.0})
        assert len(load_rows(said)) == 20
    run = as_before(
        load_rows(asked_as_before(RowRequest("town"), earlier, scale_given=False)), earlier
    )
    assert run.recipe["snap"] == 400.0
