from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.planning import DEFAULT_POLICY, build_policy
from gp_active_sensing.records.regret import objective_of
from gp_active_sensing.replay.options import ReplayOptions, settled
from gp_active_sensing.sim import (
    Scenario,
    build_world,
    load_scenario,
    run_scenario,
    scenario_from_mapping,
)
from gp_active_sensing.sim.scenario import with_policy
from gp_active_sensing.topology import MapConfig, Roads, build_topology, check_start
from gp_active_sensing.types import PlanLimit
from gp_active_sensing.util.resources import find_resource, list_resources
from tests.key_tables import key_table
from tests.unit.sim.scenarios import GRID, LINE, mapping, scenario
from tests.unit.topology.road_maps import segment, write

NAMES = [name for name in list_resources("sim") if name.endswith(".yaml")]
SHIPPED = [
    pytest.param(
        name,
        marks=[pytest.mark.heavy("sumo"), pytest.mark.long]
        * (load_scenario(name).field.kind == "sumo"),
    )
    for name in NAMES
]


def problems_of(data: object) -> str:
    with pytest.raises(ConfigError) as caught:
        scenario_from_mapping(data)  # type: ignore[arg-type]
    return "\n".join(caught.value.problems)


def test_round_trip_keeps_every_value() -> None:
    built = scenario()
    plain = yaml.safe_load(yaml.safe_dump(built.to_mapping()))
    assert scenario_from_mapping(plain) == built


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenarios_run(name: str, tmp_path: Path) -> None:
    few = load_scenario(name, overrides=["budget.readings=4", "limit.expansions=10"])
    assert few.name == Path(name).stem
    assert few.limit.expansions is not None, "a shipped scenario is the same on every machine"
    summary = run_scenario(few, tmp_path / "run", clock=lambda: 0.0)
    assert summary.status == "finished"
    if not objective_of(few.build_policy(), few.seek):
        assert summary.stages == summary.observed == 4
        assert summary.regret == {}
    else:  # it crosses places on the way, may come back, and old readings do not count for ever
        assert summary.readings >= 4
        assert 1 <= summary.stages <= 4
        assert 1 <= summary.observed <= 4
        assert summary.regret["decisions"] == summary.stages
    assert summary.rmspe is not None
    assert math.isfinite(summary.rmspe)
    assert summary.set_aside == ()
    assert few.description
    topology = build_world(few).topology
    everything = topology.reachable(
        build_world(few).start, np.zeros(topology.n, dtype=np.bool_), topology.n
    )
    assert everything.sum() >= topology.n - 1, "every place can be reached from the start"


def test_a_sensor_that_could_give_no_number_is_refused() -> None:
    for bad in (math.nan, math.inf, -math.inf, 1e300, "much", None, True):
        for key in ("noise_std", "bias", "outlier_size"):
            assert f"sensor.{key}: " in problems_of(mapping(sensor={key: bad}))


def test_what_is_wrong_is_named() -> None:
    for section, values, expected in (
        ("map", {"kind": "lien"}, "map.kind: expected one of .*Did you mean 'line'"),
        ("field", {"kernel": "matern53"}, "field.kernel: unknown kernel .*Did you mean 'matern5"),
        ("field", {"kind": "table"}, "field.file: is required"),
        ("policy", {"name": "ball"}, "policy: unknown policy 'ball'. Did you mean 'bal'"),
        ("policy", {"horizn": 2}, "policy.horizn: unknown key. Did you mean 'horizon'"),
        ("probe", {"speed": -2}, "probe.speed: must be more than 0"),
        ("sensor", {"report_variance": True}, "sensor.report_variance: was removed"),
        ("name", "a/b", "name: expected a word"),
        ("sensr", {}, "sensr: unknown key. Did you mean 'sensor'"),
    ):
        with pytest.raises(ConfigError, match=expected):
            scenario_from_mapping(mapping(**{section: values}))


def test_a_record_of_an_earlier_version_has_removed_keys_at_their_defaults() -> None:
    before = {"additional": [], "config": None, "rerouting": None}
    old = mapping(sensor={"report_variance": False}, traffic=before)
    assert scenario_from_mapping(old) == scenario_from_mapping(mapping())
    with pytest.raises(ConfigError, match=r"traffic\.rerouting: was removed"):
        scenario_from_mapping(mapping(traffic={**before, "rerouting": 0.5}))


def test_overrides_come_last() -> None:
    built = load_scenario("line", overrides=["budget.readings=3", "policy.horizon=3"])
    assert built.budget.readings == 3
    assert built.policy["horizon"] == 3


def test_another_policy_keeps_the_parameters_it_knows() -> None:
    assert with_policy(LINE, "bal")["policy"] == LINE["policy"]
    assert load_scenario("line", policy="random").policy == {"name": "random"}


def test_there_is_one_default_policy() -> None:
    name, grid = DEFAULT_POLICY["name"], GRID["map"]
    plain = {key: section for key, section in GRID.items() if key != "policy"}
    assert scenario_from_mapping(plain).build_policy() == build_policy(DEFAULT_POLICY)
    assert from_mapping(ActiveSensingConfig, {"map": grid}).policy == DEFAULT_POLICY
    given = ReplayOptions(overrides=tuple(f"map.{key}={value}" for key, value in grid.items()))
    assert settled(given, None, {}, follow=True)[0].policy["name"] == name


def test_files_beside_the_scenario_are_found_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "values.csv").write_text(
        "id,value\n" + "".join(f"{i},{2 * i}\n" for i in range(12))
    )
    data = mapping(field={"kind": "table", "file": "values.csv", "length_scale": None})
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(data))
    built = load_scenario(tmp_path / "mine.yaml")
    assert built.field.file == str(tmp_path / "values.csv")
    assert build_world(built).truth.at(0.0)[5] == 10.0


def test_a_map_that_cannot_be_built_names_the_key() -> None:
    wrong = scenario(GRID, map={"outline": [[0, 0], [5, 5], [9, 9]], "obstacles": [[[0, 0]]]})
    with pytest.raises(ConfigError) as caught:
        build_world(wrong)
    assert [p.split(":")[0] for p in caught.value.problems] == ["map.obstacles[0]", "map.outline"]


def test_readme_lists_every_key() -> None:
    readme = find_resource("sim", "line.yaml").with_name("README.md").read_text(encoding="utf-8")
    table = key_table(Scenario)
    assert table in readme, f"sim/README.md is stale; its table of keys must be:\n{table}"


def test_every_decision_ends_unless_it_is_said_that_none_has_to(tmp_path: Path) -> None:
    text = "map: {kind: line, count: 5}\nfield: {kind: gp, length_scale: 2.0}\n"
    for section, limit in (
        ("", PlanLimit(expansions=500)),
        ("limit: {expansions: null}\n", PlanLimit()),
        ("limit: {seconds: 2.0}\n", PlanLimit(seconds=2.0)),
    ):
        path = tmp_path / "mine.yaml"
        path.write_text(text + section, encoding="utf-8")
        assert load_scenario(str(path)).limit.limit() == limit


def test_a_start_as_a_position_is_the_nearest_place() -> None:
    for position, place in (([11.0, 9.0], "c1r1"), ([34, 22], "c3r2"), ([-4.0, 1.0], "c0r0")):
        world = build_world(scenario(GRID, probe={"start": position}))
        assert world.start is not None
        assert world.topology.names[world.start] == place


def test_a_start_far_off_is_refused() -> None:
    for position in ([-11.0, 0.0], [31.0, 400.0]):
        with pytest.raises(ConfigError, match="far off map"):
            build_world(scenario(GRID, probe={"start": position}))


def test_a_start_in_degrees_where_the_map_has_them(tmp_path: Path) -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    lines = [
        segment("s1", "a", "b", [(13.400, 52.5), (13.402, 52.5)], oneway=False),
        segment("s2", "b", "c", [(13.402, 52.5), (13.404, 52.501)], oneway=False),
    ]
    file = write(tmp_path / "quarter.geojson", lines, header=None)
    roads = build_topology(MapConfig(kind="roads", file=str(file)))
    assert isinstance(roads, Roads)

    def name(x: float, y: float) -> str:
        at = check_start(roads, (x, y))
        assert at is not None
        return roads.names[at]

    assert name(13.4005, 52.5) == "s1"
    assert name(13.4038, 52.5009) == "s2"
    x, y = roads.geometry(roads.names.index("s2"))[-1]
    assert name(float(x), float(y)) == "s2"  # metres
    with pytest.raises(ConfigError, match=r"about longitude 13\.402, latitude 52\.5005"):
        name(-179.0, 89.0)  # far off in degrees and in metres
