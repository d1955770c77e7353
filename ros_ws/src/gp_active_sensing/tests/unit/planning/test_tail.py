"""What follows the readings of the tree: where a probe can still go, and what it is worth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bal import Bal
from gp_active_sensing.planning.bal.tail import AlongRoute
from gp_active_sensing.planning.base import PlanRequest
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.types import Budget, PlanLimit


def grid(columns: int, rows: int):
    config = {"kind": "grid", "columns": columns, "rows": rows, "spacing": 1.0, "neighbours": 4}
    return build_topology(from_mapping(MapConfig, config))


def test_it_reads_what_it_crosses_and_stops_with_the_readings() -> None:
    topology = grid(6, 1)
    unread = np.ones(6, dtype=bool)
    follow = AlongRoute(topology, (3, 5), unread, Budget())
    assert follow(0, frozenset({0}), Budget(10)) == (1, 2, 3, 4, 5)
    # As many readings as are left, for every place crossed: the way to 3 has three of them.
    assert follow(0, frozenset({0}), Budget(3)) == (1, 2, 3)
    assert follow(0, frozenset({0}), Budget(2)) == ()
    assert follow(0, frozenset({0}), Budget(0)) == ()


def test_it_keeps_metres_and_the_way_to_the_end_place() -> None:
    topology = grid(6, 1)
    unread = np.ones(6, dtype=bool)
    follow = AlongRoute(topology, (1, 2, 3, 4, 5), unread, Budget(metres=4.0))
    assert follow(0, frozenset({0}), Budget(metres=4.0)) == (1, 2, 3, 4)
    home = Budget(metres=4.0, end=0)
    follow = AlongRoute(topology, (1, 2, 3, 4, 5), unread, home)
    assert follow(0, frozenset({0}), home) == (1, 2)


def test_it_goes_on_from_the_nearest_place_where_that_reads_more() -> None:
    topology = grid(9, 1)
    unread = np.ones(9, dtype=bool)
    follow = AlongRoute(topology, (1, 5, 6, 7, 8), unread, Budget(metres=6.0))
    visited = frozenset({2, 3, 4})
    # Back to 1 costs three metres, and four more lead to 5.
    assert follow(4, visited, Budget(metres=6.0)) == (5, 6, 7, 8)


def test_a_far_side_draws_the_first_move() -> None:
    """Three moves ahead see no difference; the rest of the mission does."""
    topology = grid(25, 1)
    belief = build_belief(
        BeliefConfig(length_scales=(1.0,), signal_std=(1.0,), noise_std=(0.1,)), topology.features
    )
    belief.observe(8, 0.0)
    rng = np.random.default_rng(0)
    given = {"limit": PlanLimit(expansions=1000), "remaining": Budget(metres=16.0)}
    bal = Bal(objective="map_error", horizon=2, tail="route", alpha=0.0)
    plan, _ = bal.plan(PlanRequest(belief, topology, 8, rng=rng, **given))
    assert plan.waypoint == 9, "sixteen metres lead to the far end on this side"
    assert plan.waypoints == tuple(range(9, 25))
    short, _ = Bal(objective="map_error", horizon=2, alpha=0.0).plan(
        PlanRequest(belief, topology, 8, rng=rng, **given)
    )
    assert plan.lower > short.upper


@pytest.mark.parametrize(
    "settings",
    [{"objective": "map_error", "discretisation": "draws"}, {"tail": "route"}],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"with (map_error|entropy) leave it at"):
        build_policy({"name": "bal", **settings})


def test_a_time_limit_that_ends_while_the_answer_is_made_is_no_error() -> None:
    """A clock that goes on with every look at it, whatever it is looked at for."""
    topology = grid(5, 4)
    belief = build_belief(
        BeliefConfig(length_scales=(1.0, 3.0), noise_std=(0.1,)), topology.features
    )
    belief.observe(0, 0.3)
    bal = Bal(objective="map_error", horizon=3, tail="route")
    for looks in range(0, 600, 7):
        ticks = itertools.count()
        plan, _ = bal.plan(
            PlanRequest(
                belief,
                topology,
                0,
                rng=np.random.default_rng(0),
                limit=PlanLimit(seconds=float(looks)),
                remaining=Budget(12),
                clock=lambda ticks=ticks: float(next(ticks)),
            )
        )
        assert plan.waypoint in (1, 5)
        assert plan.lower <= plan.upper
