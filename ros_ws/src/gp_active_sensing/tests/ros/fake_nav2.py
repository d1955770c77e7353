"""A stand-in for Nav2: the action NavigateToPose, and a client of it whose server the test plays.

It answers as rclpy's ``ActionClient`` does (futures that are done later, goal handles, results with
a status), and as Nav2's server does: one goal at a time; one that is preempted is *aborted*.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from rclpy.task import Future

ABORTED, CANCELED = GoalStatus.STATUS_ABORTED, GoalStatus.STATUS_CANCELED
SUCCEEDED = GoalStatus.STATUS_SUCCEEDED


class NavigateToPose:
    class Goal:
        def __init__(self) -> None:
            self.pose = PoseStamped()
            self.behavior_tree = ""


class NavigateThroughPoses:
    class Goal:
        def __init__(self) -> None:
            self.poses: list[PoseStamped] = []


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the stand-in what ``import nav2_msgs.action`` finds."""
    package, action = ModuleType("nav2_msgs"), ModuleType("nav2_msgs.action")
    action.NavigateToPose = NavigateToPose  # type: ignore[attr-defined]
    action.NavigateThroughPoses = NavigateThroughPoses  # type: ignore[attr-defined]
    package.action = action  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nav2_msgs", package)
    monkeypatch.setitem(sys.modules, "nav2_msgs.action", action)


class Handle:
    def __init__(self, client: Client, accepted: bool) -> None:
        self.accepted = accepted
        self.cancelled = False
        self.result = Future()
        self._client = client

    def get_result_async(self) -> Any:
        assert self.accepted, "a goal that was refused has no result"
        return self.result

    def cancel_goal_async(self) -> Any:
        assert self.accepted
        self.cancelled = True
        answer = Future()
        answer.set_result(SimpleNamespace(goals_canceling=[self]))
        self.end(CANCELED)
        return answer

    def end(self, status: int, **result: Any) -> None:
        """Let the server end the goal; once is enough."""
        if not self.result.done():
            self.result.set_result(SimpleNamespace(status=status, result=SimpleNamespace(**result)))


class Client:
    def __init__(self, node: Any, kind: Any, name: str) -> None:
        self.kind, self.name = kind, name
        self.ready = True
        self.accepts: bool | None = True
        """None = answers only when `answer` is called."""
        self.goals: list[PoseStamped] = []
        self.through: list[list[PoseStamped]] = []
        self.handles: list[Handle] = []
        self.destroyed = False
        self._unanswered: list[Any] = []

    def server_is_ready(self) -> bool:
        return self.ready

    def send_goal_async(self, goal: Any) -> Any:
        assert isinstance(goal, self.kind.Goal)
        assert self.ready, "a goal to a server that is not there is lost"
        self.through.append(getattr(goal, "poses", []))
        self.goals.append(goal.pose if hasattr(goal, "pose") else goal.poses[0])
        future = Future()
        self._unanswered.append(future)
        if self.accepts is not None:
            self.answer(self.accepts)
        return future

    def answer(self, accepted: bool) -> Handle:
        """Let the server answer the oldest goal that has no answer."""
        handle = Handle(self, accepted)
        if accepted:
            for before in self.handles:
                before.end(ABORTED)  # preempted
            self.handles.append(handle)
        self._unanswered.pop(0).set_result(handle)
        return handle

    @property
    def waits(self) -> bool:
        return bool(self._unanswered)

    @property
    def at(self) -> list[tuple[float, float]]:
        return [(g.pose.position.x, g.pose.position.y) for g in self.goals]

    def destroy(self) -> None:
        self.destroyed = True
