"""The benchmarks of VBKS run at their smallest size, go on where they ended, and tell the truth."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[4] / "benchmarks"
NAMES = ("synthetic", "evidence", "real", "cost", "million", "probe")

pytestmark = pytest.mark.heavy("learn")

if not FOLDER.is_dir():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("GPAS_KEPT", str(tmp_path / "kept"))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_smallest_size_runs_and_goes_on(name: str, load: Any, tmp_path: Path) -> None:
    run = load(f"bench_vbks_{name}").run
    keys = {"pictures": tmp_path} if name in ("synthetic", "evidence", "real", "probe") else {}
    report = run(smoke=True, **keys).markdown()
    assert report.startswith("## ")
    assert "nan" not in report.replace("nance", "").lower().split()
    if "Not run" in report:
        pytest.skip("GPAS_DATA names no folder")
    pieces = (tmp_path / "kept" / f"vbks_{name}_smoke.jsonl").read_text("utf-8")
    assert run(smoke=True, **keys).markdown() == report
    assert (tmp_path / "kept" / f"vbks_{name}_smoke.jsonl").read_text("utf-8") == pieces
    assert bool(list(tmp_path.glob("vbks_*.png"))) == bool(keys)


def test_true_kernels_are_those_of_the_paper(load: Any) -> None:
    data = load("vbks_data")
    x = np.array([[0.7], [-3.1], [9.0]])
    gap = x - x.T
    product, mixed = (truth.covariance(x, x) for truth in data.TRUTHS)
    per = 0.1**2 * np.exp(-2.0 * np.sin(0.5 * gap) ** 2)
    rq = 0.1**2 / (1.0 + gap**2 / (2.0 * 8.0**2))
    np.testing.assert_allclose(product, per * rq * (x @ x.T) / 3.0**2, rtol=1e-10)
    per = 0.1**2 * np.exp(-2.0 * np.sin(0.5 * gap) ** 2 / 2.0**2)
    rq = 0.1**2 / (1.0 + gap**2 / (2.0 * 3.0**2))
    np.testing.assert_allclose(mixed, (per + rq) * (x @ x.T) / 5.0**2, rtol=1e-10)


def test_synthetic_rows_are_noise_free(load: Any) -> None:
    data = load("vbks_data")
    truth = data.TRUTHS[1]
    rows = data.synthetic(truth, 0, 40)
    again = data.synthetic(truth, 0, 40)
    np.testing.assert_array_equal(rows.outputs, again.outputs)
    # Given half of them the process itself predicts the others: nothing but the kernel is in them.
    known, left = slice(0, 36), slice(36, None)
    K = truth.covariance(rows.inputs, rows.inputs)
    K += 1e-8 * np.trace(K) / len(K) * np.eye(len(K))
    mean = K[left, known] @ np.linalg.solve(K[known, known], rows.outputs[known])
    assert np.abs(mean - rows.outputs[left]).max() < 0.1 * rows.outputs.std()


def test_no_test_set_was_screened_with_or_learned_from(load: Any) -> None:
    data = load("vbks_data")
    units = np.repeat(np.arange(30), 4)
    rows = data.Dataset(np.arange(120.0)[:, None], np.arange(120.0), ("x",), "y", "drawn")
    measured = data.Measured(rows, units, "m", "sensors")
    seen = []
    for run in range(10):
        known, test = data.refit_rows(measured, run)
        screened = data.screening_rows(measured, run % data.GROUPS)
        assert not set(units[test]) & set(units[known])
        assert not set(units[test]) & set(units[screened])
        assert sorted([*known, *test]) == list(range(120))
        seen.append((run % data.GROUPS, frozenset(units[test])))
    assert len(set(seen)) == 10
    for group in range(data.GROUPS):
        tests = [test for g, test in seen if g == group]
        assert sum(map(len, tests)) == len(frozenset().union(*tests))


def test_the_big_log_is_the_field_that_is_tested(load: Any, tmp_path: Path) -> None:
    data = load("vbks_data")
    data.big_log(tmp_path / "log.csv", 250)
    lines = (tmp_path / "log.csv").read_text("utf-8").splitlines()
    assert lines[0] == "x,y,hours,temp"
    table = np.loadtxt(tmp_path / "log.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(table, np.vstack(list(data.big_pieces(250))), atol=1e-4)
    assert np.ptp(table[:, 2]) > 700.0
    in_pieces = np.vstack(list(data.big_pieces(250, piece=100)))
    np.testing.assert_allclose(in_pieces[:, 2], table[:, 2], atol=1e-3)
    other = np.vstack(list(data.big_pieces(250, draws=1)))
    assert not np.isclose(other[:, 0], table[:, 0], atol=1e-3).any()


def test_scores(load: Any) -> None:
    found = load("vbks_runs").scores(np.array([1.0, -1.0]), np.zeros(2), np.ones(2))
    assert found["rmse"] == pytest.approx(1.0)
    assert found["nlpd"] == pytest.approx(0.5 * np.log(2.0 * np.pi) + 0.5)
    assert found["covered"] == [0.0, 1.0, 1.0]


def test_finished_pieces_are_kept(load: Any, tmp_path: Path) -> None:
    runs = load("vbks_runs")
    made: list[int] = []
    for _ in range(2):
        kept = runs.Kept("some")
        assert kept.get("a", lambda: made.append(1) or {"b": [1.5]}) == {"b": [1.5]}
    assert made == [1]
