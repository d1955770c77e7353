"""A field that drifts: an exact draw at every time, with the stated correlation in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import build_belief
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.mission.recording import Recorder
from gp_active_sensing.records.ground_truth import FieldKnowledge
from gp_active_sensing.records.metrics import rmspe
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import FieldConfig, build_truth, build_world, run_scenario
from gp_active_sensing.topology import make_line
from tests.unit.mission.worlds import SECOND, Rig, grid
from tests.unit.sim.scenarios import GRID, scenario

LINE = make_line(5, 1.0)
STILL = FieldConfig(length_scale=2.0, signal_std=3.0, mean=10.0)
DRIFTING = FieldConfig(length_scale=2.0, signal_std=3.0, mean=10.0, time_scale=60.0)


def drifting(**more: Any) -> Any:
    field = {"time_scale": 8.0, "mean": 3.0}
    return scenario(GRID, field=field, probe={"start": 0, "speed": 2.0}, **more)


def test_space_and_time_have_the_stated_covariance() -> None:
    """``cov(f(x, s), f(y, t)) = σ² k(x, y) exp(-(s - t)² / (2 T²))``, at any s."""
    times = (0.0, 30.0, 60.0, 500.0, 590.0)
    draws = np.array(
        [
            np.concatenate([truth.at(t) for t in times])
            for truth in (build_truth(DRIFTING, LINE, seed) for seed in range(4000))
        ]
    )
    space = build_kernel("se").correlation(LINE.features, LINE.features, np.array([2.0]))
    apart = np.subtract.outer(times, times)
    expected = np.kron(np.exp(-0.5 * np.square(apart / 60.0)), 9.0 * space)
    # The standard error of a covariance of 4000 draws is at most 9 sqrt(2 / 4000) = 0.2.
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=0.8)
    np.testing.assert_allclose(draws.mean(axis=0), 10.0, atol=0.2)
    # Normal at every time, not only at the first: kurtosis 3 ± sqrt(24 / 4000).
    standard = (draws - 10.0) / 3.0
    np.testing.assert_allclose(np.mean(standard**4, axis=0), 3.0, atol=0.5)


def test_it_begins_with_the_draw_that_stands_still() -> None:
    for seed in range(5):
        still, moving = build_truth(STILL, LINE, seed), build_truth(DRIFTING, LINE, seed)
        assert moving.at(0.0).tobytes() == still.at(0.0).tobytes()
        assert still.at(1e9) is still.at(0.0)
        assert (still.changes, moving.changes) == (False, True)


def test_it_is_a_function_of_time_alone() -> None:
    one, two = build_truth(DRIFTING, LINE, 3), build_truth(DRIFTING, LINE, 3)
    there = [one.at(t) for t in (0.0, 45.0, 90.0)]
    back = [two.at(t) for t in (90.0, 45.0, 0.0)][::-1]
    for a, b in zip(there, back, strict=True):
        assert a.tobytes() == b.tobytes()
    assert not np.allclose(there[0], there[1], atol=0.1)
    assert not np.allclose(build_truth(DRIFTING, LINE, 4).at(45.0), there[1], atol=0.1)


def test_records_compare_with_the_truth_of_their_time(tmp_path: Path) -> None:
    what = drifting()
    summary = run_scenario(what, tmp_path / "run", clock=lambda: 0.0).to_mapping()
    run = RunDirectory.open(tmp_path / "run")
    records, world = run.records(), build_world(what)
    belief = build_belief(what.belief, world.topology.features)
    readings = [event for event in run.events() if event["event"] == "reading"]
    assert len(readings) == len(records) == 6
    for reading, record in zip(readings, records, strict=True):
        now = record["truth_seconds"]
        assert now == pytest.approx(1e-9 * reading["stamp_ns"], abs=1e-6)
        assert now == pytest.approx(record["driven_seconds"], abs=1e-6)
        belief.observe(reading["location"], reading["value"])
        mean, _ = belief.predict()
        left = ~belief.observed
        error = np.sqrt(np.mean(np.square(mean - world.truth.at(now))[left]))
        assert record["rmspe"] == pytest.approx(error, rel=1e-12)
    at_first = np.sqrt(np.mean(np.square(mean - world.truth.at(0.0))[left]))
    assert summary["rmspe"] == records[-1]["rmspe"] != pytest.approx(at_first, rel=0.01)
    assert "as it was at the end" in summary["errors_against"]


def test_records_of_a_node_compare_with_the_truth_when_the_stage_ended(tmp_path: Path) -> None:
    rig = Rig(grid(5))
    truth = build_truth(
        FieldConfig(length_scale=20.0, signal_std=3.0, time_scale=50.0), rig.topology, 1
    )
    run = RunDirectory.create(tmp_path / "run", {"name": "drift", "seed": 1})
    recorder = Recorder(run, {"name": "drift", "seed": 1}, known=FieldKnowledge(truth))
    rig.mission.start()
    rig.pose(1.0, 0.0)
    rig.step(1.0)
    x, y = rig.topology.positions[rig.sent[-1]]
    rig.pose(31.0, float(x), float(y))
    rig.reading(31.0, 5.0)
    rig.step(31.0, plan=False)
    rig.step(90.0, plan=False)
    (stage,) = rig.mission.stop("shut down")
    assert stage.stamp_ns == 31 * SECOND
    assert stage.driven.seconds == pytest.approx(30.0), "the clock also ran before it began"
    belief = rig.loop.belief
    mean, _ = belief.predict()
    recorder.stage(stage, rig.loop, belief.mixture())
    rig.step(500.0, plan=False)  # the mission is over
    summary = recorder.summary(rig.mission, "finished")
    record = recorder.stages.newest
    assert record["truth_seconds"] == pytest.approx(31.0)
    assert record["rmspe"] == rmspe(mean, truth.at(record["truth_seconds"]), belief.observed)
    assert summary["rmspe"] == rmspe(mean, truth.at(90.0), belief.observed)
    assert "as it was at the end" in summary["errors_against"]
    assert record["rmspe"] != summary["rmspe"]
    recorder.close()
