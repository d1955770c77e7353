"""Prior readings from tables, scenarios and runs, and errors for invalid ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError, ReadingError
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.topology import Topology, build_topology, make_grid
from gp_active_sensing_learning import RowRequest, load_readings, read_csv
from tests.cases import for_each
from tests.journals import Events, change_events
from tests.unit.sim.scenarios import GRID, scenario


@pytest.fixture(scope="module")
def grid() -> Topology:
    return make_grid(4, 3, 10.0)


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "speeds.csv"
    path.write_text(text, encoding="utf-8")
    return path


def rows(grid: Topology, count: int = 10) -> str:
    return "".join(f"{name},{3 * k}.5\n" for k, name in enumerate(grid.names[:count]))


def test_by_the_names_of_places(tmp_path: Path, grid: Topology) -> None:
    path = table(tmp_path, f"\ufeffid, value\n{rows(grid)}")
    found = read_csv(path, grid, scale=2.0)
    assert found.places.tolist() == list(range(10))
    assert found.values.tolist() == [6.0 * k + 1.0 for k in range(10)]
    assert found.source == str(path)


def test_by_positions(tmp_path: Path, grid: Topology) -> None:
    lines = [f"{x + 1.0},{y - 2.0},{k}" for k, (x, y) in enumerate(grid.positions[:9].tolist())]
    path = table(tmp_path, "\n".join(["x,y,speed", *lines, "500,500,1", "0,0,"]))
    found = read_csv(path, grid, snap=5.0)
    assert found.places.tolist() == list(range(9))
    assert found.snap == 5.0
    assert found.notes == (
        "1 of 11 rows lack a number and are left out: speed in line 12",
        "1 of 11 rows are more than 5 m from any place and are left out",
    )
    assert read_csv(path, grid).snap == 50.0
    assert len(read_csv(path, grid, usual_snap=1e4).places) == 10


def test_columns_by_name(tmp_path: Path, grid: Topology) -> None:
    text = "where,morning,evening\n" + "".join(
        f"{name},{k},{-k}\n" for k, name in enumerate(grid.names)
    )
    path = table(tmp_path, text)
    found = read_csv(path, grid, place="where", value="evening")
    assert found.values[:3].tolist() == [0.0, -1.0, -2.0]
    with pytest.raises(ReadingError, match="expected a column with the names"):
        read_csv(path, grid, value="evening")
    with pytest.raises(ReadingError, match="Did you mean 'evening'"):
        read_csv(path, grid, place="where", value="evning")


@for_each(
    ("text", "message"),
    [
        ("", "expected a column with the names of places .* got none"),
        ("id,value\nc0r0,NA\n", "column 'value' has no number in any of its 1 rows"),
        ("id,value\nc0r0,1\nc1r0,inf\n", "line 3, column 'value'"),
        ("id,value\nc0r0,1\nc9r9,2\nq,3\n", "has 2 names that are no places .*line 3: 'c9r9'"),
        ("x,y,value\n0,east,1\n", "line 2, column 'y'"),
    ],
)
def test_tables_that_cannot_be_used(
    tmp_path: Path, grid: Topology, text: str, message: str
) -> None:
    with pytest.raises(ReadingError, match=f"speeds.csv.*{message}"):
        read_csv(table(tmp_path, text), grid)


def test_each_quantity_of_a_run_by_itself(tmp_path: Path) -> None:
    far = {"length_scale": 20.0, "signal_std": 1.0, "mean": 500.0}
    several = {"depth": {"field": far, "belief": {"mean_value": 500.0}}}
    budget = {"readings": 9}
    run_scenario(scenario(GRID, quantities=several, budget=budget, policy={"name": "random"}),
                 tmp_path / "run")  # fmt: skip
    main, depth = (load_readings(RowRequest(str(tmp_path / "run"), value=q)) for q in ("", "depth"))
    assert main.readings.values.max() < 100.0 < 400.0 < depth.readings.values.min()
    assert min(len(each.readings.values) for each in (main, depth)) >= 9
    assert depth.config.mean_value == 500.0
    with pytest.raises(ConfigError, match=r"no quantity 'salt', it has: value, depth"):
        load_readings(RowRequest(str(tmp_path / "run"), value="salt"))


def test_a_run(tmp_path: Path) -> None:
    scenario = load_scenario("line", overrides=["budget.readings=12", "policy={name: random}"])
    run_scenario(scenario, tmp_path / "run")
    job = load_readings(RowRequest(str(tmp_path / "run")))
    assert len(np.unique(job.readings.places)) == 12
    assert job.config == scenario.belief
    assert job.readings.notes == ()
    (journal,) = (tmp_path / "run").rglob("journal*.jsonl")

    def add_one_without_a_place(events: Events) -> None:
        read = next(event for event in events if event["event"] == "reading")
        events.append({**read, "location": None})

    change_events(journal, add_one_without_a_place)
    again = load_readings(RowRequest(str(tmp_path / "run"))).readings
    assert len(again.places) == len(job.readings.places)
    (note,) = again.notes
    assert note.startswith("1 of ")
    assert note.endswith("readings have no place of the map, or no finite value, and are left out")


def test_what_is_asked_for(tmp_path: Path) -> None:
    town = build_topology(load_scenario("town").map)
    lines = "".join(f"{name},{k % 7}\n" for k, name in enumerate(town.names[:20]))
    path = str(table(tmp_path, f"id,value\n{lines}"))
    graph = ("belief.kernel=graph_matern32",)
    job = load_readings(RowRequest(path, scenario="town", overrides=graph))
    assert (job.config.kernel, len(job.readings.places)) == ("graph_matern32", 20)
    job = load_readings(RowRequest(path, map_file="town", overrides=("map.features=[relational]",)))
    assert (job.config.kernel, job.topology.feature_names[0]) == ("matern32", "mds_1")
    for asked, message in (
        (RowRequest(path, scenario="town", map_file="town"), "not both"),
        (RowRequest(path, map_file="town", overrides=("field.mean=3",)), "field: unknown section"),
    ):
        with pytest.raises(ConfigError, match=message):
            load_readings(asked)
