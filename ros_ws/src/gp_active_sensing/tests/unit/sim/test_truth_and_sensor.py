from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import HyperParameters
from gp_active_sensing.belief.graph_covariance import GraphCovariance, laplacian_spectrum
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.kernels.base import GraphMatern
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.sim import FieldConfig, SensorConfig, SimulatedSensor
from gp_active_sensing.sim.fields.truth import build_truth
from gp_active_sensing.topology import make_grid, make_line

LINE = make_line(6, 1.0)


def table(path: Path, text: str, **more: Any) -> FieldConfig:
    file = path / "table.csv"
    file.write_text(text)
    return FieldConfig(kind="table", file=str(file), **more)


def test_draws_have_the_covariance_of_the_kernel() -> None:
    config = FieldConfig(length_scale=2.0, signal_std=3.0, kernel="matern32")
    draws = np.array([build_truth(config, LINE, seed).at(0.0) for seed in range(4000)])
    expected = 9.0 * build_kernel("matern32").correlation(
        LINE.features, LINE.features, np.array([2.0])
    )
    # The standard error of a covariance of 4000 draws is at most 9 sqrt(2 / 4000) = 0.2.
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=0.8)
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=0.2)


def test_mean_shifts_the_same_draw_and_seeds_differ() -> None:
    plain = build_truth(FieldConfig(length_scale=2.0), LINE, 5).at(0.0)
    shifted = build_truth(FieldConfig(length_scale=2.0, mean=33.0), LINE, 5).at(0.0)
    np.testing.assert_allclose(shifted - 33.0, plain, atol=1e-12)
    other = build_truth(FieldConfig(length_scale=2.0), LINE, 6).at(0.0)
    assert not np.allclose(plain, other)


def test_table_with_scale_and_offset(tmp_path: Path) -> None:
    rows = "".join(f"{name},{i}\n" for i, name in enumerate(LINE.names))
    config = table(tmp_path, "id,speed\n" + rows, value_column="speed", scale=3.6, offset=-1.0)
    np.testing.assert_allclose(build_truth(config, LINE, 0).at(0.0), 3.6 * np.arange(6) - 1.0)


def test_broken_tables_say_where(tmp_path: Path) -> None:
    for text, message in (
        ("id,value\n0,1\n1,2\n2,\n3,4\n5,6\n", r"no value in column 'value' for 2 of 6 .*: 2, 4"),
        ("id,values\n0,1\n", "expected a column 'value'. Did you mean 'values'"),
        ("", "expected a column 'id'"),
        ("id,value\n0,nan\n", r"line 2, column 'value': expected a finite .*, got 'nan'"),
        ("id,value\n0,1\n1,x\n", r"line 3, column 'value': expected a finite .*, got 'x'"),
        ("id,value\n0,1\n0,2\n", "line 3: place '0' has a value already"),
        ("id,value\n0\n", "no value in column"),
    ):
        with pytest.raises(MapError, match=message):
            build_truth(table(tmp_path, text), LINE, 0)


GRID = make_grid(6, 5, 10.0)
OF_GRAPH = {"kernel": "graph_matern32", "length_scale": 30.0, "signal_std": 2.0, "mean": 7.0}


def test_draws_of_a_kernel_of_the_road_graph_have_its_covariance() -> None:
    """That the root is one of the covariance is tested exactly with the covariance itself."""
    config = from_mapping(FieldConfig, OF_GRAPH)
    draws = np.array([build_truth(config, GRID, seed).at(0.0) for seed in range(300)])
    one = [HyperParameters((30.0,), 2.0, 1.0)]
    everything = np.arange(GRID.n)
    expected = GraphCovariance(GraphMatern(), laplacian_spectrum(GRID.links), one).between(
        everything, everything
    )[0]
    links = GRID.links
    found = np.cov(draws.T)
    assert draws.mean() == pytest.approx(7.0, abs=0.3)
    assert np.diag(found).mean() == pytest.approx(4.0, rel=0.1)
    joined = (links.first, links.second)
    assert found[joined].mean() == pytest.approx(expected[joined].mean(), rel=0.1)


def test_a_draw_of_the_graph_may_drift() -> None:
    drifting = build_truth(from_mapping(FieldConfig, OF_GRAPH | {"time_scale": 60.0}), GRID, 1)
    still = build_truth(from_mapping(FieldConfig, OF_GRAPH), GRID, 1)
    np.testing.assert_allclose(drifting.at(0.0), still.at(0.0))
    assert not np.allclose(drifting.at(60.0), drifting.at(0.0))


def test_a_kernel_of_the_graph_needs_moves_and_one_length_scale() -> None:
    free = make_grid(3, 3, 1.0, moves="free")
    with pytest.raises(ConfigError, match=r"field\.kernel: graph_matern32 needs a map with moves"):
        build_truth(from_mapping(FieldConfig, OF_GRAPH), free, 1)
    several = from_mapping(FieldConfig, OF_GRAPH | {"length_scale": [1.0, 2.0]})
    with pytest.raises(ConfigError, match=r"graph_matern32 needs one length_scale \[m\]"):
        build_truth(several, GRID, 1)


TRUTH = np.linspace(10.0, 20.0, 200)
STILL = GroundTruth(TRUTH)


def readings(config: SensorConfig, seed: int = 1) -> list[float | None]:
    sensor = SimulatedSensor(STILL, config, seed)
    found = [sensor.read(place, visit, 7) for place in range(200) for visit in range(5)]
    return [None if reading is None else reading.value for reading in found]


def test_readings_depend_on_seed_place_and_visit_only() -> None:
    sensor, other = (SimulatedSensor(STILL, SensorConfig(noise_std=1.0), k) for k in (1, 2))
    first = sensor.read(3, 0, 0)
    sensor.read(9, 4, 0)
    assert first is not None
    assert first == sensor.read(3, 0, 0)
    others = [sensor.read(3, 1, 0), other.read(3, 0, 0)]
    assert all(other is not None and other.value != first.value for other in others)


def test_noise_and_bias_have_the_stated_size() -> None:
    values = np.array(readings(SensorConfig(noise_std=2.0, bias=5.0)), dtype=np.float64)
    errors = values - np.repeat(TRUTH, 5)
    assert errors.mean() == pytest.approx(5.0, abs=0.3)
    assert errors.std() == pytest.approx(2.0, abs=0.2)


def test_dropouts_and_outliers_have_the_stated_shares() -> None:
    config = SensorConfig(noise_std=0.0, dropout=0.3, outlier=0.2, outlier_size=100.0)
    values = readings(config)
    kept = [(v, t) for v, t in zip(values, np.repeat(TRUTH, 5), strict=True) if v is not None]
    assert len(kept) / 1000 == pytest.approx(0.7, abs=0.06)
    errors = np.array([v - t for v, t in kept])
    assert np.isin(np.round(errors, 9), [-100.0, 0.0, 100.0]).all()
    assert (errors != 0).mean() == pytest.approx(0.2, abs=0.06)
    assert {-100.0, 100.0} <= set(np.round(errors, 9))


def test_a_dropout_leaves_the_other_readings_as_they_were() -> None:
    with_all, with_some = readings(SensorConfig()), readings(SensorConfig(dropout=0.5))
    assert all(b is None or a == b for a, b in zip(with_all, with_some, strict=True))


def test_a_reading_has_its_time_and_place() -> None:
    reading = SimulatedSensor(STILL, SensorConfig(noise_std=2.0), 0).read(0, 0, 123)
    assert reading is not None
    assert (reading.noise_variance, reading.stamp_ns, reading.location) == (None, 123, 0)
