from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief, FeatureCovariance, HyperParameters, PriorMean
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.records.metrics import (
    LEVELS,
    MOST_SCORED,
    NO_SCORES,
    SCORES,
    Scorer,
    sampled,
)
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import (
    FieldConfig,
    SensorConfig,
    SimulatedSensor,
    build_truth,
    run_scenario,
)
from gp_active_sensing.topology import make_line
from tests.unit.sim.scenarios import scenario

COVERAGES = [key for key in SCORES if "coverage" in key]
LINE = make_line(3, 1.0)


def believed(n: int, noise_std: float = 0.5, **more: Any) -> Belief:
    hyper = [HyperParameters((length,), 2.0, noise_std) for length in (2.0, 4.0)]
    x = np.arange(float(n))[:, None]
    covariance = FeatureCovariance(build_kernel("matern32"), x, hyper)
    return Belief(covariance, PriorMean.known(n, 10.0), **more)


def drawn(n: int, seed: int) -> np.ndarray:
    """A field as `believed` has it: of one candidate or the other."""
    rng = np.random.default_rng([7, seed])
    x = np.arange(float(n))[:, None]
    K = 4.0 * build_kernel("matern32").correlation(x, x, rng.choice([2.0, 4.0], size=1))
    root = np.linalg.cholesky(K + 1e-9 * np.eye(n))
    return 10.0 + root @ rng.standard_normal(n)


def test_a_belief_that_is_right_covers_what_it_says() -> None:
    n, found = 80, []
    for seed in range(60):
        truth = GroundTruth(drawn(n, seed))
        sensor = SimulatedSensor(truth, SensorConfig(noise_std=0.5), seed)
        belief = believed(n)
        for place in range(0, n, 4):
            reading = sensor.read(place, 0, 0)
            assert reading is not None
            belief.observe(place, reading.value)
        scores = Scorer(truth, sensor).of(belief, 0.0)
        found.append([scores[key] for key in COVERAGES])  # type: ignore[literal-required]
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    np.testing.assert_array_less(np.abs(mean - np.tile(LEVELS, 2)), 4.0 * error + 1e-3)


def test_the_chance_of_a_reading_is_the_share_of_the_readings() -> None:
    for given in (
        {"noise_std": 0.7},
        {"noise_std": 0.7, "bias": 0.4},
        {"noise_std": 0.0, "bias": -0.2},
        {"noise_std": 0.3, "outlier": 0.3, "outlier_size": 3.0},
    ):
        truth = GroundTruth(np.linspace(0.0, 1.0, 5))
        sensor = SimulatedSensor(truth, SensorConfig(**given), 3)
        low, high = truth.at(0.0) - np.array([9.0, 0.5, 0.1, 1.0, -0.1]), truth.at(0.0) + 0.5
        chance = sensor.chance(truth.at(0.0), low, high)
        drawn = np.array(
            [[sensor.read(p, v, 0) for v in range(4000)] for p in range(5)], dtype=object
        )
        values = np.array([[reading.value for reading in row] for row in drawn])
        share = ((values >= low[:, None]) & (values <= high[:, None])).mean(axis=1)
        np.testing.assert_allclose(chance, share, atol=0.035)


def test_nothing_is_said_where_nothing_is_left_or_nothing_reads() -> None:
    truth = GroundTruth(np.arange(3.0))
    belief = believed(3)
    assert Scorer(truth).of(belief, 0.0)["reading_coverage_50"] is None
    assert Scorer(truth).of(belief, 0.0)["coverage_50"] is not None
    for place in range(3):
        belief.observe(place, 1.0)
    assert Scorer(truth, SimulatedSensor(truth, SensorConfig(), 0)).of(belief, 0.0) == NO_SCORES


ONE = "id,value\n0,1\n2,3\n"
SLOTS = "id,v_0_10,v_10_20\n0,1,2\n2,3,4\n"
SPEEDS = '<edge id="0" speed="1"/><edge id="2" speed="3"/></interval>'
FIRST = f'<meandata><interval begin="0" end="10">{SPEEDS}'
EDGES = f"{FIRST}</meandata>"
SPEED = {"value_column": "speed"}
FILLED = [
    ("one.csv", ONE, {}),
    ("slots.csv", SLOTS, {"value_columns": ("v_*",)}),
    ("linear.csv", SLOTS, {"value_columns": ("v_*",), "between": "linear"}),
    ("edges.xml", EDGES, SPEED),
]


def test_a_filled_value_is_never_scored(tmp_path: Path) -> None:
    for name, text, more in FILLED:
        (tmp_path / name).write_text(text, encoding="utf-8")
        found = []
        for fill in (2.0, 1e9):
            config = FieldConfig(kind="table", file=str(tmp_path / name), fill=fill, **more)
            truth = build_truth(config, LINE, 0)
            assert truth.at(6.0)[1] == fill
            np.testing.assert_array_equal(truth.known(6.0), [True, False, True])
            scorer = Scorer(truth, SimulatedSensor(truth, SensorConfig(), 0))
            mean = np.array([1.0, 2.0, 3.0])
            everywhere = scorer.error_everywhere(mean, 6.0, np.ones(len(mean)))
            found.append((scorer.of(believed(3), 6.0), everywhere))
        assert found[0] == found[1]
        assert found[0][0]["rmspe"] is not None
        belief = believed(3)
        belief.observe(0, 1.0)
        belief.observe(2, 1.0)
        assert scorer.of(belief, 6.0) == NO_SCORES  # what is left is the filled one


def test_a_cell_filled_from_another_slot_is_not_scored_in_its_own(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,v_0_10,v_10_20\n0,1,2\n1,5,\n2,3,4\n", encoding="utf-8")
    more: dict[str, Any] = {"kind": "table", "file": str(path), "value_columns": ("v_*",)}
    step = build_truth(FieldConfig(**more), LINE, 0)
    assert step.known(3.0).all()
    np.testing.assert_array_equal(step.known(12.0), [True, False, True])
    linear = build_truth(FieldConfig(**more, between="linear"), LINE, 0)
    assert linear.known(3.0).all()  # before the middle of the first slot
    np.testing.assert_array_equal(linear.known(9.0), [True, False, True])


def test_records_summary_report_and_experiments_have_them(tmp_path: Path) -> None:
    summary = run_scenario(scenario(), tmp_path / "run").to_mapping()
    run = RunDirectory.open(tmp_path / "run")
    records = run.records()
    for record in records:
        assert all(0.0 <= record[key] <= 1.0 for key in COVERAGES)
    assert {key: summary[key] for key in SCORES} == {key: records[-1][key] for key in SCORES}
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == json.loads(
        json.dumps(summary)
    )
    steps = replay(load_run(tmp_path / "run")).steps
    assert [step.scores["coverage_90"] for step in steps[1:]] == [r["coverage_90"] for r in records]
    assert steps[0].scores["reading_coverage_95"] is not None
    assert isinstance(summary["explained"], float)


def test_a_large_map_is_scored_at_a_fixed_sample_of_its_places() -> None:
    topology = make_line(2500, 1.0)
    places = sampled(topology)
    assert sampled(LINE) is None
    assert places is not None
    np.testing.assert_array_equal(places, sampled(make_line(2500, 1.0)))
    assert len(places) == MOST_SCORED
    assert np.diff(places, prepend=-1, append=2500).max() <= 4
    weights = np.zeros(2500)
    weights[7:9] = 1.0
    assert {7, 8} <= set(sampled(topology.weighted(weights)).tolist())
    belief, truth = believed(2500), GroundTruth(np.sin(0.1 * np.arange(2500.0)))
    for place in range(0, 2500, 25):
        belief.observe(place, float(truth.at(0.0)[place]))
    some, whole = (Scorer(truth).of(belief, 0.0, None, at) for at in (places, None))
    assert some["rmspe"] != whole["rmspe"]
    np.testing.assert_allclose(some["rmspe"], whole["rmspe"], rtol=0.05)
