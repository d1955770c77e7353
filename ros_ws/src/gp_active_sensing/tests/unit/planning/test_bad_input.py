"""⟨α,ε⟩-BAL on what nobody means to give it: right answers or a clear end, never NaN."""

from __future__ import annotations

import math
import time
from itertools import cycle, product

import numpy as np
import pytest

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bal.policy import Bal
from gp_active_sensing.topology.base import FreeTopology, Topology
from gp_active_sensing.topology.grids import make_grid, make_line
from gp_active_sensing.types import Plan, PlanLimit
from tests.cases import for_each
from tests.requesting import asked, believing

WAYS = (("cells", "tight"), ("cells", "chain"), ("draws", "chain"))
SIGNAL, NOISE = 3.0, 0.3


def twins(times: int = 3) -> Topology:
    """Three positions, each of them the position of several places."""
    x = np.repeat(np.arange(3.0), times)
    return FreeTopology("twins", "map", [str(i) for i in range(len(x))], np.column_stack([x, x]))


MAPS = {
    "line": make_line(7, 1.0, moves="free"),
    "grid": make_grid(3, 3, 1.0, neighbours=8),
    "twins": twins(),
    "one point": FreeTopology("point", "map", ["a", "b", "c", "d"], np.zeros((4, 2))),
    "one place": make_line(1, 1.0, moves="free"),
}
BELIEFS: dict[str, dict[str, object]] = {
    "one length-scale": {"length_scales": (2.0,)},
    "a weight of zero": {"weights": (0.5, 0.0, 0.5)},
    "all mass on one": {"weights": (0.0, 1.0, 0.0)},
    "weights that vanish": {"weights": (1.0, 1e-300, 1e-300)},
    "no noise": {"noise_std": (1e-9 * SIGNAL,)},
    "no noise, smooth": {"noise_std": (1e-9 * SIGNAL,), "length_scales": (50.0, 100.0)},
    "no noise or much": {"noise_std": (1e-9 * SIGNAL, SIGNAL)},
    "short": {"length_scales": (1e-6,)},
    "long": {"length_scales": (1e6,)},
    "short or long": {"length_scales": (1e-6, 1e6)},
    "short or long, mean known": {"length_scales": (1e-6, 1e6), "mean_std": 0.0},
    "signals far apart": {"signal_std": (1e-8, 1e8), "noise_std": (1e-9, 1e7)},
    "huge": {"signal_std": (1e30,), "noise_std": (1e20,)},
    "tiny": {"signal_std": (1e-30,), "noise_std": (1e-32,)},
    "untuned": {"length_scales": None, "signal_std": None, "noise_std": None},
    "untuned, linear": {
        **{"length_scales": None, "signal_std": None, "noise_std": None, "mean": "linear"}
    },
}
VALUES: dict[str, list[float]] = {
    "none": [],
    "some": [1.0, -2.0, 0.5, 3.0],
    "equal": [5.0] * 4,
    "outliers": [1e8, -1e8, 0.0, 1.0],
    "wild": [1e90, -1e90, 0.0],
}


def believe(topology: Topology, values: list[float] = (), **options: object) -> Belief:  # type: ignore[assignment]
    known = {"length_scales": (0.5, 2.0, 8.0), "signal_std": (SIGNAL,), "noise_std": (NOISE,)}
    belief = believing(topology, **(known | options))  # type: ignore[arg-type]
    for place, value in enumerate(values):
        belief.observe(place % topology.n, value)
    return belief


def ask(bal: Bal, belief: Belief, topology: Topology, **limit: float) -> Plan:
    at = None if topology.free else 0
    limits = PlanLimit(**({"expansions": 20} | limit))  # type: ignore[arg-type]
    rng = np.random.default_rng(5)
    return bal.plan(asked(belief, topology, at, limit=limits, rng=rng, clock=time.monotonic))[0]


def check(plan: Plan, belief: Belief, topology: Topology) -> None:
    """A legal waypoint and ordinary, ordered bounds; or none, and the reason."""
    legal = topology.candidates(None if topology.free else 0, belief.observed).tolist()
    numbers = [plan.lower, plan.upper, *(v for c in plan.candidates for v in (c.lower, c.upper))]
    assert np.isfinite(numbers).all()
    assert plan.lower <= plan.upper
    assert all(c.lower <= c.upper for c in plan.candidates)
    if not legal:
        assert plan.waypoint is None
        assert plan.reason
        return
    assert plan.waypoint in legal
    assert [c.location for c in plan.candidates] == legal
    assert len(set(plan.waypoints)) == len(plan.waypoints)
    assert not belief.observed[list(plan.waypoints)].any()


@for_each("name", BELIEFS)
def test_degenerate_beliefs_give_legal_plans(name: str) -> None:
    """Every pair of map and values; the ways of branching and the horizons take turns."""
    turns = cycle(product(WAYS, (2, 3)))
    for (topology, values), ((discretisation, bounds), horizon) in zip(
        product(MAPS.values(), VALUES.values()), turns, strict=False
    ):
        belief = believe(topology, values, **BELIEFS[name])
        bal = Bal(horizon=horizon, samples=3, discretisation=discretisation, bounds=bounds)
        check(ask(bal, belief, topology), belief, topology)


@for_each(("discretisation", "bounds"), WAYS)
def test_candidates_without_weight_change_nothing(discretisation: str, bounds: str) -> None:
    topology = make_line(6, 1.0, moves="free")
    for weights, left in (((0.5, 0.0, 0.5), (0.5, 8.0)), ((0.0, 1.0, 0.0), (2.0,))):
        bal = Bal(horizon=3, discretisation=discretisation, bounds=bounds)
        with_zero = ask(bal, believe(topology, [1.0], weights=weights), topology)
        without = ask(bal, believe(topology, [1.0], length_scales=left), topology)
        assert with_zero.waypoints == without.waypoints
        assert with_zero.lower == pytest.approx(without.lower, abs=1e-9)
        assert with_zero.upper == pytest.approx(without.upper, abs=1e-9)


@for_each(("length_scale", "shared"), [(1e-6, 0.0), (1e6, 1.0)])
def test_length_scales_at_the_ends(length_scale: float, shared: float) -> None:
    """Every place on its own, or all of them one."""
    topology = make_line(6, 1.0, moves="free")
    belief = believe(topology, length_scales=(length_scale,), mean_std=0.0)
    K = SIGNAL**2 * (shared + (1.0 - shared) * np.eye(3)) + NOISE**2 * np.eye(3)
    plan = ask(Bal(horizon=3), belief, topology)
    value = 0.5 * np.linalg.slogdet(2 * math.pi * math.e * K)[1]
    assert plan.lower == pytest.approx(value, abs=1e-6)
    assert plan.gap == pytest.approx(0.0, abs=1e-6)


def test_no_noise_keeps_apart_what_is_apart() -> None:
    """Four places read without noise: each is worth its own prior, whatever rounding leaves."""
    topology = make_line(4, 1.0, moves="free")
    belief = believe(topology, length_scales=(1e-6,), noise_std=(1e-9 * SIGNAL,), mean_std=0.0)
    plan = ask(Bal(horizon=4), belief, topology)
    each = 0.5 * math.log(2 * math.pi * math.e * SIGNAL**2)
    assert plan.lower == pytest.approx(4 * each, abs=1e-6)


@for_each("name", ["no noise, smooth", "no noise or much", "signals far apart"])
def test_rounding_does_not_grow_with_the_horizon(name: str) -> None:
    """Where nothing is left to learn, what is left of a variance is rounding."""
    for topology, mean_std in product((twins(4), make_grid(6, 6, 1.0, neighbours=8)), (0.0, None)):
        belief = believe(topology, **(BELIEFS[name] | {"mean_std": mean_std}))
        plan = ask(Bal(horizon=30, samples=3), belief, topology)
        check(plan, belief, topology)
