"""Plans for several quantities against the error of their maps computed one by one."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.errors import PlanningError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy, policies
from gp_active_sensing.planning.base import SEVERAL, check_fit
from gp_active_sensing.planning.map_error import map_error_gains, map_error_of
from gp_active_sensing.planning.request import QuantityBelief, TargetError
from gp_active_sensing.planning.routes.base import next_pass
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import Aim, Budget
from tests.cases import for_each
from tests.requesting import asked
from tests.unit.planning.routes.driving import driver_of
from tests.unit.planning.test_map_error import grid

KNOWN = BeliefConfig(
    kernel=("matern12", "se", "none"),
    length_scales=(1.0, 2.5),
    signal_std=(3.0,),
    place_std=(0.0, 1.5),
    noise_std=(0.5,),
)
SMOOTH = BeliefConfig(
    kernel=("matern32",), length_scales=(2.0,), signal_std=(40.0,), noise_std=(4.0,)
)


def read(
    topology: Topology,
    config: BeliefConfig,
    rng: np.random.Generator,
    places: object = 5,
    times: float = 1.0,
) -> Belief:
    belief = belief_on(config, topology, quiet=True)
    if isinstance(places, int):
        places = rng.choice(topology.n, places, replace=False)
    for place in np.asarray(places).tolist():
        belief.observe(place, times * float(rng.normal(5.0, 3.0)))
    return belief


def relative_error(belief: Belief, topology: Topology) -> float:
    """Return the mean variance of a map in that of its field, all candidates counted."""
    w = topology.weights / topology.weights.sum()
    everywhere = np.arange(topology.n)
    K = belief.covariance.between(everywhere, everywhere)
    over = np.einsum("lpp,p->l", K, w) - np.einsum("p,lpr,r->l", w, K, w)
    _, variance = belief.marginals()
    return float((belief.weights @ (variance @ w)) / (belief.weights @ over))


@pytest.mark.seeds
def test_it_is_the_weighed_sum_of_relative_errors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    topology = grid()
    main, other = read(topology, KNOWN, rng), read(topology, SMOOTH, rng)
    main.prior_weights = other_weights = np.eye(len(main.prior_weights))[seed % 12]
    assert other_weights.sum() == 1.0  # one candidate of each, so that none is left out
    unread = np.flatnonzero(~main.observed)
    places = np.sort(rng.choice(unread, 8, replace=False))
    others = (QuantityBelief("other", other, 3.0),)
    field = map_error_of(main, topology, places, others=others, weight=2.0)
    chosen = rng.choice(8, 3, replace=False)
    before = after = 0.0
    for belief, share in ((main, 0.4), (other, 0.6)):
        before += share * relative_error(belief, topology)
        later = belief.copy()
        for place in places[chosen].tolist():
            later.observe(place, 1.0)
        after += share * relative_error(later, topology)
    assert float(field.weights @ field.total) == pytest.approx(before, rel=1e-8)
    assert field.value(chosen) == pytest.approx(before - after, rel=1e-7)
    weights, gains = map_error_gains(main, topology, places, others=others, weight=2.0)
    np.testing.assert_allclose(weights @ gains, field.weights @ field.gains(), rtol=1e-8)
    alone = map_error_of(other, topology, places)
    for name in ("weights", "noise", "covariance", "shared", "total"):
        np.testing.assert_allclose(
            getattr(field.of(1), name), getattr(alone, name), rtol=1e-9, err_msg=name
        )
    fresh = np.flatnonzero(~(main.observed | other.observed))
    places, pending = fresh[:8], fresh[:2].tolist()
    with_pending = map_error_of(main, topology, places[2:], pending=pending, others=others)
    one_by_one = map_error_of(main, topology, places, others=others)
    rest = one_by_one.after(np.array([0, 1])).at(np.arange(2, 8))
    np.testing.assert_allclose(with_pending.gains(), rest.gains(), rtol=1e-7)


@for_each("policy", ["tour", "integrated_variance", "max_entropy"])
def test_plans_go_where_the_heavier_quantity_is_unknown(policy: str) -> None:
    topology, rng = grid(12, 3), np.random.default_rng(3)
    east = [p for p in range(topology.n) if p % 12 > 5]
    west = [p for p in range(topology.n) if p % 12 <= 5]
    main = read(topology, SMOOTH, rng, [p for p in east if p % 3])
    other = read(topology, SMOOTH, rng, [p for p in west if p % 3])
    chosen = build_policy({"name": policy})
    columns = []
    for weight in (100.0, 1.0):
        others = (QuantityBelief("other", other, 10.0),)
        budget = Budget(readings=1)
        request = asked(main, topology, None, remaining=budget, others=others, weight=weight)
        columns.append(chosen.plan(request)[0].waypoints[0] % 12)
    assert columns[0] <= 5 < columns[1]


@for_each("policy", ["tour", "integrated_variance", "max_entropy"])
def test_units_and_quantities_without_weight_change_no_plan(policy: str) -> None:
    topology = grid(8, 6)
    chosen = build_policy({"name": policy})

    def plans(times: float, weight: float) -> list[tuple[int, ...]]:
        rng, found = np.random.default_rng(5), []
        main, other = (read(topology, BeliefConfig(), rng, 12, scale) for scale in (1.0, times))
        others = (QuantityBelief("other", other, weight),)
        for budget in (Budget(readings=6), Budget(metres=30.0)):
            plan, _ = chosen.plan(asked(main, topology, 0, remaining=budget, others=others))
            found.append(plan.waypoints)
        return found

    assert plans(1.0, 1.0) == plans(1000.0, 1.0)
    main = read(topology, BeliefConfig(), np.random.default_rng(5), 12)
    for budget, waypoints in zip(
        (Budget(readings=6), Budget(metres=30.0)), plans(1.0, 0.0), strict=True
    ):
        assert chosen.plan(asked(main, topology, 0, remaining=budget))[0].waypoints == waypoints


def test_policies_that_plan_for_several_say_so() -> None:
    topology = grid()
    belief = belief_on(KNOWN, topology)
    others = (QuantityBelief("other", belief),)
    classes = {name: policies.factory(name) for name in policies.names()}
    assert {n for n, c in classes.items() if getattr(c, "several", False)} == set(SEVERAL)
    refused = {name for name, c in classes.items() if getattr(c, "one_quantity", False)}
    assert refused == {"bal"}
    for name in (*SEVERAL, "bal"):
        policy = build_policy({"name": name})
        check_fit(policy, belief, topology)
        if name in refused:
            with pytest.raises(PlanningError):
                check_fit(policy, belief, topology, others)
        else:
            check_fit(policy, belief, topology, others)


def test_a_sampled_quantity_is_worth_something_where_a_probe_stops() -> None:
    rng = np.random.default_rng(2)
    topology = grid(10, 3, reach=2.0)
    main, other = read(topology, SMOOTH, rng, [0]), read(topology, SMOOTH, rng, [0])
    found = []
    for sampled in (False, True):
        others = (QuantityBelief("other", other, 1.0, sampled),)
        driver = driver_of(main, topology, Budget(metres=100.0), others=others)
        route = driver.drive([9])
        assert route.reads == tuple(range(1, 10))
        assert driver.stops_of(route.reads) == [2, 4, 6, 8, 9]
        found.append(route.value)
    stops, reads = driver.which([2, 4, 6, 8, 9]), driver.which(route.reads)
    field = driver.field
    values = 0.5 * field.values(reads)[:1] + 0.5 * field.values(stops)[1:]
    assert found[1] == pytest.approx(float(values[0]))
    assert found[1] < found[0]
    close = grid(10, 3)
    one = driver_of(read(close, SMOOTH, rng, [0]), close, Budget(metres=100.0))
    assert one.stops_of((1, 2, 3)) == [1, 2, 3]


def test_passes_are_for_all_errors_that_are_asked_for() -> None:
    rng, topology = np.random.default_rng(4), grid(10, 10)
    some = range(0, 100, 7)
    main, other = read(topology, KNOWN, rng, some), read(topology, KNOWN, rng, some)
    needed = []
    for error in (3.5, 2.4):
        others = (QuantityBelief("other", other, aim=Aim(error)),)
        sought = asked(main, topology, aim=Aim(3.5), others=others).sought
        assert sought == (TargetError(0, main, Aim(3.5)), TargetError(1, other, Aim(error)))
        driver = driver_of(main, topology, Budget(metres=2000.0), others=others)
        needed.append(next_pass(driver, sought, 4, lambda: True).budget.metres)
        only = next_pass(driver, sought[1:], 4, lambda: True).budget.metres
    assert needed[0] < needed[1] == only


def test_a_mission_goes_on_until_every_map_is_good_enough() -> None:
    rng, topology = np.random.default_rng(4), grid()
    main, other = (read(topology, KNOWN, rng, range(0, 24, 2)) for _ in range(2))
    done = []
    for error in (100.0, 0.01, None):
        further = QuantityBelief("other", other, aim=None if error is None else Aim(error))
        policy = build_policy({"name": "tour"})
        loop = SensingLoop(topology, main, policy, aim=Aim(100.0), quantities=(further,))
        done.append(bool(loop.good_enough()))
    assert done == [True, False, True]
    with pytest.raises(PlanningError):
        SensingLoop(topology, main, build_policy({"name": "bal"}), quantities=(further,))
