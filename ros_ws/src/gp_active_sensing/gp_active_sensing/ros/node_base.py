"""Base class of all nodes; it guards their transitions, callbacks and process against errors.

rclpy of Jazzy has four defects. An invalid lifecycle request raises an exception out of ``spin()``.
An exception in ``on_configure`` is not reported. An exception in a callback ends ``spin()``.
SIGTERM sometimes raises an exception in ``spin()``. `GuardedNode` handles the first three defects,
and `run_node` handles the last one.
"""

from __future__ import annotations

import functools
import logging
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, TypeVar

import rclpy
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ROSInterruptException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.logging import LoggingSeverity
from rclpy.publisher import Publisher
from rclpy.service import Service
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from gp_active_sensing.errors import ActiveSensingError, printable
from gp_active_sensing.ros.environment import FAILED, REFUSED
from gp_active_sensing.ros.parameter_files import check_parameter_file, given_files, keys_in_files
from gp_active_sensing.util.wording import is_reported

ANSWERING_SECONDS = 1.0
"""Time for which a node still answers service requests after its shutdown [s, real time]."""

F = TypeVar("F", bound=Callable[..., Any])
RCLError = rclpy_implementation.RCLError


class GuardedNode(LifecycleNode):  # type: ignore[misc,unused-ignore]
    """Lifecycle node that continues after errors and reports them.

    Subclasses override `configure`, `activate`, `deactivate` and `release`. If one of these raises
    an `ActiveSensingError`, the transition fails, and the error's message is logged. Other errors
    are logged with their traceback; then the node is released and becomes unconfigured.

    Attributes:
        callback_errors: number of failures of each callback.
        exit_code: exit code of the process; None = the process continues.
    """

    def __init__(self, name: str, **options: Any) -> None:
        self.callback_errors: Counter[str] = Counter()
        self.exit_code: int | None = None
        self.empty_overrides: set[str] = set()
        """Names of the parameters that are set to empty lists, which have no type in ROS."""
        self.is_configuring = False
        """True while `configure` runs; only then may a signal interrupt the node."""
        self._owned: list[Any] = []
        super().__init__(name, **options)
        words = [*sys.argv[1:], *(options.get("cli_args") or ())]
        self.keys_in_files = keys_in_files(words, self.get_name())
        """Keys in the parameter files; True = a file has the key under this node's name."""
        self.file_folders = tuple(path.parent for path in given_files(words))
        """Folders of the parameter files; files that parameters name are searched for there."""
        self.stop_forwarding_logs = forward_logs(self.get_logger())
        """Function that restores the state that Python's logging had before this node."""

    def declare_parameters(
        self, namespace: str, parameters: list[tuple[Any, ...]], *args: Any, **options: Any
    ) -> Any:
        """Declare parameters; skip those that are set to an empty list."""
        kept = [p for p in parameters if len(p) < 3 or p[1] is not None or p[2].dynamic_typing]
        self.empty_overrides |= {p[0] for p in parameters} - {p[0] for p in kept}
        return super().declare_parameters(namespace, kept, *args, **options)

    @property
    def is_active(self) -> bool:
        """True while the lifecycle state is active."""
        return str(self._state_machine.current_state[1]) == "active"

    def now_ns(self) -> int:
        """Return the time of the node's clock [ns]."""
        return int(self.get_clock().now().nanoseconds)

    # -- overridden by subclasses --------------------------------------------------------------

    def configure(self) -> None:
        """Read the parameters and prepare `activate`; subclasses override this method."""

    def activate(self) -> None:
        """Start the work of the node; subclasses override this method."""

    def deactivate(self) -> None:
        """Stop the work of the node and keep its state; subclasses override this method."""

    def release(self) -> None:
        """Release all resources, even if `configure` failed; subclasses override this method."""

    def start_by_itself(self) -> None:
        """Configure and activate the node itself, without a lifecycle manager.

        After a failure the process ends with `REFUSED` or `FAILED`.
        """

        def begin() -> None:
            once.cancel()
            for step in (self.trigger_configure, self.trigger_activate):
                result = step()
                if result != TransitionCallbackReturn.SUCCESS:
                    refused = result == TransitionCallbackReturn.FAILURE
                    self.end(REFUSED if refused else FAILED)
                    return

        once = self.create_timer(0.0, begin)

    def end(self, code: int = 0) -> None:
        """Make `run_node` end the process with `code` after the present callback."""
        if self.exit_code is None:
            self.exit_code = code

    def own(self, entity: Any) -> Any:
        """Register a subscription, publisher, service or timer for `disown`, and return it."""
        self._owned.append(entity)
        return entity

    def disown(self) -> None:
        """Destroy all entities registered by `own`."""
        for entity in self._owned:
            self._destroy(entity)
        self._owned.clear()

    def destroy_owned(self, entity: Any) -> None:
        """Destroy one entity that was registered by `own`."""
        self._owned.remove(entity)
        self._destroy(entity)

    def _destroy(self, entity: Any) -> None:
        for destroy, kind in (
            (self.destroy_subscription, Subscription),
            (self.destroy_publisher, Publisher),
            (self.destroy_service, Service),
            (self.destroy_timer, Timer),
        ):
            if isinstance(entity, kind):
                destroy(entity)

    # -- guard: exceptions in transitions ------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run `configure`; log its errors."""
        self.is_configuring = True
        try:
            result = self._transition(self.configure, "configure")
        finally:
            self.is_configuring = False
        if result == TransitionCallbackReturn.FAILURE:
            self._transition(self.release, "clean up after a failed configure")
        return result if result != TransitionCallbackReturn.SUCCESS else super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Enable the publishers, then run `activate`."""
        enabled = super().on_activate(state)
        result = self._transition(self.activate, "activate")
        return result if result != TransitionCallbackReturn.SUCCESS else enabled

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run `deactivate`, then disable the publishers."""
        result = self._transition(self.deactivate, "deactivate")
        disabled = super().on_deactivate(state)
        return result if result != TransitionCallbackReturn.SUCCESS else disabled

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run `release`."""
        result = self._transition(self.release, "clean up")
        return result if result != TransitionCallbackReturn.SUCCESS else super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run `deactivate` if the node is active, then `release`, and end the process."""
        if state.label == "active":
            self._transition(self.deactivate, "deactivate")
        result = self._transition(self.release, "shut down")
        # Nav2's lifecycle manager requests the state next; no answer is a failure.
        self.create_timer(ANSWERING_SECONDS, functools.partial(self.end, 0))
        return result if result != TransitionCallbackReturn.SUCCESS else super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release all resources, so that the node can be configured again."""
        return self._transition(self.release, "clean up after an error")

    def _transition(self, action: Callable[[], None], what: str) -> TransitionCallbackReturn:
        try:
            action()
        except ActiveSensingError as error:
            self.get_logger().error(f"cannot {what}: {error}")
            return TransitionCallbackReturn.FAILURE
        except Exception:
            self.get_logger().error(f"cannot {what}:\n{traceback.format_exc()}")
            return TransitionCallbackReturn.ERROR
        return TransitionCallbackReturn.SUCCESS

    # -- guard: invalid transitions (the name is rclpy's own, mangled) ---------------------------

    def _LifecycleNodeMixin__on_change_state(self, request: Any, response: Any) -> Any:  # noqa: N802,RUF100
        """Answer an invalid lifecycle request with success=False instead of an exception."""
        try:
            return super()._LifecycleNodeMixin__on_change_state(request, response)
        except RCLError as error:
            asked = request.transition.label or f"transition {request.transition.id}"
            state = self._state_machine.current_state[1]
            reason = str(error).split("\n", maxsplit=1)[0]
            self.get_logger().warning(f"{asked} is not possible in state {state}: {reason}")
            response.success = False
            return response

    # -- guard: exceptions in callbacks ----------------------------------------------------------

    def guarded(self, callback: F, name: str = "") -> F:
        """Wrap a callback so that its exceptions are logged and counted.

        After an exception, a service whose type has the fields ``success`` and ``message`` answers
        with ``success`` false and the error in ``message``.
        """
        label = name or getattr(callback, "__name__", "callback")

        @functools.wraps(callback)
        def wrapper(*args: Any) -> Any:
            try:
                return callback(*args)
            except Exception as error:
                self.callback_errors[label] += 1
                if self.callback_errors[label] == 1:
                    self.get_logger().error(f"{label} failed:\n{traceback.format_exc()}")
                else:
                    count = self.callback_errors[label]
                    self.get_logger().error(f"{label} failed again ({count} times): {error!r}")
                return _failed_response(args, error)

        return wrapper  # type: ignore[return-value]

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Any, *args: Any, **options: Any
    ) -> Any:
        """Create a subscription with a guarded callback."""
        guarded = self.guarded(callback, f"callback of topic {topic}")
        return super().create_subscription(msg_type, topic, guarded, *args, **options)

    def create_timer(self, period: float, callback: Any, *args: Any, **options: Any) -> Any:
        """Create a timer with a guarded callback; its default clock is steady."""
        guarded = self.guarded(callback) if callback is not None else None
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        return super().create_timer(period, guarded, *args, **{"clock": steady, **options})

    def create_service(
        self, srv_type: Any, name: str, callback: Any, *args: Any, **options: Any
    ) -> Any:
        """Create a service with a guarded callback."""
        guarded = self.guarded(callback, f"service {name}")
        return super().create_service(srv_type, name, guarded, *args, **options)


def _failed_response(args: tuple[Any, ...], error: Exception) -> Any:
    """Return the response of a service whose callback failed; None for other callbacks."""
    if len(args) != 2:
        return None
    response = args[1]
    if hasattr(response, "success") and hasattr(response, "message"):
        response.success = False
        response.message = f"{type(error).__name__}: {error}"
    return response


SPIN_SECONDS = 0.1
"""Longest time from the arrival of a signal to its handling [s]."""


MOST_FAILURES = 1000
"""Number of consecutive failures of the executor after which the process ends."""


def run_node(factory: Callable[[], GuardedNode], args: Sequence[str] | None = None) -> int:
    """Run a node until it ends or SIGINT or SIGTERM comes; then clean up.

    rclpy's signal handlers would shut the context down during ``spin()``. The handlers here only
    store the signal, so that the node can still publish and write its records. A signal interrupts
    `configure` at once. A second SIGINT has no effect: the node also ends normally if Ctrl-C is
    pressed twice. A second SIGTERM ends the process at once, since the first SIGTERM restores the
    previous handler.

    `factory` creates the node; it is called after rclpy was initialised.

    Returns:
        Exit code: 0 after a signal or a finished mission; `REFUSED` for invalid parameters or
        files; `FAILED` after an error.
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

    # A shell starts background jobs with SIGINT ignored, so the handler is set explicitly.
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
        # An error before the initialisation is due to the command line, a later one to the machine.
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
                if not rclpy.ok():  # raised if the context was shut down
                    return
                # Some middlewares raise this error after they have dropped an invalid message.
                failed, in_a_row = failed + 1, in_a_row + 1
                if in_a_row > MOST_FAILURES:
                    raise
                if is_reported(failed):
                    node.get_logger().error(
                        f"a received message cannot be processed ({failed} so far): {error}"
                    )
    finally:
        executor.remove_node(node)
        executor.shutdown(timeout_sec=1.0)


def _close(node: GuardedNode) -> None:
    """Deactivate, release and destroy a node in any state."""
    for action, what in ((node.deactivate, "deactivate"), (node.release, "release")):
        try:
            action()
        except Exception:
            sys.stderr.write(f"cannot {what} at the end:\n{traceback.format_exc()}")
    node.stop_forwarding_logs()
    node.destroy_node()


PACKAGE = "gp_active_sensing"


REPEAT_SECONDS = 1.0
"""Smallest time in the log between two warnings or errors from the same line of code [s]."""


class _RosHandler(logging.Handler):
    def __init__(self, target: Any, clock: Callable[[], float]) -> None:
        super().__init__()
        self._target = target
        self._throttle = Throttle(REPEAT_SECONDS, clock)
        self._unsaid: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        text = printable(self.format(record))
        if record.levelno >= logging.WARNING:
            place = f"{record.name}:{record.lineno}"
            if not self._throttle.ready(place):
                self._unsaid[place] += 1
                return
            if more := self._unsaid.pop(place, 0):
                text += f" (and {more} more like this in between)"
        # rclpy rejects a call site with varying severity, so each level has its own call.
        if record.levelno >= logging.ERROR:
            self._target.error(text)
        elif record.levelno >= logging.WARNING:
            self._target.warning(text)
        elif record.levelno >= logging.INFO:
            self._target.info(text)
        else:
            self._target.debug(text)


def forward_logs(target: Any, clock: Callable[[], float] = time.monotonic) -> Callable[[], None]:
    """Forward the package's log records to a ROS logger.

    Warnings and errors from one line of code are forwarded at most once a second. The returned
    function stops the forwarding.
    """
    source = logging.getLogger(PACKAGE)
    handler = _RosHandler(target, clock)
    level, propagate = source.level, source.propagate
    source.addHandler(handler)
    shown = target.is_enabled_for(LoggingSeverity.DEBUG)
    source.setLevel(logging.DEBUG if shown else logging.INFO)
    source.propagate = False

    def undo() -> None:
        source.removeHandler(handler)
        source.setLevel(level)
        source.propagate = propagate

    return undo


class Throttle:
    """Separate rate limit for each kind of message.

    Args:
        period: smallest time between two messages of one kind [s].
    """

    def __init__(self, period: float, clock: Callable[[], float]) -> None:
        self._period = period
        self._clock = clock
        self._last: dict[str, float] = {}

    def ready(self, kind: str) -> bool:
        """Return whether a message of this kind is due; if so, start the next period."""
        now = self._clock()
        last = self._last.get(kind)
        if last is not None and now - last < self._period:
            return False
        self._last[kind] = now
        return True
