"""A mission that is started again while its probes went on: what was missed is used first."""

from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.mission.inbox import BATCH, RawReading
from gp_active_sensing.mission.ingestion.backlog import CATCH_UP_SECONDS, Backlog
from gp_active_sensing.mission.poses import Pose
from tests.unit.mission.teams import Team
from tests.unit.mission.worlds import SECOND, Rig, begun, grid


def begin_again(rig: Rig) -> None:
    """Listen as a node that was started again does."""
    rig.ingestion.track.clear()
    rig.ingestion.catch_up = Backlog(lambda: rig.seconds, wanted=True)
    rig.probe.arrival.forget()


def test_nothing_is_concluded_before_the_last_piece_is_used() -> None:
    """Its reading lies behind many poses from the place that it was sent to."""
    rig = begun(Rig(grid(), arrival_radius=2.0, reading_timeout=0.5, inbox=5000))
    (target,) = rig.sent
    begin_again(rig)
    for i in range(3 * BATCH):
        rig.pose(2.0 + 0.001 * i, 10.0 * target)
    rig.reading(2.6)
    while len(rig.mission.inbox):
        rig.step(10.0)
    rig.seconds = CATCH_UP_SECONDS
    for i in range(5):
        rig.seconds += 1.0
        rig.step(11.0 + i)
    assert not rig.ingestion.catch_up.going_on
    assert rig.observed == [rig.topology.names[target]]
    assert not [event for event in rig.events if event["event"] == "miss"]


def test_a_probe_whose_messages_are_kept_is_not_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its clock is behind, so that all it sends looks as if it was missed."""
    team = Team(
        ("a", "b"),
        tmp_path,
        reading={"catch_up": True},
        pose={"catch_up": True},
        mission={"lost_after": 5.0},
    )

    def send(seconds: int) -> None:
        for _ in range(seconds):
            for name, x in (("a", 0.0), ("b", 50.0)):
                stamp = team.now_ns - 8 * SECOND
                team.mission.inbox.put(Pose(stamp, "map", x, 0.0, 0.0), team.t, name)
                team.mission.inbox.put(RawReading(stamp, 5.0, None), team.t, name)
            team.step()

    team.t = 1000.0
    send(15)
    assert {team.probe(name).gone for name in "ab"} == {""}
    before = {name: team.target(name) for name in "ab"}
    team.parts.recorder.close()
    team.begin()
    team.mission.resume()
    send(8)
    assert team.probe("a").ingestion.catch_up.waiting, "kept for longer than a probe may be silent"
    send(5)
    assert not team.probe("a").ingestion.catch_up.going_on
    assert {team.probe(name).gone for name in "ab"} == {""}
    assert {name: team.target(name) for name in "ab"} == before
    assert "takes no part any more" not in caplog.text
