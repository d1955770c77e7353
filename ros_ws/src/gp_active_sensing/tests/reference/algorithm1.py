"""Plain implementation of Algorithm 1 for ⟨α,ε⟩-BAL, at its published cost.

States share no computation. The posterior of every state is computed from all readings, with a new
Cholesky factor of their Gram matrix for every λ. A state costs O(L (N³ + |X| N²)), and an
exploration has S|X| next states. The paper's initial bounds are in an appendix that is not
available; chain-rule bounds on greedy walks replace them (docs/theory.md).

The definition of the random draws is that of the planner: the generator of each state, and the
order in which its numbers are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import xlogy

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(eq=False)
class State:
    """State (n, z_D): a stage, and the readings since the root."""

    n: int
    places: tuple[int, ...]
    values: tuple[float, ...]
    path: tuple[int, ...]
    belief: np.ndarray
    parent: State | None = None
    lower: float = -np.inf
    upper: float = np.inf
    candidates: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))
    reward: np.ndarray = field(default_factory=lambda: np.empty(0))
    next: list[list[State]] = field(default_factory=list)
    """Next states by candidate a and truncated observation i; empty at stage N."""

    def q(self) -> tuple[np.ndarray, np.ndarray]:
        """Return Q̲_n and Q̄_n of every candidate. [Hoang2014, Eq. 14]."""
        if not self.next:
            return self.reward, self.reward
        lower = [np.mean([s.lower for s in row]) for row in self.next]
        upper = [np.mean([s.upper for s in row]) for row in self.next]
        return self.reward + lower, self.reward + upper

    def update(self) -> None:
        lower, upper = self.q()
        self.lower, self.upper = float(lower.max()), float(upper.max())


@dataclass
class Algorithm1:
    """The algorithm and its problem: a free choice of places, and candidates Λ with weights.

    Args:
        features: (|X|, p) features of the places.
        length_scales, signal_stds, noise_stds: (L,) candidates Λ.
        prior: (L,) belief before any reading.
        readings: (place, value) of each reading before the root.
        horizon: number N of stages.
        samples: number S of samples.
        alpha: α.
        tau: τ.
        key: key of the random draws.
        centre: centre of τ̂; zero as published.
        reference: (L,) subtracted from every entropy; zeros as published. With equal noises in Λ it
            shifts values by a constant per future reading, which may change the order of states.
        limit: largest number of explorations.
        loosening: c; the initial bounds are widened by c H(b) on each side.
        most: upper bound of the value of each reading [nat]; None = chain-rule bounds.
    """

    features: np.ndarray
    length_scales: Sequence[float]
    signal_stds: Sequence[float]
    noise_stds: Sequence[float]
    prior: np.ndarray
    readings: list[tuple[int, float]]
    horizon: int
    samples: int
    alpha: float
    tau: float
    key: int
    centre: float = 0.0
    reference: np.ndarray | float = 0.0
    limit: float = np.inf
    loosening: float = 0.0
    most: float | None = None
    after_path: Callable[[], bool] = lambda: True
    """Function that is called after every path; False ends the search."""

    def __post_init__(self) -> None:
        apart = self.features[:, None, :] - self.features[None, :, :]
        squared = (apart**2).sum(axis=2)
        self.prior_covariance = [
            s**2 * np.exp(-0.5 * squared / ell**2)
            for ell, s in zip(self.length_scales, self.signal_stds, strict=True)
        ]
        self.noise = np.array(self.noise_stds) ** 2
        self.reference = np.zeros(len(self.noise)) + self.reference
        self.explored: list[tuple[int, ...]] = []
        self.paths = 0
        self.clipped = 0

    # -- Gaussian processes: Eqs. 1 to 4 -----------------------------------------------------------

    def posterior(
        self, places: Sequence[int], values: Sequence[float] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return means and latent variances (L, |X|) given readings at `places`."""
        where = list(places)
        mean, variance = np.zeros((2, len(self.noise), len(self.features)))
        for i, K in enumerate(self.prior_covariance):
            variance[i] = K.diagonal()
            if not where:
                continue
            gram = K[np.ix_(where, where)] + self.noise[i] * np.eye(len(where))
            factor = np.linalg.cholesky(gram)
            cross = solve_triangular(factor, K[where], lower=True, check_finite=False)
            variance[i] -= (cross**2).sum(axis=0)
            if values is not None:
                z = solve_triangular(factor, values, lower=True, check_finite=False)
                mean[i] = z @ cross
        return mean, np.maximum(variance, 0.0)

    def log_densities(self, z: float, mean: np.ndarray, latent: np.ndarray) -> np.ndarray:
        """Return (L,) ``log p(z_x | z_D, λ)`` for a place's means and latent variances."""
        variance = latent + self.noise
        return np.asarray(-0.5 * ((z - mean) ** 2 / variance + np.log(variance) + LOG_2PI))

    @staticmethod
    def bayes(belief: np.ndarray, log_densities: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the belief after a reading, and ``log p(z_x | z_D)``."""
        with np.errstate(divide="ignore"):
            logs = np.log(belief) + log_densities
        peak = logs.max()
        joint = np.exp(logs - peak)
        return joint / joint.sum(), float(peak + np.log(joint.sum()))

    def all_readings(self, state: State) -> tuple[list[int], list[float]]:
        places = [x for x, _ in self.readings] + list(state.places)
        values = [z for _, z in self.readings] + list(state.values)
        return places, values

    def root(self) -> State:
        belief = np.array(self.prior, dtype=float) / np.sum(self.prior)
        for count, (x, z) in enumerate(self.readings):
            earlier = self.readings[:count]
            mean, latent = self.posterior([p for p, _ in earlier], [v for _, v in earlier])
            belief, _ = self.bayes(belief, self.log_densities(z, mean[:, x], latent[:, x]))
        state = State(1, (), (), (), belief)
        self.bound(state)
        return state

    def unread(self, places: Sequence[int]) -> np.ndarray:
        return np.setdiff1d(np.arange(len(self.features)), places)

    # -- initial bounds: the chain rule ------------------------------------------------------------

    def bound(self, state: State) -> None:
        """Set the initial bounds of a state from greedy walks and submodularity."""
        k = self.horizon - state.n + 1
        if self.most is not None:
            state.lower, state.upper = 0.0, k * self.most
            return
        places, _ = self.all_readings(state)
        free = self.unread(places)
        L = len(self.noise)
        here = self.information(places)
        walks, best = np.zeros((L + 1, L)), np.full(L, np.inf)
        for w in range(L + 1):
            focus = np.eye(L)[w] if w < L else np.full(L, 1.0 / L)
            walk: list[int] = []
            for _ in range(k):
                told = self.information([*places, *walk]) if walk else here
                left = free[~np.isin(free, walk)]
                if w < L:
                    rest = np.sort(told[w, left])[-k:].sum()
                    best[w] = min(best[w], walks[w, w] + rest)
                pick = int(left[np.argmax(focus @ told[:, left])])
                walks[w] += told[:, pick]
                walk.append(pick)
        # Information is an entropy less that of the noise, which is added for k readings.
        noise = k * (0.5 * np.log(2.0 * np.pi * np.e * self.noise) - self.reference)
        b = state.belief
        state.lower = float(((walks + noise) @ b).max())
        state.upper = float(b @ (best + noise) - xlogy(b, b).sum())
        state.upper = max(state.lower, state.upper)
        slack = -self.loosening * float(xlogy(b, b).sum())
        state.lower, state.upper = state.lower - slack, state.upper + slack

    def information(self, places: Sequence[int]) -> np.ndarray:
        """Return (L, |X|) ``H[Z_x | Z_places, λ]`` less the entropy of the noise."""
        _, latent = self.posterior(places)
        return np.asarray(0.5 * np.log1p(latent / self.noise[:, None]))

    # -- truncated observations: Definition 1 ------------------------------------------------------

    def draw(self, state: State, mean: np.ndarray, latent: np.ndarray) -> np.ndarray:
        """Return (A, S) truncated observations of places with means and variances (L, A)."""
        rng = np.random.default_rng([self.key, *state.path])
        A = mean.shape[1]
        uniform, normal = rng.random((A, self.samples)), rng.standard_normal((A, self.samples))
        low, high = mean.min() - self.centre, mean.max() - self.centre
        tau_hat = max(abs(low - self.tau), abs(high + self.tau))
        z = np.empty((A, self.samples))
        for a in range(A):
            for i in range(self.samples):
                below = np.cumsum(state.belief) <= uniform[a, i]
                component = min(int(below.sum()), len(below) - 1)
                std = np.sqrt(latent[component, a] + self.noise[component])
                z[a, i] = mean[component, a] + std * normal[a, i] - self.centre
        self.clipped += int((np.abs(z) > tau_hat).sum())
        return np.clip(z, -tau_hat, tau_hat) + self.centre

    # -- the search --------------------------------------------------------------------------------

    def search(self) -> State:
        """Run ⟨α,ε⟩-BAL(z_D0) and return the root; the decision is the arg-max of Q̲_1."""
        root = self.root()
        waiting = [root]  # U
        while root.upper - root.lower > self.alpha and waiting and self.more():
            state = max(waiting, key=_first)
            waiting.remove(state)
            self.explore(state, waiting)
            self.update(state)
            self.paths += 1
            if not self.after_path():
                break
        if not root.reward.size:  # closed before anything was explored: the candidates need values
            self.explore(root, waiting, deeper=False)
        return root

    def explore(self, state: State, waiting: list[State], *, deeper: bool = True) -> None:
        """Run EXPLORE(n, z_D, U)."""
        self.explored.append(state.path)
        places, values = self.all_readings(state)
        mean, latent = self.posterior(places, values)
        state.candidates = self.unread(places)
        mean, latent = mean[:, state.candidates], latent[:, state.candidates]
        observations = self.draw(state, mean, latent)
        state.reward = np.empty(len(state.candidates))
        found: list[State] = []  # T
        for a, x in enumerate(state.candidates.tolist()):
            following, surprise = [], []
            for i, z in enumerate(observations[a].tolist()):
                belief, log_density = self.bayes(
                    state.belief, self.log_densities(z, mean[:, a], latent[:, a])
                )
                surprise.append(-log_density)
                if state.n == self.horizon:
                    continue
                next_state = State(
                    state.n + 1,
                    (*state.places, x),
                    (*state.values, z),
                    (*state.path, a, i),
                    belief,
                    state,
                )
                self.bound(next_state)
                following.append(next_state)
                if next_state.upper - next_state.lower > self.alpha:
                    found.append(next_state)
            state.reward[a] = np.mean(surprise) - state.belief @ self.reference
            if following:
                state.next.append(following)
        if found and deeper and self.more():
            best = max(found, key=_first)
            found.remove(best)
            waiting.extend(found)
            self.explore(best, waiting)
        state.update()

    def update(self, state: State | None) -> None:
        """Run UPDATE(n, z_D)."""
        while state is not None:
            state.update()
            state = state.parent

    def more(self) -> bool:
        return len(self.explored) < self.limit


def _first(state: State) -> tuple[float, float]:
    """Return the sorting key: largest lower bound first, then largest upper bound."""
    return state.lower, state.upper
