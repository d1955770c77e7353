"""The node is killed by SIGKILL at random moments and started again: nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from tests.ros.killing import Kill, Outcome, compare, random_kills, run_mission, write_scenario

pytestmark = [pytest.mark.ros, pytest.mark.slow]


@pytest.fixture(scope="module", params=[0.0, 0.2], ids=["every reading", "a fifth is lost"])
def undisturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, ros_environment: None
) -> tuple[Path, float, Outcome]:
    """A scenario, how long a reading is waited for [s], and how it ends when nothing is killed."""
    folder = tmp_path_factory.mktemp("plain")
    scenario = write_scenario(folder / "killed.yaml", seed=1, dropout=request.param, budget=8)
    # One reading is lost: it costs that time. Where none is, all are waited for.
    patience = 4.0 if request.param else 1000.0
    plain = run_mission(folder, scenario, [], patience=patience)
    assert plain.accepted == plain.readings.total() >= 8
    return scenario, patience, plain


@pytest.mark.seeds(0.025)
def test_a_killed_mission_ends_as_the_one_that_was_not(
    tmp_path: Path, undisturbed: tuple[Path, float, Outcome], seed: int
) -> None:
    scenario, patience, plain = undisturbed
    rng = np.random.default_rng([seed, 7])
    # The first kill meets a mission that has begun and is far from its end.
    kills = [Kill(float(rng.uniform(0.0, 0.2)), at_work=True), *random_kills(rng, 1)]
    killed = run_mission(tmp_path, scenario, kills, patience=patience)
    assert killed.kills >= 1
    assert killed.resumed >= 1
    difference = compare(plain, killed)
    assert max(difference.values()) <= 1e-9, difference
