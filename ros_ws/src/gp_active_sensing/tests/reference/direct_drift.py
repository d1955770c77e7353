"""Plain implementation of Bayes' rule for a field with drift: one row a reading."""

from __future__ import annotations

import math

import numpy as np

from gp_active_sensing.belief import HyperParameters
from gp_active_sensing.belief.drift import DriftConfig

from .direct_bayes import DirectBelief


class DirectDrift(DirectBelief):
    """Heteroscedastic (or space-time) process over all readings that count at a time."""

    drift = DriftConfig()

    def observe_at(
        self, location: int, value: float, noise_variance: float | None, seconds: float
    ) -> None:
        self.readings.append((location, value, noise_variance, seconds))

    def counting(self, now: float) -> list[tuple[int, float, float | None, float]]:
        drift, readings = self.drift, self.readings
        if drift.kind == "window":
            # (t - W, t]: at one reading a step, these are the latest W. [Zhou2021]
            return [r for r in readings if round(now - r[3], 7) < drift.window]
        if drift.kind == "restart":
            return [r for r in readings if r[3] // drift.window == now // drift.window]
        if drift.discard_step is not None and readings:
            newest = max(r[3] for r in readings)
            step = 1 + (now - min(r[3] for r in readings)) // drift.discard_step
            return [
                r
                for r in readings
                if r[3] == newest or self._growth(now - r[3]) <= max(math.log(step), 1.0)
            ]
        return readings

    def _growth(self, age: float) -> float:
        whole = age // self.drift.discard_step * self.drift.discard_step
        return 1 + (whole / self.drift.doubling) ** 2

    def at(self, hyper: HyperParameters, where: np.ndarray, now: float):
        """Return mean (m,), covariance (m, m) of the field now, and the log-evidence."""
        readings = self.counting(now)
        if not readings:
            return self.offset[where], self._prior(hyper, where, where), 0.0
        drift = self.drift
        place = np.array([r[0] for r in readings])
        time = np.array([r[3] for r in readings])
        age = now - time
        z = np.array([r[1] for r in readings]) - self.offset[place]
        noise = np.array([hyper.noise_std**2 if r[2] is None else r[2] for r in readings])
        grown, power = noise, np.ones(len(z))
        if drift.rate is not None:
            grown = noise + (drift.rate * age) ** 2
        if drift.doubling is not None:
            power = 1.0 / (1.0 + (age / drift.doubling) ** 2)
        if drift.kind == "weights":
            power = np.exp(-age / drift.time_scale)
        grown = grown / power
        K = self._prior(hyper, place, place)
        cross = self._prior(hyper, place, where)
        if drift.kind == "kernel":
            # The mean's coefficients do not change; the rest decorrelates.
            mean = (self.basis[place] * self.basis_std**2) @ self.basis[place].T
            across = (self.basis[place] * self.basis_std**2) @ self.basis[where].T
            apart = np.abs(time[:, None] - time)
            K = (K - mean) * np.exp(-apart / drift.time_scale) + mean
            cross = (cross - across) * np.exp(-age / drift.time_scale)[:, None] + across
        C = np.linalg.cholesky(K + np.diag(grown))
        a = np.linalg.solve(C, z)
        W = np.linalg.solve(C, cross)
        evidence = -0.5 * a @ a - np.log(np.diag(C)).sum() - 0.5 * len(z) * np.log(2 * np.pi)
        if drift.rate is None:
            # N(z; f, v)^w instead of N(z; f, v / w).
            evidence += (0.5 * np.log(2 * np.pi * grown)).sum()
            evidence -= (0.5 * power * np.log(2 * np.pi * noise)).sum()
        covariance = self._prior(hyper, where, where) - W.T @ W
        return self.offset[where] + W.T @ a, covariance, evidence

    def weights_at(self, now: float) -> np.ndarray:
        nowhere = np.array([0])
        evidence = np.array([self.at(h, nowhere, now)[2] for h in self.hyperparameters])
        logs = np.log(self.prior) + evidence
        weights = np.exp(logs - logs.max())
        return weights / weights.sum()
