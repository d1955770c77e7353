"""Searches that forget: parameters in seconds, SparQ-GP-UCB's bound, and what it asks an expert."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bandits.base import view_of
from gp_active_sensing.planning.bandits.nonstationary import (
    SparqGpUcb,
    query_number,
    sparq_beta,
    spread_places,
)
from gp_active_sensing.planning.base import asks_expert, drift_of
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.types import Budget, Reading
from tests.cases import for_each

FORGETTING = {
    "tv_gp_ucb": ({"epsilon": 0.19}, "kernel", -2.0 / math.log(0.81)),
    "r_gp_ucb": ({"window": 12}, "restart", 12.0),
    "sw_gp_ucb": ({"window": 12}, "window", 12.0),
    "w_gp_ucb": ({"gamma": 0.9}, "weights", -1.0 / math.log(0.9)),
}
LINE = build_topology(MapConfig(kind="line", count=21, spacing=1.0, moves="free"))


def belief_for(policy, **options):
    config = BeliefConfig(length_scales=(3.0,), signal_std=(1.0,), noise_std=(0.1,), **options)
    return belief_on(config, LINE, drift_of(policy))


@for_each("name", FORGETTING)
def test_parameters_are_steps_of_so_many_seconds(name: str) -> None:
    given, kind, constant = FORGETTING[name]
    for step in (1.0, 7.5):
        drift = drift_of(build_policy({"name": name, **given, "step": step}))
        assert drift is not None
        assert drift.kind == kind
        found = drift.time_scale if drift.window is None else drift.window
        assert found == pytest.approx(constant * step, rel=1e-12)


@for_each("step", [1.0, 0.1, 7.3])
@for_each("window", [1, 3, 8])
@for_each("begin", [0, 1_700_000_000])
def test_a_window_of_w_steps_holds_the_latest_w_readings(
    step: float, window: int, begin: int
) -> None:
    """After reading t those of the steps t - W + 1 … t, as GP-UCB on them alone. [Zhou2021]."""
    belief = belief_for(build_policy({"name": "sw_gp_ucb", "window": window, "step": step}))
    loop = SensingLoop(LINE, belief, build_policy({"name": "random"}))
    readings = []
    for t in range(1, 13):
        stamp = begin * 10**9 + round(1e9 * step * t)
        readings.append(Reading(stamp, t, 0.1 * t))
        loop.tell(readings[-1:])
        assert np.flatnonzero(belief.observed).tolist() == list(
            range(max(t - window, 0) + 1, t + 1)
        )
    latest = belief_on(
        BeliefConfig(length_scales=(3.0,), signal_std=(1.0,), noise_std=(0.1,)), LINE
    )
    SensingLoop(LINE, latest, build_policy({"name": "random"})).tell(readings[-window:])
    for a, b in zip(belief.predict(), latest.predict(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@for_each("name", [*FORGETTING, "sparq_gp_ucb"])
def test_a_peak_that_moves_is_found_again(name: str) -> None:
    """High on the left for 40 s, then on the right; gp_ucb sticks to what it knew."""

    def regret(policy) -> float:
        belief = belief_for(policy, mean_value=0.0, mean_std=0.0)
        loop = SensingLoop(LINE, belief, policy, seed=1)
        rng = np.random.default_rng(5)
        at, lost = 10, 0.0
        for second in range(80):
            field = np.exp(-0.5 * ((np.arange(21) - (5 if second < 40 else 15)) / 2.0) ** 2)
            stamp = second * 10**9
            loop.tell([Reading(stamp, at, float(field[at] + 0.1 * rng.normal()))])
            loop.inform(
                Reading(stamp, place, float(field[place] + 0.1 * rng.normal()), 0.01, "expert")
                for place in loop.queries()
            )
            at = int(loop.ask(at, now_ns=stamp).waypoint)
            lost += 1.0 - field[at] if second >= 55 else 0.0
        return lost / 25.0

    given = FORGETTING[name][0] if name in FORGETTING else {}
    given = {**given, "scale": 5.0} if name in FORGETTING else {**given, "norm": 0.0}
    if name == "tv_gp_ucb":
        given["epsilon"] = 0.05
    standing = regret(build_policy({"name": "gp_ucb", "scale": 5.0}))
    assert regret(build_policy({"name": name, **given})) < 0.8 * standing


LONG_LINE = build_topology(MapConfig(kind="line", count=40, spacing=1.0, moves="free"))
CONFIG = BeliefConfig(
    length_scales=(3.0,), signal_std=(1.0,), noise_std=(0.1,), mean_value=0.0, mean_std=0.0
)
SECOND = 10**9


def loop_with(policy, **options) -> SensingLoop:
    return SensingLoop(LONG_LINE, belief_on(CONFIG, LONG_LINE, drift_of(policy)), policy, **options)


def test_beta_is_that_of_the_determinants() -> None:
    x, delta, norm = np.array([3.0, 4.0, 17.0]), 0.05, 1.7
    noise = np.diag([0.01, 0.02, 0.05])
    K = np.exp(-0.5 * (x[:, None] - x) ** 2 / 9.0)
    ratio = math.sqrt(np.linalg.det(noise + K) / np.linalg.det(noise))
    expected = math.sqrt(2.0 * math.log(2.0 / delta * ratio)) + norm
    policy = SparqGpUcb(delta=delta, norm=norm)
    belief = belief_on(CONFIG, LONG_LINE, drift_of(policy))
    belief.observe(17, 0.3, 0.01, seconds=0.0)  # of age 2: variance 0.01 · 5
    belief.observe(4, 0.1, 0.01, seconds=1.0)
    belief.observe(3, 0.2, 0.01, seconds=2.0)
    belief.advance(2.0)
    information = 0.5 * np.linalg.slogdet(np.eye(3) + np.linalg.inv(noise) @ K)[1]
    assert sparq_beta(information, delta, norm) == pytest.approx(expected, rel=1e-12)
    # At step 3 ages 0 and the newest count: log 3 = 1.1.
    view = view_of(belief, np.arange(40), stage=3)
    got = policy.scores(view, belief, np.random.default_rng(0))
    alone = 0.5 * math.log(1.0 + 1.0 / 0.01)
    np.testing.assert_allclose(got, view.mean + sparq_beta(alone, delta, norm) * view.std)


def test_recent_readings_and_the_newest_count() -> None:
    """At step t those with a² + 1 ≤ log t: ages 0 … 2 at t = 500."""
    policy = SparqGpUcb()
    belief = belief_on(CONFIG, LONG_LINE, drift_of(policy))
    belief.observe(0, 0.0, seconds=0.0)
    for second in range(490, 500):
        belief.observe(second - 480, 0.1, seconds=float(second))
    belief.advance(499.0)
    assert np.flatnonzero(belief.observed).tolist() == [17, 18, 19]
    belief.advance(700.0)
    assert np.flatnonzero(belief.observed).tolist() == [19], "the newest, however old"
    assert belief.visited.sum() == 11


def test_queries_are_visited_places_spread_out() -> None:
    policy = SparqGpUcb(query_factor=2.0)
    loop = loop_with(policy, seed=4)
    assert loop.queries() == (), "nothing has been visited"
    for second, place in enumerate([5, 6, 7, 8, 20, 21, 35, 36]):
        loop.tell([Reading(second * SECOND, place, 0.1)])
        loop.ask(place, now_ns=second * SECOND)
    asked = loop.queries()
    assert len(asked) == math.ceil(2.0 * math.log(9)) == 5
    assert asked == tuple(sorted(set(asked)))
    assert set(asked) <= {5, 6, 7, 8, 20, 21, 35, 36}
    assert asked == loop.queries(), "the same question, the same draw"
    spread = np.mean(
        [len({p // 10 for p in loop_with_seed(loop, seed).queries()}) for seed in range(20)]
    )
    assert spread > 2.9, "three groups of places: each is asked about"
    assert loop_with_seed(loop, 1, query_factor=99.0).queries() == (5, 6, 7, 8, 20, 21, 35, 36)


def loop_with_seed(loop: SensingLoop, seed: int, **options) -> SensingLoop:
    other = loop.snapshot()
    other.seed = seed
    if options:
        other.policy = SparqGpUcb(**options)
    return other


def test_scale_divides_the_square_of_the_width() -> None:
    belief = belief_on(CONFIG, LONG_LINE, drift_of(SparqGpUcb()))
    belief.observe(17, 0.3, 0.01, seconds=0.0)
    view = view_of(belief, np.arange(40), stage=3)
    rng = np.random.default_rng(0)
    wide, narrow = (SparqGpUcb(scale=s).scores(view, belief, rng) - view.mean for s in (1.0, 5.0))
    np.testing.assert_allclose(wide, np.sqrt(5.0) * narrow, rtol=1e-12)


@for_each("name", FORGETTING)
def test_every_policy_that_forgets_may_ask_as_sparq_does(name: str) -> None:
    """Not unless it is told to; then about as many places, of the same draw."""
    given = {"name": name, **FORGETTING[name][0]}
    silent = loop_with(build_policy(given), seed=4)
    asking = loop_with(build_policy({**given, "query_factor": 2.0}), seed=4)
    sparq = loop_with(SparqGpUcb(query_factor=2.0), seed=4)
    for second, place in enumerate([5, 6, 7, 8, 20, 21, 35, 36]):
        for loop in (silent, asking, sparq):
            loop.tell([Reading(second * SECOND, place, 0.1)])
            loop.ask(place, now_ns=second * SECOND)
    assert not asks_expert(silent.policy)
    assert silent.queries() == ()
    assert asks_expert(asking.policy)
    assert len(asking.queries()) == math.ceil(2.0 * math.log(9))
    assert asking.queries() == sparq.queries()
    assert set(asking.queries(places=(3, 30))) == {3, 30}


def test_no_more_questions_than_places_were_visited() -> None:
    """min(⌈c log^d t⌉, visited), also where the expert has places of its own."""
    loop = loop_with(SparqGpUcb(), budget=Budget())
    stations = tuple(range(20, 40))
    for second in range(12):
        place = 3 + second % 2  # two places, again and again
        loop.tell([Reading(second * SECOND, place, 0.1)])
        loop.ask(place, now_ns=second * SECOND)
    assert query_number(13, 6.0, 1.0) == 16
    assert loop.queries() == (3, 4)
    assert len(loop.queries(places=stations)) == 2
    assert set(loop.queries(places=stations)) <= set(stations)
    assert loop_with(SparqGpUcb(query_power=0.0)).queries(places=stations) == (), "none visited"


def test_late_answers_have_the_age_they_have() -> None:
    policy = SparqGpUcb()
    fresh, late = (loop_with(policy) for _ in range(2))
    for loop, stamp in ((fresh, 30), (late, 29)):
        for second in range(0, 31, 10):
            loop.tell([Reading(second * SECOND, 3, 0.1)])
        loop.inform([Reading(stamp * SECOND, 20, 0.9, 0.01, "expert")])
        loop.advance(30 * SECOND)
    now, before = (loop.belief.predict(np.array([20]))[1][0] for loop in (fresh, late))
    assert now == pytest.approx(0.01, rel=0.02)
    assert before == pytest.approx(0.02, rel=0.03), "a step old: twice the variance"
    late.inform([Reading(2 * SECOND, 30, 0.9, 0.01, "expert")])
    assert late.belief.predict(np.array([30]))[1][0] > 0.999, "dropped"


@for_each("size", [30, 700])
def test_draws_among_few_and_many_places_are_spread(size: int) -> None:
    """The determinant of what is drawn is far above that of places at random."""
    topology = build_topology(MapConfig(kind="line", count=size, spacing=30 / size, moves="free"))
    belief = belief_on(CONFIG, topology)
    rng = np.random.default_rng(0)

    def log_det(places: np.ndarray) -> float:
        K = belief.covariance.between(places, places)[0] + 1e-6 * np.eye(len(places))
        return float(np.linalg.slogdet(K)[1])

    everywhere = np.arange(size)
    drawn = [log_det(spread_places(belief, everywhere, 6, rng)) for _ in range(20)]
    random = [log_det(np.sort(rng.choice(size, 6, replace=False))) for _ in range(200)]
    assert np.mean(drawn) > np.mean(random) + 2.0
    assert min(drawn) > np.quantile(random, 0.1)


def test_places_that_cannot_be_told_apart_are_drawn_all_the_same() -> None:
    flat = BeliefConfig(length_scales=(1e6,), signal_std=(1.0,), noise_std=(0.1,))
    belief = belief_on(flat, LONG_LINE)
    drawn = spread_places(belief, np.arange(40), 12, np.random.default_rng(0))
    assert len(set(drawn.tolist())) == 12
