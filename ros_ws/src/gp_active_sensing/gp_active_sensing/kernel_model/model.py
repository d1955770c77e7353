"""The result of VBKS: a belief over kernels, and a sparse Gaussian process under each.

All that a fit holds is in normalised units, those of `Scaling`. [Teng2020, Sec. 3]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gp_active_sensing.errors import BeliefError
from gp_active_sensing.kernel_model.posterior import SAMPLES as DRAWS
from gp_active_sensing.kernel_model.posterior import KernelPosterior, kernel_belief
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.types import FloatArray

__all__ = [
    "JITTER",
    "History",
    "KernelFit",
    "KernelModel",
    "Scaling",
    "drawn",
    "moments",
]

JITTER = 1e-6
"""K_UU + JITTER · mean(diag K_UU) · I everywhere: a noisy inducing variable, so the bound stays a
bound."""
_BLOCK = 2_000_000
"""Numbers of a matrix (M, rows) that are made at once, so that memory does not grow with rows."""
SAMPLES = 32
"""Of θ, of which the moments of a prediction are made where q(θ) is no point."""


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


def drawn(fit: KernelFit, samples: int, seed: int) -> FloatArray:
    """Return (S, P) of q(θ), in pairs on either side of its mean; of a point the one there is."""
    if fit.point:
        return fit.theta_mean[None]
    half = np.random.default_rng([seed, fit.composite.size]).standard_normal(
        (max(samples + 1, 2) // 2, fit.composite.size)
    )
    return np.asarray(fit.theta_mean + np.concatenate([half, -half]) @ fit.theta_root.T)


def moments(
    fit: KernelFit, Z: FloatArray, *, noisy: bool, samples: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    r"""Return mean and variance (m,) under one kernel, over samples of θ, in normalised units.

    .. math:: \mu_i = \frac{1}{S} \sum_s \mu_{i|\theta_s}, \quad
        \sigma_i^2 = \frac{1}{S} \sum_s (\sigma_{i|\theta_s}^2 + \mu_{i|\theta_s}^2) - \mu_i^2

    [Teng2020, App. D.2]. O(S M² (M + m)).

    Args:
        fit: the kernel's.
        Z: (m, d) inputs in normalised units.
        noisy: of a new output instead of the noise-free function.
        samples: S where q(θ) is no point.
        seed: of the samples.

    Raises:
        BeliefError: a covariance that is not positive definite.
    """
    thetas = drawn(fit, samples, seed)
    total, square = np.zeros(len(Z)), np.zeros(len(Z))
    within = np.zeros(len(Z))
    first: FloatArray | None = None
    for theta in thetas:
        mean, variance = _given(fit, theta, Z)
        if noisy:
            noise = fit.composite.where("noise")[0]
            variance = variance + fit.noise_floor**2 + np.exp(2.0 * theta[noise])
        # The spread is that about the first mean, so that nothing large cancels.
        first = mean if first is None else first
        total += mean - first
        square += (mean - first) ** 2
        within += variance
    S = len(thetas)
    assert first is not None
    spread = np.maximum(square / S - (total / S) ** 2, 0.0)
    return first + total / S, within / S + spread


def _given(fit: KernelFit, theta: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance (m,) of the noise-free function given θ."""
    kernel, U = fit.composite, fit.inducing
    K = kernel.covariance(theta, U, U)
    K[np.diag_indices_from(K)] += JITTER * K.diagonal().mean()
    try:
        chol = np.linalg.cholesky(K)
    except np.linalg.LinAlgError as error:
        msg = f"kernel {fit.name}: the covariance of its inducing inputs is not positive definite"
        raise BeliefError(msg) from error
    centre, root = fit.mean, fit.root
    if not fit.whitened:
        centre = solve_triangular(chol, centre, lower=True)
        root = solve_triangular(chol, root, lower=True)
    mean, variance = np.empty(len(Z)), np.empty(len(Z))
    rows = max(1, _BLOCK // len(U))
    for start in range(0, len(Z), rows):
        some = slice(start, min(len(Z), start + rows))
        A = solve_triangular(chol, kernel.covariance(theta, U, Z[some]), lower=True)
        mean[some] = A.T @ centre
        unknown = kernel.variance(theta, Z[some]) - (A * A).sum(axis=0)
        variance[some] = np.maximum(unknown, 0.0) + ((root.T @ A) ** 2).sum(axis=0)
    return mean, variance


@dataclass(frozen=True, eq=False)
class Scaling:
    """What the Gaussian process sees: (x - input_shift) / input_scale, the output likewise.

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

    def predict(
        self,
        X: FloatArray,
        *,
        noisy: bool = False,
        samples: int = SAMPLES,
        kernels: Sequence[int] | None = None,
        seed: int = 0,
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return mean and variance (m,) of the Bayesian model average. [Teng2020, Eqs. 14-15].

        .. math:: \mu = \sum_i q^*(k_i) \mu_i, \quad
            \sigma^2 = \sum_i q^*(k_i) (\sigma_i^2 + (\mu_i - \mu)^2)

        Args:
            X: (m, d) inputs in the given units.
            noisy: of a new output instead of the noise-free function.
            samples: S of θ where q(θ) is no point.
            kernels: indices of those averaged over, their probabilities scaled to sum to one; None
                = all.
            seed: of the samples.

        Returns:
            Mean and variance in the unit of the outputs and its square.

        Raises:
            ValueError: inputs of another shape or not finite, or no such kernel.
            BeliefError: a covariance that is not positive definite.
        """
        given = np.asarray(X, dtype=np.float64)
        d = self.dimensions
        if given.ndim != 2 or given.shape[1] != d:
            names = ", ".join(self.input_names)
            msg = f"expected inputs (m, {d}) with the columns {names}, got shape {given.shape}"
            raise ValueError(msg)
        if not np.isfinite(given).all():
            bad = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
            msg = f"expected finite inputs, row {bad} has {given[bad].tolist()}"
            raise ValueError(msg)
        chosen = list(range(len(self.fits)) if kernels is None else kernels)
        if not chosen or not all(0 <= k < len(self.fits) for k in chosen):
            msg = f"expected some of the kernels 0 … {len(self.fits) - 1}, got {chosen}"
            raise ValueError(msg)
        weights = self.belief.probabilities[chosen]
        weights = np.full(len(chosen), 1.0) if weights.sum() <= 0.0 else weights
        weights = weights / weights.sum()
        Z = self.scaling.inputs(given)
        found = [moments(self.fits[k], Z, noisy=noisy, samples=samples, seed=seed) for k in chosen]
        means = np.array([mean for mean, _ in found])
        variances = np.array([variance for _, variance in found])
        mean = weights @ means
        variance = weights @ (variances + (means - mean) ** 2)
        scale = self.scaling.output_scale
        return self.scaling.output_shift + scale * mean, scale**2 * variance

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

    def prune(
        self, top: int, *, samples: int | None = None, seed: int | None = None
    ) -> KernelModel:
        """Return the model of the `top` most probable kernels: local ELBOs as they are, q(g) again.

        Args:
            top: number of kernels that stay, at least 1.
            samples: S of Eq. 13; None = as the model was learned with, or else as by default.
            seed: of the samples; None = that of the model, or else 0.

        Raises:
            ValueError: `top` is below 1.
        """
        if top < 1:
            msg = f"expected to keep at least one kernel, got {top}"
            raise ValueError(msg)
        whole = self.ordered()
        if top >= len(whole.fits):
            return whole
        kept = whole.fits[:top]
        why = f"pruned: not among the {top} most probable"
        gone = tuple((fit.name, why) for fit in whole.fits[top:])
        vbks = whole.settings.get("vbks")
        learned = vbks if isinstance(vbks, Mapping) else {}
        belief = kernel_belief(
            [fit.bound for fit in kept],
            prior_std=whole.belief.prior_std,
            samples=learned.get("samples", DRAWS) if samples is None else samples,
            seed=learned.get("seed", 0) if seed is None else seed,
        )
        pruned = replace(whole, fits=kept, belief=belief, dropped=(*whole.dropped, *gone))
        return pruned.ordered()
