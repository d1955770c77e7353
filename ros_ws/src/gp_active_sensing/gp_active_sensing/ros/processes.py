"""A group of child processes that live and end together.

Started without a shell (a shell's background jobs ignore SIGINT), each in a session of its own, so
that a Ctrl-C reaches this process alone and is passed on once. Children are ended by pid only:
SIGINT, after a while SIGTERM, at last SIGKILL. On Linux a child also ends when this process is
killed in a way that it cannot answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gp_active_sensing.errors import RunError
from gp_active_sensing.ros.environment import crashed, ended_in_order, said

__all__ = ["END_SECONDS", "KILL_SECONDS", "RESPAWN_SECONDS", "ProcessGroup", "Program"]

logger = logging.getLogger(__name__)

END_SECONDS = 20.0
"""A child's time from SIGINT to SIGTERM, for its last records and its report [s]."""
KILL_SECONDS = 5.0
"""A child's time from SIGTERM to SIGKILL [s]."""
RESPAWN_SECONDS = 2.0
"""Delay before a child is started again [s]."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
# Looked up before any fork: a child must not import.
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Program:
    """One child.

    Args:
        name: what its lines of output are marked with.
        command: program and arguments.
        required: its end, for whatever reason, ends the group.
        respawn: it is started again when it was killed or crashed.
        when_asked: more exit codes of an end in order that was asked for.
    """

    name: str
    command: tuple[str, ...]
    required: bool = True
    respawn: bool = False
    when_asked: tuple[int, ...] = ()


class ProcessGroup:
    """Start programs, pass on their output and the signals, end all of them.

    Args:
        programs: started in this order.
        environment: of every child; None = this process's.
        on_line: called with (name, line) for each line of output, from several threads, one at a
            time.
        grace, patience, rest: instead of `END_SECONDS`, `KILL_SECONDS`, `RESPAWN_SECONDS` [s].

    Attributes:
        children: by name, the process that was started last.
        failures: exit codes of those that failed.
        killed: those that did not end when asked.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        environment: Mapping[str, str] | None = None,
        on_line: Callable[[str, str], None] | None = None,
        grace: float = END_SECONDS,
        patience: float = KILL_SECONDS,
        rest: float = RESPAWN_SECONDS,
    ) -> None:
        self.programs = tuple(programs)
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.failures: dict[str, int] = {}
        self.killed: list[str] = []
        self._environment = environment
        self._on_line = _write_line if on_line is None else on_line
        self._steps = ((signal.SIGINT, grace), (signal.SIGTERM, patience), (signal.SIGKILL, 5.0))
        self._rest = rest
        self._lock = threading.Lock()
        self._readers: list[threading.Thread] = []
        self._again_at: dict[str, float] = {}
        """When a program that has ended is started again."""
        self._signals: list[int] = []

    def run(self, tick: Callable[[], bool] | None = None) -> int:
        """Run until a required child ends, a signal comes or `tick` says so; end all children.

        Args:
            tick: called about twenty times a second; True ends the group.

        Returns:
            0; 1 when a child failed or had to be killed; 128 + n after signal n.

        Raises:
            RunError: a program cannot be started (those started before are ended).
        """
        with self._catching_signals():
            try:
                for program in self.programs:
                    self._start(program)
                while not (self._signals or self._ended() or (tick is not None and tick())):
                    time.sleep(0.05)
            finally:
                self._end_all()
        if self._signals:
            return 128 + self._signals[0]
        return 1 if self.failures or self.killed else 0

    def _start(self, program: Program) -> None:
        try:
            child = subprocess.Popen(
                program.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
                # Safe beside threads: it only makes two calls, and imports nothing.
                preexec_fn=functools.partial(_prepare_child, os.getpid()),  # noqa: PLW1509
            )
        except (OSError, subprocess.SubprocessError) as error:
            msg = f"{program.name}: cannot start {program.command[0]!r}: {error}"
            raise RunError(msg) from error
        self.children[program.name] = child
        reader = threading.Thread(target=self._forward, args=(program.name, child), daemon=True)
        reader.start()
        self._readers.append(reader)

    def _forward(self, name: str, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        with child.stdout as lines:
            for line in lines:
                text = line.decode("utf-8", errors="replace").rstrip("\r\n")
                try:
                    with self._lock:
                        self._on_line(name, text)
                except Exception as error:  # go on reading: a full pipe would stop the child
                    logger.error("a line of %s is lost: %r", name, error)

    def _ended(self) -> bool:
        """Return whether a required child, or every child, has ended; note a failure."""
        for program in self.programs:
            code = self.children[program.name].poll()
            if code is None or self._starts_again(program, code) or not program.required:
                continue
            if code != 0:
                self.failures[program.name] = code
                logger.error("%s ended with %s; ending the others", program.name, said(code))
            return True
        return not self._again_at and not self._alive()

    def _starts_again(self, program: Program, code: int) -> bool:
        """Start a child that has crashed once more, when it is to be and has rested."""
        if not program.respawn or not crashed(code):
            return False
        name = program.name
        if name not in self._again_at:
            self._again_at[name] = time.monotonic() + self._rest
            logger.error("%s ended with %s; started again in %g s", name, said(code), self._rest)
        elif time.monotonic() >= self._again_at[name]:
            del self._again_at[name]
            self._start(program)
        return True

    def _end_all(self) -> None:
        """End every child that still runs: ask, insist, kill; each further signal goes on."""
        seen = len(self._signals)
        for step, wait in self._steps:
            for name in self._alive():
                if step == signal.SIGKILL:
                    self.killed.append(name)
                    logger.error("%s did not end when asked and was killed", name)
                self.children[name].send_signal(step)
            deadline = time.monotonic() + wait
            while self._alive() and time.monotonic() < deadline and len(self._signals) == seen:
                time.sleep(0.02)
            seen = len(self._signals)
        more = {program.name: program.when_asked for program in self.programs}
        for name, child in self.children.items():
            code = child.poll()
            if code is None or name in self.failures or name in self.killed:
                continue
            # A child that was asked to end may die of the signal, but not fail.
            if not ended_in_order(code, asked=True, more=more[name]):
                self.failures[name] = code
                logger.error("%s ended with %s", name, said(code))
        for reader in self._readers:
            # A grandchild may hold the pipe open; its output is no longer ours.
            reader.join(timeout=2.0)

    def _alive(self) -> list[str]:
        return [name for name, child in self.children.items() if child.poll() is None]

    @contextlib.contextmanager
    def _catching_signals(self) -> Iterator[None]:
        """Note signals instead of dying of them, so that the children are ended first."""
        before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            note = lambda number, _frame: self._signals.append(number)  # noqa: E731
            before = {number: signal.signal(number, note) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _prepare_child(parent: int) -> None:
    """Between fork and exec: hear signals no matter who started us, and end with the parent."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the line above
            os._exit(0)


def _write_line(name: str, line: str) -> None:
    sys.stdout.write(f"[{name}] {line}\n")
    sys.stdout.flush()
