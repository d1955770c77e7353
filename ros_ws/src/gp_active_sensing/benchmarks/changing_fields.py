"""Searches for the highest place of fields that change: worlds, one mission, what is fitted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.experts import ModelExpert
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bandits.information_gain import largest_gain
from gp_active_sensing.planning.bandits.nonstationary import query_number
from gp_active_sensing.planning.base import drift_of
from gp_active_sensing.topology.generated import FreeTopology
from gp_active_sensing.types import FloatArray, IntArray, Reading

DELTA = 0.05
_RANK = 1e-10
"""Eigenvalues below this share of the largest are left out of a basis."""


@dataclass(frozen=True)
class World:
    """A field at steps 0 … T, of which 0 is before the first reading.

    Args:
        name: of the world.
        points: (n, p) where its places are.
        field: (T + 1, n) noise-free values.
        noise_std: of a reading, and of the expert's answers.
        fit_steps: steps whose fields the hyper-parameters are fitted to.
        samples: places of each that are used.
        prior: what the policies are told instead of what is fitted.
    """

    name: str
    points: FloatArray
    field: FloatArray
    noise_std: float
    fit_steps: IntArray
    samples: int
    prior: BeliefConfig | None = None

    @property
    def steps(self) -> int:
        return len(self.field) - 1

    @property
    def best(self) -> FloatArray:
        """(T + 1,) largest value at each step."""
        return np.asarray(self.field.max(axis=1))

    @cached_property
    def topology(self) -> FreeTopology:
        names = [str(i) for i in range(len(self.points))]
        flat = np.column_stack([self.points, np.zeros(len(self.points))])[:, :2]
        columns = [f"x{i}" for i in range(self.points.shape[1])]
        return FreeTopology(
            self.name, "map", names, flat, features=self.points, feature_names=columns
        )

    @cached_property
    def belief(self) -> BeliefConfig:
        """Squared exponential, zero mean about a constant: of maximum likelihood."""
        if self.prior is not None:
            return self.prior
        ell, signal, mean = fit(self)
        return BeliefConfig(
            length_scales=(ell,),
            signal_std=(signal,),
            noise_std=(self.noise_std,),
            mean_value=mean,
            mean_std=0.0,
        )

    @cached_property
    def epsilon(self) -> float:
        """Share of the variance that is new after a step, of maximum likelihood."""
        return fit_epsilon(self)

    @cached_property
    def gain(self) -> float:
        """γ_T of all readings, an upper bound [nat]."""
        return float(largest_gain(belief_on(self.belief, self.topology), self.steps))

    @cached_property
    def basis(self) -> FloatArray:
        """(n, r) H with ``H Hᵀ`` the prior covariance, of as few columns as it takes."""
        everywhere = np.arange(len(self.points))
        K = belief_on(self.belief, self.topology).covariance.between(everywhere, everywhere)[0]
        values, vectors = np.linalg.eigh(K)
        used = values > _RANK * values[-1]
        return np.asarray(vectors[:, used] * np.sqrt(values[used]))

    @cached_property
    def variation(self) -> float:
        """A lower bound on B_T: ``Σ_t sup |f_{t+1} - f_t| / σ_s``, which no RKHS norm is below."""
        jumps = np.abs(np.diff(self.field[1:], axis=0)).max(axis=1)
        return float(jumps.sum() / self.belief.parts()[0][0])

    @cached_property
    def norm(self) -> float:
        """Norm of what a GP makes of a reading everywhere: largest of the fitted steps."""
        prior = belief_on(self.belief, self.topology)
        some = np.linspace(0, prior.n - 1, min(prior.n, 401)).astype(np.int64)
        K = prior.covariance.between(some, some)[0]
        regular = np.linalg.inv(K + self.noise_std**2 * np.eye(len(some)))
        values = self.field[self.fit_steps][:, some] - self.belief.mean_value
        weights = values @ regular
        return float(np.sqrt(np.einsum("ti,ij,tj->t", weights, K, weights).max()))


def synthetic(
    places: int = 401, steps: int = 500, *, speed: float = 0.1, prior: BeliefConfig | None = None
) -> World:
    """``exp(-0.05 (x - 5 sin 0.1 t)²) + 0.5 cos 0.2 x + 1.5`` on [-50, 50], σ² = 0.01.

    Args:
        places: evenly spaced.
        steps: T.
        speed: of the peak's phase [rad a step]; 0.1 in the paper.
        prior: what the policies are told instead of what is fitted.
    """
    x = np.linspace(-50.0, 50.0, places)
    t = np.arange(steps + 1.0)[:, None]
    field = np.exp(-0.05 * (x - 5.0 * np.sin(speed * t)) ** 2) + 0.5 * np.cos(0.2 * x) + 1.5
    fitted = np.random.default_rng([2025, 0]).choice(steps, 20, replace=False) + 1
    return World("synthetic", x[:, None], field, 0.1, np.sort(fitted), 40, prior)


def sea(path: Path) -> World:
    """Monthly anomalies of the Pacific's surface temperature; places in degrees, land left out."""
    with np.load(path) as data:
        sst, lon, lat = data["sst"].astype(float), data["lon"], data["lat"]
    wet = np.isfinite(sst).all(axis=0)
    rows, columns = np.nonzero(wet)
    field = sst[:, rows, columns]
    points = np.column_stack([lon[columns], lat[rows]])
    return World("sea", points, np.vstack([field[:1], field]), 0.1, np.arange(1, 25), 80)


def stations(whole: World, count: int = 28) -> World:
    """Return a world at so many of its places, each as far as can be from those before it."""
    places = np.sort(far_apart(whole.points, count))
    points, field = whole.points[places], whole.field[:, places]
    return World(f"{whole.name}_{count}", points, field, whole.noise_std, whole.fit_steps, count)


def far_apart(points: FloatArray, count: int) -> IntArray:
    """Return so many places, the first one and then each as far as can be from those before it."""
    chosen = [0]
    apart = np.linalg.norm(points - points[0], axis=1)
    while len(chosen) < count:
        chosen.append(int(apart.argmax()))
        apart = np.minimum(apart, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return np.array(chosen)


def fit(world: World) -> tuple[tuple[float, ...], float, float]:
    """Return length-scales, signal_std and mean of maximum likelihood; steps are independent."""
    rng = np.random.default_rng([2025, 1])
    blocks: list[tuple[FloatArray, FloatArray]] = []
    for step in world.fit_steps.tolist():
        places = rng.choice(len(world.points), world.samples, replace=False)
        noise = world.noise_std * rng.standard_normal(world.samples)
        blocks.append((world.points[places], world.field[step, places] + noise))
    p = world.points.shape[1]

    def loss(theta: FloatArray) -> float:
        scales, signal = np.exp(theta[:p]), math.exp(theta[p])
        total = 0.0
        for x, y in blocks:
            apart = ((x[:, None] - x) / scales) ** 2
            K = signal**2 * np.exp(-0.5 * apart.sum(axis=2)) + world.noise_std**2 * np.eye(len(y))
            C = np.linalg.cholesky(K)
            a = np.linalg.solve(C, y - theta[p + 1])
            total += 0.5 * float(a @ a) + float(np.log(np.diag(C)).sum())
        return total

    values = np.concatenate([y for _, y in blocks])
    start = np.append(np.log(0.05 * np.ptp(world.points, axis=0)), [math.log(values.std())])
    options = {"xatol": 1e-3, "fatol": 1e-3, "maxiter": 2000, "maxfev": 2000}
    found = minimize(loss, np.append(start, values.mean()), method="Nelder-Mead", options=options).x
    three = [float(f"{v:.3g}") for v in (*np.exp(found[: p + 1]), found[p + 1])]
    return tuple(three[:p]), three[p], three[p + 1]


def fit_epsilon(world: World) -> float:
    """Return the ε of maximum likelihood, of values of places and steps at random."""
    rng = np.random.default_rng([2025, 2])
    count = 600
    place = rng.integers(len(world.points), size=count)
    step = rng.integers(1, world.steps + 1, size=count)
    y = world.field[step, place] + world.noise_std * rng.standard_normal(count)
    prior = belief_on(world.belief, world.topology)
    K = prior.covariance.between(place, place)[0]
    apart = np.abs(step[:, None] - step)

    def loss(epsilon: float) -> float:
        whole = K * (1.0 - epsilon) ** (0.5 * apart) + world.noise_std**2 * np.eye(count)
        C = np.linalg.cholesky(whole)
        a = np.linalg.solve(C, y - world.belief.mean_value)
        return 0.5 * float(a @ a) + float(np.log(np.diag(C)).sum())

    grid = np.geomspace(1e-4, 0.5, 38)
    return float(f"{grid[np.argmin([loss(e) for e in grid])]:.2g}")


@dataclass(frozen=True)
class Played:
    """A mission: regret and place of steps 1 … T, and how many fresh values it was given."""

    regret: FloatArray
    asked: int
    places: IntArray

    @property
    def average(self) -> FloatArray:
        """(T,) ``R_t / t``."""
        return np.asarray(np.cumsum(self.regret) / np.arange(1, len(self.regret) + 1))


def as_many_as_sparq(world: World, belief: Belief, step: int, rng: np.random.Generator) -> IntArray:
    """Return as many visited places as SparQ-GP-UCB would ask about, at random."""
    visited = np.flatnonzero(belief.visited)
    number = min(query_number(step, 6.0, world.points.shape[1]), visited.size)
    return np.asarray(rng.choice(visited, number, replace=False))


def play(
    world: World,
    policy: dict[str, object],
    seed: int,
    *,
    extra: bool = False,
    start: int | None = None,
) -> Played:
    """Read, ask an expert, choose, a step each; first place and noise are those of the seed.

    The reading at step t is of ``f_t``, so are the expert's values, and the choice they lead to is
    judged by ``f_{t+1}``.

    Args:
        world: with the field.
        policy: its name and parameters.
        seed: of the first place, the noise, and all draws.
        extra: give it fresh values where `as_many_as_sparq` says, not where it asks for them.
        start: first place; None = that of the seed.
    """
    chosen = build_policy(policy)
    belief = belief_on(world.belief, world.topology, drift_of(chosen))
    loop = SensingLoop(world.topology, belief, chosen, seed=seed)
    expert = ModelExpert(
        lambda places, seconds: world.field[round(seconds), places],
        belief.n,
        noise_std=world.noise_std,
        seed=seed,
    )
    at = int(np.random.default_rng([seed, 0]).integers(belief.n)) if start is None else start
    noise = world.noise_std * np.random.default_rng([seed, 1]).standard_normal(world.steps + 1)
    drawn = np.random.default_rng([seed, 2])
    regret = np.zeros(world.steps)
    went = np.zeros(world.steps, dtype=np.int64)
    asked = 0
    for step in range(1, world.steps + 1):
        went[step - 1] = at
        now_ns = step * 10**9
        regret[step - 1] = world.best[step] - world.field[step, at]
        loop.tell([Reading(now_ns, at, float(world.field[step, at] + noise[step]))])
        if extra:
            places = tuple(as_many_as_sparq(world, loop.belief, step, drawn).tolist())
        else:
            places = loop.queries()
        if places:
            expert.ask(places, float(step))
            loop.inform(expert.answers(float(step)))
            asked += len(places)
        goal = loop.ask(at, now_ns=now_ns).waypoint
        assert goal is not None  # there is no budget
        at = goal
    return Played(regret, asked, went)


def play_random(world: World, seed: int) -> Played:
    """Go anywhere."""
    rng = np.random.default_rng([seed, 3])
    at = rng.integers(len(world.points), size=world.steps)
    return _judged(world, at, 0)


def play_highest(world: World, seed: int, *, spread: bool) -> Played:
    """Go where the highest of as many fresh values as SparQ-GP-UCB may ask for was: no belief.

    Args:
        world: with the field.
        seed: of the first place, the noise and the draws, those of `play`.
        spread: ask at places far apart, always the same ones; otherwise anywhere at random.
    """
    n, rng = len(world.points), np.random.default_rng([seed, 4])
    numbers = [
        min(query_number(step, 6.0, world.points.shape[1]), n) for step in range(1, world.steps)
    ]
    order = far_apart(world.points, max(numbers))
    at = [int(np.random.default_rng([seed, 0]).integers(n))]
    for step, number in enumerate(numbers, start=1):
        places = order[:number] if spread else rng.choice(n, number, replace=False)
        values = world.field[step, places] + world.noise_std * rng.standard_normal(number)
        at.append(int(places[values.argmax()]) if number else at[-1])
    return _judged(world, np.array(at), sum(numbers))


def stay(world: World) -> Played:
    """Stay at the place that is best of all to stay at, found afterwards."""
    place = int(world.field[1:].mean(axis=0).argmax())
    return _judged(world, np.full(world.steps, place), 0)


def one_behind(world: World) -> Played:
    """Go to where the field was highest the step before, which takes knowing all of it."""
    return _judged(world, world.field[:-1].argmax(axis=1), 0)


def _judged(world: World, at: IntArray, asked: int) -> Played:
    regret = world.best[1:] - world.field[np.arange(1, world.steps + 1), at]
    return Played(regret, asked, np.asarray(at))
