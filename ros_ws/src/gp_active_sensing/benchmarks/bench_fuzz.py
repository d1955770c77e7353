"""A million absurd messages and parameters for the node: none may be lost, none may end it."""

# ruff: noqa: TID251  it speaks to nodes
from __future__ import annotations

import logging
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import Section

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `tests`

MESSAGES = int(os.environ.get("GPAS_FUZZ_MESSAGES", "1000000"))
LIVE = int(os.environ.get("GPAS_FUZZ_LIVE", "10000"))
PARAMETERS = MESSAGES // 20
SHOWN = 12


def run() -> Section:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("ROS_LOG_DIR", folder)
        os.environ.setdefault("ROS_DOMAIN_ID", "66")
        import rclpy
        from rclpy.signals import SignalHandlerOptions

        section = Section(
            "Absurd and mutated messages and parameters",
            "python benchmarks/run.py fuzz",
            "Serialised messages whose numbers are NaN, infinite, 1e308, subnormal, …, whose "
            "stamps are negative, zero or in 2038, whose arrays are empty or huge, in wrong "
            "frames; a third of them with bytes changed, cut off, announced lengths of up to "
            "2³² − 1, or "
            "random bytes altogether. Through the callbacks of a configured node with its mission "
            "(four configurations of message types, fields and intake), and through the topics of "
            "a running one. Everything sent is used, or counted by its reason, or waits: the sums "
            "are exact, or this page would not have been written. A belief in trouble (values of "
            "±1e99 among those near 20) and poses off the map are counted as well.",
            ("through", "sent", "used", "what was not used, by reason"),
        )
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        logging.disable(logging.CRITICAL)
        try:
            section.rows += _callbacks(MESSAGES - PARAMETERS)
            section.rows += _topics(LIVE)
            section.rows += _parameters(PARAMETERS)
        finally:
            logging.disable(logging.NOTSET)
            rclpy.try_shutdown()
    return section


def _callbacks(count: int) -> list[Sequence[object]]:
    from tests.ros.fuzzing_node import cases, fuzz_callbacks

    rows: list[Sequence[object]] = []
    for number in range(4):
        rng = random.Random(f"callbacks {number}")
        case = cases(rng)[number]
        node = _node(case.parameters, "autostart:=false")
        node.configure()
        began = time.perf_counter()
        found = fuzz_callbacks(node, case, rng, count // 4)
        took = 1e6 * (time.perf_counter() - began) / (count // 4)
        for topic, counts in found.items():
            where = f"callbacks, configuration {number + 1}: {topic} ({took:.0f} µs a message)"
            rows.append(_row(where, counts))
        _close(node)
    return rows


def _topics(count: int) -> list[Sequence[object]]:
    from rclpy.executors import SingleThreadedExecutor

    from gp_active_sensing.ros import qos
    from gp_active_sensing.ros.message_types import find_message_type
    from tests.fuzzing import sums
    from tests.ros.fuzzing_node import cases, send

    rng = random.Random("topics")
    case = cases(rng)[0]
    node = _node(
        case.parameters, "reading.reliable:=true", "pose.reliable:=true", "reading.rate:=5000.0",
        "pose.rate:=5000.0",
    )  # fmt: skip
    import rclpy

    tester = rclpy.create_node("hostile")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    publishers = {
        "reading": tester.create_publisher(
            find_message_type("sensor_msgs/msg/Temperature"), "reading", qos.reliable(1000)
        ),
        "pose": tester.create_publisher(
            find_message_type("nav_msgs/msg/Odometry"), "pose", qos.reliable(1000)
        ),
    }
    until = time.monotonic() + 20.0
    while not all(p.get_subscription_count() for p in publishers.values()):
        executor.spin_once(timeout_sec=0.05)
        assert time.monotonic() < until, "no subscriber"
    sent: Counter[str] = Counter()
    until = time.monotonic() + 300.0
    mission = node.mission
    while True:
        received = Counter(reading=mission.inbox.received["readings"])
        received["pose"] = mission.inbox.received["poses"]
        if received.total() >= sent.total() and sent.total() < count:
            sent += send(publishers, case, rng, 100)
        if sent.total() >= count and received == sent and not len(mission.inbox):
            break
        executor.spin_once(timeout_sec=0.05)
        assert time.monotonic() < until, (sent, received)
    while [sum(found.values()) for found in sums(mission)] != [sent["reading"], sent["pose"]]:
        time.sleep(0.05)
        assert time.monotonic() < until, (sent, sums(mission))
    assert not node.callback_errors
    readings, poses = sums(mission)
    rows = [_row("topics: reading", Counter(readings)), _row("topics: pose", Counter(poses))]
    executor.remove_node(node)
    _close(node)
    tester.destroy_node()
    return rows


def _parameters(count: int) -> list[Sequence[object]]:
    from tests.ros.fuzzing_node import fuzz_parameters
    from tests.ros.probe import GRID

    total: Counter[str] = Counter()
    each = min(5000, count)
    for number in range(count // each):
        node = _node(GRID, "autostart:=false")
        if number % 2:
            node.configure()
        total += fuzz_parameters(node, random.Random(f"parameters {number}"), each)
        _close(node)
    assert not total["without a reason"]
    built, refused = total.pop("configurations built"), total.pop("configurations refused")
    reasons = ", ".join(f"{word} {n}" for word, n in total.most_common() if word != "accepted")
    more = f"; of those accepted the configuration as a whole: built {built}, refused {refused}"
    return [("parameters", total.total(), total["accepted"], reasons + more)]


def _node(given: Sequence[str], *parameters: str) -> Any:
    from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode

    arguments = [word for text in (*given, *parameters) for word in ("-p", text)]
    return ActiveSensingNode(cli_args=["--ros-args", *arguments])


def _close(node: Any) -> None:
    node.release()
    node.stop_forwarding_logs()
    node.destroy_node()


def _row(where: str, counts: Counter[str]) -> Sequence[object]:
    used = counts["used"]
    others = [(word, n) for word, n in counts.most_common() if n and word != "used"]
    reasons = ", ".join(f"{word} {n}" for word, n in others[:SHOWN])
    return (where, counts.total(), used, reasons)
