"""`gp-active-sensing learn --kernels` interrupted and resumed; what it writes where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.kernel_model import read_model
from gp_active_sensing_learning.checkpoint_directory import NAME
from gp_active_sensing_learning.data import dataset as dataset_module
from learning_support.learn_kernels import QUICK, call, learned, log, same
from tests.cases import for_each

__all__ = ["log"]  # a fixture
pytestmark = pytest.mark.heavy("learn")


REFIT = ("--refit", "10", "--top", "2")


@pytest.fixture
def interrupted_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Press Ctrl-C after so many messages of progress."""
    from gp_active_sensing_learning import kernel_lines

    original = kernel_lines.LearningDisplay.__call__
    left = [0]

    def pressed(self: Any, part: str, now: Any) -> None:
        original(self, part, now)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(kernel_lines.LearningDisplay, "__call__", pressed)

    def arm(count: int) -> None:
        left[0] = count

    return arm


@for_each(
    ("count", "more"),
    [(3, ()), (6, ("--stages", "0.5,1")), (4, REFIT), (8, REFIT)],
)
@pytest.mark.long
def test_interrupted_and_resumed(
    log: Path, tmp_path: Path, interrupted_at: Any, more: tuple[str, ...], count: int
) -> None:
    assert learned(log, tmp_path / "whole.npz", *more, "--restarts", "2").exit_code == 0
    out = tmp_path / "m.npz"
    interrupted_at(count)
    cut = learned(log, out, *more, "--restarts", "2")
    assert cut.exit_code == 1
    assert f"interrupted; the same command with --out {out} --resume goes on" in cut.stderr
    assert not out.exists()
    checkpoint = tmp_path / "m.npz.checkpoint"
    assert checkpoint.is_dir()
    assert not list(checkpoint.glob("rows-*"))
    refused = learned(log, out, *more, "--restarts", "2")
    assert refused.exit_code == 1
    assert "holds a learning that was begun" in refused.stderr
    other = learned(log, out, *more, "--restarts", "3", "--resume")
    assert other.exit_code == 1
    assert "is of other rows, kernels or settings" in other.stderr
    done = learned(log, out, *more, "--restarts", "2", "--resume")
    assert done.exit_code == 0, done.output
    assert not checkpoint.exists()
    same(read_model(out), read_model(tmp_path / "whole.npz"))


def test_a_checkpoint_of_one_s_own(log: Path, tmp_path: Path, interrupted_at: Any) -> None:
    own = ("--checkpoint", str(tmp_path / "kept"))
    nothing = learned(log, tmp_path / "m.npz", *own, "--resume")
    assert nothing.exit_code == 1
    assert "there is nothing to resume" in nothing.stderr
    assert not (tmp_path / "kept").exists()
    interrupted_at(2)
    cut = learned(log, tmp_path / "m.npz", *own)
    assert f"--checkpoint {tmp_path / 'kept'} --resume goes on" in cut.stderr
    assert learned(log, tmp_path / "m.npz", *own, "--resume").exit_code == 0
    assert (tmp_path / "kept").is_dir()  # it is the user's, and stays


def test_the_files_of_a_user_stay(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_module, "IN_MEMORY", 10)
    out = tmp_path / "m.npz"
    for folder in (tmp_path, tmp_path / "m.npz.checkpoint"):
        folder.mkdir(exist_ok=True)
        for name in ("rows-inputs.npy", "rows-mine.npy"):
            (folder / name).write_text("mine", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    assert learned(log, out, kernels="SE").exit_code == 0
    assert learned(log, out, "--checkpoint", str(tmp_path), kernels="SE").exit_code == 0
    left = {path for path in tmp_path.rglob("*") if tmp_path / NAME not in (path, *path.parents)}
    assert left == {*before, out}
    assert not list((tmp_path / NAME).rglob("rows-*"))
    for path in tmp_path.rglob("rows-*"):
        assert path.read_text(encoding="utf-8") == "mine"


def test_names_of_their_own(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted_at: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ("--kernels", "SE", "--inputs", "x", "--value", "temp", *QUICK)
    interrupted_at(2)
    cut = call("log.csv", *given)
    assert "the same command with --out log-kernels.npz --resume goes on" in cut.stderr
    assert call("log.csv", *given).exit_code == 0  # another one meanwhile
    assert call("log.csv", *given, "--resume").exit_code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("log-kernels-2.npz", "log-kernels.npz", "log.csv"),
    ]
    same(read_model(Path("log-kernels.npz")), read_model(Path("log-kernels-2.npz")))
