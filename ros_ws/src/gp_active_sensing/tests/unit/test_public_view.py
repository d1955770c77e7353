"""The tests of the nodes see what an integrator's test sees: nothing private of an object."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

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
