"""Start the nodes of a launch without ``ros2 launch``, after an installation by pip.

``python -m gp_active_sensing.ros.runner traffic_sim policy:=bal`` starts the same nodes with the
same parameters as ``ros2 launch gp_active_sensing traffic_sim.launch.py policy:=bal``. The runner
writes a node's name before each line of the node's output, and ends all nodes together. Both
commands use the module `launches`.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gp_active_sensing.errors import (
    ActiveSensingError,
    ConfigError,
    MissingDependencyError,
    RunError,
)
from gp_active_sensing.ros.environment import (
    FAILED,
    REFUSED,
    crashed,
    describe,
    ended_in_order,
    node_environment,
    require_ros,
)
from gp_active_sensing.ros.launches import (
    LAUNCHES,
    PACKAGE,
    Process,
    declarations,
    find_launch,
    read_arguments,
)

_GUARD = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"
_USAGE = """\
Usage: python -m gp_active_sensing.ros.runner LAUNCH [NAME:=VALUE …] [--show-args]

Starts the nodes of a launch and ends them together; Ctrl-C ends all.

Launches:
"""


def command_of(process: Process) -> tuple[str, ...]:
    """Return the command by which a node's process is started without ``ros2``.

    Raises:
        MissingDependencyError: the node's program is not on the path.
    """
    if process.package == PACKAGE:
        start = [sys.executable, "-m", f"{PACKAGE}.ros.{process.executable}_node"]
    elif program := shutil.which(process.executable):
        start = [program]
    else:
        msg = (
            f"{process.executable} is not on the PATH: install the package {process.package} of "
            "ROS 2 and source its setup file, or leave it out"
        )
        raise MissingDependencyError(msg)
    ros = ["-r", f"__node:={process.name}"]
    if process.log_level:
        ros += ["--log-level", process.log_level]
    if process.namespace:
        ros += ["-r", f"__ns:=/{process.namespace.strip('/')}"]
    for topic, other in process.remappings:
        ros += ["-r", f"{topic}:={other}"]
    if process.params_file:
        ros += ["--params-file", process.params_file]
    for name, value in process.parameters.items():
        # JSON is YAML, with quotes around texts.
        ros += ["-p", f"{name}:={json.dumps(value)}"]
    return (*start, *process.arguments, "--ros-args", *ros)


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of the node processes.

    The ROS wheels restart the interpreter to set LD_LIBRARY_PATH, and record the restart in a
    variable. With this record but without LD_LIBRARY_PATH, a child process would not restart the
    interpreter, and could not load the libraries of the wheels. In this case the record is removed.
    """
    child = {**environment, **node_environment(environment), "PYTHONUNBUFFERED": "1"}
    if "LD_LIBRARY_PATH" not in child:
        child.pop(_GUARD, None)
    return child


def parse_arguments(words: Sequence[str]) -> dict[str, str]:
    """Parse words ``name:=value``; return the values by name.

    Raises:
        ConfigError: a word does not have this form.
    """
    problems = [word for word in words if ":=" not in word or word.startswith(":=")]
    if problems:
        raise ConfigError([f"{word}: expected name:=value" for word in problems])
    return dict(word.split(":=", 1) for word in words)


def make_group(
    name: str,
    given: Mapping[str, str],
    *,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str, str], None] | None = None,
) -> ProcessGroup:
    """Return the processes of a launch as a group that is not started yet.

    `environment` and `on_line` are passed to `ProcessGroup`.

    Raises:
        ActiveSensingError: an argument is unknown or wrong, or a file or library is missing.
    """
    programs = [
        dataclasses.replace(p, command=command_of(p))
        for p in read_arguments(find_launch(name), given, strict=True).processes()
    ]
    base = os.environ if environment is None else environment
    return ProcessGroup(programs, environment=child_environment(base), on_line=on_line)


def show_arguments(name: str) -> str:
    """Return a description of a launch and its arguments."""
    kind = find_launch(name)
    lines = [f"{name}: {kind.__doc__}", "", "Arguments, as name:=value:"]
    for argument in declarations(kind):
        given = argument.get("default_value")
        default = "required" if given is None else f"default: {given}" if given else "optional"
        lines.append(f"  {argument['name']}: {argument['description']} ({default})")
        if "choices" in argument:
            lines.append(f"      one of: {', '.join(argument['choices'][1:])}")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code.

    The code is 0 after a normal end; an end by Ctrl-C or SIGTERM is also normal. The code is 1 if a
    node failed, and 2 if this command or a node refused its arguments.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(format="[runner] %(message)s", level=logging.INFO)
    if not words or words[0] in {"-h", "--help"}:
        rows = (f"  {name:12} {kind.__doc__}\n" for name, kind in LAUNCHES.items())
        sys.stdout.write(_USAGE + "".join(rows))
        return 0 if words else REFUSED
    try:
        if "--show-args" in words or "-s" in words:
            sys.stdout.write(show_arguments(words[0]))
            return 0
        group = make_group(words[0], parse_arguments(words[1:]))
        require_ros()
    except ActiveSensingError as error:
        sys.stderr.write(f"{error}\n")
        return REFUSED
    try:
        group.run()
    except ActiveSensingError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    return exit_code(group)


def exit_code(group: ProcessGroup) -> int:
    """Return the exit code of a launch, given the group of its nodes after their end."""
    if group.failures and not group.killed and set(group.failures.values()) == {REFUSED}:
        return REFUSED
    return FAILED if group.failures or group.killed else 0


logger = logging.getLogger(__name__)

END_SECONDS = 20.0
"""Time from SIGINT to SIGTERM [s], during which a child process writes its last records."""
KILL_SECONDS = 5.0
"""Time from SIGTERM to SIGKILL [s]."""
RESPAWN_SECONDS = 2.0
"""Delay before a child that has crashed is started again [s]."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
# Functions are looked up before any fork, since a child must not import.
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None


class ProcessGroup:
    """Group of child processes that are started and ended together.

    Args:
        programs: programs with their commands, in the order of their start.
        environment: environment of the children; None = the environment of this process.
        on_line: called with (name, line) for each line of output. Several threads call this
            function, but never at the same time.
        grace, patience, rest: replace `END_SECONDS`, `KILL_SECONDS`, `RESPAWN_SECONDS` [s].

    Attributes:
        children: newest process of each program, by the program's name.
        failures: exit codes of failed children, by the program's name.
        killed: names of the children that had to be ended by SIGKILL.
    """

    def __init__(
        self,
        programs: Sequence[Process],
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
        """Time at which each crashed program is started again (monotonic seconds), by its name."""
        self._signals: list[int] = []

    def run(self, tick: Callable[[], bool] | None = None) -> int:
        """Run until a required child ends, a signal comes or `tick` returns True; then end all.

        `tick` is called about twenty times a second.

        Returns:
            0 after a normal end; 1 if a child failed or had to be killed; 128 + n after signal n.

        Raises:
            RunError: a program cannot be started; the programs that already run are ended.
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

    def _start(self, program: Process) -> None:
        try:
            child = subprocess.Popen(
                program.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
                # The function is safe with threads: it makes two calls and imports nothing.
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
                except Exception as error:  # continue to read: a full pipe would stop the child
                    logger.error("a line of %s is lost: %r", name, error)

    def _ended(self) -> bool:
        """Return whether a required child or all children have ended; record failures."""
        for program in self.programs:
            code = self.children[program.name].poll()
            if code is None or self._restart(program, code) or not program.required:
                continue
            if code != 0:
                self.failures[program.name] = code
                logger.error("%s ended with %s; ending the others", program.name, describe(code))
            return True
        return not self._again_at and not self._alive()

    def _restart(self, program: Process, code: int) -> bool:
        """Start a crashed child again after a delay; return False for other children."""
        if not program.respawn or not crashed(code):
            return False
        name = program.name
        if name not in self._again_at:
            self._again_at[name] = time.monotonic() + self._rest
            logger.error(
                "%s ended with %s; started again in %g s", name, describe(code), self._rest
            )
        elif time.monotonic() >= self._again_at[name]:
            del self._again_at[name]
            self._start(program)
        return True

    def _end_all(self) -> None:
        """End all children by SIGINT, then SIGTERM, then SIGKILL.

        If this process receives a signal meanwhile, the next of these steps follows at once.
        """
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
        for name, child in self.children.items():
            code = child.poll()
            if code is None or name in self.failures or name in self.killed:
                continue
            # A child may end by the signal but not with an error.
            if not ended_in_order(code, asked=True):
                self.failures[name] = code
                logger.error("%s ended with %s", name, describe(code))
        for reader in self._readers:
            # A child's own child may keep the pipe open.
            reader.join(timeout=2.0)

    def _alive(self) -> list[str]:
        return [name for name, child in self.children.items() if child.poll() is None]

    @contextlib.contextmanager
    def _catching_signals(self) -> Iterator[None]:
        """Store signals instead of ending this process, so that the children are ended first."""
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
    """Restore the signal handlers between fork and exec; make the child end with its parent."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent has ended before the call
            os._exit(0)


def _write_line(name: str, line: str) -> None:
    sys.stdout.write(f"[{name}] {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
