"""Starting points of kernels, the best of many draws; random numbers of the optimisation."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.learning.kernel_selection.config import VbksConfig
from gp_active_sensing.learning.kernel_selection.covariances import Covariances
from gp_active_sensing.learning.kernel_selection.local_elbo import collapsed, sums
from gp_active_sensing.learning.kernel_selection.state import start_of
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["Draws", "best_starts"]

_BLOCK = 64
"""Steps whose numbers are drawn together; a resumed run draws the same."""
_SPREAD = 0xE7A


class Draws:
    """Numbers for the rows of a state.

    Args:
        kernels: (K,) the kernel of each row.
        starts: (K,) the number of its start.
        seed: of all.
        width: P, of θ with its padding, which gets zeros.
    """

    def __init__(
        self, kernels: Sequence[Composite], starts: Sequence[int], seed: int, width: int
    ) -> None:
        self._rows = list(zip(kernels, starts, strict=True))
        self._seed, self._width = seed, width

    def zeros(self) -> FloatArray:
        """Return (1, K, P) zeros, the one sample of a point."""
        return np.zeros((1, len(self._rows), self._width))

    def steps(self, stage: int, step: int) -> Iterator[FloatArray]:
        """Yield (K, P) for one step after the other, from number `step` of a stage on."""
        while True:
            block = np.zeros((_BLOCK, len(self._rows), self._width))
            for i, (kernel, start) in enumerate(self._rows):
                rng = self._rng(kernel, start, stage, step // _BLOCK)
                block[:, i, : kernel.size] = rng.standard_normal((_BLOCK, kernel.size))
            yield from block[step % _BLOCK :]
            step += _BLOCK - step % _BLOCK

    def spread(self, count: int) -> FloatArray:
        """Return (S, K, P) that cover the normal distribution evenly, always the same.

        A scrambled Sobol sequence [Owen1998]; S is a power of two.
        """
        from scipy.special import ndtri
        from scipy.stats.qmc import Sobol

        found = np.zeros((count, len(self._rows), self._width))
        for i, (kernel, start) in enumerate(self._rows):
            points = Sobol(kernel.size, seed=self._rng(kernel, start, _SPREAD)).random(count)
            found[:, i, : kernel.size] = ndtri(np.clip(points, 1e-9, 1.0 - 1e-9))
        return found

    def _rng(self, kernel: Composite, start: int, *more: int) -> np.random.Generator:
        name = zlib.crc32(kernel.name.encode())
        return np.random.default_rng([self._seed, name, start, *more])


_DRAWS = 64
"""Draws of each kernel's prior that are looked at; the first is near its mean."""
_NOISES = (0.05, 0.3)
"""Each is looked at with these, as shares of the outputs' standard deviation."""
_ROWS, _INDUCING = 192, 24
"""Rows and inducing inputs that this is done with, at most."""
_APART = 0.3
"""Least root mean square difference of θ between two starts of a kernel, in prior deviations."""


def best_starts(
    composite: Composite,
    rows: tuple[FloatArray, FloatArray],
    inducing: FloatArray,
    config: VbksConfig,
    device: Any,
    dtype: Any,
) -> list[int]:
    """Return the numbers (see `start_of`) of the starts with the largest bounds, best first.

    The bound is the collapsed one at θ, a point.

    Args:
        composite: the kernel.
        rows: inputs (b, d) and outputs (b,).
        inducing: (M, d) inducing inputs.
        config: restarts, seed and noise_floor.
        device: of torch.
        dtype: of torch.
    """
    rng = np.random.default_rng([config.seed, 0x57A7])
    few = np.sort(rng.permutation(len(rows[1]))[:_ROWS])
    some = np.sort(rng.permutation(len(inducing))[:_INDUCING])
    thetas = np.array([start_of(composite, number, config.seed) for number in range(_DRAWS)])

    def tensor(values: FloatArray) -> Any:
        return torch.as_tensor(values, dtype=dtype, device=device)

    X, y, Z = tensor(rows[0][few]), tensor(rows[1][few]), tensor(inducing[some])
    covariances = Covariances([composite] * _DRAWS, device)
    best = np.full(_DRAWS, -np.inf)
    for noise in _NOISES:
        tried = thetas.copy()
        tried[:, composite.where("noise")] = np.log(noise)
        with torch.no_grad():
            # The rows count as they are, not as what they stand for: far from the best θ the few
            # dimensions that the inducing inputs can explain would decide alone.
            found = sums(
                covariances,
                tensor(tried),
                Z[None].expand(_DRAWS, -1, -1),
                X,
                y,
                weight=1.0,
                floor=config.noise_floor,
                whitened=True,
            )
            bound = collapsed(found).double().cpu().numpy()
        best = np.maximum(best, np.where(np.isfinite(bound), bound, -np.inf))
    order = np.argsort(-best, kind="stable").astype(np.int64)
    return _apart(thetas / composite.prior[1], order, config.restarts)


def _apart(thetas: FloatArray, order: IntArray, count: int) -> list[int]:
    """Return the first of an order that differ from those before, `count` at most."""
    chosen: list[int] = []
    for number in order.tolist():
        away = [float(np.sqrt(np.mean((thetas[number] - thetas[c]) ** 2))) for c in chosen]
        if not away or min(away) > _APART:
            chosen.append(number)
        if len(chosen) == count:
            break
    return chosen
