"""A field that changes, with nodes: the clock that stamps the readings is its time."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gp_active_sensing.mission.recording import Recorder
from gp_active_sensing.records.ground_truth import FieldKnowledge
from gp_active_sensing.records.metrics import rmspe
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import FieldConfig, build_truth
from tests.unit.mission.worlds import SECOND, Rig, grid

FIELD = FieldConfig(length_scale=20.0, signal_std=3.0, time_scale=50.0)


def test_records_compare_with_the_truth_when_the_stage_ended(tmp_path: Path) -> None:
    rig = Rig(grid(5))
    truth = build_truth(FIELD, rig.topology, 1)
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
