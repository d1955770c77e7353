"""Settings of VBKS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError


@dataclass(frozen=True)
class VbksConfig:
    """Configuration of learning a belief over kernels. [Teng2020, Sec. 4]."""

    REMOVED: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "race": "was removed; the worse half of the starts is dropped three times",
            "shuffle": "was removed; stages take rows in random order",
            "whitened": "was removed; q(u) is whitened where q(θ) is a point",
            "dtype": "was removed; everything is computed in float64",
        }
    )

    inducing: int = param(
        64, help="number M of inducing variables of each kernel", low=1, high=5000
    )
    batch: int = param(
        512,
        help="number of rows in a mini-batch. If there are no more rows than this, each step uses "
        "all",
        low=1,
    )
    iterations: int = param(2000, help="largest number of steps in each stage", low=1)
    rate: float = param(
        0.02,
        help="step size of Adam, for the logarithms of the hyperparameters "
        "and for the scaled inducing inputs",
        above=0.0,
    )
    hyperparameters: str = param(
        "full",
        help="distribution q(θ) of the hyperparameters: full = a Gaussian with full covariance; "
        "point = one value (C_θ = 0)",
        choices=("full", "point"),
    )
    restarts: int = param(
        8,
        help="starting points of each kernel: the most promising of 64 draws. The best result is "
        "kept",
        low=1,
        high=64,
    )
    noise_floor: float = param(
        1e-3,
        help="smallest noise, as a fraction of the outputs' standard deviation",
        above=0.0,
        high=1.0,
    )
    prior_std: float = param(
        1.0,
        help="prior standard deviation s of the kernels' scores g: p(g) = N(0, s²I). A larger s "
        "lets the belief over kernels move farther from uniform",
        above=0.0,
        high=1000.0,
    )
    samples: int = param(
        2000,
        help="number of samples of the scores g from which the belief over kernels is computed",
        low=2,
    )
    theta_samples: int = param(
        16,
        help="samples of q(θ) for a local ELBO. If there are few rows, more samples are drawn. "
        "Samples times rows stay below a million",
        low=2,
    )
    evaluate_every: int = param(100, help="steps between estimates of the bound", low=1)
    tolerance: float = param(
        1e-3, help="smallest gain of the bound that counts as a gain", unit="nat a row", low=0.0
    )
    patience: int = param(
        3,
        help="number of estimates without a gain before the step is divided by four. A kernel has "
        "converged at the third division, or at the first if q(θ) is a Gaussian",
        low=1,
    )
    stages: tuple[float, ...] = param(
        (1.0,),
        help="fractions of the rows after which the belief is recorded",
        min_items=1,
        above=0.0,
    )
    centre: bool = param(
        True,
        help="true = inputs and outputs are shifted and scaled. false = they are only scaled, for "
        "data in which 0 has a meaning",
    )
    memory: float = param(
        1.0, help="approximate limit of all arrays together", unit="GB", above=0.0
    )
    device: str = param("auto", help="device of the computation", choices=("auto", "cpu", "cuda"))
    seed: int = param(
        0, help="seed of the draws of rows, starts and samples", low=0, high=2**63 - 1
    )

    def natural_step(self, inducing: int) -> float:
        """Return the step size of the natural gradient of q(u), at most 0.5.

        With this step size, q(u) averages over about four rows per inducing variable.
        """
        return min(0.5, self.batch / (4.0 * inducing))

    def __post_init__(self) -> None:
        if list(self.stages) != sorted(set(self.stages)) or self.stages[-1] != 1.0:
            msg = f"stages: expected ascending shares that end with 1, got {list(self.stages)}"
            raise ConfigError(msg)


@dataclass(frozen=True)
class TrainingProgress:
    """Progress of learning kernels.

    Args:
        kernels: names of the kernels that are optimised together as a group.
        finished: number of finished kernels in all groups.
        total: number of kernels in all groups.
        stage, stages: number of the current stage, counted from 1, and number of all stages.
        iteration, iterations: number of steps taken in the current stage, and limit of this number.
        rows: number of rows used in the current stage.
        bounds: estimated local ELBO of each of `kernels` [nat]; NaN for a dropped kernel.
    """

    kernels: tuple[str, ...]
    finished: int
    total: int
    stage: int
    stages: int
    iteration: int
    iterations: int
    rows: int
    bounds: tuple[float, ...]
