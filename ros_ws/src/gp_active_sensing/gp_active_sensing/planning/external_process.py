"""A program that answers lines of JSON: started, asked with a time-out, ended; never by a shell."""

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
"""Bytes of the longest answer that is read."""
PATIENCE = 60.0
"""Seconds after which a program that has not answered is ended, to be started again."""
_GRACE = 0.5
"""Seconds that a program has to end once its input has ended."""
_SHOWN = 300
"""Characters of a line of its standard error, or of a wrong answer, that are shown."""
_LINES = 200
"""Lines of its standard error that are logged, of one run of the program."""
_CHUNK = 1 << 16


class ProgramError(Exception):
    """A program that gave no answer that can be used; the message says why.

    Args:
        message: a clause, without the program's name.
        late: it did not answer in time.
    """

    def __init__(self, message: str, *, late: bool = False) -> None:
        self.late = late
        super().__init__(message)


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line of JSON.

    Raises:
        ValueError: a number that JSON has no word for.
    """
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"


class PlannerProgram:
    """A running program. One question is open at a time, and each is answered by one line.

    Waiting for another process is real time, whatever clock a mission is counted by. What it
    writes to its standard error is logged, as far as `_LINES` go. A thread each reads its answers
    and its errors, and sends it questions, so that no pipe that is full stops a mission.

    Raises:
        ProgramError: it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.name = os.path.basename(command[0])
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        try:
            # In a session of its own: an interrupt from the keyboard is ours to handle.
            self._process: Any = subprocess.Popen(command, **pipes, start_new_session=True)
        except (OSError, ValueError) as error:
            msg = f"cannot be started: {error}"
            raise ProgramError(msg) from error
        self.pid: int = self._process.pid
        self.owner = os.getpid()
        """The process that started it: a copy of that by fork leaves it alone."""
        self.answered = 0
        self._lock = threading.RLock()
        self._closed = self._ended = False
        self._asked_at: float | None = None
        """When the question that is open was asked."""
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
        """Send lines and return the answer, an object of JSON.

        The answer to an earlier question that came too late is passed over first. After `PATIENCE`
        without an answer, a line that never ends, or its own end, the program is ended.

        Args:
            lines: each with its end; the last one is the question.
            seconds: to wait at most.

        Raises:
            ProgramError: no answer, or none that is an object of JSON.
        """
        with self._lock:
            until = time.monotonic() + seconds
            if self._asked_at is not None:
                self._line(until)  # late; what it says was for an earlier decision
            self._drop_unasked()
            self._questions.put(b"".join(lines))
            self._asked_at = time.monotonic()
            answer = self._parsed(self._line(until))
            self.answered += 1
            return answer

    def close(self, grace: float = _GRACE) -> None:
        """End the program: its input ends, and it is killed if it runs `grace` seconds later."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self.owner != os.getpid():  # a fork's copy: the other process has it still
                self._process.returncode = 0
                return
            self._questions.put(b"")
            try:
                self._process.wait(grace)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(OSError):
                    os.killpg(self.pid, signal.SIGKILL)  # with what it started
                self._process.kill()
                self._process.wait()
            with self._changed:
                self._changed.notify_all()
            for thread in self._threads:
                thread.join(_GRACE)  # something that it started may hold a pipe open

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
                    logger.info("%s: more of its standard error is not shown", self.name)

    def _send_questions(self) -> None:
        with contextlib.suppress(OSError), self._process.stdin as pipe:
            for question in iter(self._questions.get, b""):
                rest = memoryview(question)
                while rest:
                    rest = rest[os.write(pipe.fileno(), rest) :]

    def _line(self, until: float) -> bytes:
        """Return the next line of its standard output; the question counts as answered then."""

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
        """Drop what the program wrote without a question."""
        with self._changed:
            unasked = bytes(self._answers)
            self._answers.clear()
            self._changed.notify_all()
        if unasked:
            logger.warning(
                "%s wrote what nobody asked for, which is passed over: %s",
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
    """Return the beginning of a line as text that is fit for a log."""
    text = line.decode("utf-8", "replace").strip()
    shown = "".join(c if c.isprintable() else "�" for c in text[:_SHOWN])
    return shown + ("…" if len(text) > _SHOWN else "")
