"""State of the optimisation of a group of kernels, and random samples for its steps."""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing_learning.kernel_selection.config import VbksConfig
from gp_active_sensing_learning.kernel_selection.covariances import Covariances
from gp_active_sensing_learning.kernel_selection.local_elbo import collapsed, sums

_BEGIN = 0.1
"""Initial standard deviation of each entry of θ under q(θ). The entries are logarithms."""
_NOISE = math.log(0.3)
"""Initial logarithm of the noise. A large noise prevents overfitting in the first steps."""


@dataclass
class State:
    """Variables of K restarts. The first axis of each tensor is the restart.

    A restart is a kernel with its own initial θ. C_θ is the Cholesky factor of the covariance of
    q(θ).

    Args:
        number: (K,) index of the restart in the group's list of restarts.
        mean: (K, P) mean of q(θ).
        raw: (K, P, P) lower triangle of C_θ, with logarithms on the diagonal.
        inducing: (K, M, d) inducing inputs.
        precision: (K, M, M) precision of q(u).
        linear: (K, M) precision of q(u) times its mean.
        moments: first and second moments of Adam for `mean`, `raw` and `inducing`.
        steps: (K,) number of steps of Adam.
        rate: (K,) step size of Adam.
        best: (K,) largest bound so far.
        stale: (K,) number of estimates since the bound last increased.
        cuts: (K,) number of plateaus of the bound so far.
        faults: (K,) number of infinite or NaN bounds.
        kept: values of `mean`, `raw` and `inducing` at the largest bound.
    """

    number: Any
    mean: Any
    raw: Any
    inducing: Any
    precision: Any
    linear: Any
    moments: tuple[Any, ...]
    steps: Any
    rate: Any
    best: Any
    stale: Any
    cuts: Any
    faults: Any
    kept: tuple[Any, ...]

    def cut(self, rows: Any) -> State:
        """Return the state of the restarts `rows`, given as indices or as a mask (K,)."""
        parts = {}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            parts[item.name] = (
                tuple(v[rows] for v in value) if isinstance(value, tuple) else value[rows]
            )
        return State(**parts)

    @property
    def variables(self) -> tuple[Any, Any, Any]:
        """Return the variables that Adam updates."""
        return self.mean, self.raw, self.inducing

    def arrays(self) -> dict[str, FloatArray]:
        """Return numpy arrays by name, for a checkpoint."""
        found = {}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            several = value if isinstance(value, tuple) else (value,)
            for k, tensor in enumerate(several):
                found[f"{item.name}.{k}"] = tensor.detach().cpu().numpy()
        return found

    @staticmethod
    def from_arrays(arrays: Mapping[str, FloatArray], device: Any) -> State:
        """Return the state that the method `arrays` stored."""
        parts: dict[str, Any] = {}
        for item in dataclasses.fields(State):
            names = sorted(
                (name for name in arrays if name.rpartition(".")[0] == item.name),
                key=lambda name: int(name.rpartition(".")[2]),
            )
            tensors = tuple(torch.from_numpy(np.array(arrays[name])).to(device) for name in names)
            parts[item.name] = tensors if item.name in ("moments", "kept") else tensors[0]
        return State(**parts)


def theta_root(raw: Any, used: Any, *, point: bool) -> Any:
    """Return the Cholesky factor (K, P, P) of q(θ) from `State.raw`; zeros for a point q(θ)."""
    if point:
        return torch.zeros_like(raw)
    diagonal = torch.exp(torch.diagonal(raw, dim1=1, dim2=2))
    root = torch.tril(raw, -1) + torch.diag_embed(diagonal)
    return root * (used[:, :, None] & used[:, None, :])


def scaled_root(raw: Any, factor: float) -> Any:
    """Return the value of `State.raw` after scaling the standard deviations of q(θ) by `factor`."""
    diagonal = torch.diagonal(raw, dim1=1, dim2=2) + math.log(factor)
    return factor * torch.tril(raw, -1) + torch.diag_embed(diagonal)


def begin(
    composites: Sequence[Composite],
    starts: Sequence[tuple[int, int]],
    inducing: FloatArray,
    config: VbksConfig,
    device: Any,
) -> State:
    """Return the initial state, with initial inducing inputs (M, d) for all kernels.

    `starts` has (index of the kernel, number of the restart) for each row of the state.
    """
    size = max(c.size for c in composites)
    K, M = len(starts), len(inducing)
    mean = np.zeros((K, size))
    raw = np.zeros((K, size, size))
    raw[:, np.arange(size), np.arange(size)] = math.log(_BEGIN)
    Z = np.repeat(inducing[None], K, axis=0)
    for row, (k, number) in enumerate(starts):
        c = composites[k]
        mean[row, : c.size] = start_of(c, number, config.seed)

    def tensor(values: Any) -> Any:
        return torch.as_tensor(np.asarray(values), dtype=torch.float64, device=device)

    variables = (tensor(mean), tensor(raw), tensor(Z))
    eye = torch.eye(M, dtype=torch.float64, device=device).expand(K, M, M)
    counts = [torch.zeros(K, dtype=torch.int64, device=device) for _ in range(4)]
    return State(
        number=torch.arange(K, device=device),
        mean=variables[0],
        raw=variables[1],
        inducing=variables[2],
        precision=eye.clone(),
        linear=torch.zeros((K, M), dtype=torch.float64, device=device),
        moments=tuple(torch.zeros_like(v) for v in (*variables, *variables)),
        steps=counts[0],
        rate=tensor(np.full(K, config.rate)),
        best=tensor(np.full(K, -math.inf)),
        stale=counts[1],
        cuts=counts[2],
        faults=counts[3],
        kept=tuple(v.clone() for v in variables),
    )


def start_of(composite: Composite, number: int, seed: int) -> FloatArray:
    """Return the initial θ (P,) of restart `number`. Restart 0 begins near the prior mean."""
    rng = np.random.default_rng([seed, zlib.crc32(composite.name.encode()), number])
    mean, std = composite.prior
    # Restart 0 is random too, because two equal base kernels with equal θ would stay equal.
    theta = mean + (0.2 if number == 0 else 0.8) * std * rng.standard_normal(composite.size)
    theta[composite.where("noise")] = _NOISE
    return np.asarray(theta)


_BLOCK = 64
"""Number of steps for which one random generator draws samples."""
_SPREAD = 0xE7A


class Draws:
    """Random samples for K restarts. The samples of a restart do not depend on other restarts.

    Args:
        kernels: (K,) kernel of each restart.
        starts: (K,) number of each restart.
        seed: seed of all samples.
        width: length P of θ including padding. Samples of the padding are 0.
    """

    def __init__(
        self, kernels: Sequence[Composite], starts: Sequence[int], seed: int, width: int
    ) -> None:
        self._rows = list(zip(kernels, starts, strict=True))
        self._seed, self._width = seed, width

    def zeros(self) -> FloatArray:
        """Return zeros (1, K, P), the only sample for a point q(θ)."""
        return np.zeros((1, len(self._rows), self._width))

    def steps(self, stage: int, step: int) -> Iterator[FloatArray]:
        """Yield standard normal samples (K, P) for each step of a stage, beginning with `step`."""
        while True:
            block = np.zeros((_BLOCK, len(self._rows), self._width))
            for i, (kernel, start) in enumerate(self._rows):
                rng = self._rng(kernel, start, stage, step // _BLOCK)
                block[:, i, : kernel.size] = rng.standard_normal((_BLOCK, kernel.size))
            yield from block[step % _BLOCK :]
            step += _BLOCK - step % _BLOCK

    def spread(self, count: int) -> FloatArray:
        """Return quasi-random standard normal samples (S, K, P), which are the same in all calls.

        The samples are from a scrambled Sobol sequence [Owen1998]. S is a power of two.
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
"""Number of initial values of θ that are compared for each kernel."""
_NOISES = (0.05, 0.3)
"""Noise that is tried with each initial θ, in standard deviations of the outputs."""
_ROWS, _INDUCING = 192, 24
"""Largest number of rows, and of inducing inputs, for comparing initial values of θ."""
_APART = 0.3
"""Smallest RMS difference between the initial θ of two restarts, in prior standard deviations."""


def best_starts(
    composite: Composite,
    rows: tuple[FloatArray, FloatArray],
    inducing: FloatArray,
    config: VbksConfig,
    device: Any,
) -> list[int]:
    """Return the indices of the best restarts in descending order of their bounds.

    The bound of a restart is the collapsed bound at its initial θ. It is computed from `rows`,
    which are inputs (b, d) and outputs (b,), and from the inducing inputs (M, d).
    """
    rng = np.random.default_rng([config.seed, 0x57A7])
    few = np.sort(rng.permutation(len(rows[1]))[:_ROWS])
    some = np.sort(rng.permutation(len(inducing))[:_INDUCING])
    thetas = np.array([start_of(composite, number, config.seed) for number in range(_DRAWS)])

    def tensor(values: FloatArray) -> Any:
        return torch.as_tensor(values, dtype=torch.float64, device=device)

    X, y, Z = tensor(rows[0][few]), tensor(rows[1][few]), tensor(inducing[some])
    covariances = Covariances([composite] * _DRAWS, device)
    best = np.full(_DRAWS, -np.inf)
    for noise in _NOISES:
        tried = thetas.copy()
        tried[:, composite.where("noise")] = np.log(noise)
        with torch.no_grad():
            # A weight above 1 would favour the few dimensions that the inducing inputs explain.
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
            bound = collapsed(found).cpu().numpy()
        best = np.maximum(best, np.where(np.isfinite(bound), bound, -np.inf))
    order = np.argsort(-best, kind="stable").astype(np.int64)
    return _apart(thetas / composite.prior[1], order, config.restarts)


def _apart(thetas: FloatArray, order: IntArray, count: int) -> list[int]:
    """Return the first entries of `order`, at most `count`, whose rows of `thetas` differ."""
    chosen: list[int] = []
    for number in order.tolist():
        away = [float(np.sqrt(np.mean((thetas[number] - thetas[c]) ** 2))) for c in chosen]
        if not away or min(away) > _APART:
            chosen.append(number)
        if len(chosen) == count:
            break
    return chosen
