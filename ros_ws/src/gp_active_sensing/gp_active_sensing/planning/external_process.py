"""A program that answers lines of JSON: started, asked with a time-out, ended; never by a shell."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["LONGEST", "PATIENCE", "PlannerProgram", "ProgramError", "line_of"]

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
    writes to its standard error is logged, as far as `_LINES` go, while it is being waited for.

    Args:
        command: program and arguments, given to the system as they are.

    Raises:
        ProgramError: it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)
        self.name = os.path.basename(self.command[0])
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # an interrupt from the keyboard is ours to handle
            )
        except (OSError, ValueError) as error:
            msg = f"cannot be started: {error}"
            raise ProgramError(msg) from error
        self.pid = self._process.pid
        self.owner = os.getpid()
        """The process that started it: a copy of that by fork leaves it alone."""
        self.answered = 0
        self._lock = threading.RLock()
        self._closed = False
        self._unsent = bytearray()
        self._answers = bytearray()
        self._errors = bytearray()
        self._shown = 0
        self._asked_at: float | None = None
        """When the question that is open was asked."""
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)

    @property
    def running(self) -> bool:
        """It was not ended, by us or by itself."""
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
            self._unsent += b"".join(lines)
            self._asked_at = time.monotonic()
            answer = self._parsed(self._line(until))
            self.answered += 1
            return answer

    def close(self, grace: float = _GRACE) -> None:
        """End the program: its input ends, and it is killed if it does not go by itself.

        Args:
            grace: seconds that it has to go [s].
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self.owner != os.getpid():  # a fork's copy: the other process has it still
                self._process.returncode = 0
                self._close_pipes()
                return
            self._read_errors()
            if self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()
            try:
                self._process.wait(grace)
            except subprocess.TimeoutExpired:
                self._kill()
            self._read_errors()
            self._say_error(bytes(self._errors))
            self._errors.clear()
            self._close_pipes()

    def _pipes(self) -> list[Any]:
        process = self._process
        return [p for p in (process.stdin, process.stdout, process.stderr) if p is not None]

    def _close_pipes(self) -> None:
        for pipe in self._pipes():
            with contextlib.suppress(OSError):
                pipe.close()

    def _kill(self) -> None:
        """Kill the program with what it started."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()

    def _line(self, until: float) -> bytes:
        """Return the next line of its standard output; the question counts as answered then."""
        while b"\n" not in self._answers:
            if len(self._answers) > LONGEST:
                self.close(0.0)
                msg = f"wrote a line of more than {LONGEST} bytes; it was ended"
                raise ProgramError(msg)
            if not self._wait(until):
                self._be_patient()
                msg = "did not answer in time"
                raise ProgramError(msg, late=True)
        line, _, rest = bytes(self._answers).partition(b"\n")
        self._answers[:] = rest
        self._asked_at = None
        return line

    def _wait(self, until: float) -> bool:
        """Send and receive what is possible now; say whether there was time for it."""
        left = until - time.monotonic()
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        if self._closed or stdin is None or stdout is None or stderr is None:
            msg = "has ended"
            raise ProgramError(msg)
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if not stderr.closed:
                selector.register(stderr, selectors.EVENT_READ)
            if self._unsent:
                selector.register(stdin, selectors.EVENT_WRITE)
            ready = {key.fileobj for key, _ in selector.select(max(0.0, left))}
        if stderr in ready and not self._read_errors():
            stderr.close()
        if stdin in ready and not self._send(stdin):
            self._unsent.clear()  # it reads no more; that it has ended shows on its output
        if stdout in ready and not self._receive(stdout, self._answers):
            self._end_found()
        return stdout in ready or (bool(ready) and left > 0.0)

    def _send(self, stdin: Any) -> bool:
        try:
            sent = stdin.write(memoryview(self._unsent)[:_CHUNK])
        except BlockingIOError:
            return True
        except OSError:
            return False
        del self._unsent[: sent or 0]
        return True

    def _receive(self, pipe: Any, buffer: bytearray) -> bool:
        """Take what a pipe holds; False at its end."""
        try:
            found = pipe.read(_CHUNK)
        except (OSError, ValueError):
            return False
        if found is None:
            return True
        buffer += found
        return bool(found)

    def _end_found(self) -> None:
        """Close and say how the program ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        self.close(0.0)
        code = self._process.returncode
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        msg = f"has ended ({how})"
        raise ProgramError(msg)

    def _be_patient(self) -> None:
        asked = self._asked_at
        if asked is not None and time.monotonic() - asked > PATIENCE:
            self.close(0.0)
            msg = f"has not answered for {PATIENCE:g} s; it was ended"
            raise ProgramError(msg, late=True)

    def _drop_unasked(self) -> None:
        """Pass over what was written without a question."""
        stdout = self._process.stdout
        if stdout is not None and not stdout.closed:
            for _ in range(LONGEST // _CHUNK):
                before = len(self._answers)
                if not self._receive(stdout, self._answers) or len(self._answers) == before:
                    break
        if self._answers:
            logger.warning(
                "%s wrote what nobody asked for, which is passed over: %s",
                self.name,
                _brief(bytes(self._answers)),
            )
            self._answers.clear()

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

    def _read_errors(self) -> bool:
        """Log what it wrote to its standard error; False at the end of that."""
        stderr = self._process.stderr
        if stderr is None or stderr.closed:
            return False
        open_ = self._receive(stderr, self._errors)
        *lines, rest = bytes(self._errors).split(b"\n")
        if len(rest) > _CHUNK:
            lines, rest = [*lines, rest], b""
        self._errors[:] = rest
        for line in lines:
            self._say_error(line)
        return open_

    def _say_error(self, line: bytes) -> None:
        if not line.strip() or self._shown > _LINES:
            return
        self._shown += 1
        if self._shown > _LINES:
            logger.info("%s: more of its standard error is not shown", self.name)
        else:
            logger.info("%s: %s", self.name, _brief(line))


def _brief(line: bytes) -> str:
    """Return the beginning of a line as text that is fit for a log."""
    text = line.decode("utf-8", "replace").strip()
    shown = "".join(c if c.isprintable() else "�" for c in text[:_SHOWN])
    return shown + ("…" if len(text) > _SHOWN else "")
