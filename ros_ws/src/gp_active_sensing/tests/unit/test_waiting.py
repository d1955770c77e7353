"""No test depends on how fast the machine is: it waits for states, and asserts on no seconds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

CLOCKS = ("monotonic", "perf_counter", "process_time")
TIMEOUTS = ("timeout", "timeout_sec")
WAITS = ("wait", "communicate", "wait_for_service", "wait_for_workers", "run", "check_output")
LONG_SLEEP = 0.1
PAUSES = {
    "ros/test_inputs.py": "time that passes between the coming of a message and its callback",
    "unit/mission/test_journal.py": "time in which nothing new comes, so that nothing is written",
}
"""Files that sleep for longer, and what for: more time changes nothing about the outcome."""


def violations(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, what) of each look at a clock in an assertion, short time-out and long sleep."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert) and any(_reads_a_clock(n) for n in ast.walk(node.test)):
            if not _gives_up(node.test):
                yield node.lineno, f"asserts on a time: {ast.unparse(node.test)}"
        elif isinstance(node, ast.Call):
            yield from _short(node)


def _reads_a_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(CLOCKS)


def _gives_up(test: ast.expr) -> bool:
    """Whether it is the end of a wait: the time is compared with a limit that was made before."""
    return isinstance(test, ast.Compare) and ast.unparse(test.comparators[0]) in ("end", "until")


def _short(call: ast.Call) -> Iterator[tuple[int, str]]:
    name = ast.unparse(call.func)
    whose, _, what = name.rpartition(".")
    given = [word.value for word in call.keywords if word.arg in TIMEOUTS]
    if what == "wait" and not whose.endswith("browser"):  # which draws meanwhile
        given += call.args[:1]
    seconds = [v.value for v in given if isinstance(v, ast.Constant)]
    if what in WAITS and any(isinstance(s, float | int) and s < 60.0 for s in seconds):
        yield call.lineno, f"gives up after less than a minute: {ast.unparse(call)[:60]}"
    if name.endswith("time.sleep") and isinstance(call.args[0], ast.Constant):
        if call.args[0].value >= LONG_SLEEP:
            yield call.lineno, f"sleeps: {ast.unparse(call)}"


def test_no_test_depends_on_how_fast_the_machine_is(package_root: Path) -> None:
    found = []
    for path in sorted((package_root / "tests").rglob("*.py")):
        name = path.relative_to(package_root / "tests").as_posix()
        for line, what in violations(path.read_text(encoding="utf-8")):
            if not (what.startswith("sleeps") and name in PAUSES):
                found.append(f"tests/{name}:{line} {what}")
    assert not found, "wait for a state (tests/waiting.py):\n" + "\n".join(found)
