"""Attributes have slopes near zero in the mean; useless columns hardly increase errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on, build_belief
from gp_active_sensing.belief.attributes import Attributes, attributes_of
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.topology.roads import Roads
from gp_active_sensing.topology.segments import RoadMap, Segment

GRID = np.stack(np.meshgrid(np.arange(16.0), np.arange(16.0)), -1).reshape(-1, 2)


def segment(k: int, **more: object) -> Segment:
    line = ((float(k), 0.0), (float(k + 1), 0.0))
    return Segment(str(k), str(k), str(k + 1), line, 1.0, **more)  # type: ignore[arg-type]


def columns_of(rng: np.random.Generator, count: int, more: list[np.ndarray] = []) -> Attributes:  # noqa: B006 - read only
    columns = np.column_stack([*more, *rng.standard_normal((count, len(GRID)))])
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    names = tuple(f"a{k}" for k in range(columns.shape[1]))
    return Attributes(names, columns, tuple(range(len(names))))


def test_columns_are_standardised_and_say_what_is_missing() -> None:
    roads = [
        segment(
            k,
            lanes=None if k % 4 == 0 else float(k % 3),
            speed_limit=13.9,
            road_class="main" if k % 2 else "side",
            extra={"slope": 1000.0 if k == 7 else float(k % 5)},
        )
        for k in range(100)
    ]
    found = attributes_of(Roads(RoadMap("", "map", tuple(roads))))
    assert found.names == ("lanes", "slope", "class"), "what does not vary is not there"
    assert found.owners == (0, 0, 1, 2, 2)
    assert found.columns.mean(axis=0)[[0, 1, 3, 4]] == pytest.approx(0.0, abs=1e-12)
    assert np.square(found.columns).mean(axis=0)[[1, 3, 4]] == pytest.approx(1.0)
    assert (found.columns[::4, 0] == 0.0).all(), "a place without a number has that of the average"
    assert np.abs(found.columns).max() <= 3.0
    assert found.columns[7, 2] < 2.0, "one far from all others counts by its rank"
    shares = np.square(found.only(["class"]).weighted())
    assert shares.sum(axis=1).mean() == pytest.approx(1.0), "two columns share what is one's"
    assert np.square(found.weighted()).mean(axis=0)[3:] == pytest.approx(1.0 / 6.0)


def test_on_a_map_with_attributes_they_are_among_the_candidates() -> None:
    town = build_topology(MapConfig(kind="roads", file="town.geojson"))
    belief = belief_on(BeliefConfig(), town)
    with_any = np.array([h.attribute_std > 0.0 for h in belief.hyperparameters])
    assert 0.0 < belief.weights[with_any].sum() < 0.6
    for config in (
        BeliefConfig(attributes=()),
        BeliefConfig(mean="linear", mean_features=("lanes",)),
        BeliefConfig(length_scales=(100.0,)),
    ):
        candidates = belief_on(config, town).hyperparameters
        assert not any(h.attribute_std for h in candidates), "where the user says more himself"
    given = belief_on(BeliefConfig(length_scales=(100.0,), attributes=("lanes",)), town)
    assert any(h.attribute_std for h in given.hyperparameters)


def test_what_explains_the_field_helps_and_ten_columns_of_noise_cost_little() -> None:
    """Ten useless columns add less than 2 % to the RMSE over 40 fields after 20 readings."""
    square = ((GRID[:, None] - GRID[None]) ** 2).sum(-1)
    root = np.linalg.cholesky(np.exp(-np.sqrt(square) / 4.0) + 1e-9 * np.eye(len(GRID)))
    errors = np.zeros((4, 40))
    for draw in range(40):
        rng = np.random.default_rng([8, draw])
        limit = rng.choice([-1.0, 1.0], len(GRID))
        smooth = root @ rng.standard_normal(len(GRID))
        useless, useful = columns_of(rng, 10), columns_of(rng, 0, [limit])
        places = rng.permutation(len(GRID))[:20]
        noise = 0.2 * rng.standard_normal(20)
        both = smooth + limit
        cases = ((smooth, None), (smooth, useless), (both, None), (both, useful))
        for k, (field, attributes) in enumerate(cases):
            belief = build_belief(BeliefConfig(), GRID, ("x", "y"), attributes=attributes)
            for place, off in zip(places.tolist(), noise.tolist(), strict=True):
                belief.observe(place, field[place] + off)
            left = ~belief.observed
            errors[k, draw] = math.sqrt(np.mean((belief.predict()[0] - field)[left] ** 2))
    plain, useless_columns, without, useful_column = np.sqrt(np.square(errors).mean(axis=1))
    assert useless_columns < 1.02 * plain
    assert useful_column < 0.75 * without


def test_attributes_that_begin_to_vary_late_still_count() -> None:
    """Attributes explain nothing on the first stretch, which has only one class."""
    rng, first = np.random.default_rng(0), 48
    apart = np.linalg.norm(GRID[:, None] - GRID[None], axis=2)
    smooth = np.linalg.cholesky(np.exp(-0.5 * (apart / 6.0) ** 2) + 1e-8 * np.eye(len(GRID)))
    numbers = (rng.random(len(GRID)) < 0.5).astype(float)
    numbers[:first] = 0.0
    field = 20.0 + 0.7 * (smooth @ rng.standard_normal(len(GRID))) + 2.0 * numbers
    found = Attributes.of(len(GRID), {"class": numbers})
    belief = build_belief(BeliefConfig(), GRID, ("x", "y"), attributes=found, quiet=True)
    order = [*range(first), *rng.permutation(np.arange(first, len(GRID)))[:60].tolist()]
    for place in order:
        belief.observe(place, float(field[place] + 0.02 * rng.standard_normal()))
        belief.adapt()
    left = np.setdiff1d(np.arange(len(GRID)), order)
    assert np.sqrt(np.mean((belief.predict(left)[0] - field[left]) ** 2)) < 0.5
