"""Base of every node: guards around the lifecycle and callbacks of rclpy.

rclpy of Jazzy lets four things go wrong that should not: an invalid lifecycle request raises out of
``spin()``; an exception in ``on_configure`` disappears without a word; an exception in a callback
ends ``spin()``; SIGTERM during ``spin()`` sometimes raises. Each guard below answers one of the
first three; `spin` answers the last.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from rclpy.clock import Clock, ClockType
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.publisher import Publisher
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.ros.exit_codes import FAILED, REFUSED
from gp_active_sensing.ros.logs import forward_logs
from gp_active_sensing.ros.parameter_files import keys_in_files

__all__ = ["GuardedNode", "RCLError", "steady_clock"]

ANSWERING_SECONDS = 1.0
"""How long a node that was shut down still answers before its process ends [s, real time]."""

F = TypeVar("F", bound=Callable[..., Any])
RCLError = rclpy_implementation.RCLError


def steady_clock() -> Clock:
    """Return a clock that neither simulated time nor the calendar touches, for housekeeping."""
    return Clock(clock_type=ClockType.STEADY_TIME)


class GuardedNode(LifecycleNode):  # type: ignore[misc,unused-ignore]
    """A lifecycle node that reports what goes wrong and lives on.

    Subclasses override `configure`, `activate`, `deactivate` and `release`; these may raise.
    An `ActiveSensingError` refuses the transition with its message; anything else is logged with
    its traceback, the node is released and goes back to unconfigured.

    Attributes:
        callback_errors: how often each callback has failed.
        exit_code: of the process; None = it does not end yet.
        is_active: whether the node is in lifecycle state active.
    """

    def __init__(self, name: str, **options: Any) -> None:
        self.callback_errors: Counter[str] = Counter()
        self.exit_code: int | None = None
        self.empty_overrides: set[str] = set()
        """Parameters given as an empty list, which ROS cannot declare: it has no type."""
        self.is_configuring = False
        """What takes long then (a large map) may be broken off: there is nothing to lose yet."""
        self._owned: list[Any] = []
        super().__init__(name, **options)
        words = [*sys.argv[1:], *(options.get("cli_args") or ())]
        self.keys_in_files = keys_in_files(words, self.get_name())
        """Of each key in a parameter file, whether it stands under this node's own name."""
        self._stop_forwarding = forward_logs(self.get_logger())

    def declare_parameters(
        self, namespace: str, parameters: list[tuple[Any, ...]], *args: Any, **options: Any
    ) -> Any:
        """Declare parameters; set those aside that were given as an empty list."""
        kept = [p for p in parameters if len(p) < 3 or p[1] is not None or p[2].dynamic_typing]
        self.empty_overrides |= {p[0] for p in parameters} - {p[0] for p in kept}
        return super().declare_parameters(namespace, kept, *args, **options)

    @property
    def is_active(self) -> bool:
        """Whether the node is in lifecycle state active: all that it makes is there."""
        return str(self._state_machine.current_state[1]) == "active"

    # -- for subclasses ------------------------------------------------------------------------

    def configure(self) -> None:
        """Read the parameters and make everything that `activate` needs."""

    def activate(self) -> None:
        """Begin to work."""

    def deactivate(self) -> None:
        """Stop working; keep what was learnt."""

    def release(self) -> None:
        """Give back everything; must work after a half-finished `configure` too."""

    def start_by_itself(self) -> None:
        """Configure and activate once the node spins; end the process when that fails.

        The exit code then says whether it was refused for a reason, or failed.
        """

        def begin() -> None:
            once.cancel()
            for step in (self.trigger_configure, self.trigger_activate):
                result = step()
                if result != TransitionCallbackReturn.SUCCESS:
                    refused = result == TransitionCallbackReturn.FAILURE
                    self.end(REFUSED if refused else FAILED)
                    return

        once = self.create_timer(0.0, begin, clock=steady_clock())

    def end(self, code: int = 0) -> None:
        """Ask `run_node` to end the process once the current callback is done."""
        if self.exit_code is None:
            self.exit_code = code

    def own(self, entity: Any) -> Any:
        """Remember a subscription, publisher, service or timer, for `disown`; return it."""
        self._owned.append(entity)
        return entity

    def disown(self) -> None:
        """Destroy everything that was given to `own`."""
        for entity in self._owned:
            self._destroy(entity)
        self._owned.clear()

    def give_back(self, entity: Any) -> None:
        """Destroy one of the things that were given to `own`."""
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

    def stop_forwarding_logs(self) -> None:
        """Leave Python's logging as it was before this node."""
        self._stop_forwarding()

    # -- guard: exceptions in transitions ------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run `configure`."""
        self.is_configuring = True
        try:
            result = self._transition(self.configure, "configure")
        finally:
            self.is_configuring = False
        if result == TransitionCallbackReturn.FAILURE:
            self._transition(self.release, "clean up after a failed configure")
        return result if result != TransitionCallbackReturn.SUCCESS else super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run `activate`; publishers are enabled first, so that it can publish."""
        enabled = super().on_activate(state)
        result = self._transition(self.activate, "activate")
        return result if result != TransitionCallbackReturn.SUCCESS else enabled

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run `deactivate`; publishers are disabled after it."""
        result = self._transition(self.deactivate, "deactivate")
        disabled = super().on_deactivate(state)
        return result if result != TransitionCallbackReturn.SUCCESS else disabled

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run `release`."""
        result = self._transition(self.release, "clean up")
        return result if result != TransitionCallbackReturn.SUCCESS else super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run `deactivate` where needed, then `release`, and end the process."""
        if state.label == "active":
            self._transition(self.deactivate, "deactivate")
        result = self._transition(self.release, "shut down")
        # Nav2's lifecycle manager asks for the state next, and takes silence for a failure.
        self.create_timer(ANSWERING_SECONDS, functools.partial(self.end, 0), clock=steady_clock())
        return result if result != TransitionCallbackReturn.SUCCESS else super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Give everything back, so that the node can be configured again."""
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
        """Answer an invalid lifecycle request with success=False instead of dying of it."""
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
        """Return `callback` wrapped so that an exception is logged and counted, not raised.

        A service callback that raises answers with its response as far as it was filled, with
        ``success`` false and the reason in ``message`` where the type has them.
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
        """Subscribe with a guarded callback."""
        guarded = self.guarded(callback, f"callback of topic {topic}")
        return super().create_subscription(msg_type, topic, guarded, *args, **options)

    def create_timer(self, period: float, callback: Any, *args: Any, **options: Any) -> Any:
        """Create a timer with a guarded callback."""
        guarded = self.guarded(callback) if callback is not None else None
        return super().create_timer(period, guarded, *args, **options)

    def create_service(
        self, srv_type: Any, name: str, callback: Any, *args: Any, **options: Any
    ) -> Any:
        """Offer a service with a guarded callback."""
        guarded = self.guarded(callback, f"service {name}")
        return super().create_service(srv_type, name, guarded, *args, **options)


def _failed_response(args: tuple[Any, ...], error: Exception) -> Any:
    """Return the response of a service callback that failed; None for other callbacks."""
    if len(args) != 2:
        return None
    response = args[1]
    if hasattr(response, "success") and hasattr(response, "message"):
        response.success = False
        response.message = f"{type(error).__name__}: {error}"
    return response
