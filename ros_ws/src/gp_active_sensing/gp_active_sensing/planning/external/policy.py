"""Another program chooses, whatever it is written in; when it fails a simple rule does."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
from dataclasses import dataclass

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
from gp_active_sensing.planning.external.process import ProgramError, line_of
from gp_active_sensing.planning.external.running import Running, end, running_of
from gp_active_sensing.planning.external.words import (
    Answer,
    decision_words,
    map_words,
    understood,
)
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Plan, PlanLimit
from gp_active_sensing.util.ties import first_best

__all__ = ["External"]

logger = logging.getLogger(__name__)

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
