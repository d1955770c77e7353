"""Pictures of where policies went: what they show is what the records say."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_support.small import small
from gp_active_sensing.config import from_mapping
from gp_active_sensing.topology import build_topology
from gp_active_sensing.topology.config import MapConfig
from gp_active_sensing_bench import load_records, run_experiment
from gp_active_sensing_bench.figures import Design, _design, _draw, designs_of, draw_designs
from gp_active_sensing_bench.tables import Estimate, MetricTable, PolicyRow

ROADS = {"kind": "roads", "file": "town.geojson"}


def panels(section: dict[str, Any], designs: list[Design]) -> Any:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    draw_designs(figure, section, designs)
    return [panel for panel in figure.axes if panel.get_visible()]


def design(places: list[int], belief: float = float("nan")) -> Design:
    return Design("bal", places, [belief] * len(places))


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
    plain = dataclasses.replace(
        loaded,
        experiment=dataclasses.replace(
            loaded.experiment, config=dataclasses.replace(loaded.config, designs=None)
        ),
    )
    ((_, designs),) = designs_of(plain).values()
    assert {len(d.places) for d in designs} == {2}, "the first budget"


def test_a_line_has_a_row_for_each_stage() -> None:
    section = {"kind": "line", "count": 30, "spacing": 2.0, "moves": "free"}
    (panel,) = panels(section, [design([4, 20, 9, 1, 12], belief=0.875)])
    newest = [line for line in panel.lines if line.get_marker() == "o"]
    assert [float(line.get_xdata()[0]) for line in newest] == [8.0, 40.0, 18.0, 2.0, 24.0]
    assert [float(line.get_ydata()[0]) for line in newest] == [1, 2, 3, 4, 5]
    assert panel.get_ylim()[0] > panel.get_ylim()[1], "the first stage is on top"
    assert [text.get_text() for text in panel.texts] == ["88 %"]


def test_roads_are_drawn_in_grey_and_what_was_driven_on_top() -> None:
    topology = build_topology(from_mapping(MapConfig, ROADS))
    (panel,) = panels(ROADS, [design([5, 7, 11])])
    every, driven = panel.collections
    assert len(every.get_segments()) == topology.n
    for line, place in zip(driven.get_segments(), [5, 7, 11], strict=True):
        np.testing.assert_allclose(line, topology.geometry(place))
    (start,) = panel.lines
    assert (start.get_xdata()[0], start.get_ydata()[0]) == tuple(topology.geometry(5)[0])


def test_where_the_length_scale_is_known_no_belief_is_shown() -> None:
    stages = [{"location": 2, "observed": 1, "weights": [1.0]}]
    config = {
        "field": {"kind": "gp", "kernel": "se", "length_scale": 3.0},
        "belief": {"kernel": "se", "length_scales": [3.0], "signal_std": [1.0], "noise_std": [0.1]},
    }
    shown = _design({"policy": "ei", "stages": stages, "config": config}, 1)
    assert np.isnan(shown.belief).all()


def test_lines_of_many_policies_over_many_readings() -> None:
    names = [f"policy {i}" for i in range(14)]
    for columns, scale in (((5, 10, 25), "linear"), ((5, 20, 500), "log")):
        panel = pytest.importorskip("matplotlib.figure").Figure().subplots()
        rows = [PolicyRow("default", n, (Estimate(1.0, 0.1),) * 3, (4,) * 3) for n in names]
        _draw(panel, MetricTable("RMSPE", "rmspe", "", columns, tuple(rows)), rows, names)
        assert panel.get_xscale() == scale
        assert [text.get_text() for text in panel.get_xticklabels()] == [str(x) for x in columns]
        lines = [container.lines[0] for container in panel.containers]
        assert len({(x.get_color(), x.get_linestyle()) for x in lines}) == 14
