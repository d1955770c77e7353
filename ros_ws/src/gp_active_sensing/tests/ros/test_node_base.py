"""Each guard, and what rclpy does without it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from std_msgs.msg import Float64
from std_srvs.srv import SetBool, Trigger

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.ros.node_base import GuardedNode
from tests.cases import case
from tests.ros.conftest import Ros, wait_until
from tests.waiting import LIMIT

pytestmark = pytest.mark.ros


class Weak(GuardedNode):
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
    ros.match(publisher)
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

    weak.create_timer(0.01, fail)
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

NODE = """
import signal, sys, time, rclpy
from gp_active_sensing.ros import node_base

class Node(node_base.GuardedNode):
    def __init__(self):
        super().__init__("node")
        self.times = 0
        {begin}
    def count(self):
        self.times += 1
        if self.times == 3:
            print("up", flush=True)
    def release(self):
        print("released", flush=True)
    {more}
"""
COUNT = "self.timer = self.create_timer(0.001, self.count)"
RUN = "sys.exit(node_base.run_node(Node))\n"
WAIT = """(self):
        print("up", flush=True)
        while True:
            time.sleep(0.01)
"""
ENDS = """def count(self):
        self.times += 1
        if self.times == 5:
            self.end()
"""
STRICT = """
from rclpy.executors import SingleThreadedExecutor

spin_once, calls = SingleThreadedExecutor.spin_once, []

def strict(self, timeout_sec):
    calls.append(1)
    if {when}:
        raise node_base.RCLError("failed to take message from subscription")
    spin_once(self, timeout_sec)

SingleThreadedExecutor.spin_once = strict
node_base.MOST_FAILURES = 3
"""
LATE = """
code = node_base.run_node(Node)
signal.raise_signal(signal.SIGINT)
sys.exit(code)
"""


def run(
    *signals: tuple[str, int], begin: str = COUNT, more: str = "", then: str = RUN
) -> tuple[int, str, str]:
    """Run a node and send signals, each after a line that it prints; return code and output."""
    program = NODE.format(begin=begin, more=more) + then
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            for line, number in signals:
                assert not line or process.stdout.readline() == f"{line}\n"
                process.send_signal(number)
            out, err = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
    return process.returncode, out, err


def in_order(*signals: tuple[str, int], **script: str) -> None:
    code, out, err = run(*signals, **script)
    assert (code, out) == (0, "released\n"), err
    assert "Traceback" not in err


@pytest.mark.long
def test_a_context_that_goes_away_ends_the_node_cleanly() -> None:
    """As where rclpy's own handler of SIGTERM shuts it down."""
    in_order(begin="self.timer = self.create_timer(0.05, rclpy.shutdown)")


@pytest.mark.long
def test_a_middleware_that_says_what_it_cannot_take_does_not_end_the_node() -> None:
    for when, expected in (("len(calls) % 4 == 1", 0), ("len(calls) % 4 != 1", 0), ("True", 1)):
        with case(when):
            code, _, err = run(more=ENDS, then=STRICT.format(when=when) + RUN)
            assert code == expected, err
            assert 1 <= err.count("cannot be processed") <= 3, "not a line each"
            assert ("Traceback" in err) == bool(code), "for ever is not survived"


def test_signals_end_the_node_cleanly() -> None:
    """Also a node that is configuring; a second Ctrl-C and one to a background job are heard."""
    in_order(("up", signal.SIGTERM), begin="self.start_by_itself()", more=f"def configure{WAIT}")
    ignoring = "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"  # as a shell's "&" does
    in_order(("up", signal.SIGINT), ("", signal.SIGINT), then=ignoring + RUN)


@pytest.mark.long
def test_a_second_sigterm_ends_a_node_that_hangs_at_its_end() -> None:
    code, _, _ = run(*[("up", signal.SIGTERM)] * 2, more=f"def release{WAIT}")
    assert code == -signal.SIGTERM


@pytest.mark.long
def test_a_late_ctrl_c_changes_nothing() -> None:
    """A second one, when the node has ended and its process has not."""
    for number in (signal.SIGINT, signal.SIGTERM):
        in_order(("up", number), then=LATE)
