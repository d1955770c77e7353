"""The tests of the nodes see what an integrator's test sees: nothing private of an object."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.cases import for_each

OWN = ("self", "cls")
PUBLIC = ("_replace", "_asdict", "_fields")
"""Of a named tuple: these begin so only to leave the names of its fields free."""
BY_NAME = ("getattr", "setattr", "hasattr", "delattr", "patch.object")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def private_accesses(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, what) of each attribute that is private and another object's."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in OWN):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(BY_NAME):
            for word in node.args[1:2]:
                if isinstance(word, ast.Constant) and is_private(str(word.value)):
                    yield node.lineno, ast.unparse(node)


def test_nothing_private_is_read(package_root: Path) -> None:
    files = sorted((package_root / "tests" / "ros").glob("*.py"))
    assert len(files) > 40
    found = [
        f"tests/ros/{path.name}:{line}: {what}"
        for path in files
        for line, what in private_accesses(path.read_text(encoding="utf-8"))
    ]
    assert not found, "wait on what nodes show (mission, results, is_active):\n" + "\n".join(found)


@for_each(
    ("source", "allowed"),
    [
        ("node._parts.mission", False),
        ("wait_until(lambda: node._worker)", False),
        ("sensing(ros)._results", False),
        ("nodes['']._timer.cancel()", False),
        ("getattr(node, '_parts')", False),
        ("monkeypatch.setattr(node, '_period', 0.1)", False),
        ("self._node._parts", False),
        ("self._node.mission", True),
        ("node.mission.probe", True),
        ("pair._replace(bag=1)", True),
        ("node.__class__", True),
    ],
)
def test_the_rule_itself(source: str, allowed: bool) -> None:
    assert (not list(private_accesses(source))) is allowed
