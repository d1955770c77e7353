"""Sets of places chosen for the error of the map, against computing each value from scratch."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.planning.map_design import exchange, greedy, joining, leaving
from gp_active_sensing.planning.map_error import MapVariance, map_error_of
from tests.unit.planning.test_map_error import believed, grid


def random_field(seed: int, places: int = 14) -> MapVariance:
    rng = np.random.default_rng(seed)
    topology = grid()
    belief = believed(topology, rng)
    chosen = np.sort(rng.choice(np.flatnonzero(~belief.observed), places, replace=False))
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
    order = greedy(field, 6)
    assert len(set(order.tolist())) == 6
    for k in range(6):
        before = order[:k]
        values = [field.value(np.append(before, x)) for x in range(14) if x not in before]
        assert field.value(order[: k + 1]) == pytest.approx(max(values), rel=1e-7)


def test_greedy_takes_what_is_allowed_and_no_more_than_there_is() -> None:
    field = random_field(1)
    allowed = np.zeros(14, dtype=bool)
    allowed[[2, 5, 9]] = True
    assert sorted(greedy(field, 99, allowed).tolist()) == [2, 5, 9]
    assert greedy(field, 0).size == 0


@pytest.mark.seeds
def test_an_exchange_is_never_worse_and_keeps_the_number(seed: int) -> None:
    field = random_field(seed)
    which = np.random.default_rng(seed + 1000).choice(14, 4, replace=False)
    found = exchange(field, which, np.ones(14, dtype=bool), lambda: True)
    assert len(set(found.tolist())) == 4
    assert field.value(found) >= field.value(which) * (1 - 1e-12)
    assert (exchange(field, which, np.ones(14, dtype=bool), lambda: False) == which).all()


def test_exchanges_make_a_bad_set_about_as_good_as_a_greedy_one() -> None:
    found = []
    for seed in range(20):
        field = random_field(seed)
        bad = greedy(field, 14)[-4:]
        improved = field.value(exchange(field, bad, np.ones(14, dtype=bool), lambda: True))
        found.append(improved / field.value(greedy(field, 4)))
    assert np.mean(found) > 0.97
