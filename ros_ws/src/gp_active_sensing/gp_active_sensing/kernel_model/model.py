"""The result of VBKS: a belief over kernels, and a sparse Gaussian process under each.

All that a fit holds is in normalised units, those of `Scaling`. [Teng2020, Sec. 3]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.types import FloatArray, IntArray

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


@dataclass(frozen=True, eq=False)
class KernelPosterior:
    """Belief over kernels from q(g) = N(mean, root rootᵀ). [Teng2020, Eq. 13].

    Args:
        mean: (K,).
        root: (K, K) lower factor C_g.
        prior_std: s of p(g) = N(0, s² I).
        probabilities: (K,) q*(k_i) = E_q(g)[softmax(g)_i].
        errors: (K,) Monte Carlo standard errors of them.
        softmax: (K,) softmax of the local ELBOs, which a Gaussian q(g) never quite reaches.
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
        # Rows in another order are no triangle; Rᵀ of their QR has the same covariance and is one.
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
        """(K, K) correlations of g under q(g)."""
        covariance = self.root @ self.root.T
        scale = np.sqrt(covariance.diagonal())
        found = np.clip(covariance / np.outer(scale, scale), -1.0, 1.0)
        np.fill_diagonal(found, 1.0)
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class Scaling:
    """Normalisation of inputs, (x - input_shift) / input_scale, and of the output.

    Args:
        input_shift, input_scale: (d,) in the unit of each input.
        output_shift, output_scale: in the unit of the output.
    """

    input_shift: FloatArray
    input_scale: FloatArray
    output_shift: float
    output_scale: float

    def inputs(self, X: FloatArray) -> FloatArray:
        """Return inputs (n, d) as the Gaussian process sees them."""
        return (np.asarray(X, dtype=np.float64) - self.input_shift) / self.input_scale

    def outputs(self, y: FloatArray) -> FloatArray:
        """Return outputs (n,) as the Gaussian process sees them."""
        return (np.asarray(y, dtype=np.float64) - self.output_shift) / self.output_scale


@dataclass(frozen=True, eq=False)
class History:
    """The belief against the data used, of all kernels that took part.

    Args:
        rows: (T,) used so far.
        names: (K0,) of the kernels.
        bounds: (T, K0) local ELBOs [nat]; NaN where a kernel had none.
        probabilities: (T, K0) q*(k); 0 where a kernel had no bound.
        softmax: (T, K0) of the local ELBOs.
    """

    rows: FloatArray
    names: tuple[str, ...]
    bounds: FloatArray
    probabilities: FloatArray
    softmax: FloatArray


@dataclass(frozen=True, eq=False)
class KernelModel:
    """A belief over kernels that was learned, with its predictor.

    Args:
        fits: (K,) the most probable first.
        belief: over them, in their order.
        dropped: kernels that are not in it and why.
        scaling: from given to normalised units.
        input_names: (d,).
        output_name: of the values.
        rows: number learned from.
        source: of the rows.
        history: how the belief came about.
        settings: configuration, versions, seconds used; plain data.
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
        """How its rows were read; empty where it was not learned from files."""
        return dict(self.settings.get("recipe") or {})

    @property
    def time_origins(self) -> dict[str, str]:
        """Time stamps from which its hours are counted, by input."""
        return {str(k): str(stamp) for k, stamp in (self.recipe.get("times") or {}).items()}

    def ordered(self) -> KernelModel:
        """Return the model with its kernels by q*, of equal ones that with the larger local ELBO.

        Where local ELBOs are nearly equal, they may have another order than q*, which is sampled.

        Raises:
            ValueError: the belief is over another number of kernels.
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
