"""A belief that is extended to more places equals one that had them from the start."""

from __future__ import annotations

from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.topology import FreeTopology, GraphTopology, Move
from gp_active_sensing.topology.base import Topology
from tests.cases import for_each

SIDE = 10.0


def cells(count: int, *, free: bool = False) -> Topology:
    """Return the first cells of a spiral; a larger map begins with the cells of a smaller one."""
    spots = sorted(
        ((c, r) for c in range(-9, 10) for r in range(-9, 10)),
        key=lambda cell: (max(abs(cell[0]), abs(cell[1])), cell),
    )[:count]
    index = {cell: i for i, cell in enumerate(spots)}
    names = [f"c{c}r{r}" for c, r in spots]
    positions = SIDE * np.array(spots, dtype=np.float64)
    if free:
        return FreeTopology("map", "map", names, positions)
    moves = [
        [
            Move(index[other], SIDE, SIDE)
            for other in ((c + 1, r), (c - 1, r), (c, r + 1), (c, r - 1))
            if other in index
        ]
        for c, r in spots
    ]
    return GraphTopology("map", "map", names, positions, moves)


def tell(belief: Belief, first: int, last: int, *, places: int = 25) -> None:
    rng = np.random.default_rng(7)
    values = 20.0 + rng.normal(size=200)
    for i in range(first, last):
        belief.observe((7 * i) % places, float(values[i]), seconds=10.0 * i)


def assert_same(one: Belief, other: Belief) -> None:
    assert one.n == other.n
    assert np.array_equal(one.readings, other.readings)
    assert np.array_equal(one.observed, other.observed)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9)
    for mine, theirs in zip(one.predict(), other.predict(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8)
    np.testing.assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-9)


CONFIGS: dict[str, dict[str, Any]] = {
    "given scales": {"length_scales": (15.0, 40.0), "signal_std": (1.0,), "noise_std": (0.1,)},
    "unknown scale": {"length_scales": (15.0, 40.0)},
    "linear mean": {"length_scales": (15.0, 40.0), "mean": "linear", "mean_features": ("x", "y")},
    "window": {"length_scales": (15.0,), "drift": DriftConfig("window", window=300.0)},
    "kernel": {"length_scales": (15.0,), "drift": DriftConfig("kernel", time_scale=300.0)},
}


@for_each("free", [False, True])
@for_each("name", CONFIGS)
def test_it_grows_twice_and_says_the_same(name: str, free: bool) -> None:
    config = BeliefConfig(**CONFIGS[name])
    maps = [cells(n, free=free) for n in (25, 60, 120)]
    grown, whole = belief_on(config, maps[0]), belief_on(config, maps[2])
    for number, topology in enumerate(maps):
        if number:
            grown.move_to(belief_on(config, topology, quiet=True))
        for belief in (grown, whole):
            tell(belief, 20 * number, 20 * number + 20, places=25 + 30 * number)
        grown.predict()
    assert_same(grown, whole)


def test_a_copy_keeps_the_map_it_was_made_with() -> None:
    config = BeliefConfig(**CONFIGS["given scales"])
    belief = belief_on(config, cells(25))
    tell(belief, 0, 10)
    copy = belief.copy()
    before = copy.predict()
    belief.move_to(belief_on(config, cells(60), quiet=True))
    belief.observe(59, 25.0)
    assert (copy.n, belief.n) == (25, 60)
    np.testing.assert_array_equal(copy.predict()[0], before[0])


def test_candidates_that_follow_the_readings_stay_where_they_are() -> None:
    config = BeliefConfig()
    belief = belief_on(config, cells(25), quiet=True)
    for i in range(25):
        belief.observe((7 * i) % 25, 20.0 + 0.1 * i)
        belief.adapt()
    level = np.array([not h.amplitude_slopes for h in belief.hyperparameters])
    assert not level.all()
    scales = [h.length_scales for h in belief.hyperparameters if not h.amplitude_slopes]
    weights = belief.weights[level]
    fresh = belief_on(config, cells(300), quiet=True)
    assert [h.length_scales for h in fresh.hyperparameters] != scales
    belief.move_to(fresh)
    assert [h.length_scales for h in belief.hyperparameters] == scales
    # But for a part that varies over half of the map, which has become larger.
    same = np.array([not h.long_std for h in belief.hyperparameters])
    after = belief.weights[same] / belief.weights[same].sum()
    np.testing.assert_allclose(after, weights[same] / weights[same].sum(), rtol=1e-6)
    fresh_long = {h.long_scales for h in fresh.hyperparameters if h.long_std}
    assert {h.long_scales for h in belief.hyperparameters if h.long_std} == fresh_long
