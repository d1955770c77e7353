"""A launch as a process, with ``ros2 launch`` where it is installed and with our runner."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gp_active_sensing.ros.launches import Process, find_launch, read_arguments
from tests.commanding import ran
from tests.waiting import LIMIT

PACKAGE = "gp_active_sensing"


def processes(launch: str, **given: str) -> dict[str, Process]:
    """Return by name the processes that a launch file starts, given arguments."""
    found = read_arguments(find_launch(launch), given, strict=True)
    return {process.name: process for process in found.processes()}


def parameters(process: Process) -> dict[str, Any]:
    return dict(process.parameters)


def _why_not() -> str:
    if shutil.which("ros2") is None:
        return "the command ros2 is not on the PATH"
    found = ran("ros2", "pkg", "prefix", PACKAGE)
    return "" if found.returncode == 0 else f"{PACKAGE} is in no sourced workspace"


REASON = _why_not()
"""Why ``ros2 launch`` cannot be tried, "" when it can."""


def ros2(name: str, *words: str) -> list[str]:
    return ["ros2", "launch", PACKAGE, f"{name}.launch.py", *words]


def runner(name: str, *words: str) -> list[str]:
    return [sys.executable, "-m", "gp_active_sensing.ros.runner", name, *words]


def _hear_sigint() -> None:
    """Undo what a shell does to its background jobs, and these hand on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def launched(log: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_hear_sigint,  # noqa: PLW1509  it makes one call
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LIMIT)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(LIMIT)


def node_pids(launcher: int, name: str = "active_sensing") -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = path.read_text().rsplit(")", 1)[1].split()
            if int(words[1]) == launcher and words[0] != "Z":
                command = (path.parent / "cmdline").read_bytes().decode()
                if f"__node:={name}" in command:
                    found.append(int(path.parent.name))
    return found
