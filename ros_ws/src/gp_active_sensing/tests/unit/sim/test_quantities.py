from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.commands.console import summary_lines
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import build_loop, build_world, load_scenario, run_scenario
from gp_active_sensing.sim.runner import SimulationRunner, build_players, parameters_of
from tests.cases import for_each
from tests.unit.sim.scenarios import GRID, scenario
from tests.unit.sim.test_resume import killed_and_resumed

FIELD = {"length_scale": 20.0, "signal_std": 1.0, "unit": "m"}
SEVERAL: dict[str, Any] = {
    "policy": {"name": "tour"},
    "quantities": {
        "depth": {"field": FIELD, "weight": 2.0},
        "algae": {"field": FIELD, "sensor": {"dropout": 0.3, "readings": 2}, "link": "depth"},
        "salt": {"field": FIELD, "sampled": True},
    },
}


def test_a_run_has_every_quantity_in_summary_and_records(tmp_path: Path) -> None:
    summary = run_scenario(scenario(GRID, **SEVERAL), tmp_path / "run").to_mapping()
    found = summary["quantities"]
    assert list(found) == ["depth", "algae", "salt"]
    assert found["depth"]["observed"] == summary["observed"]
    assert 0 < found["salt"]["observed"] <= summary["stages"]
    assert found["depth"]["rmse"] < 2.0
    assert found["depth"]["unit"] == "m"
    assert 0.0 <= found["algae"]["link_probability"] <= 1.0
    assert "link_probability" not in found["depth"]
    (*_, last) = RunDirectory.open(tmp_path / "run").records()
    assert last["quantities"]["depth"]["rmspe"] is not None
    assert last["quantities"]["algae"]["observed"] == found["algae"]["observed"]
    lines = summary_lines(summary, "heat")
    names = [line.split()[-1] for line in lines if line.startswith("  quantity ")]
    assert names == ["heat", *found]
    for label in ("expected error", "actual error", "RMSPE", "log loss", "intervals"):
        assert len([line for line in lines if line.startswith(f"  {label} ")]) == 4


def test_a_run_cut_anywhere_goes_on_to_the_same_end(tmp_path: Path) -> None:
    what = scenario(GRID, **SEVERAL, budget={"readings": 6})
    whole = tmp_path / "whole"
    killed_and_resumed(what, whole, run_scenario(what, whole).to_mapping(), 9)


def test_fields_and_readings_of_a_quantity_do_not_depend_on_the_others() -> None:
    several = scenario(GRID, **SEVERAL)
    fewer = scenario(GRID, quantities={"depth": SEVERAL["quantities"]["depth"]})
    one, other, plain = (build_world(each) for each in (several, fewer, scenario(GRID)))
    sensors = [world.further["depth"] for world in (one, other)]
    np.testing.assert_array_equal(*(sensor.truth.at(0.0) for sensor in sensors))
    assert sensors[0].read(3, 1, 5) == sensors[1].read(3, 1, 5)
    assert not np.array_equal(sensors[0].truth.at(0.0), one.further["algae"].truth.at(0.0))
    np.testing.assert_array_equal(one.truth.at(0.0), plain.truth.at(0.0))
    (probe,) = build_players(several, one).values()
    probe.go_to(2)
    taken = [reading for _ in range(30) for reading in probe.step(1.0).readings]
    read = {q: [r.location for r in taken if r.quantity == q] for q in ("", "depth", "salt")}
    assert read["depth"] == read[""]
    assert read["salt"] == [2]
    assert len(read[""]) > 1


def test_a_scenario_configures_the_node_and_the_loop_of_its_name() -> None:
    what = load_scenario("sonde")
    config = from_mapping(ActiveSensingConfig, parameters_of(what))
    assert list(config.readings) == ["temperature", "chlorophyll", "depth"]
    assert config.further["depth"].topic == "depth"
    loop = build_loop(what, build_world(what).topology)
    assert (loop.name, list(loop.quantities)) == ("temperature", ["chlorophyll", "depth"])
    assert loop.limits is not None
    assert loop.limits.quantity == "depth"
    linked = build_loop(scenario(GRID, **SEVERAL), build_world(scenario(GRID)).topology)
    assert linked.links.sources == {"algae": "depth", "salt": ""}


def state_of(runner: SimulationRunner) -> list[Any]:
    loop, probes = runner.mission.loop, runner.mission.probes.values()
    beliefs = [loop.belief, *(each.belief for each in loop.quantities.values())]
    return [
        *(loop.remaining, loop.spent, loop.decisions),
        [belief.readings.tolist() for belief in beliefs],
        [(probe.stages.number, probe.stages.driven, probe.target) for probe in probes],
    ]


@pytest.mark.slow
def test_a_probe_without_the_main_sensor_visits_and_pays_by_what_it_measures(
    tmp_path: Path,
) -> None:
    what = scenario(GRID, **SEVERAL, budget={"readings": 14}, probes=2)
    readings = parameters_of(what)["readings"]
    readings["value"] = {"probes": ["probe_1"]}
    readings["salt"]["probes"] = ["probe_1"]
    parameters = {"readings": readings, "run_dir": str(tmp_path / "run")}
    runner = SimulationRunner(what, parameters=parameters)
    runner.run(20.0)
    runner.close()
    again = SimulationRunner(what, parameters=parameters)
    assert state_of(again) == state_of(runner)
    again.close()
    runner = SimulationRunner(what, parameters={"readings": readings})
    assert runner.run(5000.0)
    mission, loop = runner.mission, runner.mission.loop
    _, two = mission.probes.values()
    assert (two.lead, two.carried) == ("depth", ("depth", "algae"))
    refused = two.ingestion.counts["unknown_quantity"]
    assert mission.rejected["unknown_quantity"] == refused > 0
    depth = loop.quantities["depth"].belief.observed
    assert (depth & ~loop.belief.observed).any()
    assert (loop.spent, loop.remaining.readings) == (14, 0)
    assert (two.ingestion.pipeline.used, two.stages.number > 1) == (0, True)


@for_each(
    "changes",
    [
        {"quantities": {"depth": {"feild": FIELD}}},
        {"quantities": {"depth": {"field": {"kind": "sumo"}}}},
        {"quantities": {"depth": {"field": {**FIELD, "length_scale": -1.0}}}},
        {"quantities": {"depth": {"weight": -1.0}}},
    ],
)
def test_quantities_that_cannot_be_simulated_are_refused(changes: Any) -> None:
    with pytest.raises(ConfigError):
        scenario(GRID, **changes)


def test_an_error_for_each_map_ends_the_mission(tmp_path: Path) -> None:
    error = {"value": 3.0, "depth": 0.7}
    what = scenario(GRID, **SEVERAL, budget={"readings": 12, "error": error})
    loop = build_loop(what, build_world(what).topology)
    assert loop.aim is not None
    assert (loop.aim.error, loop.quantities["depth"].aim.error) == (3.0, 0.7)
    assert loop.quantities["algae"].aim is None
    for wrong in ({"value": -1.0}, {"oxygen": 1.0}):
        with pytest.raises(ConfigError):
            run_scenario(
                scenario(GRID, **SEVERAL, budget={"readings": 3, "error": wrong}), tmp_path / "no"
            )
