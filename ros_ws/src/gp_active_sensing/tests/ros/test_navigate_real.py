"""Waypoints through the real action NavigateToPose, where nav2_msgs is installed.

The server is rclpy's, and does what Nav2's does: one goal at a time, the one before is aborted.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("nav2_msgs.action", reason="nav2_msgs is not installed")

from nav2_msgs.action import NavigateToPose
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future

from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import Probe, sensing

pytestmark = pytest.mark.ros


class Nav2:
    """Drives nowhere: the test says what becomes of the goal."""

    def __init__(self, ros: Ros, name: str = "navigate_to_pose") -> None:
        self._ros = ros
        self.goals: list[Any] = []
        self.ends: list[str] = []
        self.accepts = True
        self._over: Future | None = None
        self._server = ActionServer(
            ros.node("bt_navigator"),
            NavigateToPose,
            name,
            self._execute,
            goal_callback=lambda goal: GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT,
            handle_accepted_callback=self._accept,
            cancel_callback=self._cancel,
        )

    def _accept(self, handle: Any) -> None:
        self._end("abort")  # preempted
        self._over = Future()
        self.goals.append(handle.request.pose)
        handle.execute()

    def _cancel(self, handle: Any) -> Any:
        self._end("canceled")
        return CancelResponse.ACCEPT

    async def _execute(self, handle: Any) -> Any:
        how = await self._over
        getattr(handle, how)()
        self.ends.append(how)
        return NavigateToPose.Result(error_code=208 if how == "abort" else 0)

    def _end(self, how: str) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(how)

    def end(self, how: str) -> None:
        """End the goal: succeed, abort."""
        self._ros.executor.create_task(lambda: self._end(how))

    @property
    def at(self) -> list[float]:
        return [goal.pose.position.x for goal in self.goals]

    def close(self) -> None:
        self._server.destroy()


def test_goals_preemption_abortion_and_cancelling(
    ros: Ros, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gp_active_sensing.ros.navigate.AT_ONCE_SECONDS", 0.0)
    nav2 = Nav2(ros)
    try:
        node = sensing(ros, "waypoint.navigate:=action", "mission.block_seconds:=1000.0")
        probe = Probe(ros).connect()
        probe.pose(0.0)
        wait_until(lambda: nav2.at == [0.0], "the first goal")
        assert nav2.goals[0].header.frame_id == "map"
        probe.reading(5.0)
        wait_until(lambda: nav2.at == [0.0, 10.0], "a goal that preempts the first")
        wait_until(lambda: nav2.ends == ["abort"], "the first to be aborted by that")
        assert node.mission.loop.blocked == set()
        assert probe.call("pause").success
        wait_until(lambda: nav2.ends == ["abort", "canceled"], "the goal to be cancelled")
        assert probe.call("resume").success
        wait_until(lambda: len(nav2.goals) == 3, "the goal again")
        nav2.end("abort")
        wait_until(lambda: node.mission.loop.blocked == {1}, "the place to be blocked")
        wait_until(lambda: len(nav2.goals) == 4, "a goal elsewhere")
        nav2.end("succeed")
        navigator = node.results.waypoints.navigator
        wait_until(lambda: navigator.state("") == "there", "Nav2 to be there")
        assert node.mission.plan is not None, "that is no reading"
        assert not node.callback_errors
        assert not ros.failures
    finally:
        nav2.close()


def test_a_server_that_comes_later_gets_the_goal(ros: Ros, capfd: Any) -> None:
    sensing(ros, "waypoint.navigate:=action", "waypoint.action:=/robot/go")
    probe = Probe(ros).connect()
    probe.pose(0.0)
    wait_until(lambda: probe.waypoints, "the waypoint on its topic")
    said = ""

    def missing() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return "waiting for the action server /robot/go" in said

    wait_until(missing, "a word about the server")
    nav2 = Nav2(ros, "/robot/go")
    try:
        wait_until(lambda: nav2.at == [0.0], "the goal")
    finally:
        nav2.close()
