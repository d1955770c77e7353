"""Branches of bal: bounds on the last stage that hold, and are nearer than the chain rule."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.config import from_mapping
from gp_active_sensing.planning.bal import Bal
from gp_active_sensing.planning.bal.bounds import children_chain_rule, initial_bounds
from gp_active_sensing.planning.bal.branching import EqualProbabilityCells
from gp_active_sensing.planning.bal.covariance_state import CovarianceState, DecisionProblem
from gp_active_sensing.planning.bal.tree import Tree, exhaustive
from gp_active_sensing.planning.base import PlanRequest
from gp_active_sensing.planning.entropy import noise_entropy
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.types import PlanLimit
from tests.each import each


def two_ahead(seed: int, moves: str, bounds: str) -> Tree:
    """A root with two readings to come among 12 places, after some readings."""
    rng = np.random.default_rng([17, seed])
    topology = build_topology(
        from_mapping(
            MapConfig,
            {"kind": "grid", "columns": 4, "rows": 4, "spacing": 1.0, "neighbours": 8}
            | ({"moves": "free"} if moves == "free" else {}),
        )
    )
    scales = tuple(np.exp(rng.uniform(-0.5, 2.5, size=4)))
    config = BeliefConfig(length_scales=scales, signal_std=(3.0,), noise_std=(0.3,))
    belief = build_belief(config, topology.features)
    for place in rng.choice(16, size=4, replace=False):
        belief.observe(int(place), float(rng.normal(0, 4)))
    at = None if moves == "free" else 5
    noise = belief.noise_variance
    reference = noise_entropy(noise)
    problem = DecisionProblem(topology, belief.observed, (), noise, reference, 1, lambda: None)
    outlook = problem.outlook(at, frozenset(), 2)
    where = np.array(sorted(outlook.places))
    joint = belief.joint(where)
    here = np.searchsorted(where, problem.candidates(at, frozenset()))
    sequence = CovarianceState(problem, 2, frozenset(), where, here, None, joint.covariance)
    return Tree(EqualProbabilityCells(4, reference, bounds), sequence, joint.mean, belief.weights)


@each("moves", ["free", "adjacent"])
@pytest.mark.seeds
def test_they_hold_the_exact_value_within_the_chain_rule(
    seed: int, moves: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gp_active_sensing.planning.bal.covariance_state.MOST_LEAVES", 0)
    tree = two_ahead(seed, moves, "tight")
    root = tree.expand_root()
    low, up = root.branch_lower.copy(), root.branch_upper.copy()
    wide_low, wide_up = initial_bounds(*children_chain_rule(root.sequence), root.successors.weights)
    assert (low >= wide_low - 1e-9).all()
    assert (up <= wide_up + 1e-9).all()
    # Where the belief is certain there is nothing to gain.
    assert (up - low).mean() <= 0.9 * (wide_up - wide_low).mean() + 1e-9
    exact = two_ahead(seed, moves, "chain")
    exhaustive(exact, 0.0, lambda: 10**6)
    value = exact.root.branch_lower
    np.testing.assert_allclose(value, exact.root.branch_upper, atol=1e-12)
    assert (low <= value + 1e-12).all()
    assert (up >= value - 1e-12).all()


def test_a_free_choice_among_many_closes_at_once() -> None:
    """Far from all readings the candidates λ agree: the chain rule's H(b) is all slack there."""
    topology = build_topology(
        from_mapping(MapConfig, {"kind": "line", "count": 60, "spacing": 1.0, "moves": "free"})
    )
    config = BeliefConfig(
        length_scales=(1, 3, 6), signal_std=(3.0,), noise_std=(0.3,), mean_std=0.0
    )
    belief = build_belief(config, topology.features)
    expanded = {}
    for bounds in ("tight", "chain"):
        bal = Bal(horizon=2, samples=5, alpha=0.05, bounds=bounds)
        limit = PlanLimit(expansions=2000)
        plan, _ = bal.plan(
            PlanRequest(belief, topology, None, limit=limit, rng=np.random.default_rng(0))
        )
        assert not plan.deadline_hit
        expanded[bounds] = plan.expanded
    assert expanded["tight"] < 0.1 * expanded["chain"]
