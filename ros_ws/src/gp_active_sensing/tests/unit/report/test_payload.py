from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.report import payload
from gp_active_sensing.report.map_frame import shore_of
from gp_active_sensing.report.payload import LEVELS, build_payload, pack, scale_labels
from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.topology.geometry import OccupancyGrid
from gp_active_sensing.topology.grids import make_occupancy_map
from tests.unit.report.runs import bag_run, unpack
from tests.unit.sim.scenarios import GRID, LINE, scenario


def built(path: Path, base: dict[str, Any] = GRID, **sections: Any) -> dict[str, Any]:
    run_scenario(scenario(base, **sections), path)
    data = load_run(path)
    return build_payload(data, replay(data))


def test_maps_are_those_of_the_replay(tmp_path: Path) -> None:
    found = built(tmp_path / "run")
    again = replay(load_run(tmp_path / "run"))
    maps = found["maps"]
    assert maps["steps"] == list(range(7))
    low, high = maps["range"]
    assert again.truth is not None
    assert (low, high) == (
        min(again.truth.min(), again.mean[-1].min()),
        max(again.truth.max(), again.mean[-1].max()),
    )
    reach = 4.0 * (high - low)
    mean = np.clip(again.mean, low - reach, high + reach)
    assert unpack(maps["mean"]) == pytest.approx(mean, abs=(high - low) * 1e-3)
    assert unpack(maps["truth"])[0] == pytest.approx(again.truth[0], abs=(high - low) * 1e-3)
    assert unpack(maps["std"])[-1] == pytest.approx(again.std[-1], abs=1e-2)


def test_shapes_of_maps(tmp_path: Path) -> None:
    grid = built(tmp_path / "grid")["places"]
    assert (grid["shape"], grid["side"]) == ("cells", 10.0)
    line = built(tmp_path / "line", LINE)["places"]
    assert (line["shape"], line["axis"]) == ("line", "x")
    what = load_scenario("town", policy="random", overrides=["budget.readings=2"])
    run_scenario(what, tmp_path / "town")
    data = load_run(tmp_path / "town")
    town = build_payload(data, replay(data))["places"]
    assert town["shape"] == "roads"
    counts = unpack(town["counts"])
    assert counts[:, 1].sum() == len(unpack(town["x"]))
    last = data.topology.geometry(data.topology.n - 1)
    assert unpack(town["x"])[-len(last) :, 0] == pytest.approx(last[:, 0], abs=0.1)


def test_a_step_says_why(tmp_path: Path) -> None:
    found = built(tmp_path / "run")
    assert "why" not in found["steps"][0]
    step = found["steps"][3]
    assert step["why"].startswith("Chosen: ")
    assert step["outcome"].startswith("Expected ")
    assert step["place"] in [c[0] for c in step["candidates"]]
    uppers = [c[2] for c in step["candidates"]]
    assert uppers == sorted(uppers, reverse=True)
    assert step["lower"] <= step["upper"]
    assert sum(step["weights"]) == pytest.approx(1.0, abs=1e-3)


def test_maps_that_would_be_too_large_are_thinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = built(tmp_path / "whole")["maps"]
    size = sum(len(whole[key]["data"]) for key in ("mean", "std", "truth"))
    monkeypatch.setattr(payload, "MAP_BYTES", size - 1)
    maps = built(tmp_path / "run")["maps"]
    assert maps["all"] == 7
    assert maps["steps"] == [0, 2, 4, 6]
    assert maps["mean"]["rows"] == 4


def test_readings_add_up(tmp_path: Path) -> None:
    data = load_run(bag_run(tmp_path / "run", 700))
    found = build_payload(data, replay(data))
    assert found["kind"] == "readings"
    counts = unpack(found["readings"]["count"])[:, 1]
    assert counts.sum() == 700
    assert sum(step["r"] for step in found["steps"]) == len(counts)
    values = unpack(found["readings"]["value"])[:, 0]
    assert float(counts @ values) == pytest.approx(sum(30 + i % 5 for i in range(700)), rel=1e-4)


def test_labels_of_length_scales() -> None:
    assert scale_labels("m", [(5.0, 5.0), (5.0, 2.5)]) == ["5 m", "5 × 2.5 m"]
    assert scale_labels("", [(0.25,)]) == ["0.25"]
    assert scale_labels("m", [(754.83,), (1092.4,)]) == ["755 m", "1092 m"]
    assert scale_labels("m", [(346.41, 346.41, 6.4952)]) == ["346 across, 6.5 m up"]


def test_values_come_back_to_half_a_level() -> None:
    rng = np.random.default_rng([1])
    values = rng.normal(30.0, 5.0, (20, 50)).cumsum(axis=0)
    packed = pack(values, float(values.min()), float(values.max()))
    assert (packed["rows"], packed["columns"]) == (20, 50)
    half = 0.5 * (values.max() - values.min()) / LEVELS
    assert np.abs(unpack(packed) - values).max() <= half * 1.001


def made(**keys: Any) -> Topology:
    return build_topology(from_mapping(MapConfig, keys))


def test_shore_and_walls_are_drawn_where_they_are() -> None:
    outline = [[0.0, 0.0], [100.0, 0.0], [100.0, 60.0], [0.0, 60.0]]
    island = [[40.0, 20.0], [60.0, 20.0], [60.0, 40.0]]
    lake = made(kind="grid", spacing=10.0, outline=outline, obstacles=[island])
    shore, isle = sorted(shore_of(lake, 10.0), key=len, reverse=True)
    for line, box in ((shore, [[0, 0], [100, 60]]), (isle, [[40, 20], [60, 40]])):
        np.testing.assert_allclose([line.min(axis=0), line.max(axis=0)], box, atol=1e-3)
    values = np.zeros((20, 30), dtype=np.int8)
    values[:, 14:16] = 100
    values[0:6, 14:16] = 0
    room = make_occupancy_map(OccupancyGrid(values, 1.0), 4.0)
    walls = [wall for wall in shore_of(room, 4.0) if np.ptp(wall[:, 1]) > 13.0]
    assert {round(float(wall[0, 0])) for wall in walls} >= {14, 16}
    assert shore_of(made(kind="line", count=5), 1.0) == []
