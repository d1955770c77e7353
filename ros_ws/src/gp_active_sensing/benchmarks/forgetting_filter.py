"""TV-GP-UCB by a Kalman filter: exact for any number of readings, at a constant cost a step.

Under the kernel ``k(x, x') (1 - ε)^(|t - t'| / 2)`` the field of all places is a Markov process,
``f_{t+1} = √(1-ε) f_t + √ε g``, so a filter has the posterior of every reading ever taken. The
package's belief keeps the newest 1024 of them; with 32 fresh values a step that is 30 steps, and a
mission takes thirty times as long. `sparq_why.py filter` compares the two.
"""

from __future__ import annotations

import math

import numpy as np
from changing_fields import DELTA, Played, World

from gp_active_sensing.belief import belief_on
from gp_active_sensing.planning.bandits.base import best_score
from gp_active_sensing.planning.bandits.gp_ucb import finite_beta
from gp_active_sensing.planning.bandits.nonstationary import query_number, spread_places
from gp_active_sensing.types import FloatArray, IntArray


class ForgettingFilter:
    """Belief over a field that forgets itself: ``f = mean + H z``, with z a few numbers.

    Args:
        basis: (n, r) H, with ``H Hᵀ`` the covariance of the field at one step.
        mean: of the field.
        epsilon: ε, share of the variance that is new after a step.
    """

    def __init__(self, basis: FloatArray, mean: float, epsilon: float) -> None:
        self._H, self._mean, self._kept = basis, mean, 1.0 - epsilon
        rank = basis.shape[1]
        self._m, self._P = np.zeros(rank), np.eye(rank)

    def forget(self) -> None:
        """Let one step go by."""
        self._m = math.sqrt(self._kept) * self._m
        self._P = self._kept * self._P + (1.0 - self._kept) * np.eye(len(self._m))

    def update(self, places: IntArray, values: FloatArray, noise_std: float) -> None:
        """Take (q,) readings of this step into account."""
        H = self._H[places]
        PH = self._P @ H.T
        S = H @ PH + noise_std**2 * np.eye(len(places))
        gain = np.linalg.solve(S, PH.T).T
        self._m = self._m + gain @ (values - self._mean - H @ self._m)
        P = self._P - gain @ PH.T
        self._P = 0.5 * (P + P.T)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return the (n,) mean and standard deviation of the field at this step."""
        variance = np.einsum("nr,nr->n", self._H @ self._P, self._H)
        return self._mean + self._H @ self._m, np.sqrt(np.maximum(variance, 0.0))


def play_filter(
    world: World,
    seed: int,
    *,
    epsilon: float | None = None,
    scale: float = 1.0,
    ask: str = "nowhere",
    factor: float = 6.0,
) -> Played:
    """Play TV-GP-UCB as `changing_fields.play` does: first place and noise are those of the seed.

    Args:
        world: with the field.
        seed: of the first place, the noise, and all draws.
        epsilon: ε; None = that of maximum likelihood.
        scale: divides β_t.
        ask: for as many fresh values as SparQ-GP-UCB gets: nowhere, at visited places spread by
            its Q-DPP, at visited places at random.
        factor: c of their number.
    """
    prior = belief_on(world.belief, world.topology)
    n, p = world.points.shape
    epsilon = world.epsilon if epsilon is None else epsilon
    known = ForgettingFilter(world.basis, world.belief.mean_value, epsilon)
    noise = world.noise_std * np.random.default_rng([seed, 1]).standard_normal(world.steps + 1)
    answers, drawn = (np.random.default_rng([seed, stream]) for stream in (5, 2))
    went = np.zeros(world.steps, dtype=np.int64)
    at, asked = int(np.random.default_rng([seed, 0]).integers(n)), 0
    for step in range(1, world.steps + 1):
        went[step - 1] = at
        known.forget()
        known.update(np.array([at]), world.field[step, [at]] + noise[step], world.noise_std)
        visited = np.unique(went[:step])
        number = 0 if ask == "nowhere" else min(query_number(step, factor, p), visited.size)
        if number:
            if ask == "spread":
                places = spread_places(prior, visited, number, drawn, epsilon=0.01)
            else:
                places = np.sort(drawn.choice(visited, number, replace=False))
            values = world.field[step, places] + world.noise_std * answers.standard_normal(number)
            known.update(places, values, world.noise_std)
            asked += number
        mean, std = known.moments()
        width = math.sqrt(finite_beta(step, n, DELTA) / scale)
        away = np.linalg.norm(world.points - world.points[at], axis=1)
        at = best_score(mean + width * std, away)
    regret = world.best[1:] - world.field[np.arange(1, world.steps + 1), went]
    return Played(regret, asked, went)
