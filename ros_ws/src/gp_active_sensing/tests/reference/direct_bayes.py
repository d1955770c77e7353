"""Plain implementation of Bayes' rule for a Gaussian process: one row a reading, full Cholesky."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import HyperParameters
from gp_active_sensing.kernels.base import Kernel


@dataclass
class DirectBelief:
    """Belief that computes everything from the list of readings at every query."""

    kernel: Kernel
    features: np.ndarray
    hyperparameters: tuple[HyperParameters, ...]
    basis: np.ndarray
    basis_std: np.ndarray
    offset: np.ndarray
    prior: np.ndarray
    attributes: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.readings: list[tuple[int, float, float | None]] = []

    def observe(self, location: int, value: float, noise_variance: float | None = None) -> None:
        self.readings.append((location, value, noise_variance))

    def _prior(self, hyper: HyperParameters, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        k = self.kernel.correlation(
            self.features[rows], self.features[columns], np.array(hyper.length_scales)
        )
        if hyper.amplitude_slopes:
            u = (self.features - self.features.mean(axis=0)) / self.features.std(axis=0)
            a = np.exp(u @ hyper.amplitude_slopes)
            a = a / np.sqrt(np.mean(a**2))
            k = np.diag(a[rows]) @ k @ np.diag(a[columns])
        mean = (self.basis[rows] * self.basis_std**2) @ self.basis[columns].T
        own = hyper.place_std**2 * (np.asarray(rows)[:, None] == columns)
        if self.attributes is not None:
            mean = (
                mean + hyper.attribute_std**2 * self.attributes[rows] @ self.attributes[columns].T
            )
        r = np.linalg.norm(self.features[rows][:, None] - self.features[columns], axis=2)
        r = np.sqrt(3.0) * r / hyper.long_scales[0]
        return hyper.signal_std**2 * k + own + mean + hyper.long_std**2 * (1.0 + r) * np.exp(-r)

    def posterior(self, hyper: HyperParameters, where: np.ndarray):
        """Return mean (m,), covariance (m, m) of the latent field and the log-evidence."""
        if not self.readings:
            return self.offset[where], self._prior(hyper, where, where), 0.0
        place = np.array([r[0] for r in self.readings])
        z = np.array([r[1] for r in self.readings]) - self.offset[place]
        noise = np.array([hyper.noise_std**2 if r[2] is None else r[2] for r in self.readings])
        C = np.linalg.cholesky(self._prior(hyper, place, place) + np.diag(noise))
        a = np.linalg.solve(C, z)
        W = np.linalg.solve(C, self._prior(hyper, place, where))
        evidence = -0.5 * a @ a - np.log(np.diag(C)).sum() - 0.5 * len(z) * np.log(2 * np.pi)
        covariance = self._prior(hyper, where, where) - W.T @ W
        return self.offset[where] + W.T @ a, covariance, evidence

    def weights(self) -> np.ndarray:
        nowhere = np.array([0])
        evidence = np.array([self.posterior(h, nowhere)[2] for h in self.hyperparameters])
        logs = np.log(self.prior) + evidence
        weights = np.exp(logs - logs.max())
        return weights / weights.sum()
