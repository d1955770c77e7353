"""The result of VBKS: a belief over kernels, and a sparse Gaussian process under each.

All that a fit holds is in normalised units, those of `Scaling`. [Teng2020, Sec. 3]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gp_active_sensing.kernel_model.fit import KernelFit
from gp_active_sensing.kernel_model.posterior import SAMPLES as DRAWS
from gp_active_sensing.kernel_model.posterior import KernelPosterior, kernel_belief
from gp_active_sensing.kernel_model.predictor import average
from gp_active_sensing.types import FloatArray

__all__ = ["History", "KernelModel", "Scaling"]

SAMPLES = 32
"""Of θ, of which the moments of a prediction are made where q(θ) is no point."""


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
        """Return mean and variance (m,) of the Bayesian model average. [Teng2020, Eqs. 14-15].

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
        """
        return average(self, X, noisy=noisy, samples=samples, kernels=kernels, seed=seed)

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
