"""Composite kernels as GPyTorch kernels, with the priors of their hyper-parameters.

GPyTorch's own kernels, joined as `Composite` joins them: each additive term has
a `ScaleKernel`, a leaf has no variance of its own. Every raw parameter is a logarithm, so that it
is a multiple of parameters in θ: GPyTorch's periodic kernel has ℓ where ours has ℓ², its linear
kernel a variance where ours has ℓ⁻².
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import gpytorch
import numpy as np
import torch

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import BaseKernel, Expression, Product, Sum
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["Binding", "as_gpytorch", "bindings", "likelihood", "theta_of"]

_SMOOTHNESS = {"MAT12": 0.5, "MAT32": 1.5, "MAT52": 2.5}
_FACTORS = {("PER", "length_scale"): 2.0, ("LIN", "length_scale"): -2.0}
"""What θ is multiplied with to have GPyTorch's logarithm, where it is not the same."""


@dataclass(frozen=True, eq=False)
class Binding:
    """Which parameter of a GPyTorch kernel some entries of θ are.

    Args:
        module: dotted path of the kernel that has it, "" for the outermost.
        attribute: its name there, without ``raw_``.
        indices: in θ.
        factor: the raw parameter is this times θ at the indices.
    """

    module: str
    attribute: str
    indices: IntArray
    factor: float

    @property
    def name(self) -> str:
        """Name of the raw parameter, as of `named_parameters`."""
        return ".".join(part for part in (self.module, f"raw_{self.attribute}") if part)


class _Sum(gpytorch.kernels.AdditiveKernel):  # type: ignore[misc]
    """A sum of dense matrices: GPyTorch factorises one to add another of low rank."""

    def forward(self, x1: Any, x2: Any, diag: bool = False, **params: Any) -> Any:
        return reduce(operator.add, _dense(self.kernels, x1, x2, diag, params))


class _Product(gpytorch.kernels.ProductKernel):  # type: ignore[misc]
    """A product of dense matrices: GPyTorch multiplies approximate roots of square ones."""

    def forward(self, x1: Any, x2: Any, diag: bool = False, **params: Any) -> Any:
        return reduce(operator.mul, _dense(self.kernels, x1, x2, diag, params))


def _dense(kernels: Any, x1: Any, x2: Any, diag: bool, params: dict[str, Any]) -> Iterator[Any]:
    for kernel in kernels:
        found = kernel(x1, x2, diag=diag, **params)
        yield found if diag else found.to_dense()


def as_gpytorch(composite: Composite, theta: FloatArray | None = None) -> Any:
    """Return the kernel as a `gpytorch.kernels.Kernel`, in double precision, priors registered.

    Its matrix is `Composite.covariance`; the noise in θ is not the kernel's, see `likelihood`.

    Args:
        composite: the kernel.
        theta: (P,) hyper-parameters; None: the means of their prior.
    """
    kernel = _built(composite.expression, composite.dimensions, scaled=False).double()
    means, stds = composite.prior
    theta = means if theta is None else np.asarray(theta, dtype=np.float64)
    parameters = dict(kernel.named_parameters())
    for bound in bindings(composite):
        raw = parameters[bound.name]
        value = torch.from_numpy(bound.factor * theta[bound.indices])
        with torch.no_grad():
            raw.copy_(value.reshape(raw.shape))
        prior = gpytorch.priors.NormalPrior(
            torch.from_numpy(means[bound.indices]).reshape(raw.shape),
            torch.from_numpy(stds[bound.indices]).reshape(raw.shape),
        )
        kernel.get_submodule(bound.module).register_prior(
            f"log_{bound.attribute}",
            prior,
            _Read(bound.attribute, bound.factor),
            _Write(bound.attribute, bound.factor),
        )
    return kernel


def theta_of(composite: Composite, kernel: Any, noise_std: float | None = None) -> FloatArray:
    """Return θ (P,) of a kernel that `as_gpytorch` made.

    Args:
        composite: what it was made of.
        kernel: the GPyTorch kernel.
        noise_std: of a reading, above the floor; None: the mean of its prior.
    """
    theta = composite.prior[0].copy()
    if noise_std is not None:
        theta[0] = math.log(noise_std)
    parameters = dict(kernel.named_parameters())
    for bound in bindings(composite):
        raw = parameters[bound.name].detach().cpu().numpy().ravel()
        theta[bound.indices] = raw / bound.factor
    return np.asarray(theta)


def likelihood(composite: Composite, theta: FloatArray | None = None, floor: float = 0.0) -> Any:
    """Return the Gaussian likelihood with the noise of θ, its prior registered.

    The variance is ``floor² + exp(2 θ_noise)``.

    Args:
        composite: the kernel.
        theta: (P,); None: the means of the prior.
        floor: least standard deviation of a reading.
    """
    means, stds = composite.prior
    theta = means if theta is None else theta
    above = gpytorch.constraints.GreaterThan(
        floor * floor, transform=torch.exp, inv_transform=torch.log
    )
    made = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=above).double()
    noise = made.noise_covar
    with torch.no_grad():
        noise.raw_noise.fill_(2.0 * float(theta[0]))
    noise.register_prior(
        "log_noise",
        gpytorch.priors.NormalPrior(torch.tensor(means[0]), torch.tensor(stds[0])),
        _Read("noise", 2.0),
        _Write("noise", 2.0),
    )
    return made


def bindings(composite: Composite) -> tuple[Binding, ...]:
    """Return which raw parameters of the GPyTorch kernel the entries of θ are, the noise aside."""
    return tuple(_bound(composite, composite.expression, "", [0, 0], scaled=False))


def _bound(
    composite: Composite, expression: Expression, path: str, used: list[int], *, scaled: bool
) -> Iterator[Binding]:
    """Yield the bindings of a part.

    Args:
        composite: the whole.
        expression: the part.
        path: of its kernel.
        used: leaves and scales before it; counted on.
        scaled: a factor of a product, which has no scale of its own unless it is a sum.
    """
    if _has_scale(expression, scaled=scaled):
        yield Binding(path, "outputscale", composite.where("scale", used[1]), 2.0)
        used[1] += 1
        path = _joined(path, "base_kernel")
    if not isinstance(expression, BaseKernel):
        inside = isinstance(expression, Product)
        for k, part in enumerate(expression.parts):
            yield from _bound(composite, part, _joined(path, f"kernels.{k}"), used, scaled=inside)
        return
    leaf, base = used[0], expression.base
    used[0] += 1
    names = {"length_scale": "variance" if base == "LIN" else "lengthscale"}
    names.update({"period": "period_length", "alpha": "alpha"})
    for kind, name in names.items():
        where = composite.where(kind, leaf)
        if len(where):
            yield Binding(path, name, where, _FACTORS.get((base, kind), 1.0))


def _built(expression: Expression, dimensions: int, *, scaled: bool) -> Any:
    """Return the GPyTorch kernel of a part over inputs of `dimensions`; `scaled` as of `_bound`."""
    if _has_scale(expression, scaled=scaled):
        inner = _built(expression, dimensions, scaled=True)
        return gpytorch.kernels.ScaleKernel(inner, outputscale_constraint=_positive())
    if isinstance(expression, BaseKernel):
        return _leaf(expression.base, dimensions)
    inside = isinstance(expression, Product)
    parts = [_built(part, dimensions, scaled=inside) for part in expression.parts]
    if isinstance(expression, Sum):
        return _Sum(*parts)
    return _Product(*parts)


def _has_scale(expression: Expression, *, scaled: bool) -> bool:
    """Return whether a part is one additive term, scaled as a whole."""
    if scaled or isinstance(expression, Sum):
        return False
    return isinstance(expression, BaseKernel) or not any(
        isinstance(p, Sum) for p in expression.parts
    )


def _leaf(base: str, dimensions: int) -> Any:
    lengths: dict[str, Any] = {"ard_num_dims": dimensions, "lengthscale_constraint": _positive()}
    if base == "LIN":
        return gpytorch.kernels.LinearKernel(
            ard_num_dims=dimensions, variance_constraint=_positive()
        )
    if base == "SE":
        return gpytorch.kernels.RBFKernel(**lengths)
    if base == "PER":
        return gpytorch.kernels.PeriodicKernel(period_length_constraint=_positive(), **lengths)
    if base == "RQ":
        return gpytorch.kernels.RQKernel(alpha_constraint=_positive(), **lengths)
    return gpytorch.kernels.MaternKernel(nu=_SMOOTHNESS[base], **lengths)


def _positive() -> Any:
    return gpytorch.constraints.Positive(transform=torch.exp, inv_transform=torch.log)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@dataclass(frozen=True)
class _Read:
    """Reads the entries of θ that a parameter is; an object, so that kernels can be copied."""

    attribute: str
    factor: float

    def __call__(self, module: Any) -> Any:
        return getattr(module, f"raw_{self.attribute}") / self.factor


@dataclass(frozen=True)
class _Write:
    """Sets a parameter from entries of θ."""

    attribute: str
    factor: float

    def __call__(self, module: Any, value: Any) -> None:
        raw = getattr(module, f"raw_{self.attribute}")
        with torch.no_grad():
            raw.copy_(torch.as_tensor(value * self.factor).reshape(raw.shape))
