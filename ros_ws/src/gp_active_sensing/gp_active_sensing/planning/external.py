"""Another program chooses the next place, by lines of JSON (docs/architecture.md).

Its answers are checked; when it fails the least certain candidate is taken.
"""

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
from collections.abc import Callable, Mapping, Sequence
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
from gp_active_sensing.types import Plan, PlanLimit
from gp_active_sensing.util.ties import first_best

PROTOCOL = 1
"""Number of the protocol; it grows when a program written for it could no longer cope."""
_ANSWER_SHOWN = 80
"""Characters of a wrong answer that are shown."""
ENOUGH = 5
"""Starts in a row without a single answer after which a program is not started any more."""
_RUNNING: dict[tuple[int, int], Running] = {}
"""By process and identity of the policy: equal policies of two missions have a program each."""
_LOCK = threading.Lock()
_UNLIMITED = 60.0
"""Seconds that an answer may take where neither the policy nor the decision has a limit."""
_RULE = "the least certain candidate is taken instead"


def map_text(topology: Topology) -> dict[str, Any]:
    """Return the line about a map, which comes before the first question about it."""
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
    """Return the line that asks for a place, with the `seconds` [s] that the answer may take."""
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
        # Infinite limits are null: JSON has no word for that.
        "remaining": {k: None if v == math.inf else v for k, v in vars(request.remaining).items()},
        "belief": _belief_fields(request.belief),
    }


def _belief_fields(belief: Belief) -> dict[str, Any]:
    """Return the belief in the scale of the Gaussian process (see ``scale``)."""
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
    """Choice of a program.

    Args:
        candidate: its number.
        route: the places it would go to afterwards.
        value: what it says the decision is worth; 0 = it says nothing.
    """

    candidate: int
    route: tuple[int, ...] = ()
    value: float = 0.0


def understood(answer: Mapping[str, Any], options: Candidates, topology: Topology) -> Answer:
    """Return the choice in an answer.

    It has a ``place``, and may have ``route`` and ``value``.

    Raises:
        ProgramError: a place that may not be chosen, or anything else that cannot be meant.
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
    # Not beyond what a float can hold: an integer of JSON may have any number of digits.
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


logger = logging.getLogger(__name__)


@dataclass
class Running:
    """Program of a policy, running or not.

    Args:
        program: None while there is none.
        map_sent: the map that it received.
        barren: how often it was started in a row without an answer that could be read.
    """

    program: PlannerProgram | None = None
    map_sent: weakref.ref[Any] | None = None
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
            map_line: its description.
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
            if self.map_sent is None or self.map_sent() is not topology:
                lines.insert(0, map_line())
                self.map_sent = weakref.ref(topology)
            answer = program.ask(lines, seconds)
            self.barren = 0
            return answer

    def stop(self) -> None:
        """End the program, if there is one."""
        with self.lock:
            program, self.program, self.map_sent = self.program, None, None
            if program is not None:
                program.close()


def running_of(policy: object) -> Running:
    """Return the program of a policy; it ends with the policy, or with this process."""
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


@dataclass(frozen=True)
class External:
    """Choice of another program, which gets map and belief as JSON and names a place.

    The program runs without a shell, with the rights of the user who runs the mission. It receives
    all data with every decision, so it needs no memory and can be restarted at any time. After a
    late, missing or invalid answer, the policy chooses the candidate with the largest standard
    deviation of the prediction. `Plan.reason` and the log report the reason, and the state counts
    the failures. ``docs/architecture.md`` has the protocol with an example.
    """

    REMOVED: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"persistent": "is removed; a program that ends after an answer is started again"}
    )

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
        topology, started = request.topology, request.clock()
        seed = int(request.rng.integers(2**31))
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        asked, failed = (0, 0) if state is None else (int(state["asked"]), int(state["failed"]))

        def question(seconds: float) -> bytes:
            return line_of(
                decision_line(request, options, number=asked, seed=seed, seconds=seconds)
            )

        reason, late = "", False
        try:
            found = running_of(self).ask(
                self.command,
                topology,
                lambda: line_of(map_text(topology)),
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
            _, variance = request.belief.predict(options.locations)
            answer = Answer(int(first_best(np.sqrt(variance))))
        left = request.remaining.readings
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
