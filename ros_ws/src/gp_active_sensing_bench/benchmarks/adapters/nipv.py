"""Planner with BoTorch's qNegIntegratedPosteriorVariance, for the policy `external`.

Each decision fits a `SingleTaskGP` to the readings. The answer is the place whose next reading
gives the smallest integrated variance. The program uses its own model, not the mission's belief. It
runs in the environment of ``botorch.txt`` without this project.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import torch
from botorch.acquisition import qNegIntegratedPosteriorVariance
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.mlls import ExactMarginalLogLikelihood

POINTS, BATCH = 256, 64
"""Largest number of places in the variance integral, and of candidate places in a batch."""
FEWEST = 3
"""Smallest number of readings for a fit. With fewer, BoTorch's default hyper-parameters apply."""


class Session:
    """Planner on one map. `places` describes the map, as the policy `external` sends it."""

    def __init__(self, places: dict[str, Any]) -> None:
        self.at = torch.tensor(places["positions"], dtype=torch.float64)
        low, high = self.at.min(dim=0).values, self.at.max(dim=0).values
        self.bounds = torch.stack([low, torch.maximum(high, low + 1.0)])
        self.weights = torch.tensor(places["weights"], dtype=torch.float64)

    def model(self, told: dict[str, Any]) -> SingleTaskGP:
        x = self.at[told["places"]]
        y = torch.tensor(told["values"], dtype=torch.float64)[:, None]
        scale = Standardize(1) if len(y) >= FEWEST else None
        model = SingleTaskGP(
            x,
            y,
            input_transform=Normalize(2, bounds=self.bounds),
            outcome_transform=scale,
        )
        if scale is not None:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def choose(self, task: dict[str, Any]) -> dict[str, Any]:
        torch.manual_seed(task["seed"])
        told, options = task["belief"]["readings"], task["candidates"]["places"]
        if not told["places"]:
            return {"place": options[0]}
        weights = self.weights if float(self.weights.sum()) > 0.0 else torch.ones(len(self.at))
        count = min(POINTS, int((weights > 0.0).sum()))
        points = self.at[torch.multinomial(weights, count, replacement=False)]
        acquisition = qNegIntegratedPosteriorVariance(self.model(told), mc_points=points)
        with torch.no_grad():
            parts = self.at[options][:, None, :].split(BATCH)
            value = torch.cat([acquisition(part) for part in parts])
        best = int(value.argmax())
        return {"place": options[best], "value": float(value[best])}


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    session = None
    for line in sys.stdin:
        task = json.loads(line)
        if task["type"] == "map":
            session = Session(task)
        elif session is not None:
            sys.stdout.write(f"{json.dumps(session.choose(task))}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
