"""Send absurd messages and parameters to nodes, and read damaged files.

Each message must be used or counted with a reason. No process may end.
"""

# ruff: noqa: TID251  uses ROS
from __future__ import annotations

import itertools
import json
import logging
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import CORE, Report, Section

sys.path.insert(0, str(CORE))  # for the package `tests`

MESSAGES = int(os.environ.get("GPAS_FUZZ_MESSAGES", "1000000"))
LIVE = int(os.environ.get("GPAS_FUZZ_LIVE", "10000"))
FILES = int(os.environ.get("GPAS_FUZZ_FILES", "2000"))
"""Number of damaged files for each format."""
PARTS = os.environ.get("GPAS_FUZZ_PARTS", "messages files").split()
SHOWN = 12
FILE_SECONDS = 1200.0
"""Longest time for all files of a format [s]."""


def run(*, quick: bool = False) -> Report:
    kinds = {"messages": _messages, "files": _files}
    return Report([kinds[name](quick=quick) for name in PARTS])


def _files(*, quick: bool) -> Section:
    from fuzz_files import FORMATS, HANG

    count = 50 if quick else FILES
    section = Section(
        "Spoilt files",
        "GPAS_FUZZ_PARTS=files python benchmarks/run.py fuzz",
        "Files of each format with bits flipped, pieces lost, doubled or made of zeros, words and "
        "numbers swapped for others or for absurd ones; each is read, or refused with one error "
        "of the package. A process for each format; memory is the most that it ever had. A hang "
        f"is a file that takes more than {HANG:g} s of computing.",
        ("format", "files", "read", "refused", "tracebacks", "hangs", "longest [s]", "peak [MB]"),
    )
    for name in FORMATS:
        found = _of_format(name, count)
        hangs = found.get("hang", 0) + found.get("given up", 0)
        bad = found.get("traceback", 0) + found.get("refused without a word", 0)
        for problem in found["problems"]:
            sys.stderr.write(f"{name}, {problem}\n")
        section.rows.append(
            (name, count, found.get("read", 0), found.get("refused", 0), bad, hangs,
             f"{found['longest_s']:.2f}", f"{found['peak_mb']:.0f}")
        )  # fmt: skip
    return section


def _of_format(name: str, count: int) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("fuzz_files.py")), name, str(count)]
    try:
        done = subprocess.run(
            [*command, "0"], capture_output=True, text=True, timeout=FILE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"given up": 1, "longest_s": FILE_SECONDS, "peak_mb": 0.0, "problems": []}
    if done.returncode:
        ended = [f"the process ended with {done.returncode}: {done.stderr[-2000:]}"]
        return {"traceback": 1, "longest_s": 0.0, "peak_mb": 0.0, "problems": ended}
    return dict(json.loads(done.stdout))


def _messages(*, quick: bool) -> Section:
    messages, live = (4000, 400) if quick else (MESSAGES, LIVE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("ROS_LOG_DIR", folder)
        from tests.ros.conftest import domain_id

        os.environ["ROS_DOMAIN_ID"] = str(domain_id())  # unused by parallel test runs
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
        _without_limits()
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        logging.disable(logging.CRITICAL)
        try:
            section.rows += _callbacks(messages - messages // 20)
            section.rows += _topics(live)
            section.rows += _answers(messages // 20)
            section.rows += _parameters(messages // 20)
        finally:
            logging.disable(logging.NOTSET)
            rclpy.try_shutdown()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    section.rows.append(("all of it, in one process", "", "", f"peak memory {peak:.0f} MB"))
    return section


def _without_limits() -> None:
    """Raise the limits on size and rate of messages."""
    from gp_active_sensing.mission.stream_config import MOST_BYTES
    from gp_active_sensing.ros import expert, subscriptions

    MOST_BYTES.update(reading=100_000, answer=100_000)
    subscriptions.most_per_second = lambda stream: 1e9
    expert.MOST_ANSWERS = 1e9


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
    from rclpy.serialization import serialize_message

    from gp_active_sensing.ros import qos
    from gp_active_sensing.ros.to_messages import find_message_type
    from tests.fuzzing import mutated, sums
    from tests.ros.fuzzing_node import cases

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
    messages = mutated(rng, case.kinds, serialize_message)
    until = time.monotonic() + 300.0
    mission = node.mission
    while True:
        received = Counter(reading=mission.inbox.received["readings"])
        received["pose"] = mission.inbox.received["poses"]
        if received.total() >= sent.total() and sent.total() < count:
            for topic, data in itertools.islice(messages, 100):
                publishers[topic].publish(data)
                sent[topic] += 1
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


def _answers(count: int) -> list[Sequence[object]]:
    """Send absurd point clouds as answers to a node that queries an expert."""
    from rclpy.serialization import serialize_message
    from std_msgs.msg import Header

    from gp_active_sensing.messages.point_cloud import query_points
    from gp_active_sensing.ros import to_messages as outputs
    from tests.fuzzing import mutated
    from tests.ros.test_expert import ASKING, absurd
    from tests.unit.experts.asking import registered

    rng = random.Random("answers")
    with registered():
        node = _node(ASKING, "autostart:=false", "mission.begin:=false")
        node.configure()
        mission, asking = node.mission, node.results.asking
        points = query_points(mission.loop.topology, [0, 1, 2])
        query = outputs.values_cloud(points, Header(frame_id="map"))
        stream = mutated(rng, {"answer": lambda: absurd(rng, query)}, serialize_message)
        for number in range(count):
            asking.on_bytes(next(stream)[1])
            if number % 50 == 0:
                mission.step(100_000_000_000 + number)
        while len(mission.inbox):
            mission.step(200_000_000_000)
        assert not node.callback_errors, node.callback_errors
        refused, rejected = mission.inbox.refused, Counter(mission.consulting.rejected)
        used = mission.consulting.books.counts["used"]
        values = mission.inbox.received["answers"] - refused.total()
        assert refused.total() + asking.messages == count, (refused, asking.messages)
        assert values == used + rejected.total(), (values, used, rejected)
        _close(node)
    counts = refused + rejected + Counter(used=used)
    return [_row(f"callbacks: expert/answer ({count} messages; their values)", counts)]


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
