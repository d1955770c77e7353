"""ROS for tests: a domain of its own, logs in a temporary folder, waits instead of sleeps."""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LIMIT, wait_until

__all__ = ["LOOPBACK", "Ros", "domain_id", "ros", "wait_active", "wait_until"]

if importlib.util.find_spec("rclpy") is None:
    plain = {
        f"test_{name}.py"
        for name in ("environment", "logs", "probe_status", "runner_processes", "worker")
    }
    collect_ignore = {path.name for path in Path(__file__).parent.glob("test_*.py")} - plain
LOOPBACK = {
    "FASTRTPS_DEFAULT_PROFILES_FILE": str(Path(__file__).with_name("loopback.xml")),
    "ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT",
}
"""Variables that keep messages on 127.0.0.1; with another range ROS changes what the file says."""


_DOMAINS = 100


@functools.cache
def domain_id(use: str = "tests") -> int:
    """Return a ROS domain (1 to 100) that no other worker on this machine has, of any suite."""
    import fcntl  # where there is ROS for the tests, there is this

    first = os.getpid()
    for number in range(first, first + _DOMAINS):
        domain = 1 + number % _DOMAINS
        lock = Path(tempfile.gettempdir(), f"gpas-test-domain-{domain}-{os.getuid()}.lock")
        held = os.open(lock, os.O_WRONLY | os.O_CREAT)  # not closed: as long as this process
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            continue
        return domain
    msg = f"all {_DOMAINS} ROS domains for tests are in use; wait for other test runs to end"
    raise RuntimeError(msg)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test whose nodes are in its own process; one that starts others marks itself."""
    if "context" in getattr(item, "fixturenames", ()):
        item.add_marker("ros")


@pytest.fixture(scope="session", autouse=True)
def ros_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set the variables that rclpy and child processes read."""
    patch = pytest.MonkeyPatch()
    patch.setenv("ROS_DOMAIN_ID", str(domain_id()))
    patch.setenv("ROS_LOG_DIR", str(tmp_path_factory.mktemp("ros_logs")))
    for variable, value in LOOPBACK.items():
        patch.setenv(variable, value)
    yield
    patch.undo()


def wait_active(node: Any) -> None:
    """Wait until a node has made everything it is going to make.

    It makes one thing after the other in the executor's thread, so that a publisher or a worker
    that is there says nothing about what comes after it.
    """
    wait_until(lambda: node.is_active, f"{node.get_name()} to be active")


@pytest.fixture
def wait_said(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Give a function that waits until the log of this test has some texts, and returns the log.

    It reads the file behind `capfd` in place: `readouterr` loses what a thread writes between its
    read and its truncation of that file.
    """

    def log() -> str:
        return os.pread(2, os.fstat(2).st_size, 0).decode(errors="replace")

    def wait(*texts: str) -> str:
        wait_until(lambda: all(text in log() for text in texts), f"{texts} in the log")
        return log()

    return wait


class Ros:
    """Nodes of a test in one executor, spun by a thread."""

    def __init__(self) -> None:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor

        self._rclpy = rclpy
        self.executor = SingleThreadedExecutor()
        self.nodes: list[Any] = []
        self.failures: list[BaseException] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        while not self._stopping.is_set():
            try:
                self.executor.spin_once(timeout_sec=0.05)
            except Exception as error:  # what would end a node's process
                self.failures.append(error)
                return

    def add(self, node: Any) -> Any:
        self.nodes.append(node)
        self.executor.add_node(node)
        return node

    def node(self, name: str = "tester") -> Any:
        return self.add(self._rclpy.create_node(name))

    def hear(self, kind: Any, topic: str, profile: Any = 1000) -> list[Any]:
        messages: list[Any] = []
        self.node("listener").create_subscription(kind, topic, messages.append, profile)
        return messages

    def match(self, *publishers: Any) -> None:
        """Wait until publishers and the subscribers of these nodes have found each other.

        A subscriber that has not found its publisher yet drops what comes, reliable or not. It is
        in the graph before its node knows it.
        """

        def matched(topic: str) -> bool:
            count = sum(p.topic_name == topic for node in self.nodes for p in node.publishers)
            here = [s for n in self.nodes for s in n.subscriptions if s.topic_name == topic]
            return bool(here) and all(s.get_publisher_count() >= count for s in here)

        for publisher in publishers:
            topic = publisher.topic_name
            wait_until(publisher.get_subscription_count, f"a subscriber of {topic}")
            wait_until(lambda t=topic: matched(t), f"the publishers of {topic} to be found")

    def call(self, client: Any, request: Any) -> Any:
        assert client.wait_for_service(timeout_sec=LIMIT), "the service is not there"
        future = client.call_async(request)
        wait_until(future.done, "the service's answer")
        return future.result()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(LIMIT)
        for node in self.nodes:
            for last in ("deactivate", "release", "stop_forwarding_logs"):
                if hasattr(node, last):
                    getattr(node, last)()
            self.executor.remove_node(node)
            node.destroy_node()
        self.executor.shutdown()


@pytest.fixture(scope="module")
def context(ros_environment: None) -> Iterator[None]:
    """Give rclpy to the tests of a module: to make a context costs more than most tests."""
    rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from rclpy.signals import SignalHandlerOptions

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    yield
    rclpy.try_shutdown()


@pytest.fixture
def tf(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give the nodes a tf2_ros that the test tells transforms."""
    from tests.ros.tf import Tf

    module = Tf()
    monkeypatch.setitem(sys.modules, "tf2_ros", module)
    return module


@pytest.fixture
def ros(context: None) -> Iterator[Ros]:
    """Spin the nodes of one test and destroy them afterwards."""
    harness = Ros()
    try:
        yield harness
    finally:
        harness.close()
        # A node whose constructor raised hangs on a cycle, and is in the graph until that is found.
        gc.collect()
