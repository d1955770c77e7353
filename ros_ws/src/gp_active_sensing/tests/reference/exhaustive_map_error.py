"""Exhaustive search of a small decision about the error of the map, everything from scratch.

It shares with the planner only how a mixture is cut into cells (`by_cells`). Posteriors, maps of
each candidate λ, what they disagree about and the recursion are written down plainly, over all
places of the map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.planning.bal.discretise import by_cells
from gp_active_sensing.planning.entropy import gaussian_entropy

from .exhaustive import Exhaustive


@dataclass
class ExhaustiveMapError(Exhaustive):
    """What readings take off the mean variance of the map, by full recursion.

    After the last of them `follow` (at, visits) says which places are read as well.
    """

    follow: Callable[[int, tuple[int, ...]], tuple[int, ...]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = self.topology.weights
        self.share = weights / weights.sum()
        self._known: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}

    def of_readings(self, where: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """(L,) error of the map under each λ and (L, n (k + 1)) what λ says, after readings there.

        Half the expected squared distance of two rows of the latter is what two λ disagree about.
        """
        where = tuple(sorted(where))
        if where not in self._known:
            b = self.belief.weights
            A, k = list(where), len(where)
            mean, C = self.start.mean, self.start.covariance
            middle = b @ mean
            maps, seconds, errors = [], [], []
            for mu, c, noise in zip(mean, C, self.noise, strict=True):
                K = c[np.ix_(A, A)] + noise * np.eye(k)
                off = (mu - middle)[A]
                gain = np.linalg.solve(K, c[A]).T if k else np.zeros((len(mu), 0))
                errors.append(self.share @ (np.diag(c) - (gain * c[:, A]).sum(axis=1)))
                # The map after readings whose difference from the mixture's means is z.
                maps.append(np.column_stack([mu - gain @ off, gain]))
                second = np.zeros((k + 1, k + 1))
                second[0, 0] = 1.0
                second[0, 1:] = second[1:, 0] = off
                second[1:, 1:] = K + np.outer(off, off)
                seconds.append(second)
            moments = np.linalg.inv(
                sum(w * np.linalg.inv(m) for w, m in zip(b, seconds, strict=True))
            )
            root = np.linalg.cholesky(moments)
            said = [(np.sqrt(self.share)[:, None] * (m @ root)).ravel() for m in maps]
            self._known[where] = np.array(errors), np.array(said)
        return self._known[where]

    def error(self, weights: np.ndarray, where: tuple[int, ...]) -> float:
        """Error of the map that a state is counted with: Σ b Var_λ + Var_b of what λ says."""
        errors, said = self.of_readings(where)
        apart = said - weights @ said
        return float(weights @ errors + weights @ (apart * apart).sum(axis=1))

    def left(self, at, k, weights, visits=()) -> np.ndarray:
        """What is left after each candidate, sorted by location, with k readings to come."""
        observed = self.belief.observed.copy()
        observed[[x for x, _ in visits]] = True
        where = self.topology.candidates(at, observed)
        if not k or not where.size:
            read = tuple(x for x, _ in visits)
            left = self.error(weights, read)
            if not k and self.follow is not None:
                then = self.of_readings((*read, *self.follow(at, read)))[0]
                left += float(weights @ (then - self.of_readings(read)[0]))
            return np.array([left])
        found = self.cells(weights, where, visits)
        left = np.zeros(len(where))
        for a, x in enumerate(where.tolist()):
            for i in range(self.samples):
                deeper = self.left(
                    x, k - 1, found.weights[a, i], (*visits, (x, float(found.values[a, i])))
                )
                left[a] += found.probability[a, i] * deeper.min()
        return left

    def cells(self, weights: np.ndarray, where: np.ndarray, visits):
        """The branches of each candidate, by their cells."""
        mean, C = self.posterior(visits)
        variance = C[:, where, where] + self.noise[:, None]
        entropy = gaussian_entropy(variance)
        return by_cells(weights, mean[:, where], variance, entropy, self.samples)

    def drops(self, at, k) -> np.ndarray:
        """What each candidate takes off, with k readings to come."""
        weights = self.belief.weights
        return self.error(weights, ()) - self.left(at, k, weights)

    def extremes(self, at, k) -> tuple[float, float]:
        """Bounds of docs/theory.md over all feasible sets, for the value at the root."""
        weights = self.belief.weights
        present, _ = self.of_readings(())
        now = self.error(weights, ())
        sets = self.sets(at, k, ())
        least = now - min(self.error(weights, s) for s in sets)
        most = np.max([present - self.of_readings(s)[0] for s in sets], axis=0)
        return least, now - float(weights @ present) + float(weights @ most)

    def sets(self, at, k, visits) -> list[tuple[int, ...]]:
        """All sets of places that a sequence of k visits may hold."""
        observed = self.belief.observed.copy()
        observed[list(visits)] = True
        where = self.topology.candidates(at, observed).tolist()
        if not k or not where:
            return [visits]
        return [s for x in where for s in self.sets(x, k - 1, (*visits, x))]
