"""Each guard, and what rclpy does without it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from std_msgs.msg import Float64
from std_srvs.srv import SetBool, Trigger

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.ros.node_base import GuardedNode, steady_clock
from tests.cases import case
from tests.ros.conftest import Ros, wait_until
from tests.waiting import LIMIT

pytestmark = pytest.mark.ros


class Weak(GuardedNode):
    """Fails where it is told to."""

    def __init__(self, name: str = "weak") -> None:
        super().__init__(name)
        self.fail: dict[str, Exception] = {}
        self.calls: list[str] = []

    def _do(self, what: str) -> None:
        self.calls.append(what)
        if what in self.fail:
            raise self.fail[what]

    def configure(self) -> None:
        self._do("configure")

    def activate(self) -> None:
        self._do("activate")

    def deactivate(self) -> None:
        self._do("deactivate")

    def release(self) -> None:
        self._do("release")


class Lifecycle:
    """Drives a node's lifecycle from outside."""

    def __init__(self, ros: Ros, name: str) -> None:
        self._ros = ros
        tester = ros.node(f"{name}_tester")
        self._change = tester.create_client(ChangeState, f"/{name}/change_state")
        self._get = tester.create_client(GetState, f"/{name}/get_state")

    def connect(self) -> None:
        """Wait until another process answers: right after it was found, an answer may get lost."""
        assert self._get.wait_for_service(timeout_sec=LIMIT), "no node"
        assert self._change.wait_for_service(timeout_sec=LIMIT), "no node"
        asked: list[Any] = []

        def answered() -> bool:
            if time.monotonic() > begun + 1.5 * len(asked):
                asked.append(self._get.call_async(GetState.Request()))
            return any(future.done() for future in asked)

        begun = time.monotonic()
        wait_until(answered, "an answer of the node")

    def do(self, transition: int) -> bool:
        request = ChangeState.Request(transition=Transition(id=transition))
        return bool(self._ros.call(self._change, request).success)

    @property
    def state(self) -> str:
        return str(self._ros.call(self._get, GetState.Request()).current_state.label)


CONFIGURE, CLEANUP = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_CLEANUP
ACTIVATE, DEACTIVATE = Transition.TRANSITION_ACTIVATE, Transition.TRANSITION_DEACTIVATE


@pytest.fixture
def weak(ros: Ros) -> Weak:
    node: Weak = ros.add(Weak())
    return node


# -- transitions ---------------------------------------------------------------------------------


def test_the_whole_lifecycle(ros: Ros, weak: Weak) -> None:
    lifecycle = Lifecycle(ros, "weak")
    assert not lifecycle.do(ACTIVATE), "not yet; the node lives"
    assert lifecycle.state == "unconfigured"
    for transition, state in (
        (CONFIGURE, "inactive"),
        (ACTIVATE, "active"),
        (DEACTIVATE, "inactive"),
        (CLEANUP, "unconfigured"),
        (CONFIGURE, "inactive"),
    ):
        assert lifecycle.do(transition)
        assert lifecycle.state == state
    assert weak.calls == ["configure", "activate", "deactivate", "release", "configure"]


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (ConfigError("a.b: expected a number"), "cannot configure: a.b: expected a number"),
        (KeyError("surprise"), "KeyError: 'surprise'"),
    ],
)
def test_a_failed_configure_is_logged_and_can_be_repeated(
    ros: Ros, weak: Weak, error: Exception, logged: str, capfd: pytest.CaptureFixture[str]
) -> None:
    lifecycle = Lifecycle(ros, "weak")
    weak.fail["configure"] = error
    assert not lifecycle.do(CONFIGURE)
    assert lifecycle.state == "unconfigured"
    assert weak.calls == ["configure", "release"]
    assert logged in capfd.readouterr().err
    weak.fail = {"activate": ConfigError("not now")}
    assert lifecycle.do(CONFIGURE)
    assert not lifecycle.do(ACTIVATE)
    assert lifecycle.state == "inactive"


# -- exceptions in callbacks -------------------------------------------------------------------


def test_exceptions_in_callbacks_are_counted_and_the_node_lives(
    ros: Ros, weak: Weak, capfd: pytest.CaptureFixture[str]
) -> None:
    got: list[float] = []

    def on_message(message: Any) -> None:
        if message.data < 0:
            msg = "negative"
            raise ValueError(msg)
        got.append(message.data)

    subscription = weak.create_subscription(Float64, "numbers", on_message, 10)
    publisher = ros.node().create_publisher(Float64, "numbers", 10)
    wait_until(publisher.get_subscription_count, "a subscriber")
    for value in (1.0, -1.0, -2.0, 3.0):
        publisher.publish(Float64(data=value))
    wait_until(lambda: len(got) == 2, "two good messages")
    assert got == [1.0, 3.0]
    assert weak.callback_errors == {"callback of topic numbers": 2}
    assert "ValueError: negative" in capfd.readouterr().err
    assert not ros.failures
    weak.destroy_subscription(subscription)


def test_a_timer_that_fails_goes_on(ros: Ros, weak: Weak) -> None:
    def fail() -> None:
        msg = "broken"
        raise ValueError(msg)

    weak.create_timer(0.01, fail, clock=steady_clock())
    wait_until(lambda: weak.callback_errors["fail"] >= 3, "three failures")
    assert not ros.failures


def test_a_service_that_fails_answers(ros: Ros, weak: Weak) -> None:
    for kind in [Trigger, SetBool]:
        with case(kind):

            def fail(request: Any, response: Any) -> Any:
                msg = "no disk"
                raise OSError(msg)

            weak.create_service(kind, f"/do_{kind.__name__}", fail)
            answer = ros.call(
                ros.node().create_client(kind, f"/do_{kind.__name__}"), kind.Request()
            )
            assert not answer.success
            assert answer.message == "OSError: no disk"


# -- signals -----------------------------------------------------------------------------------

SCRIPT = """
import sys
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.ros.node_base import run_node

class Quiet(GuardedNode):
    def __init__(self):
        super().__init__("quiet")
        self.spins = 0
        self.timer = self.create_timer(0.001, self.say)
    def say(self):
        self.spins += 1
        if self.spins == 3:
            print("up", flush=True)
    def release(self):
        print("released", flush=True)

sys.exit(run_node(Quiet))
"""
CONFIGURING = """
import sys, time
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.ros.node_base import run_node

class Slow(GuardedNode):
    def __init__(self):
        super().__init__("slow")
        self.start_by_itself()
    def configure(self):
        print("up", flush=True)
        while True:
            time.sleep(0.01)
    def release(self):
        print("released", flush=True)

sys.exit(run_node(Slow))
"""
IGNORING = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # as a shell's "&" does


def run_and_signal(script: str, *numbers: int) -> tuple[int, str, str]:
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        for number in numbers:
            process.send_signal(number)
        out, err = process.communicate(timeout=LIMIT)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return process.returncode, out, err


# A node under which rclpy is shut down by somebody else, as by rclpy's own SIGTERM handler.
GONE = """
import sys, rclpy
from gp_active_sensing.ros.node_base import GuardedNode, run_node

class Gone(GuardedNode):
    def __init__(self):
        super().__init__("gone")
        self.timer = self.create_timer(0.05, rclpy.shutdown)
    def release(self):
        print("released", flush=True)

sys.exit(run_node(Gone))
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT, check=False
    )


@pytest.mark.long
def test_a_context_that_goes_away_ends_the_node_cleanly() -> None:
    done = run(GONE)
    assert (done.returncode, done.stdout) == (0, "released\n"), done.stderr
    assert "Traceback" not in done.stderr


STRICT = """
import sys
from rclpy.executors import SingleThreadedExecutor
from gp_active_sensing.ros import node_base
from gp_active_sensing.ros.node_base import GuardedNode, RCLError

class Node(GuardedNode):
    def __init__(self):
        super().__init__("strict")
        self.create_timer(0.01, self.count)
        self.times = 0
    def count(self):
        self.times += 1
        if self.times == 5:
            self.end()

spin_once, calls = SingleThreadedExecutor.spin_once, []

def strict(self, timeout_sec):
    calls.append(1)
    if {when}:
        raise RCLError("failed to take message from subscription")
    spin_once(self, timeout_sec)

SingleThreadedExecutor.spin_once = strict
node_base.MOST_FAILURES = 3
sys.exit(node_base.run_node(Node))
"""


@pytest.mark.long
def test_a_middleware_that_says_what_it_cannot_take_does_not_end_the_node() -> None:
    for when, code in (("len(calls) % 4 == 1", 0), ("len(calls) % 4 != 1", 0), ("True", 1)):
        with case(when, code):
            done = run(STRICT.replace("{when}", when))
            assert done.returncode == code, done.stderr
            assert 1 <= done.stderr.count("cannot be taken") <= 3, "not a line each"
            assert ("Traceback" in done.stderr) == bool(code), "for ever is not survived"


def test_signals_end_the_node_cleanly() -> None:
    """Also a node that is configuring; a second Ctrl-C and one to a background job are heard."""
    for script, numbers in (
        (CONFIGURING, (signal.SIGTERM,)),
        (IGNORING + SCRIPT, (signal.SIGINT, signal.SIGINT)),
    ):
        with case(script, numbers):
            code, out, err = run_and_signal(script, *numbers)
            assert (code, out) == (0, "released\n"), err
            assert "Traceback" not in err


HANGING = SCRIPT.replace(
    'print("released", flush=True)', 'print("up", flush=True)\n        threading.Event().wait()'
).replace("import sys", "import sys, threading")


@pytest.mark.long
def test_a_second_sigterm_ends_a_node_that_hangs_at_its_end() -> None:
    process = subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None
            for _ in range(2):
                assert process.stdout.readline() == "up\n"
                process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT) == -signal.SIGTERM
        finally:
            process.kill()


# A second Ctrl-C that comes when the node has ended and its process has not.
LATE = (
    SCRIPT.replace("sys.exit(run_node(Quiet))", "code = run_node(Quiet)")
    + """
import os, signal
os.kill(os.getpid(), signal.SIGINT)
sys.exit(code)
"""
)


@pytest.mark.long
def test_a_late_ctrl_c_changes_nothing() -> None:
    for number in [signal.SIGINT, signal.SIGTERM]:
        with case(number):
            code, out, err = run_and_signal(LATE, number)
            assert (code, out) == (0, "released\n"), err
            assert "Traceback" not in err
