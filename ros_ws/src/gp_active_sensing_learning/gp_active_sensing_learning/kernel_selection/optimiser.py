"""Optimisation steps: natural gradient for q(u), Adam for q(θ) and the inducing inputs.

Entry k of each result depends only on entry k of the inputs, so that kernels are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing_learning.kernel_selection.config import VbksConfig
from gp_active_sensing_learning.kernel_selection.covariances import Covariances
from gp_active_sensing_learning.kernel_selection.local_elbo import (
    Inducing,
    Sums,
    batch_bound,
    collapsed,
    divergence,
    factor,
    log_density,
    sums,
)
from gp_active_sensing_learning.kernel_selection.state import State, theta_root

_DECAY = (0.9, 0.99)
_TINY = 1e-12
_LARGEST = 10.0
"""Largest component of a gradient, relative to its running root mean square."""


@dataclass(frozen=True)
class _Prior:
    """Mean and standard deviation (K, P) of the prior of θ; `used` is False where θ is padding."""

    mean: Any
    std: Any
    used: Any


class Optimiser:
    """Optimiser of K kernels.

    Args:
        composites: kernel of each row of the state, in the order of `order_by_shape`.
        width: length P of θ including padding.
    """

    def __init__(
        self,
        composites: Sequence[Composite],
        config: VbksConfig,
        device: Any,
        *,
        width: int,
    ) -> None:
        self.config = config
        self.device = device
        self.composites = tuple(composites)
        self.covariances = Covariances(composites, device)
        self.full = False
        mean, std = np.zeros((2, len(composites), width))
        std[:] = 1.0
        used = np.zeros((len(composites), width), dtype=bool)
        for k, c in enumerate(composites):
            mean[k, : c.size], std[k, : c.size] = c.prior
            used[k, : c.size] = True
        self._prior = _Prior(self.tensor(mean), self.tensor(std), torch.tensor(used, device=device))

    def tensor(self, values: Any) -> Any:
        """Return a float64 tensor on the device."""
        return torch.as_tensor(np.asarray(values), dtype=torch.float64, device=self.device)

    @property
    def whitened(self) -> bool:
        """True if q(u) is stored in whitened form, which is faster but requires a point q(θ)."""
        return not self.full

    def root(self, state: State) -> Any:
        """Return the Cholesky factor (K, P, P) of the covariance of q(θ)."""
        return theta_root(state.raw, self._prior.used, point=not self.full)

    def price(self, mean: Any, root: Any) -> Any:
        """Return KL[q(θ)‖p(θ)] (K,) for a Gaussian q(θ), or -log p(θ) (K,) for a point q(θ)."""
        prior = self._prior
        if not self.full:
            return -log_density(mean, prior.mean, prior.std, prior.used)
        return divergence(mean, root, prior.mean, prior.std, prior.used)

    # -- the bound -----------------------------------------------------------------------------

    def total(self, state: State, parts: Any, weight: float, etas: Any) -> Sums:
        """Return the sums over rows, averaged over samples of q(θ).

        Args:
            state: state of the kernels.
            parts: iterable of (inputs (b, d), outputs (b,)).
            weight: number of rows that each given row represents.
            etas: (S, K, P) standard normal samples; zeros (1, K, P) for a point q(θ).
        """
        with torch.no_grad():
            root = self.root(state)
            thetas = [state.mean + (root @ eta.unsqueeze(2)).squeeze(2) for eta in etas]
            found: list[Sums | None] = [None] * len(thetas)
            for inputs, outputs in parts:
                X, y = self.tensor(inputs), self.tensor(outputs)
                for s, theta in enumerate(thetas):
                    more = sums(
                        self.covariances,
                        theta,
                        state.inducing,
                        X,
                        y,
                        weight=weight,
                        floor=self.config.noise_floor,
                        whitened=self.whitened,
                        prior=found[s] is None,
                    )
                    found[s] = more if found[s] is None else found[s].plus(more)  # type: ignore[union-attr]
            mean = found[0]
            assert mean is not None
            for s, one in enumerate(found[1:], start=2):
                assert one is not None
                mean = mean.mixed(one, 1.0 / s)
            return mean

    def bound(self, state: State, total: Sums) -> Any:
        """Return the local ELBOs (K,) at the best q(u), with -inf in place of NaN and infinity."""
        with torch.no_grad():
            bound = collapsed(total) - self.price(state.mean, self.root(state))
            bad = ~torch.isfinite(bound)
            return torch.where(bad, torch.full_like(bound, -torch.inf), bound)

    # -- one step ------------------------------------------------------------------------------

    def step(
        self,
        state: State,
        X: Any,
        y: Any,
        eta: Any,
        rows: int,
        *,
        whole: bool,
        pace: float = 1.0,
    ) -> None:
        """Update q(u), q(θ) and the inducing inputs by one step.

        Args:
            state: state of the kernels, which the step changes in place.
            X: (b, d) inputs of a mini-batch.
            y: (b,) outputs of the mini-batch.
            eta: (K, P) standard normal samples.
            rows: number of rows that the mini-batch represents.
            whole: True if the mini-batch has all rows.
            pace: factor on the step size of Adam.
        """
        config = self.config
        variables = [v.detach().requires_grad_(True) for v in state.variables]
        mean, raw, Z = variables
        root = theta_root(raw, self._prior.used, point=not self.full)
        theta = mean + (root @ eta.unsqueeze(2)).squeeze(2)
        X, y = self.tensor(X), self.tensor(y)
        weight = rows / len(y)
        # All rows and one θ determine the best q(u): use the gradient of the collapsed bound.
        # Otherwise a q(u) from this mini-batch would bias the estimate.
        best = whole and not self.full
        bound, natural = batch_bound(
            self.covariances,
            theta,
            Z,
            X,
            y,
            None if best else Inducing(state.precision, state.linear),
            weight=weight,
            floor=config.noise_floor,
            whitened=self.whitened,
        )
        value = bound - self.price(mean, root)
        # A kernel with an infinite or NaN bound gets no gradient and does not affect the others.
        finite = torch.isfinite(value.detach())
        gradients = torch.autograd.grad(
            torch.where(finite, value, torch.zeros_like(value)).sum(), variables, allow_unused=True
        )
        state.steps += 1
        for k, gradient in enumerate(gradients):
            if gradient is None:
                continue
            self._adam(state, k, torch.nan_to_num(gradient, 0.0, 0.0, 0.0), pace)
        good = torch.isfinite(natural.precision).all(2).all(1) & finite
        # Reduce the steps of q(u) and of θ together, or θ would fit the noise of q(u).
        natural_step = config.natural_step(Z.shape[1])
        share = torch.ones_like(state.rate) if best else natural_step * state.rate / config.rate
        share_of = torch.where(good, share, torch.zeros_like(share))
        safe = torch.nan_to_num(natural.precision, 0.0, 0.0, 0.0)
        state.precision = torch.lerp(state.precision, safe, share_of[:, None, None])
        safe = torch.nan_to_num(natural.linear, 0.0, 0.0, 0.0)
        state.linear = torch.lerp(state.linear, safe, share_of[:, None])

    def _adam(self, state: State, k: int, gradient: Any, pace: float) -> None:
        """Update `state.variables[k]` with Adam and the kernels' step sizes. [Kingma2015]."""
        first, second = state.moments[k], state.moments[k + 3]
        shape = (-1, *([1] * (gradient.dim() - 1)))
        steps = state.steps.double().reshape(shape)
        first.lerp_(gradient, 1.0 - _DECAY[0])
        second.lerp_(gradient * gradient, 1.0 - _DECAY[1])
        size = torch.sqrt(second / (1.0 - _DECAY[1] ** steps)) + _TINY
        move = (first / (1.0 - _DECAY[0] ** steps)) / size
        state.variables[k].add_(pace * state.rate.reshape(shape) * move.clamp(-_LARGEST, _LARGEST))

    # -- the curvature of q(θ) -------------------------------------------------------------------

    def settle(self, state: State, X: Any, y: Any, weight: float, total: Sums) -> None:
        """Set the covariance of q(θ) from the curvature of the bound, given q(u).

        The best Gaussian q(θ) has a precision of minus the expected second derivative of the bound
        [Opper2009, Eq. 14]. Finite differences of the gradient at the mean approximate this
        derivative. In directions in which the bound is not concave, the absolute value of this
        derivative is used.

        Args:
            state: state of the kernels. `raw` is changed in place.
            X: (b, d) inputs of rows.
            y: (b,) outputs of the rows.
            weight: number of rows that each given row represents.
            total: natural parameters of q(u).
        """
        X, y = self.tensor(X), self.tensor(y)
        q = Inducing(total.precision, total.linear)
        prior = self._prior
        difference = 1e-4  # balances rounding and truncation errors
        slopes = []
        for j in range(-1, state.mean.shape[1]):
            theta = state.mean.detach().clone()
            if j >= 0:
                theta[:, j] += difference
            theta.requires_grad_(True)
            bound, _ = batch_bound(
                self.covariances,
                theta,
                state.inducing,
                X,
                y,
                q,
                weight=weight,
                floor=self.config.noise_floor,
                whitened=self.whitened,
            )
            (slope,) = torch.autograd.grad(bound.sum(), theta)
            slopes.append(slope)
        curvature = (slopes[0].unsqueeze(1) - torch.stack(slopes[1:], dim=1)) / difference
        curvature = 0.5 * (curvature + curvature.transpose(1, 2))
        both = prior.used[:, :, None] & prior.used[:, None, :]
        curvature = torch.where(both, torch.nan_to_num(curvature, 0.0, 0.0, 0.0), 0.0)
        # In units of the prior's deviation, q(θ) is never wider than the prior.
        scale = prior.std[:, :, None] * prior.std[:, None, :]
        values, vectors = torch.linalg.eigh(curvature * scale)
        spread = (vectors / (1.0 + values.abs()).unsqueeze(1)) @ vectors.transpose(1, 2)
        root = factor(spread * scale)
        root = torch.where(both, torch.nan_to_num(root, 0.0), 0.0)
        diagonal = torch.diagonal(root, dim1=1, dim2=2)
        log = torch.where(diagonal > 0, torch.log(diagonal.clamp_min(1e-30)), 0.0)
        state.raw = torch.tril(root, -1) + torch.diag_embed(log)

    # -- the best q(u) -------------------------------------------------------------------------

    def moments(self, total: Sums) -> tuple[Any, Any]:
        """Return mean (K, M) and Cholesky factor (K, M, M) of the covariance of the best q(u)."""
        mean, C = Inducing(total.precision, total.linear).moments()
        eye = torch.eye(C.shape[1], dtype=C.dtype, device=C.device).expand_as(C)
        inverse = torch.linalg.solve_triangular(C, eye, upper=False)
        return mean, factor(inverse.transpose(1, 2) @ inverse)
