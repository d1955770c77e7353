"""Readings and poses of several probes: each has its own track, buffers, window and gate."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose
from tests.unit.mission.teams import SECOND, Team


def pose(team: Team, name: str, t: float, x: float, y: float = 0.0) -> None:
    team.mission.inbox.put(Pose(round(t * SECOND), "map", x, y, 0.0), team.t, name)


def reading(team: Team, name: str, t: float, value: float = 5.0) -> None:
    team.mission.inbox.put(RawReading(round(t * SECOND), value, None), team.t, name)


def step(team: Team, t: float) -> None:
    team.t = t
    team.mission.step(round(t * SECOND))


def observed(team: Team) -> set[int]:
    return set(np.flatnonzero(team.loop.belief.observed).tolist())


def test_readings_of_the_same_moment_belong_where_their_own_probe_was() -> None:
    team = Team(("a", "b"), pose={"max_age": 1.0, "wait": 0.5})
    for name, y in (("a", 0.0), ("b", 20.0)):
        pose(team, name, 1.0, 0.0, y)
        reading(team, name, 1.6)
        pose(team, name, 2.0, 20.0, y)
    step(team, 2.0)
    # 12 m along, between the two poses: the place at 10 m of each row.
    assert observed(team) == {1, 13}


def test_a_probe_off_the_map_is_counted_as_its_own() -> None:
    team = Team(("a", "b"), pose={"wait": 0.0})
    for name, x in (("a", 0.0), ("b", 500.0)):
        pose(team, name, 1.0, x)
        reading(team, name, 1.0)
    step(team, 1.0)
    assert team.probe("a").ingestion.rejected == {}
    assert team.probe("b").ingestion.rejected == {"pose_off_map": 1, "off_map": 1}
    assert team.mission.rejected == {"pose_off_map": 1, "off_map": 1}


def test_one_that_waits_for_its_pose_fills_its_own_buffer_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "gp_active_sensing.mission.ingestion.ingestion.most_per_second", lambda reading: 5.0
    )
    team = Team(("a", "b"))
    assert team.probe("a").ingestion.capacity == 10
    for i in range(30):
        reading(team, "a", 1.0 + i)
    reading(team, "b", 1.0)
    step(team, 1.0)
    assert [team.probe(name).ingestion.waiting for name in "ab"] == [10, 1]
    assert team.mission.rejected == {"no_pose": 20}
