"""Run a node as a process: signals, shutdown and exit code."""

from __future__ import annotations

import logging
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType

import rclpy
from rclpy.exceptions import ROSInterruptException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.ros.exit_codes import FAILED, REFUSED
from gp_active_sensing.ros.node_base import GuardedNode, RCLError
from gp_active_sensing.ros.parameter_files import check_parameter_file, given_files

__all__ = ["run_node"]

SPIN_SECONDS = 0.1
"""How long the executor waits at most before a signal is seen."""


MOST_FAILURES = 1000
"""Calls of the executor that may fail one after the other, before the process ends."""


def run_node(factory: Callable[[], GuardedNode], args: Sequence[str] | None = None) -> int:
    """Run a node until it ends, or SIGINT or SIGTERM comes; then clean up. The process ends next.

    rclpy's own signal handlers tear the context down under a running ``spin()``; ours only leave
    a note, so that the node can still publish and write its last words. A node that is being
    configured has none: that is broken off, however long it would take. From the clean-up on a
    SIGINT changes nothing any more, not even after the return: Ctrl-C twice is still an end in
    order. The first SIGTERM is noted; from then on, and after the return, SIGTERM is as it was
    before the call: a second one ends a process that hangs.

    Args:
        factory: makes the node once rclpy is initialised.
        args: command line arguments; None = of this process.

    Returns:
        Exit code: 0 after a signal or a finished mission; `REFUSED` when the node cannot work with
        what it was given; `FAILED` when something broke.
    """
    words = sys.argv[1:] if args is None else list(args)
    node: GuardedNode | None = None
    received: list[int] = []
    before = signal.getsignal(signal.SIGTERM)

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if number == signal.SIGTERM:
            signal.signal(signal.SIGTERM, before)
        if node is not None and node.is_configuring:
            raise KeyboardInterrupt

    # Set explicitly: a shell starts background jobs with SIGINT ignored.
    signal.signal(signal.SIGINT, note)
    signal.signal(signal.SIGTERM, note)
    try:
        for path in given_files(words):
            check_parameter_file(path)
        rclpy.init(
            args=None if args is None else words, signal_handler_options=SignalHandlerOptions.NO
        )
        node = factory()
        _spin(node, received)
        return node.exit_code or 0
    except (KeyboardInterrupt, ExternalShutdownException, ROSInterruptException):
        return 0
    except ActiveSensingError as error:
        logging.getLogger(__name__).error("%s", error)
        return FAILED if node is not None else REFUSED
    except RCLError as error:
        if node is not None:
            raise
        logging.getLogger(__name__).error("the node cannot be made: %s", error)
        # Before the context is up it is about the command line; then about the machine.
        return FAILED if rclpy.ok() else REFUSED
    finally:
        if node is not None:
            _close(node)
        rclpy.try_shutdown()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, before)


def _spin(node: GuardedNode, received: list[int]) -> None:
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    failed = in_a_row = 0
    try:
        while rclpy.ok() and not received and node.exit_code is None:
            try:
                executor.spin_once(timeout_sec=SPIN_SECONDS)
                in_a_row = 0
            except RCLError as error:
                if not rclpy.ok():  # the context went away while waiting: the end
                    return
                # Some middlewares say so of a message that is none, and have then thrown it away.
                failed, in_a_row = failed + 1, in_a_row + 1
                if in_a_row > MOST_FAILURES:
                    raise
                if failed in (1, 10, 100) or failed % 1000 == 0:
                    node.get_logger().error(
                        f"something that came in cannot be taken ({failed} so far): {error}"
                    )
    finally:
        executor.remove_node(node)
        executor.shutdown(timeout_sec=1.0)


def _close(node: GuardedNode) -> None:
    """Deactivate and release whatever state the node is in, and destroy it."""
    for action, what in ((node.deactivate, "deactivate"), (node.release, "release")):
        try:
            action()
        except Exception:
            sys.stderr.write(f"cannot {what} at the end:\n{traceback.format_exc()}")
    node.stop_forwarding_logs()
    node.destroy_node()
