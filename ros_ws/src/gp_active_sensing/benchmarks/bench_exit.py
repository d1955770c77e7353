"""How long nodes take from SIGINT to their end, whatever they are doing."""

# ruff: noqa: TID251  ROS is imported where the benchmark runs
from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import Section, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `tests`

TIMES = int(os.environ.get("GPAS_EXIT_TIMES", "20"))
STATES = os.environ.get("GPAS_EXIT_STATES", "idle planning driving probes").split()
PATIENCE = 120.0
"""How long a node may take to come to what it should be doing, and to end [s]."""
GRID = (
    "map.kind:=grid", "map.columns:=20", "map.rows:=20", "map.spacing:=10.0",
    "belief.length_scales:=[10.0, 20.0, 40.0, 80.0]", "belief.signal_std:=[3.0]",
    "belief.noise_std:=[0.3]", "belief.mean_std:=50.0", "mission.wait_for_reading:=false",
)  # fmt: skip
LONG = ("policy.name:=bal", "policy.horizon:=6", "policy.alpha:=0.0", "limit.seconds:=100.0")
"""Decisions that take much longer than anybody waits."""
PROBES = "probes:=[" + ",".join(f"probe_{i}" for i in range(120)) + "]"
NODE = "gp_active_sensing.ros.active_sensing_node"
WORDS = {
    "idle": ((*GRID, "mission.begin:=false"), "active; the mission is idle"),
    "planning": ((*GRID, *LONG, "plan_ahead:=false"), "the mission begins"),
    "driving": ((*GRID, "policy.name:=ie"), "stage 1: next"),
    "probes": ((*GRID, PROBES, "policy.name:=ie"), "the mission begins"),
}
"""Of each state: the parameters, and what the node says when it is there."""


@contextmanager
def publisher(names: tuple[str, ...]) -> Iterator[None]:
    """Publish poses ten times a second."""
    import rclpy
    from nav_msgs.msg import Odometry

    from gp_active_sensing.ros import qos

    rclpy.init()
    node = rclpy.create_node("exit_bench")
    topics = [node.create_publisher(Odometry, f"{name}pose", qos.reliable(10)) for name in names]
    over = threading.Event()

    def publish() -> None:
        while not over.wait(0.1):
            message = Odometry()
            message.header.frame_id = "map"
            message.header.stamp = node.get_clock().now().to_msg()
            message.pose.pose.orientation.w = 1.0
            for topic in topics:
                topic.publish(message)

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        node.destroy_node()
        rclpy.shutdown()


def until(condition: Callable[[], Any], what: str) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            msg = f"waited {PATIENCE:g} s for {what}"
            raise TimeoutError(msg)
        time.sleep(0.05)


def one(state: str, folder: Path, environment: dict[str, str]) -> tuple[float, int]:
    """Return how long a node took to end [s], and its exit code."""
    parameters, said = WORDS[state]
    words = [word for text in (*parameters, f"run_dir:={folder / 'run'}") for word in ("-p", text)]
    log = folder / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", NODE, "--ros-args", *words],
            env=environment, stdout=stream, stderr=stream,
        )  # fmt: skip
        try:
            until(lambda: said in log.read_text() or process.poll() is not None, said)
            time.sleep(2.0)  # a plan is under way
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)
            return time.monotonic() - began, process.returncode
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def run() -> Section:
    from gp_active_sensing.ros.launching import node_environment
    from tests.ros.conftest import domain_id

    section = Section(
        "From SIGINT to the end",
        "python benchmarks/run.py exit",
        f"Real processes, {TIMES} times each: the node `active_sensing` on a grid of 400 places "
        "(with run_dir) while it is idle, while it plans a decision of 100 s (bal, N'=6), while "
        "its probe drives, and with 120 probes, of which one sends poses. Time from SIGINT to the "
        "end of the process. Load average of the "
        f"machine at the beginning: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
        ("state", "median [s]", "99 % [s]", "longest [s]", "exit codes"),
    )
    with tempfile.TemporaryDirectory() as temporary:
        os.environ |= {"ROS_LOG_DIR": temporary, "ROS_DOMAIN_ID": str(domain_id())}
        os.environ |= node_environment(dict(os.environ))
        environment = dict(os.environ)
        with publisher(("", "probe_0/")):
            for state in STATES:
                found = []
                for number in range(TIMES):
                    folder = Path(temporary) / f"{state}{number}"
                    folder.mkdir()
                    found.append(one(state, folder, environment))
                seconds = [took for took, _ in found]
                codes = ", ".join(map(str, sorted({code for _, code in found})))
                section.rows.append((state, *quantiles(seconds), codes))
    return section
