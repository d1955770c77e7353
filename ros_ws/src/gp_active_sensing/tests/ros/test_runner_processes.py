"""The group of child processes behind the runner: nobody is left behind, whatever happens."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.ros.launches import Process
from gp_active_sensing.ros.runner import ProcessGroup
from tests.cases import case
from tests.waiting import LIMIT, wait_until

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('up', flush=True)
time.sleep(600)
"""
NEEDS_TERM = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: print('no', flush=True))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('up', flush=True)
while True:
    time.sleep(0.05)
"""


def program(name: str, code: str, required: bool = True) -> Process:
    command = (sys.executable, "-c", textwrap.dedent(code))
    return Process(name=name, command=command, required=required)


def gone(pid: int) -> bool:
    """Return whether a process no longer runs (a zombie of another parent does not run either)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def up_in(file: Path) -> str:
    """Return a sleeper that leaves a file once it is up: before, a Ctrl-C would be its failure."""
    return f"import pathlib, time; pathlib.Path({str(file)!r}).touch(); time.sleep(600)"


def after(file: Path) -> str:
    """Return the beginning of a program that waits for another's file."""
    return (
        f"import pathlib, time\nwhile not pathlib.Path({str(file)!r}).exists(): time.sleep(0.01)\n"
    )


class Lines:
    """Collects what the children print; ends the group once all of them are up."""

    def __init__(self, up: int = 0) -> None:
        self.seen: list[tuple[str, str]] = []
        self.up = up

    def __call__(self, name: str, line: str) -> None:
        self.seen.append((name, line))

    def all_up(self) -> bool:
        return sum(line == "up" for _, line in self.seen) >= self.up > 0


def group_of(lines: Lines, *programs: Process, **options: float) -> ProcessGroup:
    return ProcessGroup(programs, on_line=lines, **options)


def assert_all_gone(group: ProcessGroup) -> None:
    assert group.children
    assert [n for n, child in group.children.items() if not gone(child.pid)] == []


def test_a_tick_ends_the_group_and_lines_carry_names() -> None:
    lines = Lines(up=2)
    group = group_of(lines, program("a", SLEEPER), program("b", SLEEPER))
    assert group.run(lines.all_up) == 0
    assert ("a", "up") in lines.seen
    assert ("b", "up") in lines.seen
    assert_all_gone(group)


@pytest.mark.parametrize(("code", "expected"), [("0", 0), ("3", 1)])
def test_a_required_child_that_ends_takes_the_others_along(
    code: str, expected: int, tmp_path: Path
) -> None:
    lines, up = Lines(), tmp_path / "up"
    ending = program("b", after(up) + f"raise SystemExit({code})")
    group = group_of(lines, program("a", up_in(up)), ending)
    assert group.run() == expected
    assert ("b" in group.failures) == (expected == 1)
    assert_all_gone(group)


def test_a_child_that_is_killed_is_a_failure_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    lines = Lines(up=2)
    group = group_of(lines, program("a", SLEEPER), program("b", SLEEPER))

    def kill_b() -> bool:
        if lines.all_up() and group.children["b"].poll() is None:
            group.children["b"].kill()
        return False

    assert group.run(kill_b) == 1
    assert group.failures == {"b": -signal.SIGKILL}
    assert "b ended with signal SIGKILL" in caplog.text
    assert_all_gone(group)


@needs_proc
def test_a_child_that_is_not_required_may_end(tmp_path: Path) -> None:
    lines, pid = Lines(), tmp_path / "pid"
    viewer = f"""
    import os, pathlib
    part = pathlib.Path({str(pid) + ".part"!r})
    part.write_text(str(os.getpid()))
    part.rename({str(pid)!r})
    raise SystemExit(1)
    """
    # It has ended and the group has seen that: before, its number is not free.
    outlives = f"""{after(pid)}
while pathlib.Path("/proc", pathlib.Path({str(pid)!r}).read_text()).exists(): time.sleep(0.01)
print('done', flush=True)"""
    group = group_of(lines, program("viewer", viewer, required=False), program("a", outlives))
    assert group.run() == 1  # it did fail, but only after `a` had done its work
    assert ("a", "done") in lines.seen


def test_a_child_that_does_not_end_is_asked_again_and_then_killed() -> None:
    for code, patience, expected in ((NEEDS_TERM, LIMIT, 0), (STUBBORN, 0.2, 1)):
        lines = Lines(up=1)
        group = group_of(lines, program("a", code), grace=0.2, patience=patience)
        assert group.run(lines.all_up) == expected
        assert group.killed == ["a"] * expected
        assert_all_gone(group)


def test_a_child_that_crashes_is_started_again_and_ends_the_group_when_it_is_done(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    count, up = tmp_path / "count", tmp_path / "up"
    code = f"""
    import os, pathlib, time
    while not pathlib.Path({str(up)!r}).exists():
        time.sleep(0.01)
    count = pathlib.Path({str(count)!r})
    n = int(count.read_text()) if count.exists() else 0
    count.write_text(str(n + 1))
    print("run", n, flush=True)
    if n < 2:
        os.kill(os.getpid(), 9)
    """
    lines = Lines()
    worker = dataclasses.replace(program("worker", code), respawn=True)
    group = ProcessGroup([worker, program("other", up_in(up))], on_line=lines, rest=0.1)
    assert group.run() == 0
    assert [line for name, line in lines.seen if name == "worker"] == ["run 0", "run 1", "run 2"]
    assert caplog.text.count("worker ended with signal SIGKILL; started again in 0.1 s") == 2
    assert group.failures == {}
    up.unlink()
    refusing = dataclasses.replace(
        program("worker", after(up) + "raise SystemExit(2)"), respawn=True
    )
    group = ProcessGroup([refusing, program("other", up_in(up))], rest=0.1)
    assert group.run() == 1
    assert group.failures == {"worker": 2}, "one that refuses is not started again"


def test_a_program_that_cannot_start_ends_those_before_it() -> None:
    group = ProcessGroup([program("a", SLEEPER), Process(name="b", command=("/no/such/program",))])
    with pytest.raises(RunError, match=r"b: cannot start '/no/such/program'"):
        group.run()
    assert_all_gone(group)


def test_failing_while_ending_is_a_failure() -> None:
    code = """
    import time
    try:
        print('up', flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        raise SystemExit(7)
    """
    lines = Lines(up=1)
    group = group_of(lines, program("a", code))
    assert group.run(lines.all_up) == 1
    assert group.failures == {"a": 7}


PARENT = f"""
import sys
from gp_active_sensing.ros.launches import Process
from gp_active_sensing.ros.runner import ProcessGroup

group = ProcessGroup(
    [Process(name=n, command=(sys.executable, "-c", {SLEEPER!r})) for n in "ab"],
    on_line=lambda name, line: print(name, line, group.children[name].pid, flush=True),
)
raise SystemExit(group.run())
"""


def start_parent(**options: object) -> tuple[subprocess.Popen[str], list[int]]:
    parent = subprocess.Popen(  # type: ignore[call-overload]
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, **options
    )
    assert parent.stdout is not None
    pids = [int(parent.stdout.readline().split()[-1]) for _ in range(2)]
    return parent, pids


def test_signals_reach_the_children_and_the_exit_code_says_which() -> None:
    for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
        with case(number):
            parent, pids = start_parent()
            with parent:
                parent.send_signal(number)
                assert parent.wait(timeout=LIMIT) == 128 + number
            assert all(gone(pid) for pid in pids)


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG")
def test_children_end_even_when_the_parent_is_killed() -> None:
    parent, pids = start_parent()
    with parent:
        parent.kill()
        assert parent.wait(timeout=LIMIT) == -signal.SIGKILL
    wait_until(lambda: all(gone(pid) for pid in pids), "the children to end")


def test_sigint_is_heard_by_a_group_started_as_a_background_job() -> None:
    """A shell's ``cmd &`` starts programs that ignore SIGINT, and they hand that on."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        parent, pids = start_parent()
    finally:
        signal.signal(signal.SIGINT, before)
    with parent:
        os.kill(parent.pid, signal.SIGINT)
        assert parent.wait(timeout=LIMIT) == 130
    assert all(gone(pid) for pid in pids)
