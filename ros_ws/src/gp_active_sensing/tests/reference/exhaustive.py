"""Exhaustive search of a small decision, with every posterior computed from all readings.

The definitions of the branches (`by_cells`, `by_draws`) and of the entropy are those of the
planner. States, posteriors, candidates and the recursion are plain implementations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bal.discretise import by_cells, by_draws
from gp_active_sensing.planning.bal.policy import Bal
from gp_active_sensing.planning.entropy import gaussian_entropy, mixture_entropy, noise_entropy
from gp_active_sensing.topology.base import Topology


@dataclass(frozen=True)
class WholeBelief(Bal):
    """Planner with all λ, including improbable ones, and another number of sequences."""

    mass = 1.0
    max_sequences: int = 2000


@dataclass
class Exhaustive:
    """Value and Q of every candidate of a state, by full recursion."""

    belief: Belief
    topology: Topology
    samples: int
    draws: tuple[int, float, float] | None = None

    def __post_init__(self) -> None:
        self.everywhere = np.arange(self.belief.n)
        self.start = self.belief.joint(self.everywhere)
        self.noise = self.belief.noise_variance
        self.reference = noise_entropy(self.noise)

    def posterior(self, visits: tuple[tuple[int, float], ...]):
        """Return means (L, n) and latent covariances (L, n, n) after virtual readings."""
        if not visits:
            return self.start.mean, self.start.covariance
        where = [x for x, _ in visits]
        z = np.array([value for _, value in visits])
        means, covariances = [], []
        for mean, C, noise in zip(self.start.mean, self.start.covariance, self.noise, strict=True):
            K = C[np.ix_(where, where)] + noise * np.eye(len(where))
            gain = np.linalg.solve(K, C[where])
            means.append(mean + gain.T @ (z - mean[where]))
            covariances.append(C - C[:, where] @ gain)
        return np.array(means), np.array(covariances)

    def q(
        self,
        at: int | None,
        k: int,
        weights: np.ndarray,
        visits: tuple[tuple[int, float], ...] = (),
        path: tuple[int, ...] = (),
    ) -> np.ndarray:
        """Return Q of each candidate, sorted by location, with k readings to come."""
        observed = self.belief.observed.copy()
        observed[[x for x, _ in visits]] = True
        where = self.topology.candidates(at, observed)
        if not where.size:
            return np.zeros(1)
        mean, C = self.posterior(visits)
        variance = C[:, where, where] + self.noise[:, None]
        told = float(weights @ self.reference)
        if k == 1 and self.draws is None:
            return mixture_entropy(weights, mean[:, where].T, variance.T) - told
        found = self.branches(weights, mean, where, variance, observed, path)
        if k == 1:
            return found.reward
        values = found.reward.copy()
        for a, x in enumerate(where):
            for i in range(self.samples):
                deeper = self.q(
                    int(x),
                    k - 1,
                    found.weights[a, i],
                    (*visits, (int(x), float(found.values[a, i]))),
                    (*path, a, i),
                )
                values[a] += found.probability[a, i] * deeper.max()
        return values

    def reported(self, at: int | None, k: int) -> np.ndarray:
        """Return Q of each candidate as plans report it: as entropies if all noises are equal."""
        values = self.q(at, k, self.belief.weights)
        if np.ptp(self.noise) > 0.0:
            return values
        return values + k * 0.5 * np.log(2 * np.pi * np.e * self.noise[0])

    def branches(self, weights, mean, where, variance, observed, path):
        if self.draws is None:
            entropy = gaussian_entropy(variance) - self.reference[:, None]
            return by_cells(weights, mean[:, where], variance, entropy, self.samples)
        key, tau, centre = self.draws
        reach = mean[:, ~observed] - centre
        tau_hat = max(abs(reach.min() - tau), abs(reach.max() + tau))
        return by_draws(
            weights,
            mean[:, where],
            variance,
            float(weights @ self.reference),
            self.samples,
            np.random.default_rng([key, *path]),
            (centre - tau_hat, centre + tau_hat),
        )
