"""`bal` with `objective: map_error` against exhaustive search: value, first move and bounds."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from gp_active_sensing.belief import Belief, FeatureCovariance, HyperParameters, PriorMean
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.planning.bal import Bal
from gp_active_sensing.planning.bal.covariance_state import DecisionProblem
from gp_active_sensing.planning.bal.map_branching import best_sets
from gp_active_sensing.planning.bal.map_covariance_state import map_start
from gp_active_sensing.planning.bal.tail import AlongRoute
from gp_active_sensing.planning.base import PlanRequest
from gp_active_sensing.planning.tour import Tour
from gp_active_sensing.topology import FreeTopology
from gp_active_sensing.types import Budget, PlanLimit
from tests.requesting import asked

from .exhaustive_map_error import ExhaustiveMapError
from .test_bal_budget import Affordable, limited_case
from .test_bal_exhaustive import plan, random_case

HAIR = 1e-9


def weighted_case(seed: int):
    """A small decision on a map whose places do not count alike, in any unit."""
    belief, topology, at, horizon, samples = random_case(seed)
    rng = np.random.default_rng([12, seed])
    if rng.random() < 0.7:
        topology = topology.weighted(rng.uniform(0.0, 3.0, size=topology.n))
    if rng.random() < 0.3:
        horizon = 1
    return belief, topology, at, horizon, samples


def map_error(horizon: int, samples: int, seed: int, **settings: object) -> Bal:
    # max_sequences = 1 forces the bounds that large maps use.
    return Bal(
        objective="map_error",
        horizon=horizon,
        samples=samples,
        alpha=0.0,
        mass=1.0,
        max_sequences=2000 if seed % 2 else 1,
        **settings,
    )


@pytest.mark.parametrize("search", ["gap", "published"])
@pytest.mark.seeds(2.5)
def test_the_gap_closes_on_the_exhaustive_value(seed: int, search: str) -> None:
    belief, topology, at, horizon, samples = weighted_case(seed)
    truth = ExhaustiveMapError(belief, topology, samples).drops(at, horizon)
    bal = map_error(horizon, samples, seed, search=search)
    found = plan(bal, belief, topology, at)
    assert found.lower == pytest.approx(truth.max(), abs=HAIR)
    assert found.upper == pytest.approx(truth.max(), abs=HAIR)
    chosen = [c.location for c in found.candidates].index(found.waypoint)
    assert truth[chosen] == pytest.approx(truth.max(), abs=HAIR)


@pytest.mark.slow
@pytest.mark.parametrize("search", ["gap", "published"])
@pytest.mark.seeds(2.5)
def test_bounds_contain_the_value_at_every_limit(seed: int, search: str) -> None:
    belief, topology, at, horizon, samples = weighted_case(seed)
    truth = ExhaustiveMapError(belief, topology, samples).drops(at, horizon)
    bal = map_error(horizon, samples, seed, search=search)
    lower, upper = -np.inf, np.inf
    for expansions in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 10**6):
        found = plan(bal, belief, topology, at, PlanLimit(expansions=expansions))
        assert found.expanded <= expansions
        assert found.lower <= truth.max() + HAIR
        assert found.upper >= truth.max() - HAIR
        assert lower <= found.lower <= found.upper <= upper, "bounds widened"
        lower, upper = found.lower, found.upper
        for candidate, value in zip(found.candidates, truth, strict=True):
            assert candidate.lower <= value + HAIR
            assert candidate.upper >= value - HAIR
        if not found.deadline_hit:
            break


@pytest.mark.seeds(5)
def test_the_first_bounds_are_those_of_the_formula(seed: int) -> None:
    """Before any expansion: exact where sequences are enumerated, never inside them elsewhere."""
    belief, topology, at, horizon, samples = weighted_case(seed)
    exhaustive = ExhaustiveMapError(belief, topology, samples)
    least, most = exhaustive.extremes(at, horizon)
    for cap in (1, 2000):
        problem = DecisionProblem(
            topology,
            belief.observed,
            (),
            belief.noise_variance,
            np.zeros(len(belief.weights)),
            cap,
            lambda: None,
        )
        outlook = problem.outlook(at, frozenset(), horizon)
        locations = np.array(sorted(outlook.places))
        first = np.searchsorted(locations, topology.candidates(at, belief.observed))
        sequence, _, weights = map_start(
            asked(belief, topology, at),
            problem,
            locations,
            first,
            horizon,
            outlook.sequences,
            8,
            1.0,
        )
        scale = sequence.of.scale
        assert scale == pytest.approx(exhaustive.error(belief.weights, ()))
        fixed, sets, best = best_sets(sequence)
        present, _ = exhaustive.of_readings(())
        feasible = {frozenset(s) for s in exhaustive.sets(at, horizon, ())}
        doubts = sequence.of.disagreement.after(sets)
        for drop, numbers, doubt in zip(fixed, sets, doubts, strict=True):
            places = tuple(int(locations[i]) for i in numbers)
            assert frozenset(places) in feasible
            errors, said = exhaustive.of_readings(places)
            np.testing.assert_allclose(scale * drop, present - errors, atol=1e-9)
            apart = ((said[:, None] - said) ** 2).sum(axis=2)
            np.testing.assert_allclose(2.0 * scale * doubt, apart, atol=1e-8)
        now = exhaustive.error(weights, ())
        upper = now - float(weights @ present) + scale * float(weights @ best)
        assert upper >= most - HAIR
        if sequence.sequences is not None:
            assert upper == pytest.approx(most, abs=1e-8)
        assert exhaustive.drops(at, horizon).max() >= least - HAIR


@dataclasses.dataclass
class LimitedMapError(ExhaustiveMapError):
    """Exhaustive search in which every drive has to be affordable."""

    end: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.affordable = Affordable(self.topology, self.end)

    def left_within(self, at, k, weights, left, visits=(), crossed=()) -> np.ndarray:
        observed = self.belief.observed.copy()
        observed[[x for x, _ in visits]] = True
        observed[list(crossed)] = True
        drives = self.affordable.drives(at, observed, left) if k else []
        if not drives:
            return np.array([self.error(weights, tuple(x for x, _ in visits))])
        where = np.array([x for x, _, _ in drives])
        found = self.cells(weights, where, visits)
        expected = np.zeros(len(where))
        for a, (x, metres, read) in enumerate(drives):
            then = (left[0] - len(read), left[1] - metres)
            for i in range(self.samples):
                deeper = self.left_within(
                    x,
                    k - 1,
                    found.weights[a, i],
                    then,
                    (*visits, (x, float(found.values[a, i]))),
                    (*crossed, *read),
                )
                expected[a] += found.probability[a, i] * deeper.min()
        return expected


@pytest.mark.seeds
def test_budgets_of_metres_are_kept(seed: int) -> None:
    belief, topology, at, horizon, samples, budget = limited_case(seed)
    limited = LimitedMapError(belief, topology, samples, end=budget.end)
    bal = map_error(horizon, samples, seed)
    found, _ = bal.plan(
        PlanRequest(
            belief,
            topology,
            at,
            limit=PlanLimit(expansions=10**6),
            rng=np.random.default_rng(5),
            remaining=budget,
        )
    )
    left = (budget.readings, budget.metres)
    if found.waypoint is None:
        assert not limited.affordable.drives(at, belief.observed, left)
        return
    weights = belief.weights
    truth = limited.error(weights, ()) - limited.left_within(at, found.horizon, weights, left)
    assert found.lower == pytest.approx(truth.max(), abs=HAIR)
    assert found.upper == pytest.approx(truth.max(), abs=HAIR)
    chosen = [c.location for c in found.candidates].index(found.waypoint)
    assert truth[chosen] == pytest.approx(truth.max(), abs=HAIR)


@pytest.mark.seeds
def test_on_large_maps_bounds_come_another_way_and_the_value_is_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Last stages of many candidates, products of covariances that are not kept, small chunks."""
    monkeypatch.setattr("gp_active_sensing.planning.bal.covariance_state.MOST_LEAVES", 0)
    monkeypatch.setattr("gp_active_sensing.planning.bal.disagreement._KEPT_PRODUCTS", 0)
    for module in ("disagreement", "map_branching"):
        monkeypatch.setattr(f"gp_active_sensing.planning.bal.{module}._CHUNK", 300)
    monkeypatch.setattr("gp_active_sensing.planning.bal.map_branching._LARGE_CHUNK", 100)
    belief, topology, at, horizon, samples = weighted_case(seed)
    truth = ExhaustiveMapError(belief, topology, samples).drops(at, horizon)
    bal = map_error(horizon, samples, seed)
    for expansions in (1, 4, 16, 10**6):
        found = plan(bal, belief, topology, at, PlanLimit(expansions=expansions))
        assert found.lower <= truth.max() + HAIR
        assert found.upper >= truth.max() - HAIR
        for candidate, value in zip(found.candidates, truth, strict=True):
            assert candidate.lower <= value + HAIR
            assert candidate.upper >= value - HAIR
    assert found.upper - found.lower <= HAIR


@pytest.mark.slow
def test_the_value_is_near_what_is_to_be_expected() -> None:
    """Readings at three places, against posteriors of many draws of what they might say."""
    rng = np.random.default_rng(3)
    grid = np.array([(i, j) for i in range(5) for j in range(5)], dtype=float)
    topology = FreeTopology("free", "map", [str(i) for i in range(25)], grid)
    drops = []
    for _ in range(16):
        hyper = tuple(
            HyperParameters((ell,), float(rng.uniform(0.5, 2.0)), 0.2)
            for ell in (0.7, 1.5, 3.0, 6.0)
        )
        covariance = FeatureCovariance(build_kernel("se"), grid, hyper)
        belief = Belief(covariance, PriorMean.known(25, 0.0))
        truth = covariance.between(np.arange(25), np.arange(25))[rng.integers(4)]
        field = np.linalg.cholesky(truth + 1e-9 * np.eye(25)) @ rng.normal(size=25)
        for place in rng.choice(25, int(rng.integers(0, 7)), replace=False):
            belief.observe(int(place), field[place] + 0.2 * rng.normal())
        where = tuple(rng.choice(np.flatnonzero(~belief.observed), 3, replace=False).tolist())
        exhaustive = ExhaustiveMapError(belief, topology, 5)
        now, weights = exhaustive.error(belief.weights, ()), belief.weights
        errors, _ = exhaustive.of_readings(where)
        drops.append(
            (
                now - expected_error(exhaustive, where, 2000, rng),
                now - after_cells(exhaustive, where, weights, ()),
                now - exhaustive.error(weights, where),
                now - weights @ errors,
            )
        )
    true, tree, unlearned, certain = np.array(drops).T
    assert tree.mean() == pytest.approx(true.mean(), rel=0.02)
    off = [np.sqrt(np.mean((found - true) ** 2)) for found in (tree, unlearned, certain)]
    assert off[0] < 0.6 * min(off[1:])


def after_cells(exhaustive: ExhaustiveMapError, rest, weights, visits) -> float:
    """Error that the tree expects after readings of some places in turn."""
    if not rest:
        return exhaustive.error(weights, tuple(x for x, _ in visits))
    found = exhaustive.cells(weights, np.array(rest[:1]), visits)
    return sum(
        float(p) * after_cells(exhaustive, rest[1:], b, (*visits, (rest[0], float(z))))
        for p, b, z in zip(found.probability[0], found.weights[0], found.values[0], strict=True)
    )


def expected_error(exhaustive: ExhaustiveMapError, where, draws: int, rng) -> float:
    """Mean of the mixture's mean variance over draws of readings, by Bayes' rule."""
    A, start = list(where), exhaustive.start
    errors, _ = exhaustive.of_readings(where)
    blocks = [
        C[np.ix_(A, A)] + noise * np.eye(len(A))
        for C, noise in zip(start.covariance, exhaustive.noise, strict=True)
    ]
    weights, total = exhaustive.belief.weights, 0.0
    for drawn_from, weight in enumerate(weights):
        z = rng.multivariate_normal(start.mean[drawn_from][A], blocks[drawn_from], size=draws)
        log, maps = [], []
        for mu, C, block in zip(start.mean, start.covariance, blocks, strict=True):
            log.append(multivariate_normal.logpdf(z, mu[A], block))
            maps.append(mu + (z - mu[A]) @ np.linalg.solve(block, C[A]))
        b = weights[:, None] * np.exp(np.array(log) - np.max(log, axis=0))
        b /= b.sum(axis=0)
        apart = np.array(maps) - (b[:, :, None] * np.array(maps)).sum(axis=0)
        left = errors @ b + (b * (apart**2 @ exhaustive.share)).sum(axis=0)
        total += weight * left.mean()
    return total


@pytest.mark.slow
@pytest.mark.parametrize("readings", [3, 5, None])
@pytest.mark.seeds
def test_with_a_route_after_the_tree_the_value_is_that_of_the_rest(
    seed: int, readings: int | None
) -> None:
    belief, topology, at, horizon, samples = weighted_case(seed)
    remaining = Budget(readings)
    bal = map_error(min(horizon, 2), samples, 1, tail="route")
    given = {"remaining": remaining, "limit": PlanLimit(expansions=10**6)}
    route = (
        Tour()
        .plan(PlanRequest(belief, topology, at, rng=np.random.default_rng(5), **given))[0]
        .waypoints
    )
    follow = AlongRoute(topology, route, ~belief.observed, remaining)

    def after(at: int, read: tuple[int, ...]) -> tuple[int, ...]:
        left = remaining.minus(readings=len(read))
        return follow(at, frozenset(read), left)

    found, state = bal.plan(
        PlanRequest(belief, topology, at, rng=np.random.default_rng(5), **given)
    )
    truth = ExhaustiveMapError(belief, topology, samples, follow=after).drops(at, found.horizon)
    assert found.lower == pytest.approx(truth.max(), abs=HAIR)
    assert found.upper == pytest.approx(truth.max(), abs=HAIR)
    chosen = [c.location for c in found.candidates].index(found.waypoint)
    assert truth[chosen] == pytest.approx(truth.max(), abs=HAIR)
    assert state["routes"][-1][0] == found.waypoint
    alone, _ = map_error(min(horizon, 2), samples, 1).plan(
        PlanRequest(belief, topology, at, rng=np.random.default_rng(5), **given)
    )
    assert found.lower >= alone.lower - HAIR, "more readings tell no less"
    for expansions in (1, 2, 5, 13):
        some, _ = bal.plan(
            PlanRequest(
                belief,
                topology,
                at,
                rng=np.random.default_rng(5),
                **given | {"limit": PlanLimit(expansions=expansions)},
            )
        )
        assert some.lower <= some.upper
