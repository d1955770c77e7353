"""Pictures of where policies went: what they show is what the records say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_support.small import small
from gp_active_sensing.topology import Topology, build_topology
from gp_active_sensing.topology.config import MapConfig
from gp_active_sensing_bench import load_records, run_experiment
from gp_active_sensing_bench.figures import Design, _draw, designs_of, draw_designs
from gp_active_sensing_bench.tables import Estimate, MetricTable, PolicyRow

ROADS = {"kind": "roads", "file": "town.geojson"}
GRID = {"kind": "grid", "columns": 6, "rows": 5}


def panels(section: dict[str, Any], designs: list[Any]) -> Any:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    draw_designs(figure, section, designs)
    return [panel for panel in figure.axes if panel.get_visible()]


def design(places: list[int], belief: float = float("nan")) -> Any:
    class Shown:
        policy = "bal"

    shown = Shown()
    shown.places, shown.belief = places, [belief] * len(places)  # type: ignore[attr-defined]
    return shown


def topology_of(section: dict[str, Any]) -> Topology:
    return build_topology(MapConfig(**section))


def test_the_first_seed_of_every_policy_up_to_the_asked_number(tmp_path: Path) -> None:
    experiment = small(budgets=[2, 4], seeds=[3, 5], designs=3)
    loaded = run_experiment(experiment, tmp_path, jobs=1)
    assert load_records(tmp_path).config.designs == 3
    (section, designs), *others = designs_of(loaded).values()
    assert section["kind"] == "line"
    assert not others
    assert [d.policy for d in designs] == list(loaded.config.policies)
    for shown in designs:
        (record,) = (
            r
            for r in loaded.records
            if (r["policy"], r["seed"], r["budget"]) == (shown.policy, 3, 4)
        )
        assert shown.places == [stage["location"] for stage in record["stages"][:3]]
        assert all(0.0 <= share <= 1.0 for share in shown.belief)


def test_without_a_number_the_first_budget_is_shown(tmp_path: Path) -> None:
    loaded = run_experiment(small(budgets=[2, 4], seeds=1), tmp_path, jobs=1)
    ((_, designs),) = designs_of(loaded).values()
    assert {len(d.places) for d in designs} == {2}


def test_a_line_has_a_row_for_each_stage() -> None:
    section = {"kind": "line", "count": 30, "spacing": 2.0, "moves": "free"}
    (panel,) = panels(section, [design([4, 20, 9, 1, 12], belief=0.875)])
    newest = [line for line in panel.lines if line.get_marker() == "o"]
    assert [float(line.get_xdata()[0]) for line in newest] == [8.0, 40.0, 18.0, 2.0, 24.0]
    assert [float(line.get_ydata()[0]) for line in newest] == [1, 2, 3, 4, 5]
    assert panel.get_ylim()[0] > panel.get_ylim()[1], "the first stage is on top"
    assert [text.get_text() for text in panel.texts] == ["88 %"]


def test_roads_are_drawn_in_grey_and_what_was_driven_on_top() -> None:
    topology = topology_of(ROADS)
    (panel,) = panels(ROADS, [design([5, 7, 11])])
    every, driven = panel.collections
    assert len(every.get_segments()) == topology.n
    for line, place in zip(driven.get_segments(), [5, 7, 11], strict=True):
        np.testing.assert_allclose(line, topology.geometry(place))
    (start,) = panel.lines
    assert (start.get_xdata()[0], start.get_ydata()[0]) == tuple(topology.geometry(5)[0])


def test_cells_are_joined_in_the_order_of_their_stages() -> None:
    topology = topology_of(GRID)
    places = [0, 1, 7, 8]
    (panel,) = panels(GRID, [design(places)])
    way = panel.lines[1]
    np.testing.assert_allclose(
        np.column_stack([way.get_xdata(), way.get_ydata()]), topology.positions[places]
    )


def test_where_the_length_scale_is_known_no_belief_is_shown() -> None:
    stages = [{"location": 2, "observed": 1, "weights": [1.0]}]
    config = {
        "field": {"kind": "gp", "kernel": "se", "length_scale": 3.0},
        "belief": {"kernel": "se", "length_scales": [3.0], "signal_std": [1.0], "noise_std": [0.1]},
    }
    shown = Design({"policy": "ei", "stages": stages, "config": config}, 1)
    assert np.isnan(shown.belief).all()


@pytest.mark.parametrize(("columns", "scale"), [((5, 10, 25), "linear"), ((5, 20, 500), "log")])
def test_numbers_of_readings_far_apart_are_shown_by_factors(
    columns: tuple[int, ...], scale: str
) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    panel = figure.subplots()
    cells, counts = tuple(Estimate(1.0, 0.1) for _ in columns), tuple(4 for _ in columns)
    rows = [PolicyRow("default", name, cells, counts) for name in "ab"]
    _draw(
        panel, MetricTable("Regret", "average_regret", "", columns, tuple(rows)), rows, ["a", "b"]
    )
    assert panel.get_xscale() == scale
    assert [text.get_text() for text in panel.get_xticklabels()] == [str(x) for x in columns]
    for x, first in zip(columns, panel.lines[0].get_xdata(), strict=True):
        assert 0.5 * x < first < x, "beside its number, and never at another one"


def test_fourteen_policies_can_be_told_apart() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    panel = figure.subplots()
    names = [f"policy {i}" for i in range(14)]
    rows = [PolicyRow("default", n, (Estimate(1.0, 0.1),) * 2, (4, 4)) for n in names]
    _draw(panel, MetricTable("RMSPE", "rmspe", "", (5, 10), tuple(rows)), rows, names)
    lines = [container.lines[0] for container in panel.containers]
    looks = {(x.get_color(), x.get_marker(), x.get_markerfacecolor()) for x in lines}
    assert len(looks) == len({(x.get_color(), x.get_linestyle()) for x in lines}) == 14
