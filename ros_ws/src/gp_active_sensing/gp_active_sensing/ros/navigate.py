"""Send waypoints as goals to Nav2's actions NavigateToPose and NavigateThroughPoses.

A new waypoint preempts the previous goal. A pause of the mission cancels the goal. If Nav2 aborts a
goal, the goal's place counts as unreachable. After a successful goal, the place still needs a
reading.

The mission's threads only store a waypoint (`Navigator.set_waypoints`). All other work is done in
the executor's thread, by callbacks of rclpy.
"""

from __future__ import annotations

import importlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from rclpy.action import ActionClient
from std_msgs.msg import Header

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.mission import changes
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.names import probe_topic
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.ros.node_base import GuardedNode, Throttle
from gp_active_sensing.types import Clock

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
"""Interval at which the action server and the mission are checked [s, real time]."""
TRIES = 3
"""Largest number of attempts for one goal; Nav2 refuses or aborts goals while it starts."""
PAUSE_SECONDS = 2.0
"""Time between two attempts for the same goal [s]."""
AT_ONCE_SECONDS = 2.0
"""If Nav2 aborts a goal within this time after its start [s], the goal is sent again."""


TO_POSE, THROUGH_POSES = "navigate_to_pose", "navigate_through_poses"
"""Default names of the actions for goals with one waypoint and with several waypoints."""


def find_action(name: str) -> Any:
    """Return an action class of the installed Nav2, such as ``NavigateToPose``.

    Raises:
        MissingDependencyError: nav2_msgs is not installed, or lacks the action.
    """
    try:
        return getattr(importlib.import_module("nav2_msgs.action"), name)
    except (ImportError, AttributeError) as error:
        msg = (
            f"waypoint.navigate: action needs nav2_msgs, which cannot be imported ({error}); "
            "install it (ros-$ROS_DISTRO-nav2-msgs) and source its workspace, or set "
            "waypoint.navigate to topic and remap next_waypoint to goal_pose"
        )
        raise MissingDependencyError(msg) from error


class Navigator:
    """Nav2 client that sends the waypoints of all probes as goals.

    Args:
        action: name of the action, in a fleet relative to the namespace of each probe.
        through: True = a goal has several poses and is sent to NavigateThroughPoses.
        make_client: returns an action client; None = use rclpy's client.

    Raises:
        MissingDependencyError: nav2_msgs is not installed.
    """

    def __init__(
        self,
        node: GuardedNode,
        mission: Mission,
        action: str,
        *,
        through: bool = False,
        make_client: Callable[..., Any] | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._node = node
        self._mission = mission
        self._action = THROUGH_POSES if through and action == TO_POSE else action
        self._kind = find_action("NavigateThroughPoses" if through else "NavigateToPose")
        self._make_client = ActionClient if make_client is None else make_client
        self._clock = clock
        self._senders: dict[str, GoalSender] = {}
        for name in mission.probes:
            self.add_probe(name)
        self._guard = node.create_guard_condition(node.guarded(self.update, "goals of Nav2"))
        node.own(node.create_timer(LOOK_SECONDS, self.update))

    def add_probe(self, name: str) -> None:
        """Create the action client of a probe."""
        action = self._action if self._action.startswith("/") else probe_topic(name, self._action)
        client = self._make_client(self._node, self._kind, action)
        # The dictionary is replaced, since the mission's threads may read the old one.
        sender = GoalSender(
            self._node, self._mission, name, client, self._kind, action, self._clock
        )
        self._senders = {**self._senders, name: sender}

    def set_waypoints(self, probe: str, place: int, waypoints: Sequence[PoseStamped]) -> None:
        """Store a probe's next waypoints; may be called by any thread."""
        self._senders[probe].order(place, waypoints)
        self._guard.trigger()

    def update(self) -> None:
        """Send, repeat or cancel the goals of all probes as needed."""
        for sender in self._senders.values():
            sender.update()

    def state(self, probe: str) -> str:
        """Return the state of a probe's goal as a short text."""
        sender = self._senders.get(probe)
        return "" if sender is None else sender.state

    def close(self) -> None:
        """Cancel running goals, unless the mission is over; then destroy the action clients."""
        for sender in self._senders.values():
            if self._mission.state != "ended":
                sender.cancel()
            sender.client.destroy()
        self._senders = {}
        self._node.destroy_guard_condition(self._guard)


class GoalSender:
    """Sender of one probe's goals. All methods except `order` run in the executor's thread."""

    def __init__(
        self,
        node: GuardedNode,
        mission: Mission,
        name: str,
        client: Any,
        kind: Any,
        action: str,
        clock: Clock,
    ) -> None:
        self.client = client
        self.state = "no waypoint yet"
        self._node = node
        self._mission = mission
        self._name = name
        self._kind = kind
        self._action = action
        self._clock = clock
        self._lock = threading.Lock()
        self._order: tuple[int, int, Sequence[PoseStamped]] | None = None
        """Newest order: its index, place and waypoints; None = the probe must stop."""
        self._orders = 0
        self._sent = 0
        """Index of the newest order that was sent to Nav2."""
        self._attempt = 0
        """Index of the newest goal; the results of older goals are ignored."""
        self._handle: Any = None
        """Handle of the goal that is accepted and not finished; None = no such goal."""
        self._waiting = False
        """True after a goal was sent, until the server accepts or refuses it."""
        self._sent_at = 0.0
        self._tries = 0
        self._again_at: float | None = None
        self._throttle = Throttle(10.0, clock)
        self._far_logged = False

    @property
    def _probe(self) -> ProbeState:
        return self._mission.probes[self._name]

    def order(self, place: int, waypoints: Sequence[PoseStamped]) -> None:
        """Store the next place and its waypoints; may be called by any thread."""
        with self._lock:
            self._orders += 1
            self._order = self._orders, place, waypoints

    def update(self) -> None:
        """Send a goal that is new or must be repeated; cancel the goal if the probe must stop."""
        order = self._order
        if self._mission.state == "paused" or self._probe.gone:
            with self._lock:
                if self._order is not order:
                    return  # new waypoints have come since the check
                self._order = None
            self.cancel()
            return
        if order is None:
            return
        number, _, waypoints = order
        new = number != self._sent
        due = self._again_at is not None and self._clock() >= self._again_at
        if not self.client.server_is_ready():
            if self._handle is not None or self._waiting:
                logger.warning("%sNav2 has ended, and its goal is lost", self._label)
                self._handle, self._waiting = None, False
                self._attempt += 1
                self._again_at = self._clock()
            if new or self._again_at is not None:
                self.state = "no server"
                if self._throttle.ready("server"):
                    logger.warning(
                        "%swaiting for the action server %s: Nav2 is not running, or has another "
                        "name (waypoint.action)",
                        self._label,
                        self._action,
                    )
        elif new or due:
            if new:
                self._tries = 0
            self._send(number, waypoints)

    def cancel(self) -> None:
        """Cancel the present goal, and do not try it again."""
        self._again_at = None
        if self._handle is None and not self._waiting:
            return
        self._attempt += 1
        if self._handle is not None:  # otherwise the goal is cancelled after its acceptance
            self._handle.cancel_goal_async()
        self._handle, self._waiting = None, False
        self.state = "cancelled"

    def _send(self, number: int, waypoints: Sequence[PoseStamped]) -> None:
        self._attempt += 1
        self._sent, self._sent_at, self._again_at = number, self._clock(), None
        self._handle, self._waiting = None, True
        # Nav2 transforms the goal at its stamp, and has no old transforms.
        stamp, frame = self._node.get_clock().now().to_msg(), waypoints[0].header.frame_id
        header = Header(stamp=stamp, frame_id=frame)
        goal = _filled(
            self._kind.Goal(), [PoseStamped(header=header, pose=w.pose) for w in waypoints]
        )
        self.state = "sent"
        self.client.send_goal_async(goal).add_done_callback(
            self._node.guarded(partial(self._on_answer, self._attempt), "answer to a goal")
        )

    def _on_answer(self, attempt: int, future: Any) -> None:
        handle = future.result()
        if attempt != self._attempt:
            if handle.accepted and self._order is None:  # cancelled before acceptance
                handle.cancel_goal_async()
            return
        self._waiting = False
        if not handle.accepted:
            self._fail("Nav2 refused the goal", at_once=True)
            return
        self._handle = handle
        self.state = "driving"
        handle.get_result_async().add_done_callback(
            self._node.guarded(partial(self._on_result, attempt), "result of a goal")
        )

    def _on_result(self, attempt: int, future: Any) -> None:
        if attempt != self._attempt:
            return  # the goal was preempted or cancelled by this client
        response = future.result()
        self._handle = None
        if response.status == GoalStatus.STATUS_SUCCEEDED:
            self.state = "there"
            if (order := self._order) is not None and self._mission.arrived(self._name, order[1]):
                return
            self._check_distance()
        elif response.status == GoalStatus.STATUS_CANCELED:
            self.state = "cancelled by others"
            self._yield_control()
        else:
            at_once = self._clock() - self._sent_at < AT_ONCE_SECONDS
            self._fail(f"Nav2 gave it up{_server_reason(response.result)}", at_once=at_once)

    def _fail(self, why: str, *, at_once: bool) -> None:
        self._tries += 1
        self.state = "refused or aborted"
        if at_once and self._tries < TRIES:
            self._again_at = self._clock() + PAUSE_SECONDS
            logger.info("%s%s; the goal is sent again", self._label, why)
            return
        order = self._order
        if order is None:
            return
        problem = self._mission.unreachable(self._name, why, place=order[1])
        if problem:  # the end place has no alternative
            self._tries = 0
            self._again_at = self._clock() + 5.0 * PAUSE_SECONDS
            logger.warning("%s%s (%s); the goal is sent again", self._label, why, problem)

    def _yield_control(self) -> None:
        """Leave the control to the program that has cancelled a goal."""
        why = "its goal was cancelled by somebody else"
        if self._name:
            changes.leave(self._mission, self._name, why)
        else:
            self._mission.pause(f"{why}; ~/resume goes on")
        logger.warning("%s%s", self._label, why)

    def _check_distance(self) -> None:
        order, arrival = self._order, self._probe.arrival
        if order is None or len(order[2]) > 1 or self._far_logged or arrival.inside(order[1]):
            return
        self._far_logged = True
        logger.warning(
            "%sNav2 reports its arrival farther than mission.arrival_radius (%g m) from the "
            "waypoint: set a larger radius, or a smaller goal tolerance in Nav2",
            self._label,
            arrival.radius,
        )

    @property
    def _label(self) -> str:
        return f"{self._name}: " if self._name else ""


def _filled(goal: Any, poses: list[PoseStamped]) -> Any:
    """Set the poses of a goal; the action and Nav2's version determine the name of the field."""
    if hasattr(goal, "pose"):
        goal.pose = poses[0]
    elif hasattr(goal.poses, "goals"):  # nav_msgs/Goals
        goal.poses.header, goal.poses.goals = poses[0].header, poses
    else:
        goal.poses = poses
    return goal


def _server_reason(result: Any) -> str:
    """Return a text with the server's error; "" = no error, or an older version of Nav2."""
    code, text = getattr(result, "error_code", 0), getattr(result, "error_msg", "")
    if not code and not text:
        return ""
    return f" (error {code}{': ' + text if text else ''})"
