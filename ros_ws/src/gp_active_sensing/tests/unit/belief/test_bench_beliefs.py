"""The benchmark of beliefs scores what it says it does, and its tables say what was found."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.topology.generated import make_grid

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"

if not FOLDER.is_dir():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)

GRID = make_grid(12, 12, 1.0)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(name="load")
def fixture_load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delenv("GPAS_DATA", raising=False)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_one_normal_distribution_scores_by_the_closed_form(load: Any) -> None:
    scores = load("belief_scores")
    truth = np.array([0.0, 1.0, -2.0, 0.5])
    found = scores.score(scores.Mixture.normal(np.zeros(4), np.ones(4)), truth)
    assert found.rmse == pytest.approx(math.sqrt(np.mean(truth**2)))
    assert found.nlpd == pytest.approx(np.mean(0.5 * truth**2) + 0.5 * math.log(2 * math.pi))
    assert found.covered == 0.75  # -2 is outside ±1.645
    assert found.places == 4


def test_a_mixture_has_the_density_and_the_interval_of_its_parts_together(load: Any) -> None:
    scores = load("belief_scores")
    weights, mean = np.array([0.3, 0.7]), np.array([[-5.0, -5.0], [5.0, 5.0]])
    mixture = scores.Mixture(weights, mean, np.ones((2, 2)))
    at = np.array([0.0, 5.0])
    direct = weights @ np.exp(-0.5 * (at - mean) ** 2) / math.sqrt(2 * math.pi)
    assert mixture.log_density(at) == pytest.approx(np.log(direct))
    assert mixture.cdf(at) == pytest.approx(0.3 * ndtr(at + 5.0) + 0.7 * ndtr(at - 5.0))
    assert mixture.expected == pytest.approx([2.0, 2.0])
    # Where neither part is likely the density is small, though the middle lies in the interval.
    found = scores.score(mixture, np.zeros(2))
    assert found.covered == 1.0
    assert found.nlpd > 10.0


def test_true_values_drawn_from_the_prediction_are_covered_as_they_should_be(
    load: Any, rng: np.random.Generator
) -> None:
    scores = load("belief_scores")
    weights, mean = np.array([0.4, 0.6]), rng.standard_normal((2, 20000))
    variance = np.array([[0.25], [4.0]]) * np.ones((2, 20000))
    part = (rng.random(20000) > 0.4).astype(int)
    index = np.arange(20000)
    truth = mean[part, index] + np.sqrt(variance[part, index]) * rng.standard_normal(20000)
    found = scores.score(scores.Mixture(weights, mean, variance), truth)
    assert found.covered == pytest.approx(0.9, abs=0.01)


def test_a_prediction_without_variance_is_scored_all_the_same(load: Any) -> None:
    scores = load("belief_scores")
    found = scores.score(scores.Mixture.normal(np.zeros(2), np.zeros(2)), np.array([1.0, 2.0]))
    assert math.isfinite(found.nlpd)
    assert found.covered == 0.0


def test_hindsight_finds_how_much_belongs_to_the_place_alone(
    load: Any, rng: np.random.Generator
) -> None:
    hindsight, data = load("belief_hindsight"), load("belief_data")
    at = GRID.positions
    smooth = np.exp(-0.5 * ((at[:, None] - at) ** 2).sum(axis=-1) / 9.0)
    root = np.linalg.cholesky(smooth + 1e-8 * np.eye(GRID.n))
    values = 5.0 + 2.0 * root @ rng.standard_normal(GRID.n)
    fitted = hindsight.fit(data.Field(GRID, values, 0.2))
    assert fitted.own <= 0.05 * fitted.smooth
    assert 1.5 <= fitted.length_scale <= 6.0
    fitted = hindsight.fit(data.Field(GRID, 5.0 + rng.standard_normal(GRID.n), 0.1))
    assert fitted.own >= 0.5 * (fitted.own + fitted.smooth)


def test_hindsight_predicts_as_a_belief_with_the_same_numbers(
    load: Any, rng: np.random.Generator
) -> None:
    hindsight = load("belief_hindsight")
    fitted = hindsight.Fitted("matern32", 3.0, 4.0, 0.25, 0.09)
    places, left = np.array([3, 40, 77, 130]), np.array([0, 41, 100])
    readings = 5.0 + rng.standard_normal(4)
    found = hindsight.predict(fitted, GRID, places, readings, left)
    config = BeliefConfig(
        (3.0,),
        kernel="matern32",
        signal_std=(2.0,),
        noise_std=(0.3,),
        place_std=(0.5,),
        mean_std=1e4,
    )
    belief = belief_on(config, GRID)
    for place, value in zip(places, readings, strict=True):
        belief.observe(int(place), float(value))
    mean, variance = belief.predict(left)
    assert found.expected == pytest.approx(mean, rel=1e-4)
    assert found.variance[0] == pytest.approx(variance, rel=1e-4)


@pytest.mark.parametrize("site", ["places", "random", "bal"])
def test_all_predictors_get_the_same_readings_of_a_shipped_field(load: Any, site: str) -> None:
    trials, configs = load("belief_trials"), load("bench_beliefs").CONFIGS
    name = "sim/line" if site == "places" else "sim/warehouse"
    found = trials.trials(name, [0], (5, 10), configs, site, ("constant", "hindsight"))
    assert [(t.predictor, t.k) for t in found] == [
        (p, k) for p in (*configs, "constant", "hindsight") for k in (5, 10)
    ]
    field = load("belief_data").data_sets()[name].field(0)
    taken = trials.taken(name, field, 0, 10, site)
    assert len(set(taken.places.tolist())) == 10
    again = trials.taken(name, field, 0, 10, site)
    assert taken.places.tolist() == again.places.tolist()
    assert taken.values.tolist() == again.values.tolist()
    truth = field.values[trials.left_of(field, taken, 10)]
    scored = next(t.score for t in found if (t.predictor, t.k) == ("constant", 10))
    assert scored.rmse == pytest.approx(np.sqrt(np.mean((taken.values.mean() - truth) ** 2)))
    assert len(truth) == scored.places == len(field.known) - 10


def made(load: Any, rmse: dict[str, float], covered: float) -> Any:
    """Return results of two draws of one cell, the second twice as hard."""
    trials, score = load("belief_trials"), load("belief_scores").Score
    return load("bench_beliefs").Results(
        [
            trials.Trial("sim/line", "places", n, 20, p, score(v * (1 + n), 1.0, covered, 50), 0.1)
            for n in (0, 1)
            for p, v in rmse.items()
        ]
    )


def test_goals_that_are_reached_are_not_in_the_list(load: Any) -> None:
    bench = load("bench_beliefs")
    rmse = {"default": 0.5, "constant": 1.0, "scikit-learn": 0.5, "hindsight": 0.49}
    results = made(load, rmse, covered=0.9)
    assert bench.misses(results, ["default"]) == []
    assert len(bench.goals(results, "sim/line", "places", 20, "default")) == 4


def test_every_goal_that_is_missed_is_in_the_list_with_its_value(load: Any) -> None:
    bench = load("bench_beliefs")
    rmse = {"default": 1.2, "constant": 1.0, "scikit-learn": 1.0, "hindsight": 0.8}
    results = made(load, rmse, covered=0.7)
    found = bench.misses(results, ["default"])
    assert [row[4:] for row in found] == [
        ["RMSE over hindsight's", "+50.0 ± 16.7 %", "≤ +5 %"],
        ["RMSE over scikit-learn's", "+20.0 ± 6.7 %", "≤ +0 %"],
        ["in the 90 % interval", "0.700", "0.85 – 0.95"],
        ["worst over the constant's", "1.20", "≤ 1.1"],
    ]
    page = bench.report(results, "command", 1.0, ["default"]).markdown()
    assert "Missed: **4 of 4**" in page
    assert "| sim/line | random places | 20 | default |" in page


def test_the_choice_of_the_others_is_made_without_the_one_left_out(load: Any) -> None:
    bench, trials = load("bench_beliefs"), load("belief_trials")
    score = load("belief_scores").Score
    # b is better on one set by far, a on the two others by a little.
    errors = {"sim/line": (0.9, 0.1), "sim/lake": (0.8, 0.9), "sim/town": (0.8, 0.9)}
    found = [
        trials.Trial(name, "places", 0, 20, p, score(v, 1.0, 0.9, 50), 0.1)
        for name, (a, b) in errors.items()
        for p, v in (("a", a), ("b", b), ("constant", 1.0))
    ]
    rows = bench.left_out(bench.Results(found), ("a", "b")).rows
    chosen = {row[0]: (row[3], row[4]) for row in rows[:-1]}
    assert chosen["sim/line"] == ("a (0.900)", "b (0.100)")
    assert chosen["sim/lake"] == ("b (0.900)", "a (0.800)")
    assert rows[-1][0] == "mean"
