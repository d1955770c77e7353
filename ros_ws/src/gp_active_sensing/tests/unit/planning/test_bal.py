"""⟨α,ε⟩-BAL as a policy: limits, deadlines, pending waypoints, horizons, rewards."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bal.policy import Bal
from gp_active_sensing.planning.beliefs import joint_given_pending, marginals_given_pending
from gp_active_sensing.topology import make_line
from gp_active_sensing.types import PlanLimit
from tests.cases import for_each
from tests.reference.exhaustive import WholeBelief
from tests.requesting import Ticking, asked, believing


def line(count: int = 9, **options):
    topology = make_line(count, 1.0, moves="free")
    settings = {"length_scales": (0.5, 2.0, 8.0), "signal_std": (3.0,), "noise_std": (0.3,)}
    return topology, believing(topology, **(settings | options))


def plan(policy: Bal, topology, belief, at=None, **options):
    options = {"limit": PlanLimit(expansions=10**5)} | options
    return policy.plan(asked(belief, topology, at, rng=np.random.default_rng(1), **options))[0]


@for_each("seconds", [0.0, 0.5, 1.5, 3.5, 7.5, 20.5, 100.5, 1000.5])
@for_each("discretisation", ["cells", "draws"])
def test_a_deadline_at_any_moment_gives_a_plan(seconds: float, discretisation: str) -> None:
    """The clock ticks at each look, so the deadline falls at every point of the computing."""
    topology, belief = line()
    bal = WholeBelief(
        horizon=3, samples=3, alpha=0.0, discretisation=discretisation, max_sequences=10
    )
    found = plan(bal, topology, belief, limit=PlanLimit(seconds=seconds), clock=Ticking(1.0))
    assert found.waypoint is not None
    assert np.isfinite([found.lower, found.upper]).all()
    assert found.lower <= found.upper
    if seconds < 1:
        assert found.deadline_hit
        assert found.horizon == 1


@for_each("discretisation", ["cells", "draws"])
def test_the_search_ends_where_its_memory_does(discretisation: str) -> None:
    """What is counted is about what the process takes; the answer is a plan like any other."""
    settings = {"horizon": 4, "alpha": 0.0, "discretisation": discretisation}
    found = []
    for memory in (0.5, 2.0, 1000.0):
        policy = type("Small", (Bal,), {"memory": memory})(**settings)
        topology, belief = line(60, length_scales=(1.0, 5.0, 20.0))
        belief.observe(30, 1.0)
        found.append(plan(policy, topology, belief, limit=PlanLimit(expansions=400)))
    small, more, all_of_it = found
    assert small.expanded < more.expanded < all_of_it.expanded
    assert small.deadline_hit
    assert small.waypoint is not None
    assert small.lower <= small.upper
    if discretisation == "cells":
        assert small.gap >= more.gap >= all_of_it.gap


def test_noise_that_differs_is_not_chased() -> None:
    """With λ of different noise, the value is information: zero where all is known."""
    topology, belief = line(4, length_scales=(2.0,), noise_std=(0.01, 5.0), mean_std=0.0)
    for place in range(3):
        for _ in range(2000):
            belief.observe(place, float(place), 1e-6)
    found = plan(Bal(horizon=1, samples=5), topology, belief)
    assert 0.0 < found.lower < 3.0


def test_pending_covariance_is_that_of_a_reading_there() -> None:
    _, belief = line(6)
    belief.observe(0, 2.0)
    where = np.array([1, 3, 5])
    pending = joint_given_pending(belief, where, (2, 4, 2, 0))
    read = belief.copy()
    read.observe(2, 123.0)
    read.observe(4, -77.0)
    np.testing.assert_allclose(pending.covariance, read.joint(where).covariance, atol=1e-10)
    np.testing.assert_allclose(pending.mean, belief.joint(where).mean)
    _, variance = marginals_given_pending(belief, where, (2, 4))
    np.testing.assert_allclose(variance, read.marginals(where)[1], atol=1e-10)


def test_draws_depend_on_the_key_not_on_the_order_of_work() -> None:
    topology, belief = line(5)
    bal = Bal(horizon=3, samples=2, alpha=0.0, discretisation="draws", search="exhaustive")
    full, again = plan(bal, topology, belief), plan(bal, topology, belief)
    assert full.candidates == again.candidates
    other = asked(belief, topology, None, rng=np.random.default_rng(2))
    assert bal.plan(other)[0].candidates != full.candidates


@for_each(
    ("settings", "message"),
    [
        ({"horizon": 0}, r"policy\.horizon: must be 1 or more \[readings\], got 0"),
        ({"objective": "map_error"}, r"policy\.objective: is removed; .*tour"),
        ({"tail": "route"}, r"policy\.tail: is removed; .*tour"),
        ({"bounds": "constant"}, "bounds: constant is of discretisation: draws"),
        ({"loosening": 2.0}, "loosening: is of discretisation: draws"),
        (
            {"loosening": 2.0, "bounds": "constant", "discretisation": "draws"},
            "with bounds: constant leave it at 0",
        ),
    ],
)
def test_bad_parameters_are_clear_errors(settings, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_policy({"name": "bal", **settings})


def test_a_free_choice_among_many_closes_at_once() -> None:
    """Far from all readings the candidates λ agree: the chain rule's H(b) is all slack there."""
    topology, belief = line(60, length_scales=(1, 3, 6), mean_std=0.0)
    expanded = {}
    for bounds in ("tight", "chain"):
        bal = Bal(horizon=2, samples=5, alpha=0.05, bounds=bounds)
        limit = PlanLimit(expansions=2000)
        plan, _ = bal.plan(asked(belief, topology, None, limit=limit))
        assert not plan.deadline_hit
        expanded[bounds] = plan.expanded
    assert expanded["tight"] < 0.1 * expanded["chain"]
