"""Result of VBKS: a belief over kernels, and a sparse Gaussian process for each kernel.

All numbers of a fit are in the normalised units of `Scaling`. [Teng2020, Sec. 3]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.types import FloatArray, IntArray

JITTER = 1e-6
"""Jitter on the diagonal of K_UU, relative to the mean of the diagonal. The ELBO stays a lower
bound, because the jitter corresponds to noisy inducing variables."""


@dataclass(frozen=True, eq=False)
class KernelFit:
    """Variational posteriors q(θ_i) and q(v_i) of one kernel. [Teng2020, Sec. 3.2].

    Args:
        composite: the kernel and the layout of its θ.
        bound: local ELBO L_i for the normalised outputs of all rows that were used [nat].
        theta_mean: (P,) mean of q(θ).
        theta_root: (P, P) lower Cholesky factor C_θ of q(θ)'s covariance; 0 = point estimate.
        inducing: (M, d) inputs of the inducing variables.
        mean: (M,) mean of q(v).
        root: (M, M) lower Cholesky factor of q(v)'s covariance.
        whitened: True if the inducing variables are u = chol(K_UU(θ)) v, False if they are u = v.
        noise_floor: smallest standard deviation of noise; σ_n² = noise_floor² + exp(2 θ_noise).
        iterations: number of iterations of the optimisation.
        outcome: sentence with the reason why the optimisation ended.
        trace: (T, 3) iteration, number of rows used, and estimate of the bound.
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
        """True if q(θ) is a point estimate, C_θ = 0."""
        return not self.theta_root.any()

    @property
    def theta_std(self) -> FloatArray:
        """(P,) standard deviations of q(θ)."""
        return np.asarray(np.sqrt((self.theta_root**2).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class KernelPosterior:
    """Belief over K kernels with q(g) = N(mean, root rootᵀ) for the logits g. [Teng2020, Eq. 13].

    Args:
        mean: (K,) mean of q(g).
        root: (K, K) lower Cholesky factor C_g of q(g)'s covariance.
        prior_std: standard deviation s of p(g) = N(0, s² I).
        probabilities: (K,) q*(k_i) = E_q(g)[softmax(g)_i].
        errors: (K,) Monte Carlo standard errors of the probabilities.
        softmax: (K,) softmax of the local ELBOs.
        elbo: E_q(g)[Σ softmax(g)_i L_i] - KL[q(g) ‖ p(g)] [nat].
    """

    mean: FloatArray
    root: FloatArray
    prior_std: float
    probabilities: FloatArray
    errors: FloatArray
    softmax: FloatArray
    elbo: float

    def ordered(self, order: IntArray) -> KernelPosterior:
        """Return the belief over the same kernels in another order (K,)."""
        # Reordered rows are not triangular. Rᵀ of their QR is, and has the same covariance.
        triangle: FloatArray = np.asarray(np.linalg.qr(self.root[order].T)[1])
        signs = np.where(triangle.diagonal() < 0.0, -1.0, 1.0)
        return replace(
            self,
            mean=self.mean[order],
            root=np.tril((signs[:, None] * triangle).T),
            probabilities=self.probabilities[order],
            errors=self.errors[order],
            softmax=self.softmax[order],
        )

    @property
    def correlations(self) -> FloatArray:
        """(K, K) correlations of the logits g under q(g)."""
        covariance = self.root @ self.root.T
        scale = np.sqrt(covariance.diagonal())
        found = np.clip(covariance / np.outer(scale, scale), -1.0, 1.0)
        np.fill_diagonal(found, 1.0)
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class Scaling:
    """Normalisation of inputs, (x - input_shift) / input_scale, and of the output.

    Args:
        input_shift, input_scale: (d,) shift and scale, in the unit of each input.
        output_shift, output_scale: shift and scale, in the unit of the output.
    """

    input_shift: FloatArray
    input_scale: FloatArray
    output_shift: float
    output_scale: float

    def inputs(self, X: FloatArray) -> FloatArray:
        """Return normalised inputs (n, d)."""
        return (np.asarray(X, dtype=np.float64) - self.input_shift) / self.input_scale

    def outputs(self, y: FloatArray) -> FloatArray:
        """Return normalised outputs (n,)."""
        return (np.asarray(y, dtype=np.float64) - self.output_shift) / self.output_scale


@dataclass(frozen=True, eq=False)
class History:
    """Belief over all compared kernels after T different numbers of rows.

    Args:
        rows: (T,) number of rows used.
        names: (K0,) names of the kernels.
        bounds: (T, K0) local ELBOs [nat]; NaN for a kernel without a local ELBO.
        probabilities: (T, K0) probabilities q*(k); 0 for a kernel without a local ELBO.
        softmax: (T, K0) softmax of the local ELBOs.
    """

    rows: FloatArray
    names: tuple[str, ...]
    bounds: FloatArray
    probabilities: FloatArray
    softmax: FloatArray


@dataclass(frozen=True, eq=False)
class KernelModel:
    """Learned belief over kernels, with a fitted Gaussian process for each kernel.

    Args:
        fits: (K,) fits of the kernels, the most probable first.
        belief: belief over these kernels, in the order of `fits`.
        dropped: names of the compared kernels that were left out, each with the reason.
        scaling: normalisation of inputs and output.
        input_names: (d,) names of the inputs.
        output_name: name of the output.
        rows: number of rows from which the belief was learned.
        source: source of the rows.
        history: belief during learning.
        settings: configuration, versions and computing time [s], as plain data.
    """

    fits: tuple[KernelFit, ...]
    belief: KernelPosterior
    dropped: tuple[tuple[str, str], ...]
    scaling: Scaling
    input_names: tuple[str, ...]
    output_name: str
    rows: int
    source: str
    history: History
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """(K,) names of the kernels, the most probable first."""
        return tuple(fit.name for fit in self.fits)

    @property
    def dimensions(self) -> int:
        """Number of inputs, d."""
        return len(self.input_names)

    @property
    def recipe(self) -> dict[str, Any]:
        """Settings with which the rows were read from files; empty if there were no files."""
        return dict(self.settings.get("recipe") or {})

    @property
    def time_origins(self) -> dict[str, str]:
        """Time stamp of hour 0, for each input that is a time in hours."""
        return {str(k): str(stamp) for k, stamp in (self.recipe.get("times") or {}).items()}

    def ordered(self) -> KernelModel:
        """Return the model with kernels in descending order of probability, then of the local ELBO.

        The probabilities are estimated from samples. The order of two kernels with nearly equal
        local ELBOs may therefore differ from the order of these ELBOs.

        Raises:
            ValueError: the number of kernels in the belief differs from the number of fits.
        """
        belief, bounds = self.belief, np.array([fit.bound for fit in self.fits])
        if bounds.shape != belief.probabilities.shape:
            msg = (
                f"expected a belief over the {len(bounds)} kernels of the model, got one over "
                f"{len(belief.probabilities)}"
            )
            raise ValueError(msg)
        order = np.lexsort((-bounds, -belief.probabilities))
        if (order == np.arange(len(order))).all():
            return self
        return replace(self, fits=tuple(self.fits[k] for k in order), belief=belief.ordered(order))
