"""How the node ``active_sensing`` is: rates, rejections, planner, buffers, missing topics."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import QoSProfile

from gp_active_sensing.mission.build import Parts
from gp_active_sensing.mission.recording import latencies
from gp_active_sensing.ros import outputs, qos
from gp_active_sensing.ros.logs import Throttle
from gp_active_sensing.ros.message_types import type_name
from gp_active_sensing.ros.node_base import GuardedNode, steady_clock

__all__ = ["MISSION_STATUS", "Health"]

MISSION_STATUS = "mission"
"""The status of ``/diagnostics`` whose value ``state`` says idle, running, paused or ended."""
OK, WARN, ERROR = 0, 1, 2
SILENCE_SECONDS = 5.0
"""A pose topic that is silent for longer is reported [s, real time]."""


class Health:
    """Watches the inputs and publishes ``/diagnostics`` every second.

    Args:
        node: subscribes and publishes.
        parts: the mission and its records.
    """

    def __init__(self, node: GuardedNode, parts: Parts) -> None:
        self._node = node
        self._parts = parts
        self._throttle = Throttle(10.0, time.monotonic)
        self._subscriptions: dict[str, Any] = {}
        self._kinds: dict[str, str] = {}
        self._depths: dict[str, float] = {}
        self._last: dict[str, tuple[int, float]] = {}
        self._rates: dict[str, float] = {}
        self.qos_problems: Counter[str] = Counter()
        self.worker_errors: Counter[str] = Counter()
        self.unstamped: Counter[str] = Counter()
        self._heard_at: dict[str, float] = {}
        self._publisher = node.own(
            node.create_publisher(DiagnosticArray, "/diagnostics", qos.reliable())
        )
        node.own(node.create_timer(1.0, self.publish, clock=steady_clock()))

    def listen(
        self, topic: str, kind: Any, callback: Callable[[Any], None], profile: QoSProfile
    ) -> None:
        """Subscribe to a stream and watch it.

        Args:
            topic: its name.
            kind: message class.
            callback: takes the messages.
            profile: quality of service to ask for.
        """
        events = SubscriptionEventCallbacks(
            incompatible_qos=self._node.guarded(self.incompatible(topic, publishing=False))
        )
        self._kinds[topic] = type_name(kind)
        self._depths[topic] = float(profile.depth)
        self._subscriptions[topic] = self._node.own(
            self._node.create_subscription(kind, topic, callback, profile, event_callbacks=events)
        )

    def incompatible(self, topic: str, *, publishing: bool) -> Callable[[Any], None]:
        """Return the callback that reports a peer whose quality of service does not fit."""

        def report(event: Any) -> None:
            policy = qos.policy_name(int(event.last_policy_kind))
            self.qos_problems[f"{topic}: {policy}"] += 1
            side = "subscriber" if publishing else "publisher"
            self._node.get_logger().warning(
                f"a {side} of topic {topic} has an incompatible quality of service and is not "
                f"connected: {qos.advice(policy, publishing=publishing)}"
            )

        return report

    # -- every second ----------------------------------------------------------------------------

    def publish(self) -> None:
        """Publish the state and say in the log what is missing."""
        now = time.monotonic()
        for kind in ("readings", "poses"):
            count = self._parts.mission.inbox.received[kind]
            before, then = self._last.get(kind, (0, now - 1.0))
            if now - then >= 0.5:
                self._rates[kind] = (count - before) / (now - then)
                self._last[kind] = (count, now)
            if count != before:
                self._heard_at[kind] = now
        self._say_what_is_missing()
        statuses = [self._mission_status(), self._input_status(), self._planner_status()]
        message = DiagnosticArray(status=statuses)
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def _say_what_is_missing(self) -> None:
        mission = self._parts.mission
        if mission.state == "ended":
            return
        for topic, kind in (("pose", "poses"), ("reading", "readings")):
            subscription = self._subscriptions.get(topic)
            heard = mission.inbox.received[kind] > 0
            # Poses come all the time; how often a sensor measures is its own affair.
            quiet = heard and kind == "poses" and self._silence(kind) > SILENCE_SECONDS
            if subscription is None or (heard and not quiet) or not self._throttle.ready(topic):
                continue
            name = subscription.topic_name
            why = self._why_silent(name, self._kinds[topic])
            since = f" (silent for {self._silence(kind):.0f} s)" if quiet else ""
            self._node.get_logger().warning(f"waiting for topic {name}{since}: {why}")
        if self._node.get_clock().now().nanoseconds == 0 and self._throttle.ready("clock"):
            self._node.get_logger().warning(
                "waiting for topic /clock: use_sim_time is set and no time has come yet"
            )

    def _why_silent(self, name: str, expected: str) -> str:
        """Return what is known of the publishers of a topic that says nothing."""
        types = [info.topic_type for info in self._node.get_publishers_info_by_topic(name)]
        if not types:
            return "nobody publishes it; start it, or remap the topic"
        others = sorted(set(types) - {expected})
        if len(others) == len(set(types)):
            return f"it is published as {', '.join(others)}, expected {expected}; set its type"
        return f"{len(types)} publisher(s), but no message comes"

    def _silence(self, kind: str) -> float:
        """Return how long no message of a kind has come [s]; 0 before the first."""
        return time.monotonic() - self._heard_at.get(kind, time.monotonic())

    def note_unstamped(self, topic: str) -> None:
        """Count a message whose publisher left its stamp at zero, and say so once."""
        self.unstamped[topic] += 1
        if self.unstamped[topic] == 1:
            self._node.get_logger().warning(
                f"messages of topic {topic} have a header without a stamp; the time of their "
                "arrival is used, so their publisher should better fill it in"
            )

    def _mission_status(self) -> Any:
        mission = self._parts.mission
        target = mission.probe.target
        left = mission.probe.left
        values = {
            "state": mission.state,
            "reason": mission.reason,
            "stage": mission.decisions.stage,
            "waypoint": "" if target is None else mission.loop.topology.names[target],
            "observed": int(mission.loop.belief.observed.sum()),
            "set_aside": len(mission.loop.set_aside),
            "blocked": len(mission.loop.blocked),
            "readings_left": "unlimited" if left.readings is None else left.readings,
            "metres_left": "unlimited" if left.metres is None else left.metres,
            "seconds_left": "unlimited" if left.seconds is None else left.seconds,
            "record_failures": self._parts.recorder.failures,
        }
        level = WARN if mission.state == "paused" else OK
        summary = mission.state + (f": {mission.reason}" if mission.reason else "")
        return self._status(MISSION_STATUS, level, summary, values)

    def _input_status(self) -> Any:
        mission = self._parts.mission
        intakes = [probe.intake for probe in mission.probes.values()]
        rejected = mission.rejected
        values: dict[str, object] = {
            "readings_per_second": self._rates.get("readings", 0.0),
            "poses_per_second": self._rates.get("poses", 0.0),
            "readings_received": mission.inbox.received["readings"],
            "poses_received": mission.inbox.received["poses"],
            "readings_accepted": mission.loop.counts["accepted"],
            "readings_late": mission.loop.counts["late"],
            "seconds_since_reading": self._silence("readings"),
            "seconds_since_pose": self._silence("poses"),
            "inbox": len(mission.inbox),
            "waiting_for_pose": sum(intake.waiting for intake in intakes),
            "waiting_for_coverage": sum(intake.visits.waiting for intake in intakes),
        }
        values |= {f"rejected_{word}": n for word, n in sorted(rejected.items())}
        values |= {f"dropped_{word}": n for word, n in dict(mission.inbox.dropped).items()}
        values |= {f"unstamped_{word}": n for word, n in self.unstamped.items()}
        values |= {f"qos_{word}": n for word, n in sorted(self.qos_problems.items())}
        values |= {f"failed {word}": n for word, n in dict(self._node.callback_errors).items()}
        values |= {f"failed_thread_{word}": n for word, n in dict(self.worker_errors).items()}
        problems = []
        if not mission.inbox.received["poses"]:
            problems.append("no pose yet")
        elif (silence := self._silence("poses")) > SILENCE_SECONDS:
            problems.append(f"no pose for {silence:.0f} s")
        if not mission.inbox.received["readings"]:
            problems.append("no reading yet")
        for topic, kind in (("pose", "poses"), ("reading", "readings")):
            rate, depth = self._rates.get(kind, 0.0), self._depths.get(topic, math.inf)
            if rate > 1.2 * depth:
                problems.append(
                    f"{kind} come {rate:.0f} times a second and {depth:.0f} are kept: set "
                    f"{topic}.rate to what is expected"
                )
        if rejected:
            problems.append(f"{rejected.total()} rejected")
        if self.qos_problems:
            problems.append("incompatible quality of service")
        if self._node.callback_errors or self.worker_errors:
            problems.append("errors, see the log")
        return self._status("inputs", WARN if problems else OK, ", ".join(problems) or "ok", values)

    def _planner_status(self) -> Any:
        mission = self._parts.mission
        plan = mission.decisions.last_plan
        values: dict[str, object] = {
            "planning": mission.decisions.running,
            "planned_ahead": mission.probe.ahead.progress,
        }
        values |= {f"decisions_{how}": took.count for how, took in mission.decisions.latencies.items()}
        for name, latency in latencies(mission).items():
            values |= {f"{name}_{key}": value for key, value in latency.items()}
        if plan is None:
            return self._status("planner", OK, "no decision yet", values)
        values |= {
            "lower": plan.lower,
            "upper": plan.upper,
            "gap": plan.gap,
            "seconds": plan.seconds,
            "expanded": plan.expanded,
            "horizon": plan.horizon,
            "deadline_hit": plan.deadline_hit,
        }
        return self._status("planner", OK, f"gap {plan.gap:.3g} in {plan.seconds:.3f} s", values)

    def _status(self, name: str, level: int, summary: str, values: dict[str, object]) -> Any:
        full = self._node.get_fully_qualified_name().lstrip("/")
        return outputs.diagnostic_status(f"{full}: {name}", full, level, summary, values)
