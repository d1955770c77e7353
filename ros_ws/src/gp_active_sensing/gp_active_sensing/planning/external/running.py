"""Which program runs for which policy: a policy is frozen and has nothing of its own."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gp_active_sensing.planning.external.process import Program, ProgramError
from gp_active_sensing.topology.base import Topology

__all__ = ["ENOUGH", "Running", "end", "running_of"]

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

    program: Program | None = None
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
                self.program = Program(command)
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
