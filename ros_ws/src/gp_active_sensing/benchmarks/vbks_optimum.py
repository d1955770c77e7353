"""What the evidence of a kernel is when nothing is spared: what a belief is held against.

θ is where p(y|θ)p(θ) is largest, by L-BFGS from many starts; there the exact log p(y|θ), and the
log evidence by the Laplace approximation. The search itself goes by the collapsed bound with fixed
inducing inputs [Titsias2009], which a sufficient number of them makes as good as equal and an
evaluation thirty times cheaper. How much is lost to it is told, kernel by kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from kernel_selection.exact import Posterior
from scipy.optimize import minimize

from gp_active_sensing.errors import BeliefError
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.learning.kernel_selection.config import VbksConfig
from gp_active_sensing.learning.kernel_selection.local_elbo import collapsed, sums
from gp_active_sensing.learning.kernel_selection.state import best_starts, start_of
from gp_active_sensing.types import FloatArray

REACH = 6.0
"""Standard deviations of the prior within which θ is searched."""
NEARLY = 3.0
"""Logarithm of the exponent a with which an RQ begins that is to be an SE."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in units of their root mean square, nothing shifted, as `centre: false` has them.

    Args:
        X: (n, d) inputs.
        y: (n,) outputs.
        unit: (d,) of the inputs.
        scale: of the outputs.
    """

    X: FloatArray
    y: FloatArray
    unit: FloatArray
    scale: float

    @staticmethod
    def of(rows: Dataset) -> Rows:
        unit = np.sqrt((rows.inputs**2).mean(axis=0))
        scale = float(np.sqrt((rows.outputs**2).mean()))
        return Rows(rows.inputs / unit, rows.outputs / scale, unit, scale)

    def some(self, count: int) -> Rows:
        """The first rows, in the same units."""
        return Rows(self.X[:count], self.y[:count], self.unit, self.scale)

    def inducing(self, count: int) -> FloatArray:
        """(M, d) inducing inputs: quantiles of the inputs, the first and the last among them."""
        count = min(count, len(self.X))
        return np.asarray(np.quantile(self.X, np.linspace(0.0, 1.0, count), axis=0))


class Collapsed(Posterior):
    """The same posterior with the collapsed bound in place of log p(y|θ).

    Args:
        composite: the kernel.
        rows: scaled.
        floor: of the noise.
        inducing: inputs, of which there are so many.
    """

    def __init__(self, composite: Composite, rows: Rows, floor: float, inducing: int) -> None:
        super().__init__(composite, rows.X, rows.y, floor)
        self._Z = torch.from_numpy(rows.inducing(inducing))[None]

    def _parts(self, theta: Any) -> tuple[Any, Any]:
        found = sums(
            self._covariances, theta[None], self._Z, self._X[0], self._y,
            weight=1.0, floor=self._floor, whitened=True,
        )  # fmt: skip
        away = (theta - self._mean) / self._std
        prior = -0.5 * (away * away + math.log(2.0 * math.pi)) - torch.log(self._std)
        return collapsed(found).sum(), prior.sum()


@dataclass(frozen=True, eq=False)
class Evidence:
    """Of one kernel.

    Args:
        theta: (P,) where it is most probable.
        exact: log p(y|θ) there [nat].
        laplace: log evidence [nat].
        lost: by how much the bound of the search is below `exact` there [nat].
    """

    theta: FloatArray
    exact: float
    laplace: float
    lost: float


def evidence(
    composite: Composite,
    rows: Rows,
    floor: float,
    starts: Sequence[FloatArray],
    *,
    inducing: int,
    steps: int,
) -> Evidence:
    """Return the evidence of a kernel, from the best θ that so many searches find.

    Args:
        composite: the kernel.
        rows: scaled.
        floor: of the noise.
        starts: (P,) each.
        inducing: inputs of the search.
        steps: of L-BFGS at most, from each start.
    """
    bound = Collapsed(composite, rows, floor, inducing)
    mean, std = composite.prior
    low, high = mean - REACH * std, mean + REACH * std
    best: tuple[float, FloatArray] | None = None
    for start in starts:
        done: Any = minimize(
            bound.negative, np.clip(start, low, high), jac=True, method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)), options={"maxiter": steps},
        )  # fmt: skip
        if done.fun < 1e9 and (best is None or done.fun < best[0]):
            best = float(done.fun), np.asarray(done.x, dtype=np.float64)
    if best is None:
        msg = f"kernel {composite.name}: its covariance is not positive definite at any start"
        raise BeliefError(msg)
    theta = best[1]
    exact = Posterior(composite, rows.X, rows.y, floor).log_likelihood(theta)
    lost = exact - bound.log_likelihood(theta)
    return Evidence(theta, exact, bound.laplace(theta) + lost, lost)


def drawn_starts(composite: Composite, rows: Rows, config: VbksConfig) -> list[FloatArray]:
    """Return the most promising of many draws from the prior, as many as `config.restarts`."""
    Z, device = rows.inducing(config.inducing), torch.device("cpu")
    few = (rows.X[:: max(1, len(rows.X) // 512)], rows.y[:: max(1, len(rows.X) // 512)])
    numbers = best_starts(composite, few, Z, config, device, torch.float64)
    return [start_of(composite, number, config.seed) for number in numbers]


def of_twins(composite: Composite, found: Mapping[str, FloatArray]) -> list[FloatArray]:
    """Return starts from kernels that differ by an SE in place of an RQ, or the other way round.

    An RQ with a large exponent is an SE: with the same other parameters the one is as good as the
    other, so that neither can be far behind because its search ended elsewhere.
    """
    made = []
    for name, theta in found.items():
        other = Composite(_parsed(name), composite.dimensions)
        pairs = list(zip(other.leaves, composite.leaves, strict=False))
        same_form = _form(name) == _form(composite.name)
        if name == composite.name or not same_form or len(other.leaves) != len(composite.leaves):
            continue
        if any(a != b and {a, b} != {"SE", "RQ"} for a, b in pairs):
            continue
        start = np.zeros(composite.size)
        for i, p in enumerate(composite.parameters):
            there = other.where(p.kind, p.leaf) if p.leaf >= 0 else other.where(p.kind)
            start[i] = theta[there[max(p.dimension, 0)]] if len(there) else NEARLY
        made.append(start)
    return made


def _parsed(name: str) -> Any:
    from gp_active_sensing.kernels.grammar import parse

    return parse(name)


def _form(name: str) -> str:
    return name.replace("SE", "k").replace("RQ", "k")
