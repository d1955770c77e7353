"""Implicit exploration: its bound on what is still to be gained, and the switch it decides."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from gp_active_sensing.belief import Belief
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bal.policy import Bal
from gp_active_sensing.planning.base import candidates
from gp_active_sensing.planning.entropy import discrete_entropy, reported_offset
from gp_active_sensing.planning.greedy import Apgd, freeze, thaw
from gp_active_sensing.planning.ie import ImplicitExploration, advantage_over_apgd
from gp_active_sensing.topology import Topology, make_line
from gp_active_sensing.types import Budget, PlanLimit, Reading
from tests.cases import for_each
from tests.requesting import Ticking, asked, believing


def world(count: int = 6, moves: str = "free", seed: int = 0, **options) -> tuple[Topology, Belief]:
    topology = make_line(count, 1.0, moves=moves)
    rng = np.random.default_rng(seed)
    settings = {
        "length_scales": (0.6, 2.0, 7.0),
        "signal_std": (3.0,),
        "noise_std": (0.4,),
        "weights": tuple(rng.dirichlet(np.ones(3)).tolist()),
        "mean_std": 0.0,
    }
    return topology, believing(topology, **(settings | options))


def bound(topology, belief, at, k, *, pending=(), unavailable=(), look_ahead=40, **budget) -> float:
    remaining = Budget(readings=k, **budget)
    request = asked(belief, topology, at, pending, unavailable, remaining)
    return advantage_over_apgd(request, candidates(request), look_ahead=look_ahead)


def information(belief: Belief, places: tuple[int, ...], pending: tuple[int, ...]) -> np.ndarray:
    """(L,) ``H[Z_A | z_D, λ]`` less the noise's, by determinants."""

    def log_det(where: tuple[int, ...]) -> np.ndarray:
        if not where:
            return np.zeros(len(belief.weights))
        C = belief.joint(np.array(where)).covariance
        noise = belief.noise_variance[:, None, None]
        return np.asarray(np.linalg.slogdet(np.eye(len(where)) + C / noise)[1])

    return 0.5 * (log_det((*places, *pending)) - log_det(pending))


def walks(topology, belief, at, k, pending, unavailable, seen=()) -> list[tuple[int, ...]]:
    observed = belief.observed.copy()
    observed[[*pending, *seen]] = True
    found = []
    if k:
        for x in topology.candidates(at, observed, unavailable).tolist():
            inner = walks(topology, belief, x, k - 1, pending, unavailable, (*seen, x))
            found += [(x, *rest) for rest in inner]
    return found or [()]


def apgd_places(topology, belief, at, k, pending, unavailable) -> tuple[int, ...]:
    """Follow the policy itself: its choices do not depend on what is read."""
    belief, found = belief.copy(), []
    state = None
    for left in range(k, 0, -1):
        request = asked(belief, topology, at, pending, unavailable, Budget(readings=left))
        plan, state = Apgd().plan(request, state)
        if plan.waypoint is None:
            break
        at = plan.waypoint
        found.append(at)
        belief.observe(at, 0.0)
    return tuple(found)


@for_each("moves", ["free", "adjacent"])
@for_each("seed", range(10))
def test_bound_holds_against_brute_force(moves: str, seed: int) -> None:
    """Above the exact chain rule over all walks, above the tree's own value, and not far off."""
    rng = np.random.default_rng(seed)
    topology, belief = world(6, moves, seed)
    for place in rng.choice(6, size=int(rng.integers(0, 3)), replace=False):
        belief.observe(int(place), float(rng.normal(0, 3)))
    at = None if moves == "free" else int(rng.integers(6))
    free = np.flatnonzero(~belief.observed)
    pending = (int(rng.choice(free)),) if rng.random() < 0.4 else ()
    others = [int(x) for x in free if x not in pending]
    unavailable = (int(rng.choice(others)),) if rng.random() < 0.3 else ()
    b = belief.weights
    for k in (1, 2, 3):
        paths = walks(topology, belief, at, k, pending, unavailable)
        if paths == [()]:
            continue
        value = np.array([information(belief, path, pending) for path in paths])
        design = apgd_places(topology, belief, at, k, pending, unavailable)
        apgd = information(belief, design, pending)
        exact = float(discrete_entropy(b) + b @ (value.max(axis=0) - apgd))
        found = bound(topology, belief, at, k, pending=pending, unavailable=unavailable)
        assert found >= exact - 1e-7
        bal = Bal(horizon=k, samples=4, alpha=0.0, search="exhaustive")
        limit = PlanLimit(expansions=10**6)
        plan, _ = bal.plan(asked(belief, topology, at, pending, unavailable, limit=limit))
        offset = reported_offset(belief.noise_variance, plan.horizon)
        assert found >= plan.lower - offset - float(b @ apgd) - 1e-7
        # All sets of k places within reach: what submodularity gives away, and nothing else.
        reach = np.flatnonzero(
            topology.reachable(at, belief.observed | np.isin(np.arange(6), pending), k, unavailable)
        )
        sets = itertools.combinations(reach.tolist(), min(k, len(reach)))
        most = np.max([information(belief, s, pending) for s in sets], axis=0)
        loosest = discrete_entropy(b) + b @ (most / (1 - 1 / math.e) - apgd)
        assert found <= float(loosest) + 1e-7
        shorter = [
            bound(topology, belief, at, k, pending=pending, unavailable=unavailable, look_ahead=c)
            for c in (1, 2, 3)
        ]
        assert shorter == sorted(shorter, reverse=True), "following apgd less far is looser"


def test_metres_left_limit_what_apgd_is_credited_with() -> None:
    topology, belief = world(10)
    free = bound(topology, belief, 0, 5)
    assert bound(topology, belief, 0, 5, metres=1e6) == pytest.approx(free)
    assert bound(topology, belief, 0, 5, metres=3.0) > free + 0.1


def test_huge_maps_are_not_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    topology, belief = world()
    monkeypatch.setattr("gp_active_sensing.planning.ie._LARGEST", 3 * 6 * 6 - 1)
    assert bound(topology, belief, None, 3) == math.inf


def mission(policy: str, readings: int | None, seed: int = 0, **options) -> list[dict]:
    """Readings of a field with length-scale 0.6 on 40 places; what was decided at each."""
    topology, belief = world(40, weights=None)
    every = np.arange(40)
    C = belief.covariance.between(every, every)[0]
    truth = np.linalg.cholesky(C + 1e-9 * np.eye(40)) @ np.random.default_rng(seed).normal(size=40)
    built = build_policy({"name": policy, **options})
    loop = SensingLoop(topology, belief, built, budget=Budget(readings=readings), seed=seed)
    stages = []
    for _ in range(readings or 15):
        weights = belief.weights
        plan = loop.ask(None)
        loop.policy_state = json.loads(json.dumps(loop.policy_state))
        stages.append({"at": plan.waypoint, "b": weights, "state": loop.policy_state})
        loop.tell([Reading(0, plan.waypoint, float(truth[plan.waypoint]))])
    return stages


def test_switch_freezes_the_belief_once_nothing_can_be_gained() -> None:
    stages = mission("ie", 20)
    switched = [i for i, s in enumerate(stages) if s["state"] and "weights" in s["state"]]
    assert switched, "the belief is sure long before the end"
    first = switched[0]
    assert 2 < first < 19
    assert switched == list(range(first, 20)), "there is no way back"
    frozen = stages[first]["state"]
    assert frozen["weights"] == stages[first]["b"].tolist()
    assert all(stages[i]["state"] == frozen for i in switched)
    assert float(discrete_entropy(stages[first]["b"])) <= 0.5
    # Before, and where there is no switch, it is the arg-max under the present belief.
    plain = mission("ie", 20, switch=None)
    assert [s["at"] for s in stages[: first + 1]] == [s["at"] for s in plain[: first + 1]]
    assert all(s["state"] is None for s in plain)


def test_after_the_switch_it_is_apgd_from_there() -> None:
    topology, belief = world(12, weights=(0.3, 0.3, 0.4))
    state = freeze(belief, np.array([0.9, 0.1, 0.0]))
    apgd = {"weights": [0.9, 0.1, 0.0]}
    rng = np.random.default_rng(0)
    for _ in range(6):
        remaining = {"remaining": Budget(readings=9), "rng": rng}
        found, state = ImplicitExploration().plan(asked(belief, topology, None, **remaining), state)
        expected, apgd = Apgd().plan(asked(belief, topology, None, **remaining), apgd)
        assert found.candidates == expected.candidates
        belief.observe(found.waypoint, float(rng.normal()))


def test_a_bound_that_is_too_large_is_made_again_later() -> None:
    topology, belief = world(40, "adjacent", weights=(0.98, 0.01, 0.01))
    policy, rng = ImplicitExploration(switch=0.2), np.random.default_rng(0)
    _, state = policy.plan(asked(belief, topology, 20, rng=rng, remaining=Budget(readings=24)))
    assert state == {"again": 21}
    # Before that it is not computed: a bound that is known to be small now is not looked at.
    sure = world(40, "adjacent", weights=(1.0, 0.0, 0.0), length_scales=(1e-6, 2.0, 7.0))[1]
    _, later = policy.plan(asked(sure, topology, 20, rng=rng, remaining=Budget(readings=22)), state)
    assert later == state
    _, later = policy.plan(asked(sure, topology, 20, rng=rng, remaining=Budget(readings=21)), state)
    assert "weights" in later


@for_each("seconds", [0.0, 1.5, 2.5, 3.5, 6.5, 1000.0])
def test_a_deadline_at_any_moment_gives_a_plan(seconds: float) -> None:
    topology, belief = world(weights=(1.0, 0.0, 0.0))
    hurry = {"limit": PlanLimit(seconds=seconds), "clock": Ticking()}
    request = asked(belief, topology, None, remaining=Budget(readings=6), **hurry)
    found, state = ImplicitExploration().plan(request)
    assert found.waypoint is not None
    assert ("weights" in state) == (seconds > 100.0), "no bound, no switch"


def test_frozen_mass_stays_with_its_amplitude() -> None:
    _, belief = world(
        20, length_scales=None, signal_std=None, noise_std=None, weights=None, mean_std=None
    )
    belief.observe(3, 1.0)
    frozen = json.loads(json.dumps(freeze(belief, belief.weights)))
    grid = belief.grid
    one = grid.kernels[0]
    parts = [replace(p, amplitude_slopes=(s,)) for p in one.parts for s in (0.35, -0.35)]
    tilted = (replace(one, parts=(*parts, *one.parts)), *grid.kernels[1:])
    belief._use(replace(grid, kernels=tilted))
    moved = thaw(frozen, belief)
    assert moved[[bool(h.amplitude_slopes) for h in belief.hyperparameters]].sum() == 0.0
    again = json.loads(json.dumps(freeze(belief, belief.weights)))
    np.testing.assert_allclose(thaw(again, belief), belief.weights)
    level = belief.level()
    assert thaw(again, level).shape == level.weights.shape, "slopes that have left the belief"
    assert thaw(again, level).sum() == pytest.approx(1.0)


def test_frozen_mass_stays_with_its_length_scale_when_the_candidates_move() -> None:
    _, belief = world(
        20, length_scales=None, signal_std=None, noise_std=None, weights=None, mean_std=None
    )
    pairs = len(belief.grid.kernels[0].parts)
    weights = np.zeros(len(belief.weights))
    chosen = 3 * pairs + 1
    weights[chosen] = 1.0
    frozen = json.loads(json.dumps(freeze(belief, weights)))
    np.testing.assert_array_equal(thaw(frozen, belief), weights)
    rng = np.random.default_rng(0)
    before = belief.covariance.hyperparameters
    changed = ""
    for place in rng.permutation(20):
        belief.observe(int(place), float(rng.normal()))
        changed += belief.adapt()
    assert changed
    moved = thaw(frozen, belief)
    assert moved.sum() == pytest.approx(1.0)
    now = belief.covariance.hyperparameters[int(moved.argmax())]
    nearest = min(
        {h.length_scales[0] for h in belief.covariance.hyperparameters if h.kernel == now.kernel},
        key=lambda ell: abs(math.log(ell / before[chosen].length_scales[0])),
    )
    assert now.kernel == before[chosen].kernel
    assert now.length_scales[0] == nearest
    assert now.noise_std == before[chosen].noise_std
