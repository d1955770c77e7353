"""Process that answers questions in lines of JSON, with time-outs and without a shell."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

logger = logging.getLogger(__name__)

LONGEST = 1 << 20
"""Largest length of an answer [bytes]."""
PATIENCE = 60.0
"""Time without an answer after which a program is ended [s]."""
_GRACE = 0.5
"""Time between closing a program's input and killing the program [s]."""
_SHOWN = 300
"""Largest number of characters of a line that a message or the log shows."""
_LINES = 200
"""Largest number of lines of standard error that are logged in one run of a program."""
_CHUNK = 1 << 16
"""Largest number of bytes of one system call to a pipe."""


class ProgramError(Exception):
    """Error of a program that gave no valid answer.

    Args:
        message: clause with the reason, without the program's name.
        late: True if the program did not answer in time.
    """

    def __init__(self, message: str, *, late: bool = False) -> None:
        self.late = late
        super().__init__(message)


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line of JSON.

    Raises:
        ValueError: a number is not valid in JSON.
    """
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"


class PlannerProgram:
    """Running program. One question is open at a time, and the answer is one line.

    Time-outs are in seconds of the computer's clock. The first `_LINES` lines of standard error are
    logged. Three threads read answers, read errors and send questions. A full pipe therefore never
    blocks a mission.

    Raises:
        ProgramError: the program cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.name = os.path.basename(command[0])
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        try:
            # A new session keeps interrupts from the keyboard away from the program.
            self._process: Any = subprocess.Popen(command, **pipes, start_new_session=True)
        except (OSError, ValueError) as error:
            msg = f"cannot be started: {error}"
            raise ProgramError(msg) from error
        self.pid: int = self._process.pid
        self.owner = os.getpid()
        """Id of the process that started the program. Only this process ends the program."""
        self.answered = 0
        self._lock = threading.RLock()
        self._closed = self._ended = False
        self._asked_at: float | None = None
        """Time of the open question on the monotonic clock [s]; None = no open question."""
        self._answers = bytearray()
        self._changed = threading.Condition()
        self._questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        work = (self._read_answers, self._log_errors, self._send_questions)
        self._threads = [threading.Thread(target=each, daemon=True) for each in work]
        for thread in self._threads:
            thread.start()

    @property
    def running(self) -> bool:
        """True while the program runs."""
        return not self._closed and self._process.poll() is None

    def ask(self, lines: Sequence[bytes], seconds: float) -> Mapping[str, Any]:
        """Send lines and return the answer, a JSON object.

        A late answer to an earlier question is dropped first. The program is ended after `PATIENCE`
        seconds without an answer, or after a line longer than `LONGEST`.

        Args:
            lines: lines with their line feeds; the last line is the question.
            seconds: longest wait for the answer [s].

        Raises:
            ProgramError: there is no answer, or the answer is not a JSON object.
        """
        with self._lock:
            until = time.monotonic() + seconds
            if self._asked_at is not None:
                self._line(until)  # the late answer to an earlier question
            self._drop_unasked()
            self._questions.put(b"".join(lines))
            self._asked_at = time.monotonic()
            answer = self._parsed(self._line(until))
            self.answered += 1
            return answer

    def close(self, grace: float = _GRACE) -> None:
        """End the program: close its input, and kill it if it still runs after `grace` [s]."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self.owner != os.getpid():  # in a forked copy, the other process owns the program
                self._process.returncode = 0
                return
            self._questions.put(b"")
            try:
                self._process.wait(grace)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(OSError):
                    os.killpg(self.pid, signal.SIGKILL)  # with its child processes
                self._process.kill()
                self._process.wait()
            with self._changed:
                self._changed.notify_all()
            for thread in self._threads:
                thread.join(_GRACE)  # a child process may keep a pipe open

    def _read_answers(self) -> None:
        with self._process.stdout as pipe:
            while chunk := pipe.read1(_CHUNK):
                with self._changed:
                    self._changed.wait_for(lambda: self._closed or len(self._answers) <= LONGEST)
                    self._answers += chunk
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _log_errors(self) -> None:
        with self._process.stderr as pipe:
            shown = 0
            while line := pipe.readline(_CHUNK):
                shown += bool(line.strip())
                if line.strip() and shown <= _LINES:
                    logger.info("%s: %s", self.name, _brief(line))
                elif line.strip() and shown == _LINES + 1:
                    logger.info("%s: further lines of its standard error are not shown", self.name)

    def _send_questions(self) -> None:
        with contextlib.suppress(OSError), self._process.stdin as pipe:
            for question in iter(self._questions.get, b""):
                rest = memoryview(question)
                while rest:
                    rest = rest[os.write(pipe.fileno(), rest) :]

    def _line(self, until: float) -> bytes:

        def has_answer() -> bool:
            whole = b"\n" in self._answers or len(self._answers) > LONGEST
            return whole or self._ended or self._closed

        with self._changed:
            in_time = self._changed.wait_for(has_answer, max(0.0, until - time.monotonic()))
            line, end, rest = bytes(self._answers).partition(b"\n")
            if end:
                self._answers[:] = rest
                self._changed.notify_all()
        if end:
            self._asked_at = None
            return line
        asked = self._asked_at
        patient = asked is None or time.monotonic() - asked <= PATIENCE
        if len(line) > LONGEST:
            msg = f"wrote a line of more than {LONGEST} bytes; it was ended"
        elif in_time:
            msg = self._exit_text()
        elif patient:
            msg = "did not answer in time"
        else:
            msg = f"has not answered for {PATIENCE:g} s; it was ended"
        if in_time or not patient:
            self.close(0.0)
        raise ProgramError(msg, late=not in_time)

    def _exit_text(self) -> str:
        if self._closed:
            return "has ended"
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        self.close(0.0)
        code = self._process.returncode
        return f"has ended (signal {-code})" if code < 0 else f"has ended (exit code {code})"

    def _drop_unasked(self) -> None:
        with self._changed:
            unasked = bytes(self._answers)
            self._answers.clear()
            self._changed.notify_all()
        if unasked:
            logger.warning(
                "%s wrote an answer without a question, which is not used: %s",
                self.name,
                _brief(unasked),
            )

    @staticmethod
    def _parsed(line: bytes) -> Mapping[str, Any]:
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            msg = f"answered no object of JSON but {_brief(line)}"
            raise ProgramError(msg)
        return answer


def _brief(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    shown = "".join(c if c.isprintable() else "�" for c in text[:_SHOWN])
    return shown + ("…" if len(text) > _SHOWN else "")
