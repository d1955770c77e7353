"""The error of the map against covariances computed place by place, and sets chosen for it."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.config import from_mapping
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.map_error import (
    MapVariance,
    exchange,
    greedy_design,
    joining,
    leaving,
    map_error_gains,
    map_error_of,
    targets_of,
)
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from tests.cases import for_each
from tests.requesting import asked


def grid(columns: int = 6, rows: int = 4, **more: object) -> Topology:
    settings = {"kind": "grid", "columns": columns, "rows": rows, "spacing": 1.0}
    return build_topology(from_mapping(MapConfig, settings | more))


def believed(
    topology: Topology,
    rng: np.random.Generator,
    readings: int = 4,
    scales: tuple[float, ...] = (1.0, 2.5),
) -> Belief:
    config = BeliefConfig(
        kernel=("matern12", "se", "none"),
        length_scales=scales,
        signal_std=(3.0,),
        place_std=(0.0, 1.5),
        noise_std=(0.5,),
    )
    belief = belief_on(config, topology)
    for place in rng.choice(topology.n, readings, replace=False).tolist():
        belief.observe(place, float(rng.normal(5.0, 3.0)))
    return belief


def mean_variances(belief: Belief, topology: Topology) -> np.ndarray:
    """(L,) mean of the posterior variances of all places, by their weights."""
    _, variance = belief.marginals()
    return variance @ (topology.weights / topology.weights.sum())


@pytest.mark.seeds
def test_it_is_what_readings_take_off_the_mean_variance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    topology = grid()
    belief = believed(topology, rng)
    places = np.sort(rng.choice(np.flatnonzero(~belief.observed), 8, replace=False))
    field = map_error_of(belief, topology, places, candidates=100)
    before = mean_variances(belief, topology)
    chosen = rng.choice(8, 3, replace=False)
    after = belief.copy()
    one_by_one, gone = field, np.zeros(len(field.weights))
    for i in chosen.tolist():
        after.observe(int(places[i]), 4.0)
        gone = gone + one_by_one.gains()[:, i]
        one_by_one = one_by_one.after(np.array([i]))
    truth = before - mean_variances(after, topology)
    found = field.values(chosen)
    np.testing.assert_allclose(found, gone, rtol=1e-8, atol=1e-12)
    # Candidates beyond a share of 0.99 are left out: the others are in their order.
    order = np.argsort(-belief.weights, kind="stable")
    share = np.cumsum(belief.weights[order])
    count = int(np.searchsorted(share, 0.99 - 1e-12)) + 1
    kept = np.sort(order[:count])
    np.testing.assert_allclose(found, truth[kept], rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(field.total, before[kept], rtol=1e-9)
    at_once = field.after(chosen)
    np.testing.assert_allclose(at_once.total, one_by_one.total, rtol=1e-8)
    np.testing.assert_allclose(field.total - found, at_once.total, rtol=1e-8)
    np.testing.assert_allclose(at_once.covariance, one_by_one.covariance, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(at_once.shared, one_by_one.shared, rtol=1e-8, atol=1e-10)
    weights, gains = map_error_gains(belief, topology, places, candidates=100)
    np.testing.assert_allclose(gains, field.gains(), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(weights, field.weights)


def test_a_sample_of_a_large_map_stands_for_it() -> None:
    topology = grid(40, 30)
    belief = believed(topology, np.random.default_rng(2), readings=10, scales=(3.0, 6.0))
    places = np.flatnonzero(~belief.observed)[::37]
    exact = map_error_of(belief, topology, places, targets=targets_of(topology, topology.n))
    sampled = map_error_of(belief, topology, places, targets=targets_of(topology, 300))
    assert len(targets_of(topology, 300).places) == 300
    assert targets_of(topology, 300).weights.sum() == pytest.approx(1.0)
    best = exact.weights @ exact.gains()
    found = sampled.weights @ sampled.gains()
    np.testing.assert_allclose(found, best, rtol=0.15)
    some = np.arange(0, len(places), 3)
    assert sampled.value(some) == pytest.approx(exact.value(some), rel=0.01)


def test_weights_of_places_move_the_choice() -> None:
    topology = grid(9, 9, moves="free")
    left = np.where(topology.positions[:, 0] < 3.0, 1.0, 0.0)
    topology = topology.weighted(left)
    belief = belief_on(
        BeliefConfig(kernel=("se",), length_scales=(1.5,), signal_std=(1.0,), noise_std=(0.1,)),
        topology,
    )
    belief.observe(80, 0.0)
    plan, _ = build_policy({"name": "integrated_variance"}).plan(asked(belief, topology, 80))
    assert topology.positions[plan.waypoint][0] < 3.0


def random_field(seed: int) -> MapVariance:
    rng = np.random.default_rng(seed)
    topology = grid()
    belief = believed(topology, rng)
    chosen = np.sort(rng.choice(np.flatnonzero(~belief.observed), 14, replace=False))
    return map_error_of(belief, topology, chosen, candidates=4)


@pytest.mark.seeds
def test_joining_and_leaving_are_differences_of_values(seed: int) -> None:
    field = random_field(seed)
    which = np.random.default_rng(seed).choice(14, 5, replace=False)
    value = field.value(which)
    gains, losses = joining(field, which), leaving(field, which)
    for x in range(14):
        if x in which:
            assert gains[x] == 0.0
        else:
            gain = field.value(np.append(which, x)) - value
            assert gains[x] == pytest.approx(gain, rel=1e-7, abs=1e-10)
    for i in range(5):
        assert losses[i] == pytest.approx(value - field.value(np.delete(which, i)), rel=1e-7)


@pytest.mark.seeds
def test_greedy_takes_the_best_each_time(seed: int) -> None:
    field = random_field(seed)
    order = greedy_design(field, 6)
    assert len(set(order.tolist())) == 6
    for k in range(6):
        before = order[:k]
        values = [field.value(np.append(before, x)) for x in range(14) if x not in before]
        assert field.value(order[: k + 1]) == pytest.approx(max(values), rel=1e-7)


@pytest.mark.seeds
def test_an_exchange_is_never_worse_and_keeps_the_number(seed: int) -> None:
    field = random_field(seed)
    which = np.random.default_rng(seed + 1000).choice(14, 4, replace=False)
    found = exchange(field, which, lambda: True)
    assert len(set(found.tolist())) == 4
    assert field.value(found) >= field.value(which) * (1 - 1e-12)
    assert (exchange(field, which, lambda: False) == which).all()


@for_each("mean", ["constant", "linear"])
@for_each("known", [False, True])
def test_before_the_mean_is_known_values_are_no_rounding(known: bool, mean: str) -> None:
    topology, rng = grid(14, 12), np.random.default_rng(0)
    settings: dict[str, object] = {"mean": mean}
    if known:
        settings |= {"length_scales": (1.0, 2.0), "signal_std": (1.0,), "noise_std": (0.2,)}
    belief = belief_on(from_mapping(BeliefConfig, settings), topology)
    places, chosen = np.arange(topology.n), np.arange(0, topology.n, 3)
    truth = 0.1 * topology.positions[:, 0]
    for place in (3, 75, 160):  # (of three coefficients, one reading each)
        field = map_error_of(belief, topology, places, candidates=4)
        total = float(field.weights @ field.total)
        left = [total - field.value(rng.permutation(chosen)) for _ in range(4)]
        assert 0.0 < min(left) < min(1.0, total)
        assert max(left) - min(left) < 1e-5
        given = float(field.weights @ field.after(chosen).total)
        assert given == pytest.approx(left[0], abs=1e-5)
        gains = field.weights @ field.gains()
        assert (gains > 0.0).all()
        assert gains.max() < total
        eigenvalues = np.linalg.eigvalsh(field.covariance)
        assert (eigenvalues > -1e-6 * eigenvalues[:, -1:]).all()
        weights, alone = map_error_gains(belief, topology, places, candidates=4)
        np.testing.assert_allclose(weights @ alone, gains, rtol=1e-4)
        belief.observe(place, float(truth[place]))


def test_a_place_that_will_have_been_read_first_counts_as_one_that_was() -> None:
    topology = grid(14, 12)
    belief = belief_on(BeliefConfig(), topology)
    places = np.arange(1, topology.n)
    pending = map_error_of(belief, topology, places, pending=[0], candidates=100)
    belief.observe(0, 0.3)
    read = map_error_of(belief, topology, places, candidates=100)
    chosen = np.arange(1, 160, 3)
    assert 0.0 < pending.value(chosen) < float(pending.weights @ pending.total) < 4.0
    assert 0.0 < read.value(chosen) < float(read.weights @ read.total) < 4.0
