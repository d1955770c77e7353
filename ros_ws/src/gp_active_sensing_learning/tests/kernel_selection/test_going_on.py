"""Resumed learning: from a checkpoint as if never stopped, and with more rows."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.kernels.base import Periodic
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.kernel_selection import TrainingProgress, VbksConfig, select_kernels
from learning_support.small import rows, same_model
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

SMALL = VbksConfig(
    inducing=6, batch=16, iterations=30, restarts=2, evaluate_every=5, theta_samples=4,
    stages=(0.5, 1.0),
)  # fmt: skip
KERNELS = tuple(parse(name) for name in ("SE", "LIN+SE", "LIN×PER"))


class Stopped(Exception):
    """Exception in place of a user's Ctrl-C."""


def stopping(after: int) -> Any:
    """Return a progress function that stops at the n-th call."""
    told: list[TrainingProgress] = []

    def tell(progress: TrainingProgress) -> None:
        told.append(progress)
        if len(told) == after:
            raise Stopped

    return tell


@pytest.fixture(scope="module")
def whole() -> KernelModel:
    return select_kernels(rows(), KERNELS, SMALL)


@for_each("after", [2, 6, 13])
def test_resumed_is_as_never_stopped(after: int, whole: KernelModel, tmp_path: Path) -> None:
    """Stop in the first stage with all starts, with the best starts, and in the second stage."""
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, progress=stopping(after))
    same_model(select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, resume=True), whole)


def test_resumed_in_the_second_of_several_groups(tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL, memory=1e-9)
    told: list[TrainingProgress] = []
    wanted = select_kernels(rows(), KERNELS, config, progress=told.append)
    assert len({t.kernels for t in told}) == 3
    first = sum(t.kernels == told[0].kernels for t in told)
    stop = stopping(first + 4)
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, config, checkpoint=tmp_path, progress=stop)
    same_model(select_kernels(rows(), KERNELS, config, checkpoint=tmp_path, resume=True), wanted)


def test_a_resumed_drop_is_still_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Periodic.of_square
    monkeypatch.setattr(Periodic, "of_square", lambda *given: right(*given) * float("nan"))
    wanted = select_kernels(rows(), KERNELS, SMALL)
    assert [name for name, _ in wanted.dropped] == ["PER×LIN"]
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, progress=stopping(14))
    found = select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, resume=True)
    same_model(found, wanted)


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, progress=stopping(5))
    with pytest.raises(ConfigError, match="has a checkpoint"):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path)
    for given, kernels, config in (
        (rows(47), KERNELS, SMALL),
        (rows(), KERNELS[:2], SMALL),
        (rows(), KERNELS, dataclasses.replace(SMALL, rate=0.033)),
    ):
        with pytest.raises(ConfigError, match="other rows, kernels or settings"):
            select_kernels(given, kernels, config, checkpoint=tmp_path, resume=True)


def test_a_damaged_checkpoint_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, progress=stopping(5))
    (file,) = tmp_path.glob("group-*.npz")
    with np.load(file) as stored:
        arrays = {name: stored[name] for name in stored.files}
    head = json.loads(arrays["head"].tobytes())
    head["version"] += 1
    newer = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    whole = file.read_bytes()
    for damage in ("truncated", "empty", "newer", "head lost"):
        if damage == "truncated":
            file.write_bytes(whole[:-500])
        elif damage == "empty":
            file.write_bytes(b"")
        else:
            lost = {"head": newer} if damage == "newer" else {}
            np.savez(file, **{k: v for k, v in arrays.items() if k != "head"}, **lost)
        with pytest.raises(ConfigError, match="no checkpoint that can be resumed"):
            select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, resume=True)


def test_stopped_while_the_last_pass_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After all kernels have converged, the checkpoint has no kernel to optimise."""
    from gp_active_sensing_learning.kernel_selection.training import Training

    eager = dataclasses.replace(SMALL, patience=1, tolerance=10.0, stages=(1.0,))
    wanted = select_kernels(rows(), KERNELS, eager)

    def cut(self: Training) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(Training, "_conclude", cut)
        with pytest.raises(Stopped):
            select_kernels(rows(), KERNELS, eager, checkpoint=tmp_path)
    same_model(select_kernels(rows(), KERNELS, eager, checkpoint=tmp_path, resume=True), wanted)


def test_a_checkpoint_goes_on_with_another_prior_of_the_belief(tmp_path: Path) -> None:
    select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path)
    other = dataclasses.replace(SMALL, prior_std=3.0)
    resumed = select_kernels(rows(), KERNELS, other, checkpoint=tmp_path, resume=True)
    direct = select_kernels(rows(), KERNELS, other)
    np.testing.assert_array_equal(resumed.belief.probabilities, direct.belief.probabilities)


@for_each(
    ("key", "value"), [("prior_std", 1e6), ("seed", 2**63), ("restarts", 65), ("race", [0.5])]
)
def test_settings_that_could_only_fail_at_the_end_are_refused(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=key):
        from_mapping(VbksConfig, {key: value})
