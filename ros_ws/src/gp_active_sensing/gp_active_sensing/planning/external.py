"""Policy that asks another program for the next place, in lines of JSON (docs/architecture.md)."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import os
import shlex
import shutil
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.prior import TRANSFORMS
from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError, PlanningError
from gp_active_sensing.planning.base import Candidates, PolicyState, candidates, no_plan
from gp_active_sensing.planning.external_process import PlannerProgram, ProgramError, line_of
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Plan
from gp_active_sensing.util.ties import first_best

PROTOCOL = 1
"""Version of the protocol; it grows with each incompatible change."""
_ANSWER_SHOWN = 80
"""Largest number of characters of a wrong answer that a message shows."""
ENOUGH = 5
"""Number of successive starts without an answer after which a program is not started again."""
_RUNNING: dict[tuple[int, int], PlannerProcess] = {}
"""Programs, keyed by process id and id of the policy object. Each mission has its own program."""
_LOCK = threading.Lock()
_UNLIMITED = 60.0
"""Longest wait for an answer if neither the policy nor the decision has a limit [s]."""
logger = logging.getLogger(__name__)


def map_text(topology: Topology) -> dict[str, Any]:
    """Return the message that describes a map; it is sent before the first question."""
    n = topology.n
    ways = topology.ways_from(0)
    driven = np.isfinite(ways.seconds) & (ways.seconds > 0.0)
    speeds = ways.metres[driven] / ways.seconds[driven]
    return {
        "type": "map",
        "protocol": PROTOCOL,
        "name": topology.name,
        "frame": topology.frame,
        "names": list(topology.names),
        "positions": topology.positions.tolist(),
        "features": topology.features.tolist(),
        "feature_names": list(topology.feature_names),
        "weights": topology.weights.tolist(),
        "free": bool(topology.free),
        "moves": None if topology.free else [topology.neighbours(i).tolist() for i in range(n)],
        "speed": float(np.median(speeds)) if speeds.size else None,
    }


def decision_line(
    request: PlanRequest, options: Candidates, *, number: int, seed: int, seconds: float
) -> dict[str, Any]:
    """Return the message that asks for a place; `seconds` is the time limit for the answer [s]."""
    return {
        "type": "decision",
        "decision": number,
        "seed": seed,
        "time": seconds,
        "at": request.at,
        "candidates": {
            "places": options.locations.tolist(),
            "metres": [route.cost.metres for route in options.routes],
            "seconds": [route.cost.seconds for route in options.routes],
        },
        "pending": sorted(int(place) for place in request.pending),
        "unavailable": sorted(int(place) for place in request.unavailable),
        # JSON has no infinity, so infinite limits become null.
        "remaining": {k: None if v == math.inf else v for k, v in vars(request.remaining).items()},
        "belief": _belief_fields(request.belief),
    }


def _belief_fields(belief: Belief) -> dict[str, Any]:
    """Return the belief about the transformed readings; ``scale`` is the name of the transform."""
    weights = belief.weights
    mean, variance = belief.marginals()
    middle = weights @ mean
    deviation = np.sqrt(weights @ (variance + np.square(mean - middle)))
    read = np.flatnonzero(belief.observed)
    known = [name for name, one in TRANSFORMS.items() if one is belief.transform]
    values, noise = np.empty(0), np.empty(0)
    if read.size:
        values = weights @ belief.averages(read)
        noise = np.sqrt(weights @ belief.average_noise(read))
    return {
        "scale": known[0] if known else "other",
        "mean": middle.tolist(),
        "std": deviation.tolist(),
        "noise_std": math.sqrt(float(weights @ belief.noise_variance)),
        "candidates": [
            {"weight": float(weight), **dataclasses.asdict(candidate)}
            for weight, candidate in zip(weights, belief.hyperparameters, strict=True)
        ],
        "readings": {
            "places": read.tolist(),
            "values": values.tolist(),
            "counts": belief.readings[read].tolist(),
            "noise_std": noise.tolist(),
        },
    }


class Answer(NamedTuple):
    """Choice that a program made.

    Args:
        candidate: index of the chosen candidate.
        route: places that follow the chosen place.
        value: value that the program computed for the decision; 0 = no value.
    """

    candidate: int
    route: tuple[int, ...] = ()
    value: float = 0.0


def understood(answer: Mapping[str, Any], options: Candidates, topology: Topology) -> Answer:
    """Return the choice that an answer states in its fields ``place``, ``route`` and ``value``.

    Raises:
        ProgramError: the place is no candidate, or a field is invalid.
    """
    if "place" not in answer:
        raise ProgramError(_wrong("an answer without a place", answer.get("error")))
    place = _place(answer["place"], topology)
    found = np.flatnonzero(options.locations == place)
    if not found.size:
        word = f"{answer['place']!r}, which is none of the candidates"
        msg = f"chose {word:.{_ANSWER_SHOWN}}"
        raise ProgramError(msg)
    route = answer.get("route") or ()
    if not isinstance(route, list | tuple) or len(route) > topology.n:
        raise ProgramError(_wrong("a route that is no list of places", route))
    places = [_place(entry, topology) for entry in route]
    if places and places[0] == place:
        places = places[1:]
    value = answer.get("value")
    value = 0.0 if value is None else value
    # JSON integers may exceed the range of floats.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise ProgramError(_wrong("a value that is no finite number", value))
    return Answer(int(found[0]), tuple(places), float(value))


def _place(word: Any, topology: Topology) -> int:
    n = topology.n
    if isinstance(word, str) and word in (names := topology.names):
        return names.index(word)
    if isinstance(word, int) and not isinstance(word, bool) and 0 <= word < n:
        return word
    raise ProgramError(_wrong("a place that is not on the map", word))


def _wrong(what: str, value: Any) -> str:
    return f"gave {what}: {value!r:.{_ANSWER_SHOWN}}"


@dataclass
class PlannerProcess:
    """Program of a policy, running or not.

    Args:
        program: the running program; None = it does not run.
        map_sent: last map that the program received.
        barren: number of successive starts without a valid answer.
    """

    program: PlannerProgram | None = None
    map_sent: weakref.ref[Any] | None = None
    barren: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def ask(
        self,
        policy: External,
        topology: Topology,
        question: Callable[[float], Mapping[str, Any]],
        seconds: float,
    ) -> Mapping[str, Any]:
        """Ask the program a question. Start the program and send the map first, if necessary.

        Args:
            policy: configuration with the command and with the additional wait after a start.
            topology: map of the question.
            question: function that returns the question, given the time limit for the answer [s].
            seconds: longest wait for the answer [s].

        Raises:
            ProgramError: there is no valid answer.
            ValueError: a number is not valid in JSON.
        """
        with self.lock:
            if self.program is not None and not self.program.running:
                self.stop()
            if self.program is None:
                if self.barren >= ENOUGH:
                    msg = f"was started {ENOUGH} times without an answer and is not started again"
                    raise ProgramError(msg)
                self.barren += 1
                self.program = PlannerProgram(policy.command)
                logger.info("%s runs, as process %d", self.program.name, self.program.pid)
            program = self.program
            seconds += policy.start if not program.answered else 0.0
            lines = [line_of(question(seconds))]
            if self.map_sent is None or self.map_sent() is not topology:
                lines.insert(0, line_of(map_text(topology)))
                self.map_sent = weakref.ref(topology)
            answer = program.ask(lines, seconds)
            self.barren = 0
            return answer

    def stop(self) -> None:
        """End the program if it runs."""
        with self.lock:
            program, self.program, self.map_sent = self.program, None, None
            if program is not None:
                program.close()


def running_of(policy: object) -> PlannerProcess:
    """Return the program of a policy. It ends when the policy or this process no longer exists."""
    key = (os.getpid(), id(policy))
    with _LOCK:
        found = _RUNNING.get(key)
        if found is None:
            found = _RUNNING[key] = PlannerProcess()
            weakref.finalize(policy, _forget, key)
        return found


def end(policy: object) -> None:
    """End the program of a policy if it runs. The next question starts the program again."""
    found = _RUNNING.get((os.getpid(), id(policy)))
    if found is not None:
        found.stop()


def _forget(key: tuple[int, int]) -> None:
    found = _RUNNING.pop(key, None)
    if found is not None and key[0] == os.getpid():
        with contextlib.suppress(OSError):
            found.stop()


@dataclass(frozen=True)
class External:
    """Policy that sends the map and the belief as JSON to a program, which chooses the place.

    The program runs without a shell, with the rights of the user who runs the mission. The program
    receives all data with every decision, and can be restarted at any time. After a late, missing
    or invalid answer, the policy chooses the candidate with the largest standard deviation of the
    prediction. `Plan.reason` and the log report what was wrong, and the state counts the failures.
    ``docs/architecture.md`` has the protocol with an example.
    """

    REMOVED: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"persistent": "is removed; a program that ends after an answer is started again"}
    )

    command: tuple[str, ...] = param(
        help="program and arguments, run without a shell. An argument that is the name of a file "
        "in the scenario's folder is replaced by the path of this file",
        min_items=1,
    )
    timeout: float | None = param(
        None,
        help="longest wait for an answer. null = the time limit of a decision, or 60 s if there is "
        "none",
        unit="s",
        above=0.0,
    )
    start: float = param(
        10.0,
        help="additional time for the first answer after a start, while libraries load",
        unit="s",
        low=0.0,
    )

    def __post_init__(self) -> None:
        if not self.command or not self.command[0] or any("\0" in word for word in self.command):
            msg = "command: expected a program and its arguments, got an empty or impossible word"
            raise ConfigError([msg])

    def check(self, belief: Belief, topology: Topology) -> None:
        """Check that the program exists, but do not start the program.

        Raises:
            PlanningError: there is no such program.
        """
        if shutil.which(self.command[0]) is None:
            msg = (
                f"policy external: there is no program {self.command[0]!r} that may be run; "
                "policy.command begins with a name on the PATH or the path of a program"
            )
            raise PlanningError(msg)

    def rest(self) -> None:
        """End the program. The next question starts the program again."""
        end(self)

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`.

        The state counts the questions and the failed questions.
        """
        topology, started = request.topology, request.clock()
        seed = int(request.rng.integers(2**31))
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        asked, failed = (0, 0) if state is None else (int(state["asked"]), int(state["failed"]))

        def question(seconds: float) -> dict[str, Any]:
            return decision_line(request, options, number=asked, seed=seed, seconds=seconds)

        reason, late = "", False
        try:
            limits = [s for s in (self.timeout, request.limit.seconds) if s is not None]
            longest = min(limits, default=_UNLIMITED)
            found = running_of(self).ask(self, topology, question, longest)
            answer = understood(found, options, topology)
        except (ProgramError, ValueError, OSError) as error:  # ValueError: not valid in JSON
            late = isinstance(error, ProgramError) and error.late
            failed += 1
            program = f"{shlex.join(os.path.basename(word) or word for word in self.command):.80}"
            reason = f"the program {program} {error}; the least certain candidate is taken instead"
            logger.warning(
                "decision %d: %s (%d of %d decisions so far)", asked, reason, failed, asked + 1
            )
            _, variance = request.belief.predict(options.locations)
            answer = Answer(int(first_best(np.sqrt(variance))))
        left = request.remaining.readings
        route = answer.route if left is None else answer.route[: max(0, left - 1)]
        plan = options.plan_for(
            answer.candidate,
            waypoints=(int(options.locations[answer.candidate]), *route),
            lower=answer.value,
            upper=answer.value,
            seconds=request.clock() - started,
            deadline_hit=late,
            horizon=1 + len(route),
            reason=reason,
        )
        return plan, {"asked": asked + 1, "failed": failed}
