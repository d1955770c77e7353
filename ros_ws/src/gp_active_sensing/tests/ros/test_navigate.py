"""Waypoints as goals of Nav2: what is sent when, and what is made of the answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.environment import REFUSED
from gp_active_sensing.ros.navigate import Navigator, find_action
from tests.ros import fake_nav2
from tests.ros.conftest import Ros, wait_until
from tests.ros.fake_nav2 import ABORTED, CANCELED, SUCCEEDED, Client
from tests.ros.probe import Probe, sensing
from tests.unit.mission.test_blocked import under_way
from tests.unit.mission.worlds import Rig, drive_to, grid


class Stage:
    """A mission whose waypoints go to Nav2, without an executor: `look` is what it would call."""

    def __init__(self, **mission: Any) -> None:
        self.rig = Rig(grid(5), **mission)
        self.seconds = 100.0
        self.clients: list[Client] = []
        node = MagicMock()
        node.guarded.side_effect = lambda callback, name="": callback
        stamp = node.get_clock.return_value.now.return_value.to_msg
        stamp.side_effect = lambda: outputs.time_of(round(1e9 * self.seconds))
        self.navigator = Navigator(
            node,
            self.rig.mission,
            "navigate_to_pose",
            make_client=self._client,
            clock=lambda: self.seconds,
        )
        (self.client,) = self.clients

    def _client(self, node: Any, kind: Any, name: str) -> Client:
        self.clients.append(Client(node, kind, name))
        return self.clients[-1]

    def go(self, place: int | None = None) -> int:
        """Send the probe to where the mission wants it."""
        place = self.rig.sent[-1] if place is None else place
        goal = self.rig.topology.goals[place]
        self.navigator.set_waypoints("", place, [outputs.waypoint_message(goal, "map", 0)])
        self.navigator.update()
        return place

    def later(self, seconds: float) -> None:
        self.seconds += seconds
        self.navigator.update()

    @property
    def state(self) -> str:
        return self.navigator.state("")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    fake_nav2.install(monkeypatch)
    stage = Stage()
    under_way(stage.rig)
    return stage


def test_a_waypoint_is_a_goal_once(stage: Stage) -> None:
    stage.go()
    for _ in range(5):
        stage.later(1.0)
    assert stage.client.at == [(10.0, 0.0)]
    assert stage.state == "driving"
    assert stage.client.goals[0].header.frame_id == "map"
    assert stage.client.goals[0].header.stamp.sec == 100, "transforms of long ago are forgotten"


def test_a_new_waypoint_preempts_and_the_abortion_of_the_old_one_blocks_nothing(
    stage: Stage,
) -> None:
    stage.go(1)
    stage.later(30.0)
    stage.go(2)
    assert stage.client.handles[0].result.result().status == ABORTED
    assert stage.rig.loop.blocked == set()
    assert stage.state == "driving"
    assert not stage.client.handles[0].cancelled, "Nav2 stops the robot when a goal is cancelled"


def test_pausing_cancels_and_resuming_sends_again(stage: Stage) -> None:
    stage.go()
    stage.rig.mission.pause()
    stage.later(0.3)
    assert stage.client.handles[0].cancelled
    assert stage.state == "cancelled"
    assert stage.rig.mission.reason == "asked to"
    stage.rig.mission.resume()
    stage.later(0.3)
    assert len(stage.client.goals) == 1, "the mission sends its waypoint again, not we"
    stage.go()
    assert len(stage.client.goals) == 2


def test_a_goal_that_was_not_answered_when_it_was_paused_is_cancelled_then(stage: Stage) -> None:
    stage.client.accepts = None
    stage.go()
    stage.rig.mission.pause()
    stage.later(0.3)
    handle = stage.client.answer(True)
    assert handle.cancelled
    assert stage.state == "cancelled"


def test_a_goal_that_is_aborted_makes_its_place_unreachable(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    place = stage.go()
    stage.seconds += 30.0
    stage.client.handles[0].end(ABORTED, error_code=208, error_msg="no path")
    assert stage.rig.loop.blocked == {place}
    assert "Nav2 gave it up (error 208: no path)" in caplog.text
    stage.rig.step(2.0)
    assert stage.rig.sent[-1] != place
    assert stage.rig.mission.state == "running"


def test_a_goal_that_is_aborted_at_once_is_tried_again_first(stage: Stage) -> None:
    """Nav2 does so while it does not know where the robot is."""
    place = stage.go()
    for tries in (1, 2):
        stage.client.handles[-1].end(ABORTED)
        assert stage.rig.loop.blocked == set()
        stage.later(1.0)
        assert len(stage.client.goals) == tries
        stage.later(1.1)
        assert len(stage.client.goals) == tries + 1
    stage.client.handles[-1].end(ABORTED)
    assert stage.rig.loop.blocked == {place}


def test_a_goal_that_is_refused_is_tried_again_first(stage: Stage) -> None:
    """Nav2 does so while it is not active."""
    stage.client.accepts = False
    place = stage.go()
    assert stage.state == "refused or aborted"
    stage.later(2.1)
    stage.client.accepts = True
    stage.later(2.1)
    assert stage.state == "driving"
    assert stage.rig.loop.blocked == set()
    stage.client.accepts = False
    stage.go(place)
    stage.later(2.1)
    stage.later(2.1)
    assert stage.rig.loop.blocked == {place}


def test_a_server_that_is_not_there_is_said_and_waited_for(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.client.ready = False
    stage.go()
    for _ in range(40):
        stage.later(0.25)
    assert caplog.text.count("waiting for the action server navigate_to_pose") == 2
    assert stage.state == "no server"
    stage.client.ready = True
    stage.later(0.25)
    assert stage.state == "driving"
    assert stage.rig.loop.blocked == set()
    stage.client.ready = False
    stage.later(1.0)
    assert stage.state == "no server"
    stage.client.ready = True
    stage.later(1.0)
    assert stage.client.at == [(10.0, 0.0)] * 2, "it went away and came back"


def test_success_is_not_an_observation(stage: Stage) -> None:
    place = stage.go()
    drive_to(stage.rig, 2.0, place, None)
    stage.client.handles[0].end(SUCCEEDED)
    assert stage.state == "there"
    assert stage.rig.mission.probe.plan is not None
    assert stage.rig.sent == [place]
    stage.rig.reading(2.0)
    stage.rig.step(2.1)
    assert stage.rig.sent != [place]


def test_a_goal_that_somebody_else_cancels_pauses_the_mission(stage: Stage) -> None:
    stage.go()
    stage.client.handles[0].end(CANCELED)
    assert stage.rig.mission.state == "paused"
    assert "cancelled by somebody else; ~/resume goes on" in stage.rig.mission.reason
    assert stage.rig.loop.blocked == set()


def test_an_abortion_that_comes_late_does_not_block_the_next_place(stage: Stage) -> None:
    """The mission has decided already, and its new waypoint is still on the way to us."""
    first = stage.go()
    stage.seconds += 30.0
    stage.rig.pose(2.0, 10.0)
    stage.rig.reading(2.0)
    stage.rig.step(2.0)
    assert stage.rig.sent[-1] != first
    stage.client.handles[0].end(ABORTED)
    assert stage.rig.loop.blocked == set()
    stage.go()
    assert stage.client.at[-1] == (20.0, 0.0)


@pytest.mark.long
def test_absurd_answers_of_nav2(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random("nav2")
    results: tuple[dict[str, Any], ...] = (
        {}, {"error_code": -1}, {"error_code": 2**31, "error_msg": "x" * 100_000},
        {"error_msg": "half a character: \ud800"}, {"error_code": "word", "error_msg": 3},
    )  # fmt: skip
    mission, client = stage.rig.mission, stage.client
    client.accepts = None
    sent = stage.rig.sent[-1]
    for _ in range(2000):
        what = rng.randrange(8)
        if what == 0 and mission.state == "running":
            stage.go(sent)
        elif what == 1:
            client.ready = rng.random() < 0.8
        elif what == 2 and client.waits:
            client.answer(rng.random() < 0.5)
        elif what == 3 and client.handles:
            rng.choice(client.handles).end(rng.randrange(-128, 128), **rng.choice(results))
        elif what == 4:
            mission.pause()
        elif what == 5:
            mission.resume()
        else:
            stage.later(rng.choice((0.0, 0.3, 3.0, 1e9)))
    assert len(client.goals) > 50
    while client.waits:
        client.answer(False)
    mission.resume()
    client.ready = client.accepts = True
    stage.go(sent)
    assert stage.state == "driving", "an honest server is understood afterwards"
    assert all(len(record.getMessage()) < 1000 for record in caplog.records)


def test_on_the_way_home_an_aborted_goal_is_sent_again(stage: Stage) -> None:
    rig = stage.rig
    stage.go()
    rig.probe.stages.plan = None  # as on the way home: there is no other place
    stage.seconds += 30.0
    stage.client.handles[0].end(ABORTED)
    stage.later(5.0)
    assert len(stage.client.goals) == 1
    stage.later(6.0)
    assert len(stage.client.goals) == 2


# -- with a node -----------------------------------------------------------------------------------


def test_without_nav2_the_node_says_what_to_install(
    ros: Ros, wait_said: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "nav2_msgs.action", None)
    with pytest.raises(MissingDependencyError, match="nav2-msgs"):
        find_action("NavigateToPose")
    node = sensing(ros, "waypoint.navigate:=action")
    wait_until(lambda: node.exit_code is not None, "the node to give up")
    assert node.exit_code == REFUSED
    wait_said("waypoint.navigate: action needs nav2_msgs")


def test_a_mission_through_the_action(ros: Ros, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each goal is driven to, one is aborted; pausing cancels; the topic says the same."""
    fake_nav2.install(monkeypatch)
    clients: list[Client] = []

    def make(*args: Any) -> Client:
        clients.append(Client(*args))
        return clients[-1]

    monkeypatch.setattr("gp_active_sensing.ros.navigate.ActionClient", make)
    monkeypatch.setattr("gp_active_sensing.ros.navigate.AT_ONCE_SECONDS", 0.0)
    node = sensing(
        ros, "waypoint.navigate:=action", "waypoint.action:=/nav/go", "budget.readings:=3"
    )
    probe = Probe(ros).connect()
    probe.pose(0.0)
    wait_until(lambda: clients and clients[0].goals, "the first goal")
    (client,) = clients
    assert client.name == "/nav/go"
    assert client.at[0] == (0.0, 0.0)
    probe.reading(5.0)
    wait_until(lambda: len(client.goals) == 2, "the second goal")
    assert client.at[1] == (10.0, 0.0)
    assert probe.call("pause").success
    wait_until(lambda: client.handles[-1].cancelled, "the goal to be cancelled")
    assert probe.call("resume").success
    wait_until(lambda: len(client.goals) == 3, "the goal again")
    ros.executor.create_task(lambda: client.handles[-1].end(ABORTED))
    wait_until(lambda: len(client.goals) == 4, "a goal elsewhere")
    assert client.at[3] != (10.0, 0.0)
    probe.wait_value("blocked", "1")
    assert node.mission.loop.blocked == {1}
    last = probe.waypoints[-1].pose.position
    assert (last.x, last.y) == client.at[3]
    assert not node.callback_errors
    node.release()
    assert client.destroyed
