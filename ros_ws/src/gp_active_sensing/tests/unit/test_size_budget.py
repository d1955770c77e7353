"""The project stays as small as tools/size_budget.toml says."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.pages import PACKAGE, REPOSITORY

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it where Python has none

BUDGET = REPOSITORY / "tools" / "size_budget.toml"
if not BUDGET.is_file():
    pytest.skip("the package lies outside its repository", allow_module_level=True)
SOURCES = PACKAGE.parent
PACKAGES = ("gp_active_sensing", "gp_active_sensing_learning", "gp_active_sensing_bench")
NOT_OURS = {"build", "install", "log", ".venv", "__pycache__"}


def python_files(folders: Iterable[Path]) -> list[Path]:
    found = [path for folder in folders for path in folder.rglob("*.py")]
    return [path for path in found if not NOT_OURS & set(path.relative_to(SOURCES).parts)]


def lines(files: Iterable[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)


def words(files: Iterable[Path]) -> int:
    return sum(len(path.read_text("utf-8").split()) for path in files)


def measured() -> dict[str, dict[str, int]]:
    """Return the sizes in the sections of the budget, without that of the tests of a run."""
    code = python_files(SOURCES / name / name for name in PACKAGES)
    product = python_files([PACKAGE / "gp_active_sensing"])
    benchmarks = python_files([SOURCES / "gp_active_sensing_bench" / "benchmarks"])
    calls = (node for path in code for node in ast.walk(ast.parse(path.read_bytes())))
    keys = sum(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("param", "config.param", "topic_param")
        for node in calls
    )
    docs = list((REPOSITORY / "docs").glob("*.md"))
    return {
        "lines": {
            "product": lines(product),
            "packages": lines(code) + lines(benchmarks),
            "benchmarks": lines(benchmarks),
            "tests": lines(python_files(SOURCES / name / "tests" for name in PACKAGES)),
        },
        "files": {"product": len(product)},
        "configuration": {"keys": keys},
        "words": {"docs": words(docs), "changelog": words([REPOSITORY / "CHANGELOG.md"])},
        "pages": {"docs": len(docs)},
    }


def test_sizes_are_below_their_ceilings(request: pytest.FixtureRequest) -> None:
    budget = tomllib.loads(BUDGET.read_text("utf-8"))
    found = {**measured(), "tests": {"instances": request.session.testscollected}}
    assert {section: set(sizes) for section, sizes in found.items()} == {
        section: set(ceilings) for section, ceilings in budget.items()
    }
    if request.config.getoption("-m") != "not long":
        found["tests"]["instances"] = 0  # another selection than that of `make test`
    above = [
        f"{section}.{name}: {size} > {budget[section][name]}"
        for section, sizes in found.items()
        for name, size in sizes.items()
        if size > budget[section][name]
    ]
    assert not above, f"make it smaller, or raise {BUDGET.name} with the reason: {above}"
    assert all(size > 0 for name, size in found["lines"].items())


def test_nothing_that_is_built_is_tracked() -> None:
    """A built site or a cache in the repository is a file that git ignores and tracks."""
    listed = ["git", "-C", str(REPOSITORY), "ls-files", "--cached", "--ignored"]
    if not (REPOSITORY / ".git").exists():
        pytest.skip("not a checkout of git")
    found = subprocess.run([*listed, "--exclude-standard"], capture_output=True, check=True)
    assert found.stdout == b""
