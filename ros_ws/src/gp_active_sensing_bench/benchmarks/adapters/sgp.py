"""Planner with sgptools' ContinuousSGP, for the policy `external`.

The planner follows the library's quick start. K-means points form a short tour. The bound of a
sparse Gaussian process then moves these points. The library senses along the path. The remaining
metres are the distance budget of a path. Longer paths are penalised, not excluded.

The first path uses a length-scale of a quarter of the map. At the end of a path, the planner plans
another path. With the option ``online``, the planner also plans again after ten readings, and
whenever the number of readings has doubled. Later paths use hyper-parameters that the library fits
to the readings. The driven places are fixed waypoints of later paths.

The library does not know roads and obstacles. The answer is therefore the permitted place nearest
to the next place of the path. The program runs in the environment of ``sgptools.txt`` without this
project.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import warnings
from itertools import pairwise
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import gpflow
import numpy as np
import tensorflow as tf
from sgptools.core.transformations import IPPTransform
from sgptools.methods import get_method
from sgptools.utils.gpflow import get_model_params
from sgptools.utils.misc import get_inducing_pts
from sgptools.utils.tsp import run_tsp

FIT_FROM = 10
"""Smallest number of readings for a fit of the hyper-parameters."""
STEPS, FIT_STEPS = 200, 200
"""Number of optimisation steps for a path, and for a fit of the hyper-parameters."""
SAMPLES = 5
"""Number of sensing points between two consecutive corners of a path."""
CORNERS = (4, 40)
"""Smallest and largest number of corners of a path."""
EVERY = 4
"""Every `EVERY`-th place on the driven path is a fixed waypoint of a new path."""
PENALTY = 100.0
"""Weight of the library's penalty on distance beyond the budget."""
QUARTER = 0.25


class Session:
    """Planner on one map, with its current path.

    Args:
        places: description of the map, as in a message of the policy `external`.
        online: True to plan again before the end of a path.
    """

    def __init__(self, places: dict[str, Any], *, online: bool = False) -> None:
        at = np.array(places["positions"], dtype=float)
        apart = np.hypot(*(at[:, None] - at).transpose(2, 0, 1))
        np.fill_diagonal(apart, math.inf)
        self.step = float(np.median(apart.min(axis=1)))
        self.at = (at - at.min(axis=0)) / self.step
        """Positions (n, 2) of the places, in units of the median distance to the nearest place."""
        self.route: list[int] = []
        self.trail: list[int] = []
        """Place of the robot at each decision."""
        self.online = online
        self.next_plan = 0
        """Number of readings at which the path is planned again."""

    def choose(self, task: dict[str, Any]) -> dict[str, Any]:
        told = task["belief"]["readings"]
        options = task["candidates"]["places"]
        if task["at"] is None:
            return {"place": options[0]}
        self.trail.append(task["at"])
        read = set(told["places"]) | set(task["pending"]) | set(task["unavailable"])
        self.route = [place for place in self.route if place not in read]
        again = self.online and len(told["places"]) >= self.next_plan
        if again or not self.route:
            self.plan(task)
            self.next_plan = max(FIT_FROM, 2 * len(told["places"]))
            self.route = [place for place in self.route if place not in read]
        goal = self.route[0] if self.route else None
        if goal is None:
            metres = task["candidates"]["metres"]
            return {"place": options[int(np.argmin(metres))]}
        away = np.hypot(*(self.at[options] - self.at[goal]).T)
        best = options[int(away.argmin())]
        return {"place": best, "route": [place for place in self.route if place != best][:20]}

    def plan(self, task: dict[str, Any]) -> None:
        """Plan a path from the place of the robot with the remaining budget."""
        tf.random.set_seed(task["seed"])
        start = self.at[task["at"]]
        kernel, noise = self.model(task["belief"])
        metres = task["remaining"]["metres"]
        readings = task["remaining"]["readings"]
        left = [v for v in (metres and metres / self.step, readings) if v is not None]
        budget = float(min(left)) if left else float(len(self.at))
        # A tour through k points in an area A has a length of about 0.7 √(kA).
        area = float(np.prod(np.ptp(self.at, axis=0) + 1.0))
        corners = int(np.clip((budget / 0.7) ** 2 / area, *CORNERS))
        unread = np.setdiff1d(np.arange(len(self.at)), task["belief"]["readings"]["places"])
        corners = min(corners, len(unread) - 1)
        points = get_inducing_pts(self.at[unread], corners, seed=task["seed"])
        paths, _ = run_tsp(points, start_nodes=start[None, :], time_limit=5)
        path = np.asarray(paths[0], dtype=float)
        if np.hypot(*(path[0] - start)) < 1e-6:
            path = path[1:]
        driven = self.at[[*self.trail[:-1][::EVERY], task["at"]]]
        before = float(np.hypot(*np.diff(driven, axis=0).T).sum())
        transform = IPPTransform(
            sampling_rate=SAMPLES,
            distance_budget=before + budget,
            Xu_fixed=driven[None],
            constraint_weight=PENALTY,
        )
        whole = np.vstack([driven, path])
        method = get_method("ContinuousSGP")(
            len(whole), self.at, kernel, noise, transform=transform, X_init=whole
        )
        found = np.asarray(method.optimize(max_steps=STEPS)[0][len(driven) - 1 :], dtype=float)
        self.route = self.laid(found)
        length = float(np.hypot(*np.diff(found, axis=0).T).sum())
        scale = float(np.mean(kernel.lengthscales.numpy()))
        sys.stderr.write(
            f"{corners} corners, {length:.0f} of {budget:.0f} steps, length-scale {scale:.2g}, "
            f"noise {noise:.2g}\n"
        )

    def model(self, belief: dict[str, Any]) -> tuple[Any, float]:
        """Return the kernel and the noise variance for standardised readings."""
        told = belief["readings"]
        length = QUARTER * float(np.ptp(self.at, axis=0).max())
        kernel = gpflow.kernels.SquaredExponential(lengthscales=length, variance=1.0)
        values = np.array(told["values"], dtype=float)
        if len(values) < FIT_FROM or values.std() <= 0.0:
            return kernel, 0.01
        values = (values - values.mean()) / values.std()
        _, noise, fitted = get_model_params(
            self.at[told["places"]],
            values[:, None],
            max_steps=FIT_STEPS,
            verbose=False,
            kernel=kernel,
            noise_variance=0.01,
        )
        return fitted, float(np.asarray(noise))

    def laid(self, path: np.ndarray) -> list[int]:
        """Return the distinct places along a path, in order."""
        found: list[int] = []
        for a, b in pairwise(path):
            count = max(2, math.ceil(2.0 * float(np.hypot(*(b - a)))))
            for point in np.linspace(a, b, count):
                place = int(np.hypot(*(self.at - point).T).argmin())
                if place not in found:
                    found.append(place)
        return found


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keep the library's output out of the answers
    session = None
    for line in sys.stdin:
        task = json.loads(line)
        if task["type"] == "map":
            session = Session(task, online="online" in sys.argv[1:])
        elif session is not None:
            answers.write(f"{json.dumps(session.choose(task))}\n")
            answers.flush()


if __name__ == "__main__":
    main()
