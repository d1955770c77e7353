"""GPyTorch's own stochastic variational Gaussian process, to compare with. [Hensman2013].

One kernel, hyper-parameters at one value. q(v) by GPyTorch's natural gradients: with Adam for all,
the field is soon taken for noise, and mostly stays so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import torch

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model import Scaling
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.learning.kernel_selection.config import VbksConfig
from gp_active_sensing.learning.kernel_selection.data import Data, inducing_inputs, scaling_of
from gp_active_sensing.learning.kernel_selection.state import start_of
from gp_active_sensing.types import FloatArray
from kernel_selection.gpytorch_kernels import as_gpytorch, likelihood, theta_of

__all__ = ["Svgp", "Trainer", "train"]

_SHARE = 0.2
"""Share of the steps that all starts take before the best goes on alone, as of VBKS."""
_NATURAL = 0.1
"""Step of the natural gradient where none is asked for, as in GPyTorch's own examples."""
_LAST = 0.01
"""Step at the end, as a share of that at the start: it goes down as a cosine."""
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Svgp:
    """A trained stochastic variational Gaussian process.

    Args:
        model, likelihood: of GPyTorch.
        composite: its kernel.
        scaling: of inputs and outputs.
        losses: (iterations,) minus the estimates of the bound, a row.
    """

    model: Any
    likelihood: Any
    composite: Composite
    scaling: Scaling
    losses: FloatArray

    @property
    def theta(self) -> FloatArray:
        """(P,) hyper-parameters, the noise above the floor among them."""
        theta = theta_of(self.composite, self.model.field)
        theta[0] = 0.5 * float(self.likelihood.noise_covar.raw_noise.detach())
        return theta

    def predict(self, X: FloatArray, *, noisy: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (m,) at X (m, d), in the outputs' unit.

        Args:
            X: inputs in the given units.
            noisy: of a new output instead of the noise-free function.
        """
        Z = self.scaling.inputs(X)
        means, variances = [], []
        with torch.no_grad():
            for first in range(0, len(Z), _BLOCK):
                found = self.model(torch.from_numpy(Z[first : first + _BLOCK]))
                found = self.likelihood(found) if noisy else found
                means.append(found.mean.numpy())
                variances.append(found.variance.numpy())
        scale = self.scaling.output_scale
        mean = self.scaling.output_shift + scale * np.concatenate([np.zeros(0), *means])
        return mean, scale**2 * np.concatenate([np.zeros(0), *variances])


class _Sparse(gpytorch.models.ApproximateGP):  # type: ignore[misc]
    def __init__(self, kernel: Any, Z: Any, learn: bool) -> None:
        q = gpytorch.variational.NaturalVariationalDistribution(len(Z), mean_init_std=0.0)
        super().__init__(
            gpytorch.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=learn)
        )
        self.field = kernel

    def forward(self, x: Any) -> Any:
        zero = torch.zeros(x.shape[:-1], dtype=x.dtype)
        return gpytorch.distributions.MultivariateNormal(zero, self.field(x))


class Trainer:
    """Trains one: the same rows, scaling, starts, inducing inputs and mini-batches as VBKS has.

    Args:
        rows: what from.
        composite: the kernel.
        config: inducing, batch, iterations, rate, natural_rate, noise_floor, learn_inducing,
            centre and seed are used.
        start: number of the start.
    """

    def __init__(
        self, rows: Dataset, composite: Composite, config: VbksConfig, start: int = 0
    ) -> None:
        if config.dtype != "float64":
            msg = f"dtype: the SVGP to compare with is float64, got {config.dtype}"
            raise ConfigError(msg)
        self.scaling = scaling_of(rows, config)
        self.composite = composite
        n = len(rows.outputs)
        data = Data.of(rows, self.scaling, config)
        self._batches = data.batches(len(config.stages) - 1, 0)
        theta = start_of(composite, start, config.seed)
        Z = torch.from_numpy(inducing_inputs(data, config.inducing))
        self.model = _Sparse(as_gpytorch(composite, theta), Z, config.learn_inducing).double()
        self.likelihood = likelihood(composite, theta, config.noise_floor)
        self.elbo = gpytorch.mlls.VariationalELBO(self.likelihood, self.model, n)
        others = [*self.model.hyperparameters(), *self.likelihood.parameters()]
        adam = torch.optim.Adam(others, lr=config.rate)
        natural = gpytorch.optim.NGD(
            self.model.variational_parameters(), num_data=n, lr=config.natural_rate or _NATURAL
        )
        self._optimisers = (natural, adam)
        self._rates = torch.optim.lr_scheduler.CosineAnnealingLR(
            adam, config.iterations, eta_min=_LAST * config.rate
        )
        self.losses: list[float] = []
        self.model.train()
        self.likelihood.train()

    def step(self) -> None:
        """Take one step."""
        X, y = next(self._batches)
        for optimiser in self._optimisers:
            optimiser.zero_grad()
        loss = -self.elbo(self.model(torch.from_numpy(X)), torch.from_numpy(y))
        loss.backward()
        for optimiser in self._optimisers:
            optimiser.step()
        self._rates.step()
        self.losses.append(float(loss.detach()))

    def result(self) -> Svgp:
        """Return what came of the steps."""
        self.model.eval()
        self.likelihood.eval()
        return Svgp(
            self.model, self.likelihood, self.composite, self.scaling, np.array(self.losses)
        )


def train(rows: Dataset, composite: Composite, config: VbksConfig) -> Svgp:
    """Return a trained one; as many starts as VBKS has take a share of the steps, the best all.

    Raises:
        ReadingError: outputs that do not vary.
        ConfigError: single precision.
    """
    several = [Trainer(rows, composite, config, start) for start in range(config.restarts)]
    early = max(1, round(_SHARE * config.iterations)) if len(several) > 1 else 0
    for trainer in several:
        for _ in range(early):
            trainer.step()
    best = several[0]
    if early:
        best = min(several, key=lambda t: float(np.mean(t.losses[-(early // 4) - 1 :])))
    for _ in range(config.iterations - early):
        best.step()
    return best.result()
