"""The field between places: equal at places, Bayes between them, and calibrated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import griddata
from scipy.stats import norm

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.config import from_mapping
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.topology import Topology, build_topology
from gp_active_sensing.topology.base import FreeTopology
from gp_active_sensing.topology.grids import make_grid
from gp_active_sensing.types import FloatArray
from tests.cases import for_each

GRID = make_grid(6, 5, 2.0)
LAYERS = FreeTopology(
    "layers", "map", [f"p{i}" for i in range(40)],
    np.repeat(GRID.positions[:20], 2, axis=0), heights=np.tile([0.0, -3.0], 20),
)  # fmt: skip
DRIFT = {"drift": {"kind": "kernel", "time_scale": 600.0}, "signal_std": [1.0], "noise_std": [0.1]}


def read(belief: Belief, topology: Topology, count: int = 12) -> Belief:
    rng = np.random.default_rng(count)
    for at, place in enumerate(rng.choice(topology.n, count).tolist()):
        value = 3.0 + float(np.sin(topology.positions[place] / 4.0).sum())
        belief.observe(place, value + 0.1 * rng.normal(), seconds=float(at))
    belief.adapt()
    return belief


def config(**keys: object) -> BeliefConfig:
    return from_mapping(BeliefConfig, keys)


@for_each(
    ("topology", "keys"),
    [
        (GRID, {}),
        (LAYERS, {}),
        (GRID, {"place_std": [0.4], "signal_std": [1.0], "noise_std": [0.1]}),
        (GRID, {"kernel": ["matern32", "none"]}),
        (GRID, {"mean": "linear"}),
        (GRID, {"transform": "log"}),
        (GRID, DRIFT),
        (FreeTopology("s", "map", "abcdefg", np.random.default_rng(1).random((7, 2))), {}),
    ],
)
def test_at_places_it_is_the_prediction_of_the_places(
    topology: Topology, keys: dict[str, object]
) -> None:
    belief = read(belief_on(config(**keys), topology), topology)
    for found, expected in zip(belief.predict_at(topology.points), belief.predict(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", ["matern32", "graph_matern32"])
def test_along_roads_a_point_has_what_is_the_segments_own(kernel: str) -> None:
    topology = build_topology(load_scenario("town").map)
    belief = read(belief_on(config(kernel=kernel), topology), topology, 30)
    places = np.arange(0, topology.n, 7)
    found = belief.predict_at(topology.positions[places], places)
    for mine, expected in zip(found, belief.predict(places), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-9)


def test_between_places_it_is_direct_bayes() -> None:
    """The reference conditions on the joint covariance of readings and points."""
    rng = np.random.default_rng(3)
    scale, signal, own, noise = 5.0, 1.3, 0.6, 0.2
    belief = belief_on(
        config(
            kernel="matern32", length_scales=[scale], signal_std=[signal], place_std=[own],
            noise_std=[noise], mean_value=1.0, mean_std=0.0,
        ),
        GRID,
    )  # fmt: skip
    places = rng.choice(GRID.n, 10, replace=False)
    values = rng.normal(1.0, 1.0, 10)
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        belief.observe(place, value)
    points = rng.uniform(0.0, 10.0, (50, 2))

    def smooth(a: FloatArray, b: FloatArray) -> FloatArray:
        r = np.sqrt(3.0) * np.linalg.norm(a[:, None] - b, axis=2) / scale
        return signal**2 * (1.0 + r) * np.exp(-r)

    at = GRID.positions[places]
    shares = np.maximum(1.0 - np.linalg.norm(points[:, None] - at, axis=2) / 2.0, 0.0)
    K = smooth(at, at) + (own**2 + noise**2) * np.eye(10)
    across = smooth(points, at) + own**2 * shares
    solved = np.linalg.solve(K, across.T)
    mean, variance = belief.predict_at(points)
    np.testing.assert_allclose(mean, 1.0 + solved.T @ (values - 1.0), atol=1e-10)
    expected = signal**2 + own**2 - (across * solved.T).sum(axis=1)
    np.testing.assert_allclose(variance, expected, atol=1e-10)


def test_blocks_of_points_are_the_same_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = read(belief_on(config(), GRID), GRID)
    points = np.random.default_rng(0).uniform(0.0, 10.0, (200, 2))
    whole = belief.predict_at(points)
    monkeypatch.setattr("gp_active_sensing.belief.factor._MOST", 1.0)  # the least blocks, of 64
    assert len(list(belief.mixtures_at(points))) == 4
    np.testing.assert_allclose(belief.predict_at(points), whole, rtol=1e-12)
    assert belief.predict_at(np.zeros((0, 2)))[0].shape == (0,)


@for_each("points", [np.zeros((2, 3)), np.array([[0.0, np.nan]]), np.zeros(2)])
def test_positions_of_another_shape_are_refused(points: FloatArray) -> None:
    with pytest.raises(ValueError, match="positions"):
        read(belief_on(config(), GRID), GRID).predict_at(points)


@pytest.mark.long
def test_between_places_it_is_calibrated_and_not_worse_than_linear_interpolation() -> None:
    """Check errors, intervals and a reliability diagram of exceedances over 30 smooth fields."""
    rng = np.random.default_rng(20)
    grid = make_grid(15, 15, 2.0)
    inside = grid.positions.min(axis=0), grid.positions.max(axis=0)
    errors, linear, held, forecast, happened = [], [], [], [], []
    for _ in range(30):
        waves = rng.normal(size=(60, 2)) / 7.0
        phases, sizes = rng.uniform(0.0, 2.0 * np.pi, 60), np.sqrt(2.0 / 60.0)

        def field(p: FloatArray, waves=waves, phases=phases, size=sizes) -> FloatArray:  # type: ignore[no-untyped-def]
            return np.asarray(size * np.cos(p @ waves.T + phases).sum(axis=1))

        belief = belief_on(config(), grid)
        for place in rng.choice(grid.n, 60, replace=False).tolist():
            truth = float(field(grid.positions[place : place + 1])[0])
            belief.observe(place, truth + 0.1 * rng.normal())
            belief.adapt()
        points = rng.uniform(*inside, (500, 2))
        mean, variance = belief.predict_at(points)
        truth = field(points)
        between = griddata(grid.positions, belief.predict()[0], points)
        errors.append(float(np.mean((mean - truth) ** 2)))
        linear.append(float(np.mean((between - truth) ** 2)))
        held.append(float(np.mean(np.abs(mean - truth) <= norm.ppf(0.95) * np.sqrt(variance))))
        [(_, found)] = belief.mixtures_at(points)
        forecast.append(1.0 - found.below(np.full(500, 0.7)))
        happened.append(truth > 0.7)
    apart = np.array(errors) - np.array(linear)
    assert apart.mean() <= 2.0 * apart.std() / np.sqrt(30.0)
    assert 0.85 <= np.mean(held) <= 0.99
    said, came = np.concatenate(forecast), np.concatenate(happened)
    for low in np.arange(0.0, 1.0, 0.2):
        some = (said >= low) & (said < low + 0.2)
        assert abs(said[some].mean() - came[some].mean()) < 0.12, low
