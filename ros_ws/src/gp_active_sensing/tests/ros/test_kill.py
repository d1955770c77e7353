"""The node is killed by SIGKILL at random moments and started again: nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from tests.ros.killing import compare, random_kills, run_mission, write_scenario

pytestmark = [pytest.mark.ros, pytest.mark.slow]


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_killed_missions_end_as_the_one_that_was_not(
    tmp_path: Path, ros_environment: None, dropout: float
) -> None:
    scenario = write_scenario(tmp_path / "killed.yaml", seed=5, dropout=dropout)
    (tmp_path / "plain").mkdir()
    plain = run_mission(tmp_path / "plain", scenario, [])
    assert plain.accepted == plain.readings.total() >= 12
    resumed = 0
    for number in range(5):
        rng = np.random.default_rng([number, int(10 * dropout)])
        folder = tmp_path / f"killed{number}"
        folder.mkdir()
        killed = run_mission(folder, scenario, random_kills(rng, 2))
        resumed += killed.resumed
        difference = compare(plain, killed)
        assert max(difference.values()) <= 1e-9, f"{folder}: {difference}"
    assert resumed >= 4, "the kills came too early or too late"
