"""The commit of a source tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gp_active_sensing_bench.source_tree import commit

IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.org")


def git(folder: Path, *arguments: str) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment = {**clean, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", *IDENTITY, "-C", str(folder), *arguments]
    return subprocess.check_output(command, text=True, env=environment).strip()


@pytest.fixture(name="tree")
def fixture_tree(tmp_path: Path) -> Path:
    package = tmp_path / "tree" / "package"
    package.mkdir(parents=True)
    try:
        git(tmp_path / "tree", "init", "--quiet")
    except FileNotFoundError:
        pytest.skip("git is not installed")
    (package / "__init__.py").touch()
    git(package, "add", ".")
    git(package, "commit", "--quiet", "-m", "first")
    return package


def test_commit_of_a_clean_and_of_a_changed_tree(tree: Path) -> None:
    head = git(tree, "rev-parse", "HEAD")
    assert commit(tree) == head
    commit.cache_clear()
    (tree / "__init__.py").write_text("x = 1\n")
    assert commit(tree) == f"{head}+changes"


def test_where_there_is_none(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside somebody else's tree, outside any, with the variables of a hook, without git."""
    installed, outside = tree / "venv" / "package", tmp_path / "outside"
    for folder in (installed, outside):
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        assert commit(folder) == ""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert commit(tree).endswith("+changes")
    commit.cache_clear()
    monkeypatch.setenv("PATH", str(outside))
    assert commit(tree) == ""
