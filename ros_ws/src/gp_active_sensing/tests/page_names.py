"""What the pages name of the code: paths, classes with their members, words of the notation."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from tests.pages import PACKAGE, REPOSITORY

__all__ = ["NOTATION", "pages_with_names", "wrong_names"]

CODE = PACKAGE / "gp_active_sensing"
NOTATION = REPOSITORY / "docs" / "notation.md"
_BASES = (REPOSITORY, PACKAGE, CODE, REPOSITORY / "docs", PACKAGE / "benchmarks")
_ELSEWHERE = {"randomTrips.py": "of SUMO"}
_SAVED = re.compile(r"^\s*```\w+ file=([\w./-]+)", re.MULTILINE)
_FENCE = re.compile(r"^\s*```.*?^\s*```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PATH = re.compile(r"^([\w.-]+/)+([\w.-]+\.\w+)?(::(?P<name>\w+))?$|^\w+\.py$")
_CLASS = re.compile(r"^(?P<name>[A-Z][a-z0-9]+(?:[A-Z]\w*)*)(?:\.(?P<member>[a-z_]\w*))?")
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_WHOLE = re.compile(r"^\.?[A-Za-z_][\w.]*(\(\))?$")


def pages_with_names() -> list[Path]:
    """Return the pages whose names are looked at; the CHANGELOG speaks of what was."""
    found = {*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")}
    found |= {PACKAGE / "README.md", *PACKAGE.glob("*/README.md")}
    return sorted(page for page in found if page.is_file() and page.name != "CHANGELOG.md")


def wrong_names(page: Path, text: str | None = None) -> list[str]:
    """Return what a page names and the code does not have, a line each.

    Args:
        page: where the text stands.
        text: of the page; None = what the file holds.
    """
    text = page.read_text(encoding="utf-8") if text is None else text
    strict = page == NOTATION
    saved = set(_SAVED.findall(text))  # files that the page itself tells its reader to write
    wrong = []
    for line, span in _spans(text):
        if span in saved:
            continue
        problem = _path_problem(page, span) if _PATH.match(span) else _name_problem(span, strict)
        if problem:
            wrong.append(f"{page.name}:{line}: `{span}`: {problem}")
    return wrong


def _spans(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of what stands between backquotes, outside blocks."""
    prose = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for found in _SPAN.finditer(prose):
        yield prose.count("\n", 0, found.start()) + 1, found[1]


def _path_problem(page: Path, span: str) -> str:
    path, _, name = span.partition("::")
    first = path.split("/")[0]
    ours = any((base / first).exists() for base in _BASES)
    if not ours and not path.endswith(".py"):
        return ""  # of a package or a machine of the reader's
    places = [base / path for base in (page.parent, *_BASES)]
    found = next((place for place in places if place.exists()), None) or _ending_in(path)
    if found is None:
        return "there is no such file" if path not in _ELSEWHERE else ""
    if name and name not in _defined(found):
        return f"{path} defines no {name}"
    return ""


def _ending_in(path: str) -> Path | None:
    """Return a file of the code whose path ends so, where the page says which folder it means."""
    name = path.rpartition("/")[2]
    found = CODE.rglob(name) if name else ()
    return next((file for file in found if file.as_posix().endswith(f"/{path}")), None)


def _name_problem(span: str, strict: bool) -> str:
    if match := _CLASS.match(span):
        name, member = match["name"], match["member"]
        if name in _classes():
            known = member is None or member in _members(name)
            return "" if known else f"{name} has no {member}"
        if strict or member:
            return "" if name in _words() else f"there is no {name}"
    if strict and _WHOLE.match(span):
        missing = [word for word in _WORD.findall(span) if word not in _words()]
        return f"there is no {', '.join(missing)}" if missing else ""
    return ""


@functools.cache
def _trees() -> tuple[ast.Module, ...]:
    return tuple(ast.parse(path.read_text(encoding="utf-8")) for path in CODE.rglob("*.py"))


@functools.cache
def _words() -> frozenset[str]:
    """Return every word of the code without its docstrings and comments, parts of paths too."""
    words: set[str] = set()
    for tree in _trees():
        for node in ast.walk(tree):
            for field in ("id", "attr", "arg", "name", "module"):
                value = getattr(node, field, None)
                if isinstance(value, str):
                    words.update(value.split("."))
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if len(node.value) < 40:  # keys, not docstrings
                    words.update(_WORD.findall(node.value))
    return frozenset(words)


@functools.cache
def _classes() -> dict[str, list[ast.ClassDef]]:
    found: dict[str, list[ast.ClassDef]] = {}
    for tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


@functools.cache
def _members(name: str) -> frozenset[str]:
    """Return what the classes of a name have, their bases' included."""
    members: set[str] = set()
    for node in _classes().get(name, ()):
        for base in node.bases:
            inner = base.value if isinstance(base, ast.Subscript) else base
            members |= _members(getattr(inner, "id", getattr(inner, "attr", "")))
        for part in ast.walk(node):
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                members.add(part.name)
            elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                members.add(part.target.id)
            elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                members.add(part.attr)
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                members.add(part.id)
    return frozenset(members)


def _defined(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
