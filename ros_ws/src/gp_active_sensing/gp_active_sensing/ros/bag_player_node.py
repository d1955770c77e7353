"""Node ``bag_player``: publish the messages of a bag, and the bag's time on ``/clock``.

The ROS parameters are in `BagPlayerConfig`. The messages may have any type that is installed. At
rate 0 the node plays as fast as another node, the listener, processes the messages. The listener
reports how many messages it has processed: at once on its topic ``~/journal``, or every second on
``/diagnostics``. After the last message, the bag player calls the listener's service ``~/finish``.
"""

# ruff: noqa: E402  ROS is imported after the check for it
from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from gp_active_sensing.ros.environment import require_ros_in

require_ros_in(__name__)

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.exceptions import NameValidationException
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import String
from std_srvs.srv import Trigger

from gp_active_sensing.errors import ConfigError, MissingDependencyError, ReplayError, one_line
from gp_active_sensing.replay import Bag, BagMessage, BagTopic
from gp_active_sensing.ros import qos
from gp_active_sensing.ros.environment import FAILED
from gp_active_sensing.ros.node_base import GuardedNode, run_node
from gp_active_sensing.ros.parameters import BagPlayerConfig, ParameterTree
from gp_active_sensing.ros.to_messages import find_message_type, time_of

CLOCK_TOPIC = "/clock"
AHEAD = 2000
"""Largest number of messages that the listener has not processed yet, at rate 0."""
_PERIOD = 0.002
_SLICE = 0.02
_CLOCK_STEP_NS = 10_000_000
_CLOCK_AGAIN = 0.1
_MATCHED = 0.5  # discovery by the subscriber may take longer
_SETTLE = 2.5  # a listener publishes its results every two seconds
_SETTLE_UNREPORTED = 0.5
_PATIENCE = 6.0
_FINISH_PATIENCE = 60.0  # the listener writes its report before it answers


class BagPlayer(GuardedNode):
    """Player of one bag.

    A message is skipped and counted if its type is not installed or its data are invalid. A damaged
    bag is played up to the damage, and then the exit code is 1.

    Attributes:
        played: number of published messages by topic.
        left_out: number of skipped messages by topic.
    """

    def __init__(self) -> None:
        super().__init__("bag_player", automatically_declare_parameters_from_overrides=True)
        tree = ParameterTree(self, BagPlayerConfig)
        tree.declare({})
        self.settings: BagPlayerConfig = tree.config()
        self.played: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self._stack = ExitStack()
        self._bag = self._stack.enter_context(Bag(self.settings.bag))
        self._watched = [
            self.resolve_topic_name(name, only_expand=True) for name in self.settings.topics
        ]
        self._topics = self._chosen()
        self._publishers_of = self._make_publishers()
        self._check_watched()
        self._clock_publisher = self.create_publisher(ClockMessage, CLOCK_TOPIC, 10)
        self._taken_in = 0
        self._taken_in_at: float | None = None
        self._used = 0
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        if listener := self.settings.listener:
            profile = qos.reliable(1000)
            self.create_subscription(String, f"{listener}/journal", self._on_journal, profile)
        self._messages: Iterator[BagMessage] = self._bag.messages({t.name for t in self._topics})
        self._next: BagMessage | None = None
        self._began = time.monotonic()
        self._first_ns = 0
        self._clock_ns: int | None = None
        self._clock_logged = 0.0
        self._ready_at: float | None = None
        self._phase: Callable[[float], None] = self._wait
        # The timer uses a steady clock, since the node's clock may follow /clock.
        self.create_timer(_PERIOD, self._step)

    def release(self) -> None:
        """Close the bag."""
        self._stack.close()

    # -- preparation ---------------------------------------------------------------------------

    def _chosen(self) -> list[BagTopic]:
        chosen = []
        for topic in self._bag.topics:
            if self._watched and topic.name not in self._watched:
                continue
            if topic.name == CLOCK_TOPIC:
                self._leave_out(topic, "the bag's stamps make the clock instead")
            else:
                chosen.append(topic)
        return chosen

    def _make_publishers(self) -> dict[str, Any]:
        publishers: dict[str, Any] = {}
        for topic in list(self._topics):
            try:
                publishers[topic.name] = self.create_publisher(
                    find_message_type(topic.type),
                    topic.name,
                    # Reliable fits all subscribers. The topic is latched like the recorded topic.
                    qos.reliable(AHEAD, latched=topic.latched),
                )
            except (ConfigError, MissingDependencyError, NameValidationException) as error:
                self._topics.remove(topic)
                self._leave_out(topic, str(error))
        return publishers

    def _leave_out(self, topic: BagTopic, why: str) -> None:
        self.left_out[topic.name] += topic.count
        what = f"{topic.count} messages of {topic.name} are left out: {why}"
        self.get_logger().warning(one_line(what))

    def _check_watched(self) -> None:
        """Raise ConfigError if a requested topic cannot be played."""
        absent = [name for name in self._watched if name not in self._publishers_of]
        if absent:
            topics = ", ".join(f"{t.name} ({t.type}, {t.count})" for t in self._bag.topics)
            msg = (
                f"topics: {', '.join(absent)} cannot be played from bag {self._bag.path}, which "
                f"holds {topics or 'no topic at all'}; with the launch file, say which topics of "
                "the bag are meant: reading_topic:=… pose_topic:=…"
            )
            raise ConfigError(msg)

    # -- playing -------------------------------------------------------------------------------

    def _step(self) -> None:
        now = time.monotonic()
        if now - self._clock_logged >= _CLOCK_AGAIN:
            self._send_clock(now)  # late subscribers need the time
        try:
            self._phase(now)
        except ReplayError as error:
            self.get_logger().error(one_line(str(error)))
            self._report()
            self.end(FAILED)

    def _wait(self, now: float) -> None:
        counts = {n: p.get_subscription_count() for n, p in self._publishers_of.items()}
        ready = all(counts[n] for n in self._watched) if self._watched else any(counts.values())
        if not ready:
            self._ready_at = None
            if now - self._began > self.settings.wait:
                without = ", ".join(n for n in self._watched or counts if not counts[n])
                msg = f"nobody subscribed to {without or 'any topic'} in {self.settings.wait:g} s"
                raise ReplayError(msg)
            return
        self._ready_at = now if self._ready_at is None else self._ready_at
        if now - self._ready_at < _MATCHED:
            return
        self._next = next(self._messages, None)
        self._first_ns = self._next.stamp_ns if self._next is not None else 0
        self._began = now
        self._phase = self._play
        rate = self.settings.rate
        speed = f"at {rate:g} times its own speed" if rate else "as fast as it is taken in"
        lasts = self._bag.seconds
        about = f", about {lasts / rate:.0f} s" if rate and lasts is not None else ""
        self.get_logger().info(f"playing {self._bag.path} {speed}{about}")

    def _play(self, now: float) -> None:
        """Publish the messages that are due; return after `_SLICE` s to let signals be handled."""
        until = now + _SLICE
        while self._next is not None and now < until:
            if not self._is_due(self._next, now):
                if self.settings.rate > 0.0:
                    elapsed = (now - self._began) * self.settings.rate * 1e9
                    self._publish_time(self._first_ns + round(elapsed))
                return
            self._publish_time(self._next.stamp_ns)
            self._publish(self._next)
            self._next = next(self._messages, None)
            now = time.monotonic()
        if self._next is None:
            self._began = now
            self._phase = self._drain

    def _is_due(self, message: BagMessage, now: float) -> bool:
        rate = self.settings.rate
        if rate > 0.0:
            return (now - self._began) * rate * 1e9 >= message.stamp_ns - self._first_ns
        if self._outstanding() < AHEAD:
            return True
        if self._taken_in_at is None and now - self._began > _PATIENCE:
            msg = (
                f"rate 0: no node said on /diagnostics within {_PATIENCE:g} s what it has taken "
                "in; give a rate above 0"
            )
            raise ReplayError(msg)
        return False

    def _publish(self, message: BagMessage) -> None:
        try:
            data = self._bag.standard(message)  # invalid data can crash a subscriber
        except ReplayError as error:
            if not self.left_out[message.topic]:
                self.get_logger().warning(one_line(f"{error}; such messages are left out"))
            self.left_out[message.topic] += 1
            return
        self._publishers_of[message.topic].publish(data)
        self.played[message.topic] += 1

    def _publish_time(self, stamp_ns: int) -> None:
        if self._clock_ns is None or stamp_ns - self._clock_ns >= _CLOCK_STEP_NS:
            self._clock_ns = stamp_ns
            self._send_clock(time.monotonic())

    def _send_clock(self, now: float) -> None:
        if self._clock_ns is not None:
            self._clock_publisher.publish(ClockMessage(clock=time_of(self._clock_ns)))
            self._clock_logged = now

    # -- listener ------------------------------------------------------------------------------

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            try:
                received = int(values["readings_received"]) + int(values["poses_received"])
                taken = received - int(values["inbox"])
            except (KeyError, ValueError):
                continue
            self._note_processed(taken)

    def _on_journal(self, message: String) -> None:
        """Count the messages that the listener's journal reports as used."""
        try:
            frames = json.loads(message.data)
            self._used += sum(len(frame.get("took", ())) for frame in frames)
        except (ValueError, AttributeError, TypeError):  # the topic belongs to another program
            return
        self._note_processed(self._used)

    def _note_processed(self, taken: int) -> None:
        if taken > self._taken_in or self._taken_in_at is None:
            self._taken_in, self._taken_in_at = taken, time.monotonic()

    def _outstanding(self) -> int:
        sent = sum(self.played[name] for name in self._watched or self._publishers_of)
        return sent - self._taken_in

    def _drain(self, now: float) -> None:
        if self._taken_in_at is None:
            # Without a report, wait only if a node publishes diagnostics.
            patience = _PATIENCE if self.count_publishers("/diagnostics") else _SETTLE_UNREPORTED
            if now - self._began < patience:
                return
        else:
            quiet = now - max(self._began, self._taken_in_at)
            # The journal reports at once.
            settled = _SETTLE_UNREPORTED if self._used else _SETTLE
            if quiet < (settled if self._outstanding() <= 0 else _PATIENCE):
                return
            if self._outstanding() > 0:
                self.get_logger().warning(
                    f"{self._outstanding()} messages were sent but never reported as taken in"
                )
        self._report()
        self._announce_end(now)

    def _announce_end(self, now: float) -> None:
        """Call ``~/finish`` of the listener; when it answers, this node ends."""
        if not self.settings.listener:
            self.end(0)
            return
        client = self.create_client(Trigger, f"{self.settings.listener}/finish")
        if not client.service_is_ready():
            self.get_logger().error(f"service {client.srv_name} is not there to be called")
            self.end(FAILED)
            return
        client.call_async(Trigger.Request()).add_done_callback(self.guarded(self._on_finished))
        self._began = now
        self._phase = self._await_finish

    def _on_finished(self, future: Any) -> None:
        answer = future.result()
        if not answer.success:
            self.get_logger().error(f"the service finish: {answer.message}")
        self.end(0 if answer.success else FAILED)

    def _await_finish(self, now: float) -> None:
        if now - self._began > _FINISH_PATIENCE:
            msg = f"the service finish did not answer in {_FINISH_PATIENCE:g} s"
            raise ReplayError(msg)

    def _report(self) -> None:
        played = ", ".join(f"{n}: {c}" for n, c in sorted(self.played.items())) or "none"
        left = ", ".join(f"{n}: {c}" for n, c in sorted(self.left_out.items()))
        text = f"played {self.played.total()} messages ({played})"
        text += f"; left out {self.left_out.total()} ({left})" if left else ""
        self.get_logger().info(one_line(text))


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return the exit code of the process."""
    return run_node(BagPlayer, args)


if __name__ == "__main__":
    sys.exit(main())
