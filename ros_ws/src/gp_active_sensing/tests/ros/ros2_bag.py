"""A stand-in for ``ros2 bag record``, which is C++: takes the same options, writes with rosbags.

As `ros2` does, it ends with the number of SIGINT when it is interrupted.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["bag"])
    parser.add_argument("verb", choices=["record"])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--regex", type=re.compile, required=True)
    parser.add_argument("--qos-profile-overrides-path", type=Path, required=True)
    for switch in ("--use-sim-time", "--disable-keyboard-controls"):
        parser.add_argument(switch, action="store_true")
    return parser.parse_args(words)


def record(given: argparse.Namespace) -> None:
    import rclpy
    from rclpy.parameter import Parameter
    from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
    from rclpy.signals import SignalHandlerOptions
    from rosbags.rosbag2 import Writer

    from gp_active_sensing.ros.to_messages import find_message_type
    from tests.replay.bags import LATCHED, STORAGES, STORE

    overrides = yaml.safe_load(given.qos_profile_overrides_path.read_text("utf-8"))
    interrupted: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: interrupted.append(number))
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    sim_time = Parameter("use_sim_time", value=given.use_sim_time)
    node = rclpy.create_node("rosbag2_recorder", parameter_overrides=[sim_time])
    connections: dict[str, Any] = {}

    def take(topic: str, data: bytes) -> None:
        writer.write(connections[topic], node.get_clock().now().nanoseconds, data)

    def subscribe(topic: str, kind: str) -> None:
        offered = [info.qos_profile for info in node.get_publishers_info_by_topic(topic)]
        latched = all(o.durability == DurabilityPolicy.TRANSIENT_LOCAL for o in offered)
        reliable = all(o.reliability == ReliabilityPolicy.RELIABLE for o in offered)
        profile = QoSProfile(depth=10)
        if not reliable:
            profile.reliability = ReliabilityPolicy.BEST_EFFORT
        if latched:
            profile.durability = DurabilityPolicy.TRANSIENT_LOCAL
        if wanted := overrides.get(topic):
            profile = QoSProfile(
                history=HistoryPolicy.get_from_short_key(wanted["history"]),
                depth=wanted["depth"],
                reliability=ReliabilityPolicy.get_from_short_key(wanted["reliability"]),
                durability=DurabilityPolicy.get_from_short_key(wanted["durability"]),
            )
        connections[topic] = writer.add_connection(
            topic, kind, typestore=STORE, offered_qos_profiles=[LATCHED] if latched else []
        )
        node.create_subscription(
            find_message_type(kind), topic, lambda data: take(topic, data), profile, raw=True
        )
        sys.stdout.write(f"recording {topic} ({kind})\n")
        sys.stdout.flush()

    with Writer(given.output, version=9, storage_plugin=STORAGES["mcap"]) as writer:
        while not interrupted:
            rclpy.spin_once(node, timeout_sec=0.05)
            if given.use_sim_time and not node.get_clock().now().nanoseconds:
                continue  # as `ros2 bag`, which waits for /clock
            for topic, kinds in node.get_topic_names_and_types():
                known = topic not in connections and kinds[0] in STORE.fielddefs
                if known and given.regex.search(topic) and node.count_publishers(topic):
                    subscribe(topic, kinds[0])


def main() -> int:
    record(options(sys.argv[1:]))
    return signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
