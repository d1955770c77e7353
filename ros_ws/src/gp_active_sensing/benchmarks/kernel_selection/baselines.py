"""Baselines for VBKS: a single kernel, chosen well, badly or by other means.

All of them `predict(X, noisy=)` as a `KernelModel` does: mean and variance, in the outputs' unit.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from gp_active_sensing.errors import BeliefError, ConfigError
from gp_active_sensing.kernel_model.model import KernelModel, Scaling
from gp_active_sensing.kernel_model.posterior import kernel_belief
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import BaseKernel, Expression
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.learning.kernel_selection.config import VbksConfig
from gp_active_sensing.learning.kernel_selection.data import scaling_of
from gp_active_sensing.types import FloatArray

if TYPE_CHECKING:
    from kernel_selection.exact import ExactFit
    from kernel_selection.svgp import Svgp

__all__ = [
    "Choice",
    "Constant",
    "Exact",
    "best_kernel",
    "bic_choice",
    "constant",
    "exact_choice",
    "laplace_choice",
    "only",
    "random_kernel",
    "svgp_se",
]

logger = logging.getLogger(__name__)

SUBSET = 500
"""Rows that an exact Gaussian process sees at most: the cost grows as their cube."""
_BLOCK = 4096


# -- one kernel of a model ------------------------------------------------------------------------


def only(model: KernelModel, name: str) -> KernelModel:
    """Return the model with one of its kernels, which then has probability 1.

    Raises:
        ConfigError: it has no such kernel.
    """
    for fit in model.fits:
        if fit.name == name:
            belief = kernel_belief([fit.bound], prior_std=model.belief.prior_std)
            return replace(model, fits=(fit,), belief=belief)
    msg = f"the model has no kernel {name!r}; it has {', '.join(model.names)}"
    raise ConfigError(msg)


def best_kernel(model: KernelModel) -> KernelModel:
    """Return the model with its most probable kernel only: VBKS-s. [Teng2020, Sec. 6.2]."""
    return only(model, model.names[int(np.argmax(model.belief.probabilities))])


def random_kernel(model: KernelModel, rng: np.random.Generator) -> KernelModel:
    """Return the model with one of its kernels, each with the same chance."""
    return only(model, model.names[int(rng.integers(len(model.fits)))])


# -- exact Gaussian processes on some of the rows -------------------------------------------------


@dataclass(frozen=True, eq=False)
class Exact:
    """The exact Gaussian process of one kernel at its most probable θ.

    Args:
        fit: kernel and θ.
        X: (n, d) inputs, normalised.
        y: (n,) outputs, normalised.
        floor: of the noise.
        scaling: from given to normalised units.
    """

    fit: ExactFit
    X: FloatArray
    y: FloatArray
    floor: float
    scaling: Scaling

    def predict(self, X: FloatArray, *, noisy: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (m,) at X (m, d), in the outputs' unit. O(n² m).

        Args:
            X: inputs in the given units.
            noisy: of a new output instead of the noise-free function.
        """
        kernel, theta = self.fit.composite, self.fit.theta
        noise = self.floor**2 + float(np.exp(2.0 * theta[0]))
        K = kernel.covariance(theta, self.X, self.X) + noise * np.eye(len(self.X))
        L = np.linalg.cholesky(K)
        half = solve_triangular(L, self.y, lower=True)
        Z = self.scaling.inputs(X)
        mean, variance = np.empty(len(Z)), np.empty(len(Z))
        for first in range(0, len(Z), _BLOCK):
            some = slice(first, first + _BLOCK)
            A = solve_triangular(L, kernel.covariance(theta, self.X, Z[some]), lower=True)
            mean[some] = A.T @ half
            variance[some] = kernel.variance(theta, Z[some]) - (A * A).sum(axis=0)
        variance = np.maximum(variance, 0.0) + (noise if noisy else 0.0)
        scale = self.scaling.output_scale
        return self.scaling.output_shift + scale * mean, scale**2 * variance


@dataclass(frozen=True, eq=False)
class Choice:
    """Kernels compared by exact Gaussian processes; `str` of it is the one chosen.

    Args:
        criterion: laplace or bic.
        fits: of every kernel, the best first.
        dropped: kernels that could not be fitted and why.
        X: (n, d) inputs used, normalised.
        y: (n,) outputs used, normalised.
        floor: of the noise.
        scaling: from given to normalised units.
    """

    criterion: str
    fits: tuple[ExactFit, ...]
    dropped: tuple[tuple[str, str], ...]
    X: FloatArray
    y: FloatArray
    floor: float
    scaling: Scaling

    def __str__(self) -> str:
        return self.names[0]

    @property
    def names(self) -> tuple[str, ...]:
        """(K,) the best first."""
        return tuple(fit.composite.name for fit in self.fits)

    @property
    def scores(self) -> FloatArray:
        """(K,) what they were compared by [nat], larger is better."""
        return np.array([getattr(fit, self.criterion) for fit in self.fits])

    def by(self, criterion: str) -> Choice:
        """Return the same fits compared by the other criterion."""
        order = sorted(self.fits, key=lambda fit: -getattr(fit, criterion))
        return replace(self, criterion=criterion, fits=tuple(order))

    def predict(self, X: FloatArray, *, noisy: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (m,) of the kernel chosen, from the rows used; see `Exact`."""
        exact = Exact(self.fits[0], self.X, self.y, self.floor, self.scaling)
        return exact.predict(X, noisy=noisy)


def exact_choice(
    rows: Dataset,
    expressions: Sequence[Expression],
    subset: int = SUBSET,
    seed: int = 0,
    *,
    criterion: str = "laplace",
    restarts: int = 3,
    config: VbksConfig = VbksConfig(),
) -> Choice:
    """Compare kernels by exact Gaussian processes on some rows, θ at its most probable value.

    Args:
        rows: what from.
        expressions: the kernels.
        subset: rows used at most, drawn by the seed.
        seed: of rows and starts.
        criterion: laplace or bic, see `ExactFit`; `Choice.by` gives the other.
        restarts: starts of each kernel.
        config: noise_floor and centre are used.

    Raises:
        ReadingError: outputs that do not vary.
        BeliefError: no kernel could be fitted.
    """
    from kernel_selection.exact import fit_exact

    scaling = scaling_of(rows, config)
    X, y = rows.sample(subset, seed)
    X, y = scaling.inputs(X), scaling.outputs(y)
    fits, dropped = [], []
    for expression in dict.fromkeys(expressions):
        composite = Composite(expression, rows.dimensions)
        try:
            fits.append(
                fit_exact(composite, X, y, floor=config.noise_floor, restarts=restarts, seed=seed)
            )
        except BeliefError as error:
            logger.warning("%s; it is left out", error)
            dropped.append((composite.name, str(error)))
    if not fits:
        msg = f"{rows.source}: none of {len(dropped)} kernels could be fitted"
        raise BeliefError(msg)
    made = Choice(criterion, tuple(fits), tuple(dropped), X, y, config.noise_floor, scaling)
    return made.by(criterion)


def laplace_choice(
    rows: Dataset, expressions: Sequence[Expression], subset: int = SUBSET, seed: int = 0
) -> Choice:
    """Compare kernels by the Laplace approximation of the evidence, see `exact_choice`."""
    return exact_choice(rows, expressions, subset, seed, criterion="laplace")


def bic_choice(
    rows: Dataset, expressions: Sequence[Expression], subset: int = SUBSET, seed: int = 0
) -> Choice:
    """Compare kernels by the Bayesian information criterion, see `exact_choice`."""
    return exact_choice(rows, expressions, subset, seed, criterion="bic")


# -- others ---------------------------------------------------------------------------------------


def svgp_se(rows: Dataset, config: VbksConfig = VbksConfig()) -> Svgp:
    """Return GPyTorch's stochastic variational Gaussian process with an SE, a length per input.

    The same scaling, rows, starts, inducing inputs, mini-batches and steps as VBKS has.

    Raises:
        ReadingError: outputs that do not vary.
    """
    from kernel_selection.svgp import train

    return train(rows, Composite(BaseKernel("SE"), rows.dimensions), config)


@dataclass(frozen=True)
class Constant:
    """The same prediction everywhere."""

    mean: float
    variance: float

    def predict(self, X: FloatArray, *, noisy: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (m,); they are those of the outputs, noise included."""
        del noisy
        return np.full(len(X), self.mean), np.full(len(X), self.variance)


def constant(rows: Dataset) -> Constant:
    """Return the mean and variance of the outputs, as a predictor."""
    total, square, count = 0.0, 0.0, 0
    first = float(rows.outputs[0])
    for _, y in rows.chunks():
        total += float((y - first).sum())
        square += float(((y - first) ** 2).sum())
        count += len(y)
    variance = (square - total**2 / count) / max(count - 1, 1)
    return Constant(first + total / count, variance)
