"""Compare beliefs of every kind after seeded readings with the record; see `tests.recorded`."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.belief.aim import AimForecast, assurance, met, not_seen
from gp_active_sensing.belief.collapsed import CollapsedReadings, StayUncertainty
from gp_active_sensing.belief.drift import Ageing, DriftConfig
from gp_active_sensing.belief.prior import (
    IDENTITY,
    LOG,
    FeatureCovariance,
    HyperParameters,
    Log,
    integrate_scale,
    noise_estimate,
    unit_scale,
)
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ReadingError
from gp_active_sensing.topology import Topology, make_grid
from gp_active_sensing.types import OF, Aim
from tests.cases import for_each
from tests.recorded import check_recorded
from tests.reference.test_drift_direct import DRIFTS
from tests.unit.belief.test_amend import CONFIGS, ONE

RECORD = Path(__file__).with_name("recorded.json")
FLAT, HIGH = make_grid(6, 5, 1.0), make_grid(4, 3, 2.0, heights=[0.0, -1.0])
BELIEFS: dict[str, dict[str, Any]] = {
    **CONFIGS,
    "noise": {"length_scales": [1.5, 3.0], "noise_std": [0.2]},
    "parts": {**ONE, "kernel": ["se", "matern12"], "place_std": [0.0, 0.5]},
    "linear": {**ONE, "mean": "linear"},
    "everything": {},
    **{name: {**ONE, "drift": drift} for name, drift in DRIFTS.items()},
    "unknown": {"length_scales": [1.5, 3.0], "drift": {"kind": "injection", "doubling": 6.0}},
    "forgets": {**ONE, "drift": {"kind": "weights", "time_scale": 9.0, "forget_after": 3.0}},
}


def made(config: dict[str, Any], topology: Topology) -> Belief:
    drift = config.get("drift", {})
    if isinstance(drift, DriftConfig):
        kept = {k: v for k, v in vars(drift).items() if v is not None}
        config = {**config, "drift": kept}
    return belief_on(from_mapping(BeliefConfig, config), topology)


def told(belief: Belief, topology: Topology, seed: int) -> list[Any]:
    """Observe and amend readings over time; return results of the belief at some steps."""
    rng, found = np.random.default_rng([1, seed]), []
    field = 6.0 + np.sin(topology.points.sum(axis=1)) + 0.3 * rng.standard_normal(topology.n)
    last: dict[int, Any] = {}
    for step in range(45):
        place, t = int(rng.integers(topology.n)), 0.25 * step
        value = float(np.exp(field[place] / 3.0)) if seed % 3 == 2 else float(field[place])
        value = round(value + 0.2 * float(rng.standard_normal()), [12, 1, 12][seed % 3])
        variance = [None, None, 0.05, 0.4][step % 4 if seed % 2 else 0]
        off = (0.3, 0.1) if topology is HIGH else 0.3
        now = (value, variance, t, off if variance and step % 8 < 4 else None)
        if place in last and step % 3 == 0:
            belief.amend(place, last[place], *now[:2], seconds=t, off=now[3])
            last[place] = (*now[:2], last[place][2], now[3])
        else:
            expert = step % 11 == 10
            belief.observe(place, *now[:2], seconds=t, off=now[3], expert=expert)
            last[place] = now
        if step % 9 == 4:
            found += said(belief, topology)
        if step % 15 == 14:
            belief.advance(t + 1.0)
            found.append(belief.adapt() != "")
    belief.advance(20.0)
    found += said(belief.copy(), topology)
    belief.advance(1e4)  # with drift, nearly all readings have lost their weight
    now = [belief.weights, *belief.predict(), [h.signal_std for h in belief.hyperparameters]]
    return [*found, now]


def said(belief: Belief, topology: Topology) -> list[Any]:
    """Return the results of all queries of a belief."""
    some = np.arange(0, topology.n, 4)
    seen = np.flatnonzero(belief.observed)
    weights = np.arange(topology.n) % 3 / topology.n
    promise, floor = belief.promise(weights), belief.floor(weights)
    near, left = belief.with_mean_within(100.0), belief.leave_one_out()
    joint, which = belief.joint(some), np.arange(0, len(belief.weights), 2)
    found = [
        [belief.weights, *belief.predict(), *belief.predict(some, noisy=True), belief.settled],
        [belief.log_evidence, belief.information, belief.noise_variance, seen],
        [joint.mean, joint.covariance, belief.cross(some[:2]), belief.scale_factors(5)],
        [belief.between(some, some[1:], which), belief.marginals_under(some, which)],
        [belief.averages(seen), belief.average_noise(seen), belief.varies_by(1, 0.2, 0.1)],
        [promise, floor, near.predict(some), belief.mixture(some).quantiles(np.array([0.1, 0.8]))],
        [h.signal_std for h in belief.hyperparameters],
        [assurance(belief, topology.weights, error, of) for error in (0.4, 0.9) for of in OF],
        [met(Aim(2.0), belief, topology, [0, 1]) != "", not_seen(belief, topology, [2, 7])],
    ]
    forecast = AimForecast(Aim(0.8), belief, weights, which, belief.weights[which])
    shares = np.linspace(0.1, 1.0, len(which))
    found.append([forecast.assurance(shares), forecast.met(0.1 * shares), forecast.total])
    if left is not None:
        found.append([left.places, left.mean, left.variance, left.weights, left.explained])
    return found


@for_each("name", BELIEFS)
def test_beliefs(name: str) -> None:
    found = []
    for seed, topology in enumerate((FLAT, HIGH, FLAT)):
        found += told(made(BELIEFS[name], topology), topology, seed)
    check_recorded(RECORD, name, found)


def test_collapsed() -> None:
    found: list[Any] = []
    for seed in range(4):
        rng = np.random.default_rng([2, seed])
        readings, held = CollapsedReadings(4), []
        for step in range(40):
            variance = [None, 0.3, 0.05][int(rng.integers(3))] if seed else None
            off = [None, 0.5, (0.4, 0.2)][int(rng.integers(3))] if seed > 1 else None
            one = (int(rng.integers(4)), float(rng.uniform(1.0, 4.0)), variance, off)
            readings.add(*one)
            held.append(one)
            if step % 5 == 4:
                readings.remove(*held.pop(int(rng.integers(len(held)))))
        readings.grow(6)
        merged = readings.merged(np.array([1, 0, 2, 3]), np.array([0, 1, 3]))
        for one in (readings, merged, readings.through(LOG), readings.through(Log(0.5))):
            places = np.flatnonzero(one.count)
            noise, unit = np.array([0.2, 0.7]), np.array([0.5, 2.0])
            steep = rng.uniform(0.0, 0.4, (2, 2, len(places)))
            sides = (None, StayUncertainty(steep, noisy=False), StayUncertainty(steep, noisy=True))
            for given, beside in product((None, unit), sides):
                found.append(one.collapse(places, noise, given, beside))
            found.append([one.count, one.averages(places), one.scatter(), one.has_stays])
        for one in held:
            readings.remove(*one)
        found.append([readings.count, readings._plain, readings._known[:3], readings.has_stays])
    check_recorded(RECORD, "collapsed", found)


def test_ageing() -> None:
    """Compare just before and just after the ages at which readings stop counting."""
    found: list[Any] = []
    for config in DRIFTS.values():
        ageing = Ageing(config, 0.5)
        end = ageing.constant
        ages = np.array([0.0, 0.5, 1.0, 1.5, 3.0, 4.5, end, math.nextafter(end, 0.0), 1.001 * end])
        ages = np.append(ages, [12.0 * end, 13.0 * end, 1e9 * end, 1e300])
        for now in (7.0, 14.0, 30.5):
            times = now - ages
            found.append([ageing.used(times, now, first) for first in (0.0, 6.0, now, now + 1.0)])
        found.append([ageing.shares(ages), ageing.added(ages), ageing.slot, ageing.lasting])
        found.append(ageing.most_slots)
    check_recorded(RECORD, "ageing", found)


def test_prior() -> None:
    found: list[Any] = []
    rest, quadratic = np.array([1.0, -2.0]), np.array([3.0, 1e-30])
    for readings, known in product((0.5, 1.0, 2.0, 3.0, 3.5, 4.0, 9.0), (0, 1, 2)):
        found.append(integrate_scale(rest, quadratic, readings, known, 0.7))
    for freedom, squares in product((0.5, 1.0, 3.0, 40.0), (0.0, 0.2, 90.0)):
        found.append(noise_estimate(np.array([0.1, 4.0]), np.array([1.0, 0.3]), freedom, squares))
    belief = made({**ONE, "kernel": ["se", "matern12"]}, FLAT)
    rng = np.random.default_rng(3)
    for count, q in product((4, 5, 6, 7, 30), (0, 1, 3)):
        places = rng.permutation(30)[:count]
        basis = np.column_stack([np.ones(30), FLAT.positions])[:, :q]
        found.append(unit_scale(belief.covariance, basis, places, rng.normal(2.0, 1.0, count)))
        found.append(unit_scale(belief.covariance, basis, places, np.full(count, 2.0)))
    one = HyperParameters((1.0,), 2.0, 0.3, "se", 0.4, 0.5, math.sqrt(2.0) * 2.0)
    found.append(
        [one.nugget, one.variance, belief.covariance.only([0, 3]).between(places[:3], places)]
    )
    values = np.array([-1.0, 0.0, 0.5, 3.0, 700.0])
    for transform in (IDENTITY, LOG, Log(1.5)):
        with np.errstate(over="ignore"):
            found.append([transform.seen(values), transform.seen_variance(values, 0.3)])
            found.append([transform.inverse(values), transform.steepness(values)])
            found.append(transform.moments(values, np.array([0.1, 2.0, 49.0, 51.0, 0.5])))
        for value in (-1.5, 0.0, 2.0):
            try:
                found.append(transform.forward(value, 0.3))
            except ReadingError as error:
                found.append(error.reason)
    assert isinstance(belief.covariance.parts[0], FeatureCovariance)  # type: ignore[attr-defined]
    check_recorded(RECORD, "prior", found)
