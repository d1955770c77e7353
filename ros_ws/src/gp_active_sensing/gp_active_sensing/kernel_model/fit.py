"""What was learned of one kernel: its hyper-parameters and inducing variables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.types import FloatArray

__all__ = ["JITTER", "KernelFit"]

JITTER = 1e-6
"""K_UU + JITTER · mean(diag K_UU) · I everywhere: a noisy inducing variable, so the bound stays a
bound."""


@dataclass(frozen=True, eq=False)
class KernelFit:
    """q(θ_i) and q(v_i) of one kernel. [Teng2020, Sec. 3.2].

    Args:
        composite: the kernel and the layout of its θ.
        bound: local ELBO L_i of all rows used, of the normalised outputs [nat].
        theta_mean: (P,) of q(θ).
        theta_root: (P, P) lower Cholesky factor C_θ of its covariance; zeros: a point.
        inducing: (M, d) inputs of the inducing variables.
        mean: (M,) of q(v).
        root: (M, M) lower factor of its covariance.
        whitened: u = chol(K_UU(θ)) v; else v is u itself.
        noise_floor: σ_n² = noise_floor² + exp(2 θ_noise).
        iterations: of the optimisation.
        outcome: how it ended, a sentence.
        trace: (T, 3) iteration, rows used, estimate of the bound.
    """

    composite: Composite
    bound: float
    theta_mean: FloatArray
    theta_root: FloatArray
    inducing: FloatArray
    mean: FloatArray
    root: FloatArray
    whitened: bool
    noise_floor: float
    iterations: int
    outcome: str
    trace: FloatArray

    @property
    def name(self) -> str:
        """Name of the kernel in the grammar."""
        return self.composite.name

    @property
    def point(self) -> bool:
        """q(θ) is a point estimate, C_θ = 0."""
        return not self.theta_root.any()

    @property
    def theta_std(self) -> FloatArray:
        """(P,) standard deviations of q(θ)."""
        return np.asarray(np.sqrt((self.theta_root**2).sum(axis=1)))
