"""`gp-active-sensing learn --kernels` interrupted and resumed; what it writes where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.kernel_model.model_file import read_model
from learning_support.learn_kernels import learned, log
from learning_support.small import same_model
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


@for_each(("count", "more"), [(6, ("--stages", "0.5,1")), (4, REFIT), (8, REFIT)])
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
    done = learned(log, out, *more, "--restarts", "2", "--resume")
    assert done.exit_code == 0, done.output
    assert not checkpoint.exists()
    same_model(read_model(out), read_model(tmp_path / "whole.npz"))
