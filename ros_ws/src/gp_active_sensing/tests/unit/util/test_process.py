"""This process: free memory goes back to the system, and records say which program made them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import gp_active_sensing
from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission import factory as build
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.util import process
from gp_active_sensing.util.process import commit, versions

PIECES = """
import ctypes

from gp_active_sensing.util.process import hand_back

def resident_mb():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024.0

c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
pieces = [c.malloc(64_000) for _ in range(1000)]
for piece in pieces:
    ctypes.memset(piece, 1, 64_000)
for piece in pieces[:-1]:  # the last one keeps the C library from giving back those before it
    c.free(ctypes.c_void_p(piece))
held = resident_mb()
asked = hand_back()
print(asked, held - resident_mb())
"""


def test_what_is_free_is_handed_back() -> None:
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the C library is not glibc, which alone can be asked")
    done = subprocess.run(
        [sys.executable, "-c", PIECES], capture_output=True, text=True, check=True
    )
    asked, handed_back = done.stdout.split()
    assert asked == "True"
    assert float(handed_back) > 50.0, "of 64 MB"


def test_another_system_has_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.sys, "platform", "darwin")
    assert not process.hand_back()


def test_a_mission_that_is_restored_hands_back_what_its_journal_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[bool] = []
    monkeypatch.setattr(build, "hand_back", lambda: called.append(True))
    given = {"map": {"kind": "grid", "columns": 2, "rows": 2, "spacing": 1.0}}
    config = from_mapping(ActiveSensingConfig, given | {"run_dir": str(tmp_path / "run")})
    for time in (1, 2):
        build.build_parts(config, None).recorder.close()
        assert len(called) == time


IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "test"), ("EMAIL", "test@example.org"))
}


def git(folder: Path, *arguments: str) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment = {**clean, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return done.stdout.strip()


@pytest.fixture(name="tree")
def fixture_tree(tmp_path: Path) -> Path:
    """The folder of a package in a source tree."""
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


def test_an_installation_inside_somebody_else_s_tree_has_none(tree: Path) -> None:
    installed = tree / "venv" / "package"
    installed.mkdir(parents=True)
    (installed / "__init__.py").touch()
    assert commit(installed) == ""


def test_no_tree_and_no_git(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    assert commit(outside) == ""
    monkeypatch.setenv("PATH", str(outside))
    assert commit(tree) == ""


def test_variables_of_a_git_hook_do_not_lead_elsewhere(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert len(commit(tree)) == 40


def test_versions() -> None:
    found = versions(("numpy", "no-such-package"))
    assert set(found) == {"gp_active_sensing", "python", "numpy"}
    assert found["gp_active_sensing"] == gp_active_sensing.__version__
