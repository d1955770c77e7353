"""BoTorch's side of compare.py: reads a task from stdin, answers one JSON line a result.

Runs in the environment of requirements.txt; imports nothing of this project.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import torch
from botorch.acquisition import qMultiStepLookahead, qNegIntegratedPosteriorVariance
from botorch.acquisition.analytic import PosteriorStandardDeviation
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood

STEPS, FANTASIES, RESTARTS, RAW, ITERATIONS, POINTS = 3, 4, 4, 64, 50, 256


class Session:
    """One field: the places, and what a reading of each gives."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.places = torch.tensor(task["positions"], dtype=torch.float64)
        self.values = torch.tensor(task["readings"], dtype=torch.float64)
        low, high = self.places.min(dim=0).values, self.places.max(dim=0).values
        self.bounds = torch.stack([low, high])

    def model(self, told: list[int], prior: bool) -> SingleTaskGP:
        """Fit to the readings: BoTorch's own priors, or none at all."""
        x, y = self.places[told], self.values[told][:, None]
        options: dict[str, Any] = {}
        if not prior:
            options = {"covar_module": ScaleKernel(RBFKernel()), "likelihood": GaussianLikelihood()}
        model = SingleTaskGP(
            x,
            y,
            input_transform=Normalize(2, bounds=self.bounds),
            outcome_transform=Standardize(1),
            **options,
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def choose(self, method: str, told: list[int], seed: int) -> tuple[int, SingleTaskGP]:
        """Return the next place, the unread one nearest to the optimiser's answer."""
        torch.manual_seed(seed)
        model = self.model(told, not method.endswith("no prior"))
        if method.startswith("qMultiStepLookahead"):
            acquisition = qMultiStepLookahead(
                model,
                batch_sizes=[1] * (STEPS - 1),
                num_fantasies=[FANTASIES] * (STEPS - 1),
                valfunc_cls=[PosteriorStandardDeviation] * STEPS,
            )
            count = acquisition.get_augmented_q_batch_size(1)
        else:
            sobol = torch.quasirandom.SobolEngine(2, scramble=True, seed=seed)
            spread = sobol.draw(POINTS, dtype=torch.float64)
            everywhere = self.bounds[0] + spread * (self.bounds[1] - self.bounds[0])
            acquisition = qNegIntegratedPosteriorVariance(model, mc_points=everywhere)
            count = 1
        found, _ = optimize_acqf(
            acquisition,
            self.bounds,
            q=count,
            num_restarts=RESTARTS,
            raw_samples=RAW,
            options={"maxiter": ITERATIONS, "seed": seed},
        )
        distance = ((self.places - found.reshape(-1, 2)[0]) ** 2).sum(dim=1)
        distance[told] = torch.inf
        return int(distance.argmin()), model

    def length_scales(self, model: SingleTaskGP) -> list[float]:
        kernel = getattr(model.covar_module, "base_kernel", model.covar_module)
        range_ = self.bounds[1] - self.bounds[0]
        return (kernel.lengthscale.detach().flatten() * range_).tolist()

    def map(self, model: SingleTaskGP) -> tuple[list[float], list[float]]:
        with torch.no_grad():
            posterior = model.posterior(self.places)
            return posterior.mean.flatten().tolist(), posterior.variance.flatten().tolist()


def main() -> None:
    warnings.simplefilter("ignore")
    task = json.load(sys.stdin)
    torch.set_num_threads(1)
    session = Session(task)
    if task["kind"] == "repeat":
        places = [session.choose(task["method"], task["told"], seed)[0] for seed in task["seeds"]]
        print(json.dumps({"places": places}))
        return
    told, seconds, fitted = [task["start"]], [], []
    while len(told) < task["count"]:
        before = time.process_time()
        place, model = session.choose(task["method"], told, task["seed"])
        seconds.append(time.process_time() - before)
        fitted.append(session.length_scales(model))
        told.append(place)
    model = session.model(told, not task["method"].endswith("no prior"))
    fitted.append(session.length_scales(model))
    mean, variance = session.map(model)
    print(
        json.dumps(
            {"told": told, "seconds": seconds, "fitted": fitted, "mean": mean, "variance": variance}
        )
    )


if __name__ == "__main__":
    main()
