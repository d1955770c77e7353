"""Predict fields from readings, and score the predictions at places without a reading."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

import belief_hindsight
import numpy as np
from belief_data import Field, data_sets, rng_of
from belief_scores import Mixture, Score, constant, score

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Budget, PlanLimit, Reading

CONSTANT, SCIKIT, HINDSIGHT = "constant", "scikit-learn", "hindsight"
SPARE = 20
"""Smallest number of places at which predictions are scored. These places have no reading."""
SITES = ("places", "random", "bal")
"""Selections of places for readings: random places, or the route of a policy."""
BAL = {"name": "bal", "horizon": 2}
EXPANSIONS = 10
"""Number of expansions for a decision of the policy `bal`."""
RESTARTS = 20
"""Largest number of routes that are joined for one trial."""


@dataclass(frozen=True)
class Readings:
    """Readings at distinct places, in the order in which they were taken."""

    places: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Trial:
    """Score of a predictor after k readings of field `number` in the data set `name`.

    `seconds` is the time since the first reading [s].
    """

    name: str
    site: str
    number: int
    k: int
    predictor: str
    score: Score
    seconds: float


def trials(
    name: str,
    numbers: Sequence[int],
    counts: Sequence[int],
    configs: Mapping[str, BeliefConfig],
    site: str = SITES[0],
) -> list[Trial]:
    """Return trials of all predictors on the same readings of some fields of a data set."""
    found = []
    for number in numbers:
        field = data_sets()[name].field(number)
        fitting = [k for k in counts if k + SPARE <= len(field.known)]
        if not fitting:
            continue
        readings = taken(name, field, number, fitting[-1], site)
        fitting = [k for k in fitting if k <= len(readings.places)]
        predictors: dict[str, Callable[[Field, Readings, Sequence[int]], Says]] = {
            key: believing(config) for key, config in configs.items()
        }
        predictors |= {CONSTANT: flat, HINDSIGHT: in_hindsight}
        if has_scikit_learn():
            predictors[SCIKIT] = scikit_learn
        for key, predictor in predictors.items():
            for k, (prediction, seconds) in predictor(field, readings, fitting).items():
                truth = field.values[left_of(field, readings, k)]
                result = score(prediction, truth)
                found.append(Trial(name, site, number, k, key, result, seconds))
    return found


Says = dict[int, tuple[Mixture, float]]
"""Predictions, each with the time since the first reading [s], by number of readings."""


def left_of(field: Field, readings: Readings, k: int) -> np.ndarray:
    """Return the places with a known value that have none of the first k readings."""
    return np.setdiff1d(field.known, readings.places[:k])


# -- readings ----------------------------------------------------------------------------------


def taken(name: str, field: Field, number: int, count: int, site: str) -> Readings:
    """Return up to `count` noisy readings at distinct places."""
    rng = rng_of(name, number)
    noisy = field.values + field.noise * rng.standard_normal(field.topology.n)
    known = field.known
    if site == SITES[0]:
        places = rng.permutation(known)[:count]
    else:
        starts = rng.permutation(known)[:RESTARTS]
        route = wander if site == "random" else plan
        places = route(field, noisy, starts, count, rng_of(name, number, 1))
    return Readings(places, noisy[places])


def wander(
    field: Field, noisy: np.ndarray, starts: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return up to `count` places of a random walk.

    If a walk cannot continue, another walk begins at the next place in `starts`.
    """
    del noisy
    topology, found = field.topology, []
    visited = np.zeros(topology.n, dtype=bool)
    value = np.isfinite(field.values)
    for start in starts.tolist():
        at, options = start, np.array([start])
        while len(found) < count and options.size:
            at = int(rng.choice(options))
            if value[at] and not visited[at]:
                found.append(at)
            visited[at] = True
            options = topology.candidates(at, visited)
    return np.array(found, dtype=int)


def plan(
    field: Field, noisy: np.ndarray, starts: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return up to `count` places that the policy `bal` chooses with the default belief."""
    topology = field.topology
    loop = SensingLoop(
        topology,
        prior(BeliefConfig(), topology).copy(),
        build_policy(BAL),
        budget=Budget(readings=count),
        seed=int(rng.integers(2**31)),
        limit=PlanLimit(expansions=EXPANSIONS),
    )
    loop.set_aside.update(np.flatnonzero(~np.isfinite(field.values)).tolist())
    found: list[int] = []
    for start in starts.tolist():
        at = start
        while len(found) < count:
            place = loop.ask(at).waypoint if found else at
            if place is None:
                break
            at = place
            loop.tell([Reading(len(found), at, float(noisy[at]))])
            found.append(at)
    return np.array(found, dtype=int)


# -- predictors --------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def prior(config: BeliefConfig, topology: Topology) -> Belief:
    """Return a belief without readings. Copy it before use."""
    return belief_on(config, topology, quiet=True)


def believing(config: BeliefConfig) -> Callable[[Field, Readings, Sequence[int]], Says]:
    """Return a predictor that uses a belief and adapts it after each reading."""

    def says(field: Field, readings: Readings, counts: Sequence[int]) -> Says:
        belief, found = prior(config, field.topology).copy(), {}
        started = time.perf_counter()
        for k, (place, value) in enumerate(zip(readings.places, readings.values, strict=True), 1):
            belief.observe(int(place), float(value))
            belief.adapt()
            if k in counts:
                prediction = Mixture.of(belief, left_of(field, readings, k))
                found[k] = (prediction, time.perf_counter() - started)
        return found

    return says


def _each(
    predict: Callable[[Field, np.ndarray, np.ndarray, np.ndarray], Mixture],
    field: Field,
    readings: Readings,
    counts: Sequence[int],
) -> Says:
    found: Says = {}
    for k in counts:
        started = time.perf_counter()
        left = left_of(field, readings, k)
        prediction = predict(field, readings.places[:k], readings.values[:k], left)
        found[k] = (prediction, time.perf_counter() - started)
    return found


def flat(field: Field, readings: Readings, counts: Sequence[int]) -> Says:
    """Predict with mean and variance of the readings."""
    return _each(lambda _, __, z, left: constant(z, len(left)), field, readings, counts)


def in_hindsight(field: Field, readings: Readings, counts: Sequence[int]) -> Says:
    """Predict with a Gaussian process that is fitted to all true values of the field."""
    fitted = belief_hindsight.fit(field)

    def says(field: Field, places: np.ndarray, z: np.ndarray, left: np.ndarray) -> Mixture:
        return belief_hindsight.predict(fitted, field.topology, places, z, left)

    return _each(says, field, readings, counts)


def has_scikit_learn() -> bool:
    return find_spec("sklearn") is not None


def scikit_learn(field: Field, readings: Readings, counts: Sequence[int]) -> Says:
    """Predict with scikit-learn's Gaussian process, which learns the noise by a white kernel."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    at = field.topology.positions
    # The default bounds of its length-scales suit inputs of order one.
    at = (at - at.min(axis=0)) / np.ptp(at, axis=0).max()
    columns = np.flatnonzero(np.ptp(at, axis=0) > 0.0)

    def says(field: Field, places: np.ndarray, z: np.ndarray, left: np.ndarray) -> Mixture:
        del field
        matern = Matern(np.full(len(columns), 0.3), nu=1.5)
        regressor = GaussianProcessRegressor(
            ConstantKernel() * matern + WhiteKernel(),
            normalize_y=True,
            n_restarts_optimizer=4,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            regressor.fit(at[places][:, columns], z)
            mean, deviation = regressor.predict(at[left][:, columns], return_std=True)
        white = float(regressor.kernel_.k2.noise_level) * float(z.var())
        return Mixture.normal(mean, np.maximum(deviation**2 - white, 0.0))

    return _each(says, field, readings, counts)
