"""Another program chooses, whatever it is written in; when it fails a simple rule does."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import shutil
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError, PlanningError
from gp_active_sensing.planning.base import (
    Candidates,
    PlanRequest,
    PolicyState,
    candidates,
    no_plan,
)
from gp_active_sensing.planning.external.process import PlannerProgram, ProgramError, line_of
from gp_active_sensing.planning.external.words import Answer, decision_words, map_words, understood
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Plan, PlanLimit
from gp_active_sensing.util.ties import first_best

__all__ = ["ENOUGH", "External", "Running", "end", "running_of"]

logger = logging.getLogger(__name__)

ENOUGH = 5
"""Starts in a row without a single answer after which a program is not started any more."""


@dataclass
class Running:
    """The program of a policy, as far as it runs.

    Args:
        program: None while there is none.
        map_told: the map that it was told about.
        barren: how often it was started in a row without an answer that could be read.
    """

    program: PlannerProgram | None = None
    map_told: weakref.ref[Any] | None = None
    barren: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def ask(
        self,
        command: Sequence[str],
        topology: Topology,
        map_line: Callable[[], bytes],
        question: Callable[[float], bytes],
        seconds: float,
        start: float,
    ) -> Any:
        """Start the program if it does not run, tell it the map if it does not know it, and ask.

        Args:
            command: program and arguments.
            topology: the map of the question.
            map_line: what is said of it.
            question: made from the seconds that there are for the answer.
            seconds: to wait.
            start: to wait in addition for the first answer after a start.

        Raises:
            ProgramError: no answer that can be read.
        """
        with self.lock:
            if self.program is not None and not self.program.running:
                self.stop()
            if self.program is None:
                if self.barren >= ENOUGH:
                    msg = f"was started {ENOUGH} times without an answer and is not started again"
                    raise ProgramError(msg)
                self.barren += 1
                self.program = PlannerProgram(command)
                logger.info("%s runs, as process %d", self.program.name, self.program.pid)
            program = self.program
            seconds += start if not program.answered else 0.0
            lines = [question(seconds)]
            if self.map_told is None or self.map_told() is not topology:
                lines.insert(0, map_line())
                self.map_told = weakref.ref(topology)
            answer = program.ask(lines, seconds)
            self.barren = 0
            return answer

    def stop(self) -> None:
        """End the program, if there is one."""
        with self.lock:
            program, self.program, self.map_told = self.program, None, None
            if program is not None:
                program.close()


_RUNNING: dict[tuple[int, int], Running] = {}
"""By process and identity of the policy: equal policies of two missions have a program each."""
_LOCK = threading.Lock()


def running_of(policy: object) -> Running:
    """Return what runs for a policy; it ends with the policy, or with this process."""
    key = (os.getpid(), id(policy))
    with _LOCK:
        found = _RUNNING.get(key)
        if found is None:
            found = _RUNNING[key] = Running()
            weakref.finalize(policy, _forget, key)
        return found


def end(policy: object) -> None:
    """End the program of a policy, if it runs; it is started again when it is asked again."""
    found = _RUNNING.get((os.getpid(), id(policy)))
    if found is not None:
        found.stop()


def _forget(key: tuple[int, int]) -> None:
    found = _RUNNING.pop(key, None)
    if found is not None and key[0] == os.getpid():
        with contextlib.suppress(OSError):
            found.stop()


_UNLIMITED = 60.0
"""Seconds that an answer may take where neither the policy nor the decision has a limit."""
_RULE = "the least certain candidate is taken instead"


@dataclass(frozen=True)
class External:
    """What another program answers: it gets map and belief as lines of JSON and names a place.

    The program runs with the rights of the user who runs the mission, and without a shell. It is
    told all it needs at every decision, so that it may forget or be started again at any time.
    An answer that is late, missing or cannot be meant costs nothing but the choice: the candidate
    with the largest standard deviation of the prediction is taken, `Plan.reason` and the log say
    why, and the state counts how often. ``docs/extending.md`` has the protocol with an example.
    """

    command: tuple[str, ...] = param(
        help="program and arguments, run as they are, without a shell; words that name a file "
        "beside the scenario mean that file",
        min_items=1,
    )
    timeout: float | None = param(
        None,
        help="longest wait for an answer; null = the limit of a decision alone, 60 s where that "
        "has none",
        unit="s",
        above=0.0,
    )
    start: float = param(
        10.0,
        help="how much longer the first answer after a start may take, while libraries load",
        unit="s",
        low=0.0,
    )
    persistent: bool = param(
        True, help="one process for the whole mission; false = a new one for each decision"
    )

    def __post_init__(self) -> None:
        if not self.command or not self.command[0] or any("\0" in word for word in self.command):
            msg = "command: expected a program and its arguments, got an empty or impossible word"
            raise ConfigError([msg])

    def check(self, belief: Belief, topology: Topology) -> None:
        """Look whether there is such a program; nothing is started.

        Raises:
            PlanningError: there is none.
        """
        del belief, topology
        if shutil.which(self.command[0]) is None:
            msg = (
                f"policy external: there is no program {self.command[0]!r} that may be run; "
                "policy.command begins with a name on the PATH or the path of a program"
            )
            raise PlanningError(msg)

    def rest(self) -> None:
        """End the program; it is started again when something is asked."""
        end(self)

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`.

        The state is None, or how many decisions the program was asked for and failed.
        """
        belief, topology, at = request.belief, request.topology, request.at
        remaining = request.remaining
        started = request.clock()
        seed = int(request.rng.integers(2**31))
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        asked, failed = (0, 0) if state is None else (int(state["asked"]), int(state["failed"]))

        def question(seconds: float) -> bytes:
            return line_of(
                decision_words(
                    belief,
                    topology,
                    at,
                    options,
                    number=asked,
                    seed=seed,
                    seconds=seconds,
                    pending=request.pending,
                    unavailable=request.unavailable,
                    remaining=remaining,
                )
            )

        running = running_of(self) if self.persistent else Running()
        reason, late = "", False
        try:
            found = running.ask(
                self.command,
                topology,
                lambda: line_of(map_words(topology)),
                question,
                self._seconds(request.limit),
                self.start,
            )
            answer = understood(found, options, topology)
        except (ProgramError, ValueError, OSError) as error:  # or what JSON has no word for
            late = isinstance(error, ProgramError) and error.late
            failed += 1
            reason = f"the program {self._shown} {error}; {_RULE}"
            logger.warning(
                "decision %d: %s (%d of %d decisions so far)", asked, reason, failed, asked + 1
            )
            answer = Answer(_least_certain(belief, options))
        finally:
            if not self.persistent:
                running.stop()
        left = remaining.readings
        route = answer.route if left is None else answer.route[: max(0, left - 1)]
        plan = options.plan_for(
            answer.candidate,
            waypoints=(int(options.locations[answer.candidate]), *route),
            lower=answer.value,
            upper=answer.value,
            expanded=1,
            seconds=request.clock() - started,
            deadline_hit=late,
            horizon=1 + len(route),
            reason=reason,
        )
        return plan, {"asked": asked + 1, "failed": failed}

    @property
    def _shown(self) -> str:
        return f"{shlex.join(os.path.basename(word) or word for word in self.command):.80}"

    def _seconds(self, limit: PlanLimit) -> float:
        given = [s for s in (self.timeout, limit.seconds) if s is not None]
        return min(given, default=_UNLIMITED)


def _least_certain(belief: Belief, options: Candidates) -> int:
    """Return the candidate whose value is known least; of equal ones the first."""
    _, variance = belief.predict(options.locations)
    return int(first_best(np.sqrt(variance)))
