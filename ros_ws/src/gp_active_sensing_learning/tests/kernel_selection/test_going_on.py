"""Learning that goes on: from a checkpoint as if never stopped, and when more rows have come."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_selection import TrainingProgress, VbksConfig, select_kernels
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

SMALL = VbksConfig(
    inducing=6,
    batch=16,
    iterations=30,
    restarts=2,
    evaluate_every=5,
    theta_samples=4,
    stages=(0.5, 1.0),
)
KERNELS = tuple(parse(name) for name in ("SE", "LIN+SE", "LIN×PER"))


def rows(n: int = 64, names: tuple[str, ...] = ("x",)) -> Dataset:
    rng = np.random.default_rng([10, len(names)])
    X = rng.uniform(-5.0, 5.0, size=(400, len(names)))
    y = np.sin(1.3 * X[:, 0]) + 0.2 * X[:, -1] + 0.1 * rng.normal(size=400)
    return Dataset(X[:n], y[:n], names, "v", "made rows")


def same(a: KernelModel, b: KernelModel) -> None:
    assert a.names == b.names
    for one, other in zip(a.fits, b.fits, strict=True):
        assert one.outcome == other.outcome
        assert one.iterations == other.iterations
        for field in ("bound", "theta_mean", "theta_root", "inducing", "mean", "root", "trace"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)
    np.testing.assert_array_equal(a.history.bounds, b.history.bounds)
    np.testing.assert_array_equal(a.history.rows, b.history.rows)
    np.testing.assert_array_equal(a.belief.probabilities, b.belief.probabilities)


class Stopped(Exception):
    """As a user's Ctrl-C."""


def stopping(after: int) -> Any:
    """Return a progress function that stops at the n-th time it is told something."""
    told: list[TrainingProgress] = []

    def tell(progress: TrainingProgress) -> None:
        told.append(progress)
        if len(told) == after:
            raise Stopped

    return tell


@pytest.fixture(scope="module")
def whole() -> KernelModel:
    return select_kernels(rows(), KERNELS, SMALL)


def test_a_checkpoint_changes_nothing(whole: KernelModel, tmp_path: Path) -> None:
    same(select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path / "c"), whole)


@for_each("after", [2, 6, 13])
def test_resumed_is_as_never_stopped(after: int, whole: KernelModel, tmp_path: Path) -> None:
    """In the first stage with all starts, with the best of them, and in the second stage."""
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, progress=stopping(after))
    same(select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, resume=True), whole)


def test_resumed_in_the_second_of_several_groups(tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL, memory=1e-9)
    told: list[TrainingProgress] = []
    wanted = select_kernels(rows(), KERNELS, config, progress=told.append)
    assert len({t.kernels for t in told}) == 3
    first = sum(t.kernels == told[0].kernels for t in told)
    stop = stopping(first + 4)
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, config, checkpoint=tmp_path, progress=stop)
    same(select_kernels(rows(), KERNELS, config, checkpoint=tmp_path, resume=True), wanted)


def test_a_resumed_drop_is_still_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gp_active_sensing_learning.kernel_selection import covariances

    right = covariances._correlation

    def wrong(base: str, square: Any, alpha: Any) -> Any:
        found = right(base, square, alpha)
        return found * float("nan") if base == "PER" else found

    monkeypatch.setattr(covariances, "_correlation", wrong)
    wanted = select_kernels(rows(), KERNELS, SMALL)
    assert [name for name, _ in wanted.dropped] == ["PER×LIN"]
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, progress=stopping(14))
    found = select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, resume=True)
    same(found, wanted)
    assert found.dropped == wanted.dropped


def test_a_checkpoint_is_not_overwritten_unasked(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, progress=stopping(5))
    with pytest.raises(ConfigError, match="has a checkpoint"):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path)


@for_each("what", ["rows", "kernels", "settings"])
def test_a_checkpoint_of_something_else_is_refused(what: str, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, progress=stopping(5))
    given = rows(63) if what == "rows" else rows()
    kernels = KERNELS[:2] if what == "kernels" else KERNELS
    config = dataclasses.replace(SMALL, rate=0.033) if what == "settings" else SMALL
    with pytest.raises(ConfigError, match="other rows, kernels or settings"):
        select_kernels(given, kernels, config, checkpoint=tmp_path, resume=True)


@pytest.mark.long
def test_with_other_processes_it_goes_on(whole: KernelModel, tmp_path: Path) -> None:
    """Kernels are grouped by how many processes there are; the checkpoint keeps the groups."""
    pytest.importorskip("joblib")
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, progress=stopping(5))
    found = select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, resume=True, jobs=3)
    assert found.names == whole.names
    expected = [fit.bound for fit in whole.fits]
    assert [fit.bound for fit in found.fits] == pytest.approx(expected, abs=1e-6)


@for_each("damage", ["truncated", "empty", "no npz", "newer", "head lost"])
def test_a_damaged_checkpoint_is_an_error(damage: str, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, progress=stopping(5))
    (file,) = tmp_path.glob("group-*.npz")
    if damage == "truncated":
        file.write_bytes(file.read_bytes()[:-500])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "no npz":
        file.write_text("no checkpoint")
    else:
        with np.load(file) as stored:
            arrays = {name: stored[name] for name in stored.files}
        head = json.loads(arrays.pop("head").tobytes())
        head["version"] += 1
        if damage == "newer":
            arrays["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        np.savez(file, **arrays)
    with pytest.raises(ConfigError, match=r"no checkpoint that can be resumed.*remove it"):
        select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path, resume=True)


# -- streaming ----------------------------------------------------------------------------------

SETTLED = dataclasses.replace(SMALL, stages=(1.0,), batch=200, iterations=120, theta_samples=64)


@pytest.mark.long
def test_going_on_with_more_rows_ends_where_a_fresh_run_does() -> None:
    """Twice the rows: bounds and predictions of a fresh run with all steps, from fewer steps."""
    kernels = KERNELS[:2]
    first = select_kernels(rows(100), kernels, SETTLED)
    on = select_kernels(
        rows(200), kernels, dataclasses.replace(SETTLED, iterations=60), earlier=first
    )
    fresh = select_kernels(rows(200), kernels, SETTLED)
    assert on.rows == fresh.rows == 200
    for fit in on.fits:
        (other,) = (f for f in fresh.fits if f.name == fit.name)
        # Its scaling is that of the first rows: another unit of the outputs shifts every bound.
        shift = 200 * np.log(on.scaling.output_scale / fresh.scaling.output_scale)
        assert fit.bound - shift > other.bound - 4.0, fit.name
    X = np.linspace(-4.5, 4.5, 30)[:, None]
    truth = np.sin(1.3 * X[:, 0]) + 0.2 * X[:, 0]
    error, best = (np.sqrt(np.mean((m.predict(X)[0] - truth) ** 2)) for m in (on, fresh))
    assert error < 1.2 * best + 0.01


def test_the_history_goes_on() -> None:
    config = dataclasses.replace(SMALL, iterations=20, stages=(1.0,))
    first = select_kernels(rows(40), KERNELS[:2], config)
    on = select_kernels(rows(80), KERNELS, config, earlier=first)
    assert on.history.rows.tolist() == [40.0, 80.0]
    assert set(on.history.names) == set(map(str, KERNELS))
    old = [on.history.names.index(name) for name in first.history.names]
    np.testing.assert_array_equal(on.history.bounds[0, old], first.history.bounds[0])
    new = on.history.names.index("PER×LIN")
    assert np.isnan(on.history.bounds[0, new])
    assert on.history.probabilities[0, new] == 0.0
    assert on.scaling is first.scaling or on.scaling.output_shift == first.scaling.output_shift


def test_going_on_with_a_model_of_other_inputs_is_refused() -> None:
    config = dataclasses.replace(SMALL, iterations=5, stages=(1.0,), restarts=1)
    first = select_kernels(rows(40), KERNELS[:1], config)
    with pytest.raises(ConfigError, match="has the inputs x, the rows of made rows have x, y"):
        select_kernels(rows(40, ("x", "y")), KERNELS[:1], config, earlier=first)


def test_stopped_while_the_last_pass_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When all kernels have converged the checkpoint has none left to optimise."""
    from gp_active_sensing_learning.kernel_selection.training import Training

    eager = dataclasses.replace(SMALL, patience=1, tolerance=10.0, stages=(1.0,))
    wanted = select_kernels(rows(), KERNELS, eager)

    def cut(self: Training) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(Training, "_conclude", cut)
        with pytest.raises(Stopped):
            select_kernels(rows(), KERNELS, eager, checkpoint=tmp_path)
    same(select_kernels(rows(), KERNELS, eager, checkpoint=tmp_path, resume=True), wanted)
