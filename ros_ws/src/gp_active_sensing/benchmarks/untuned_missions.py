"""Missions of a probe nobody has tuned, each scored with every map made of the same readings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from point_estimates import maximum_likelihood
from scipy.special import ndtri

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.records.metrics import nlpd, rmspe
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.generated import make_grid
from gp_active_sensing.types import Budget, PlanLimit, Reading

SIDE, SIGNAL, NOISE, KEY = 20, 1.0, 0.1, 41
BUDGETS = (20, 30)
EXPANSIONS = 100
POLICIES = {
    "bal N'=2": {"name": "bal", "horizon": 2},
    "bal N'=3": {"name": "bal", "horizon": 3},
    "bal N'=5": {"name": "bal", "horizon": 5},
    "ie": {"name": "ie"},
    "max_entropy": {"name": "max_entropy"},
    "random": {"name": "random"},
}
LEVELS = (0.5, 0.9, 0.95)
TRUE = ("true, mean 0", "true, mean unknown")
MAPS = ("belief", "arg-max", "likelihood", *TRUE)


class Score(NamedTuple):
    """How good a map is on the places without a reading."""

    rmse: float
    nlpd: float
    covered: tuple[float, ...]


@dataclass(frozen=True)
class Mission:
    """One mission on one field, after one budget; seconds: median and largest a decision."""

    ell: float
    field: int
    moves: str
    policy: str
    readings: int
    deviation: float
    seconds: tuple[float, float]
    scores: dict[str, Score]
    fitted: float
    """Length-scale of the maximum-likelihood fit [m]."""


@lru_cache(maxsize=2)
def grid(moves: str) -> Topology:
    return make_grid(SIDE, SIDE, 1.0, neighbours=8, moves=moves, origin=(0.5, 0.5))


@lru_cache(maxsize=8)
def root_of_covariance(ell: float) -> np.ndarray:
    at = grid("free").positions
    square = ((at[:, None] - at) ** 2).sum(axis=-1)
    return np.linalg.cholesky(np.exp(-0.5 * square / ell**2) + 1e-8 * np.eye(len(at)))


def draw(ell: float, number: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The noise-free field, the noise of a reading of each place, and where the probe stands."""
    rng = np.random.default_rng([KEY, round(10 * ell), number])
    truth = SIGNAL * root_of_covariance(ell) @ rng.standard_normal(SIDE**2)
    return truth, NOISE * rng.standard_normal(SIDE**2), int(rng.integers(SIDE**2))


def missions(
    ell: float,
    number: int,
    names: Iterable[str],
    moves: str,
    config: BeliefConfig = BeliefConfig(),  # noqa: B008 - frozen
) -> list[Mission]:
    """Run policies on one field; score each after every budget."""
    truth, noise, start = draw(ell, number)
    topology, out = grid(moves), []
    for name in names:
        loop = SensingLoop(
            topology,
            build_belief(config, topology.features, topology.feature_names),
            build_policy(POLICIES[name]),
            budget=Budget(readings=max(BUDGETS)),
            seed=number,
            limit=PlanLimit(expansions=EXPANSIONS),
        )
        at, told, seconds = start, [], []
        for stage in range(max(BUDGETS)):
            plan = loop.ask(at)
            if plan.waypoint is None:
                raise RuntimeError(plan.reason)
            at = plan.waypoint
            seconds.append(plan.seconds)
            told.append((at, float(truth[at] + noise[at])))
            loop.tell([Reading(stage, *told[-1])])
            if stage + 1 in BUDGETS:
                scores, fitted = score(loop.belief, told, truth, ell)
                spent = (float(np.median(seconds)), max(seconds))
                where = (ell, number, moves, name, stage + 1)
                out.append(Mission(*where, float(truth.std()), spent, scores, fitted))
    return out


def score(
    belief: Belief, told: Sequence[tuple[int, float]], truth: np.ndarray, ell: float
) -> tuple[dict[str, Score], float]:
    """Score every map made of the same readings; also the length-scale of maximum likelihood."""
    topology = grid("free")
    maps = {"belief": belief.predict()}
    mean, variance = belief.marginals()
    likely = int(belief.weights.argmax())
    maps["arg-max"] = (mean[likely], variance[likely])
    places, values = np.array([p for p, _ in told]), np.array([z for _, z in told])
    fit = maximum_likelihood(topology.positions[places], values, topology.positions)
    maps["likelihood"] = (fit.mean, fit.variance)
    for name, mean_std in (("true, mean 0", 0.0), ("true, mean unknown", None)):
        known = BeliefConfig((ell,), signal_std=(SIGNAL,), noise_std=(NOISE,), mean_std=mean_std)
        informed = build_belief(known, topology.features)
        for place, value in told:
            informed.observe(place, value)
        maps[name] = informed.predict()
    seen = belief.observed
    return {name: measure(*found, truth, seen) for name, found in maps.items()}, fit.length_scale


def measure(mean: np.ndarray, variance: np.ndarray, truth: np.ndarray, seen: np.ndarray) -> Score:
    error = np.abs(mean - truth)[~seen]
    spread = np.sqrt(np.maximum(variance[~seen], 1e-300))
    covered = tuple(float(np.mean(error <= ndtri(0.5 + 0.5 * p) * spread)) for p in LEVELS)
    return Score(rmspe(mean, truth, seen) or 0.0, nlpd(mean, variance, truth, seen) or 0.0, covered)
