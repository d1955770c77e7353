"""Standard normal numbers for q(θ): those of a kernel do not depend on what others there are."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.types import FloatArray

__all__ = ["Draws"]

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
