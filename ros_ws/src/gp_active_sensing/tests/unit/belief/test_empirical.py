"""Covariance of earlier readings: correct numbers, or an error that names the cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.belief.config import NOISE_SHARES
from gp_active_sensing.belief.empirical import empirical, read_history
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.sim import run_scenario, scenario_from_mapping
from gp_active_sensing.topology import make_line
from tests.cases import for_each

NAMES = tuple("abcdef")


def draws(seed: int, times: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(6.0)
    K = np.exp(-0.5 * (x[:, None] - x) ** 2 / 4.0) * np.outer(1 + x, 1 + x)
    rng = np.random.default_rng(seed)
    return K, 10.0 + rng.multivariate_normal(np.zeros(6), K, size=times)


def write(path: Path, values: np.ndarray, names: tuple[str, ...] = NAMES) -> Path:
    lines = [",".join(["time", *names])]
    for t, row in enumerate(values):
        lines.append(",".join([f"2026-05-01 {t}", *("" if np.isnan(v) else f"{v}" for v in row)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_shrinkage_is_the_formula_written_out() -> None:
    _, values = draws(1, 12)
    T, n = values.shape
    z = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)
    top = bottom = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                w = z[:, i] * z[:, j]
                top += T / (T - 1) ** 3 * float(((w - w.mean()) ** 2).sum())
                bottom += (T / (T - 1) * float(w.mean())) ** 2
    _, covariance = empirical(values, NAMES)
    sample = np.cov(values.T)
    kept = sample * (1 - top / bottom)
    np.fill_diagonal(kept, np.diagonal(sample))
    np.testing.assert_allclose(covariance, kept)


def test_missing_values_are_left_out_pair_by_pair() -> None:
    values = np.random.default_rng(4).normal(size=(40, 6))
    values += 0.5 * values[:, :1]
    holes = np.random.default_rng(5).random(values.shape) < 0.3
    values[holes] = np.nan
    mean, covariance = empirical(values, NAMES, 0.0)
    np.testing.assert_allclose(mean, np.nanmean(values, axis=0))
    variances = np.nanvar(values, axis=0, ddof=1)
    np.testing.assert_allclose(covariance.diagonal(), variances, rtol=1e-9)
    both = ~holes[:, 0] & ~holes[:, 1]
    z = (values - np.nanmean(values, axis=0)) / np.nanstd(values, axis=0, ddof=1)
    r = float((z[both, 0] * z[both, 1]).sum()) / (both.sum() - 1)
    expected = r * np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert covariance[0, 1] == pytest.approx(expected, rel=1e-6)
    # Places that were never read together, and pairs that contradict one another.
    values[::2, 0], values[1::2, 5] = np.nan, np.nan
    for shrinkage in (0.0, None):
        assert np.linalg.eigvalsh(empirical(values, NAMES, shrinkage)[1])[0] > 0.0


def test_places_that_never_changed(caplog: pytest.LogCaptureFixture) -> None:
    _, values = draws(6, 20)
    values[:, 2] = 7.0
    average, covariance = empirical(values, NAMES)
    assert average[2] == 7.0
    assert covariance[2, 2] == pytest.approx(np.delete(np.var(values, 0, ddof=1), 2).min())
    assert not covariance[2, [0, 1, 3]].any()
    assert "1 places never changed (c)" in caplog.text
    with pytest.raises(ConfigError, match="constant ones in every column"):
        empirical(np.full((9, 6), 3.0), NAMES)


@for_each(
    ("text", "message"),
    [
        ("time,a,b\n0,1,2\n", r"none for 1 of 3 \(c\)"),
        ("a,b,c,a\n1,2,3,4\n", "2 columns have the name 'a'"),
        ("a,b,c\n1,2\n", "line 2: expected 3 cells as in line 1, got 2"),
        ("a,b,c\n1,two,3\n", "line 2, column 'b'"),
        ("a,b,c\n1,inf,3\n", "got 'inf'"),
        ("a,b,c\n", "at least 3 values of every place, got 0 of 'a'"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "history.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        empirical(read_history(path, "abc"), "abc")


def config(path: Path, **keys: Any) -> BeliefConfig:
    base = {"kernel": "empirical", "history": str(path), "noise_std": [0.5]}
    return from_mapping(BeliefConfig, base | keys)


def test_a_belief_of_a_history(tmp_path: Path) -> None:
    line = make_line(6, 1.0, moves="free")
    _, values = draws(7, 60)
    path = write(tmp_path / "history.csv", values, line.names)
    belief = belief_on(config(path), line)
    expected_mean, expected = empirical(values, line.names)
    mean, variance = belief.marginals()
    np.testing.assert_allclose(mean[0], expected_mean)
    np.testing.assert_allclose(variance[0], expected.diagonal())
    np.testing.assert_allclose(belief.joint(np.arange(6)).covariance[0], expected)
    # Conditioned as any Gaussian process.
    belief.observe(2, 14.0)
    gain = expected[:, 2] / (expected[2, 2] + 0.25)
    moved = expected_mean + gain * (14.0 - expected_mean[2])
    np.testing.assert_allclose(belief.marginals()[0][0], moved)
    # A signal of its own scales the matrix, and what is not known of the level can be said.
    scaled = belief_on(config(path, signal_std=[2.0, 4.0], mean_std=3.0), line)
    scaled_variance = scaled.marginals()[1]
    np.testing.assert_allclose(scaled_variance[1] - 9.0, 4.0 * (scaled_variance[0] - 9.0))
    assert np.mean(scaled_variance[0] - 9.0) == pytest.approx(4.0)
    shares = belief_on(config(path, noise_std=None), line)
    assert len(shares.hyperparameters) == len(NOISE_SHARES)
    assert not shares.adapt()


def test_a_history_is_transformed_like_the_readings(tmp_path: Path) -> None:
    line = make_line(6, 1.0, moves="free")
    _, values = draws(8, 60)
    path = write(tmp_path / "history.csv", np.exp(0.1 * values), line.names)
    belief = belief_on(config(path, transform="log"), line)
    np.testing.assert_allclose(belief.marginals()[0][0], 0.1 * values.mean(axis=0))
    path = write(tmp_path / "bad.csv", values - 10.0, line.names)
    with pytest.raises(ConfigError, match=r"belief\.history: .*expected a value above 0"):
        belief_on(config(path, transform="log"), line)


def test_a_scenario_with_a_history(tmp_path: Path) -> None:
    write(tmp_path / "history.csv", draws(9, 40)[1], make_line(6, 1.0).names)
    scenario = scenario_from_mapping(
        {
            "map": {"kind": "line", "count": 6, "spacing": 1.0, "moves": "free"},
            "field": {"kind": "gp", "length_scale": 1.0, "signal_std": 1.0, "mean": 20.0},
            "sensor": {"noise_std": 0.1},
            "belief": {"kernel": "empirical", "history": "history.csv", "noise_std": [0.1]},
            "policy": {"name": "gp_ucb", "scale": 5.0},
            "budget": {"readings": 12},
        },
        base_dir=tmp_path,
    )
    assert scenario.belief.history == str(tmp_path / "history.csv")
    run_scenario(scenario, tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert summary["observed"] <= 6
    records = (tmp_path / "run" / "records.jsonl").read_text("utf-8").splitlines()
    assert len(records) == 12, "a visit of an observed place is a stage as well"
