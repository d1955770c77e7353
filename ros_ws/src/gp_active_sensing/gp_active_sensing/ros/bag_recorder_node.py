"""Node ``bag_recorder``: writes topics into a rosbag2 folder (MCAP), whatever their types.

ROS parameters: see `BagRecorderConfig`. Subscribes the topics raw, as their publishers offer them,
and ``/diagnostics``, where it also says how it is. A thread writes; callbacks only leave the
messages in a queue that is bounded in bytes. What cannot be recorded is counted and said.
"""

# ruff: noqa: E402  whether there is a ROS to import is looked at first
from __future__ import annotations

import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Sequence
from functools import partial
from typing import Any

from gp_active_sensing.ros.environment import require_ros_in

require_ros_in(__name__)

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.replay.writing import BagWriter
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.logs import Throttle
from gp_active_sensing.ros.message_types import RosTypes, find_message_type
from gp_active_sensing.ros.node_base import GuardedNode, steady_clock
from gp_active_sensing.ros.node_configs import BagRecorderConfig
from gp_active_sensing.ros.parameters import ParameterTree
from gp_active_sensing.ros.spin import run_node

__all__ = ["BagRecorder", "main"]

LOOK_SECONDS = 0.25
"""How often new topics are looked for."""
ABSENT_SECONDS = 5.0
"""After so long it is said that what should be recorded is not there."""
STUCK_SECONDS = 5.0
"""When topics have not been looked for in so long, it is said where the node is."""
END_SECONDS = 10.0
"""How long what waits may take to be written at the end."""
DEPTH = 2000
HELD = 1000
"""Messages held while simulated time has not begun."""
OF_EVERY_NODE = ("/rosout", "/parameter_events", "/clock")
"""Topics that are recorded when they are named."""


class BagRecorder(GuardedNode):
    """Records until it is ended.

    Attributes:
        settings: the parameters, checked.
        lost: messages that came and were not written, by the word of the reason.
        left_out: topics that cannot be recorded, and why.
        is_stuck: whether it has said that it cannot look for new topics.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "bag_recorder", automatically_declare_parameters_from_overrides=True, **options
        )
        tree = ParameterTree(self, BagRecorderConfig)
        tree.declare({})
        self.settings: BagRecorderConfig = tree.config()
        self._writer = BagWriter(
            self.settings.bag, fields=RosTypes().fields, compress=self.settings.compress
        )
        self.lost: Counter[str] = Counter()
        self.left_out: dict[str, str] = {}
        self._wanted = {
            self.resolve_topic_name(name, only_expand=True) for name in self.settings.topics
        }
        self._taken: dict[str, Any] = {}
        self._began = time.monotonic()
        self._said_absent: set[str] = set()
        self._looked = self._began
        self._spinning = threading.get_ident()
        self.is_stuck = False
        self._met = False
        """The node that is recorded has been seen; it may have left since."""
        self._queue: deque[tuple[str, int, bytes]] = deque()
        self.waiting = 0
        """Messages in the queue, or being written."""
        self.waiting_bytes = 0
        """Their bytes."""
        self._condition = threading.Condition()
        """Held for the queue only, never while something is written."""
        self._writing = threading.Lock()
        """Held while the bag is written to."""
        self._closing = False
        self._throttle = Throttle(10.0, time.monotonic)
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)
        self._thread.start()
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", qos.reliable())
        self.create_timer(LOOK_SECONDS, self._look, clock=steady_clock())
        self.create_timer(1.0, self._report, clock=steady_clock())
        self._look()
        self.get_logger().info(f"recording to {self.settings.bag}")

    # -- topics --------------------------------------------------------------------------------

    def _look(self) -> None:
        """Subscribe to topics that have come up."""
        self._looked = time.monotonic()
        for name, kinds in self.get_topic_names_and_types():
            if name in self._taken or name in self.left_out:
                continue
            publishers = self.get_publishers_info_by_topic(name)
            if self._is_wanted(name, publishers) and publishers:
                self._take(name, kinds[0], publishers)

    def _is_wanted(self, topic: str, publishers: Sequence[Any]) -> bool:
        """Return whether a topic is recorded: by its name, as one of the node's, or as any.

        The ends of the topic are asked whose they are, not the node what its topics are: of
        several nodes of that name, such as one that was killed and is remembered for a while, the
        graph tells the topics of any one.
        """
        if topic in self._wanted:
            return True
        if not self.settings.node:
            return not self._wanted and topic not in OF_EVERY_NODE
        full = self.resolve_topic_name(self.settings.node, only_expand=True)
        if topic in (f"{full}/transition_event", *OF_EVERY_NODE):
            return False
        ends = [*publishers, *self.get_subscriptions_info_by_topic(topic)]
        own = any(_name_of(end) == full for end in ends)
        self._met = self._met or own
        return own

    def _absent(self) -> set[str]:
        """Return what should be recorded and nobody has published or spoken of yet."""
        absent = {f"topic {name}" for name in self._wanted - {*self._taken, *self.left_out}}
        if self.settings.node and not self._met:
            absent.add(f"node {self.resolve_topic_name(self.settings.node, only_expand=True)}")
        return absent

    def _say_absent(self, absent: set[str]) -> None:
        """Warn once of each: a name with a slip in it would record nothing, silently."""
        new = sorted(absent - self._said_absent)
        if not new or time.monotonic() - self._began < ABSENT_SECONDS:
            return
        self._said_absent |= absent
        found = self.get_node_names_and_namespaces()
        nodes = ", ".join(sorted(f"{space.rstrip('/')}/{name}" for name, space in found))
        self.get_logger().warning(
            f"waiting for {', '.join(new)}: not seen yet; the nodes that are: {nodes}"
        )

    def _take(self, name: str, kind: str, publishers: Sequence[Any]) -> None:
        profiles = [info.qos_profile for info in publishers]
        reliable = all(p.reliability == ReliabilityPolicy.RELIABLE for p in profiles)
        latched = all(p.durability == DurabilityPolicy.TRANSIENT_LOCAL for p in profiles)
        try:
            with self._writing:
                self._writer.add(name, kind, latched=latched, reliable=reliable)
            self._taken[name] = self.create_subscription(
                find_message_type(kind),
                name,
                partial(self._on_message, name),
                QoSProfile(
                    history=HistoryPolicy.KEEP_LAST,
                    depth=DEPTH,
                    reliability=(
                        ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT
                    ),
                    durability=(
                        DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
                    ),
                ),
                raw=True,
            )
        except ActiveSensingError as error:
            self.left_out[name] = str(error)
            self.get_logger().warning(f"topic {name} is not recorded: {error}")
            return
        self.get_logger().info(f"recording {name} ({kind})")

    def _on_message(self, name: str, data: bytes) -> None:
        stamp_ns = int(self.get_clock().now().nanoseconds)
        with self._condition:
            if self.waiting_bytes + len(data) > 1e6 * self.settings.memory:
                self._lose("queue_full", "the disk does not keep up")
                return
            self._queue.append((name, stamp_ns, data))
            self.waiting_bytes += len(data)
            self.waiting += 1
            self._condition.notify()

    def _lose(self, word: str, why: str, count: int = 1) -> None:
        self.lost[word] += count
        if self._throttle.ready(word):
            self.get_logger().error(
                f"messages are not recorded: {why} ({self.lost[word]} lost so far)"
            )

    # -- writing -------------------------------------------------------------------------------

    def _write(self) -> None:
        flushed = time.monotonic()
        while True:
            self._watch()
            with self._condition:
                self._condition.wait_for(lambda: self._queue or self._closing, timeout=0.2)
                batch, closing = self._batch(), self._closing
            self._write_batch(batch)
            if time.monotonic() - flushed >= self.settings.flush or closing:
                flushed = time.monotonic()
                self._guarded(self._writer.flush)
            if closing and not self._queue:
                return

    def _watch(self) -> None:
        """Say where the other thread is when it does not look for topics any more.

        Not by the logger, which that may be waiting for.
        """
        silent = time.monotonic() - self._looked
        if silent < STUCK_SECONDS:
            self.is_stuck = False
        elif not self.is_stuck and not self._closing:
            frame = sys._current_frames().get(self._spinning)
            where = "".join(traceback.format_stack(frame)) if frame else "at its end\n"
            sys.stderr.write(
                f"bag_recorder: no new topic has been looked for in {silent:.0f} s, so that some "
                f"may be missed; the node is busy:\n{where}"
            )
            self.is_stuck = True

    def _batch(self) -> list[tuple[str, int, bytes]]:
        """Take what waits; all of it has a time, or there is none yet."""
        entries = list(self._queue)
        times = [stamp_ns for _, stamp_ns, _ in entries if stamp_ns > 0]
        if not times and not self._closing and len(entries) < HELD:
            return []  # simulated time has not begun
        self._queue.clear()
        first = times[0] if times else 1
        return [(name, stamp_ns or first, data) for name, stamp_ns, data in entries]

    def _write_batch(self, batch: list[tuple[str, int, bytes]]) -> None:
        for name, stamp_ns, data in batch:
            self._guarded(partial(self._writer.write, name, stamp_ns, data))
            with self._condition:
                self.waiting_bytes -= len(data)
                self.waiting -= 1

    def _guarded(self, write: Any) -> None:
        try:
            with self._writing:
                write()
        except ActiveSensingError as error:
            self._lose("not_written", str(error))
        except Exception as error:
            self._lose("not_written", f"unexpected {type(error).__name__}: {error}")

    # -- how it is -----------------------------------------------------------------------------

    def _report(self) -> None:
        written = self._writer.written.total()
        values: dict[str, object] = {
            "bag": self.settings.bag,
            "topics": len(self._taken),
            "written": written,
            "waiting": self.waiting,
            "waiting_bytes": self.waiting_bytes,
        }
        absent = self._absent()
        self._say_absent(absent)
        if absent:
            values["waiting_for"] = ", ".join(sorted(absent))
        values |= {f"lost_{word}": count for word, count in sorted(self.lost.items())}
        values |= {f"left_out {name}": why for name, why in sorted(self.left_out.items())}
        wrong = self.lost.total() or self.left_out
        summary = f"{written} messages written"
        if self.lost:
            summary += f", {self.lost.total()} lost"
        full = self.get_fully_qualified_name().lstrip("/")
        status = outputs.diagnostic_status(
            f"{full}: recording", full, 1 if wrong else 0, summary, values
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    def release(self) -> None:
        """Write what waits, and close the bag."""
        with self._condition:
            if self._closing:
                return
            self._closing = True
            self._condition.notify()
        self._thread.join(END_SECONDS)
        if self._thread.is_alive():
            self._lose(
                "not_written",
                f"the disk has not taken what waits in {END_SECONDS:g} s; the bag has no end",
                self.waiting,
            )
        else:
            self._guarded(self._writer.close)
        written = ", ".join(f"{n}: {c}" for n, c in sorted(self._writer.written.items())) or "none"
        lost = f"; lost {self.lost.total()}" if self.lost else ""
        self.get_logger().info(
            f"recorded {self._writer.written.total()} messages to {self.settings.bag} "
            f"({written}){lost}"
        )


def _name_of(end: Any) -> str:
    """Return the full name of the node that an end of a topic belongs to."""
    return f"{end.node_namespace.rstrip('/')}/{end.node_name}"


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return the exit code of the process."""
    return run_node(BagRecorder, args)


if __name__ == "__main__":
    sys.exit(main())
