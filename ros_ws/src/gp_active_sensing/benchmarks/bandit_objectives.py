"""Measured fields whose hot spot is looked for: the heat of a lab, the slowest road of a city."""

from __future__ import annotations

import csv
import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from network_data import san_jose

from gp_active_sensing.belief import (
    Belief,
    BeliefConfig,
    GivenCovariance,
    HyperParameters,
    PriorMean,
    belief_on,
)
from gp_active_sensing.belief.empirical import empirical
from gp_active_sensing.belief.place_covariance import smooth_part
from gp_active_sensing.learning import PriorReadings, belief_section, learn
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bandits.gp_ucb import regret_bound
from gp_active_sensing.topology import FreeTopology, Roads
from gp_active_sensing.types import Budget, Reading

NOISE_SHARE = 0.05
"""Variance of a reading's noise, as a share of the field's."""


@dataclass(frozen=True)
class Task:
    """A prior, and a field whose highest (lowest) place is looked for.

    Args:
        name: of the objective.
        field: (n,) its values.
        mean: (n,) prior.
        covariance: (n, n) prior.
        objective: "maximise" or "minimise".
        number: of the task among those of its kind: its noise is its own.
    """

    name: str
    field: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    objective: str
    number: int = 0

    def belief(self) -> Belief:
        """The belief before the first reading; its noise is that of the readings."""
        variance = float(np.diagonal(self.covariance).mean())
        h = HyperParameters((1.0,), math.sqrt(variance), math.sqrt(NOISE_SHARE * variance))
        known = PriorMean(self.mean, np.zeros((len(self.mean), 0)), np.zeros(0))
        return Belief(GivenCovariance(self.covariance, [h]), known)


SOUND = (5.0, 45.0)
"""Temperatures in the lab [°C]; a mote that shows others has a fault (up to 122 °C)."""
TEN_DAYS = 288
"""Bins of 50 minutes; after them fewer motes than 12 are without a fault."""


def intel(folder: Path, *, own_means: bool = True) -> list[Task]:
    """Every half-hour of the last day; covariance and mean of the two days before.

    Args:
        folder: with the data.
        own_means: the prior mean of a mote is its own; otherwise that of all motes.
    """
    times, motes, values = _table(folder / "intel" / "intel50_temp_C_30min_mar01_03.csv")
    return _last_third(times, motes, values, own_means)


def intel_ten_days(folder: Path, *, own_means: bool = True) -> list[Task]:
    """Every other of the last 96 of 288 bins of 50 minutes, of the 40 motes without a fault."""
    times, motes, values = _table(folder / "intel" / "intel48_temp_C_50min_bins.csv")
    values = values[:TEN_DAYS]
    sound = ((values > SOUND[0]) & (values < SOUND[1])).all(axis=0)
    kept = [mote for mote, ok in zip(motes, sound, strict=True) if ok]
    return _last_third(times[:TEN_DAYS], kept, values[:, sound], own_means)[::2]


def _table(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """Times, motes, and (times, motes) temperatures."""
    with path.open(encoding="utf-8") as lines:
        head, *rows = csv.reader(lines)
    values = np.array([[float(v) for v in row[1:]] for row in rows])
    return [row[0] for row in rows], head[1:], values


def _last_third(
    times: list[str], motes: list[str], values: np.ndarray, own_means: bool
) -> list[Task]:
    """Every time of the last third as a field; covariance and mean of the first two thirds."""
    cut = 2 * len(values) // 3
    history = empirical(values[:cut], motes)
    mean = history.mean if own_means else np.full(len(motes), history.mean.mean())
    return [
        Task(time, field, mean, history.covariance, "maximise", number)
        for number, (time, field) in enumerate(zip(times[cut:], values[cut:], strict=True))
    ]


def slowest_roads(folder: Path) -> list[Task]:
    """Every Monday as a field; the network kernel is learned from the Monday before it.

    What the kernel does not explain of a sensor's speed belongs to the field that is looked for: it
    is a variance of each sensor's own. With one speed of each sensor it is learned as noise.
    """
    network = san_jose(folder)
    roads = Roads(network.road_map)
    config = BeliefConfig(kernel="graph_matern")
    tasks = []
    for week, field in enumerate(network.values):
        before = network.values[week - 1]  # of the first the last one
        readings = PriorReadings(network.places, before, f"week {week}")
        estimate = learn(config, roads, readings, starts=2)
        section = belief_section(estimate, config, "point")
        known = belief_on(dataclasses.replace(section, mean_std=0.0), roads)
        smooth = smooth_part(known.covariance).between(network.places, network.places)[0]
        covariance = smooth + estimate.noise_std**2 * np.eye(len(field))
        mean = np.full(len(field), estimate.mean[0])
        tasks.append(Task(f"week {week + 1}", field, mean, covariance, "minimise", week))
    return tasks


@dataclass(frozen=True)
class Outcome:
    """What a search came to.

    Args:
        average: (T,) average regret after 1 … T readings.
        bound: on the cumulative regret of all T, None where nothing is known.
    """

    average: np.ndarray
    bound: float | None


def search(task: Task, policy: dict[str, Any], readings: int, seed: int) -> Outcome:
    """Look for the best place, any place next; noise is drawn by seed, task, place and visit.

    With the same draws for every task all searches would be lucky, or not, together.
    """
    n = len(task.field)
    topology = FreeTopology("sensors", "map", [str(i) for i in range(n)], np.zeros((n, 2)))
    aim = {} if policy["name"] == "random" else {"objective": task.objective}
    chosen = build_policy({**policy, **aim})
    belief = task.belief()
    bound = regret_bound(chosen, belief, readings)
    noise = math.sqrt(float(belief.noise_variance[0]))
    loop = SensingLoop(topology, belief, chosen, budget=Budget(readings=readings), seed=seed)
    sign = 1.0 if task.objective == "maximise" else -1.0
    best = float((sign * task.field).max())
    visits = np.zeros(n, dtype=np.int64)
    regrets = []
    while (place := loop.ask(None).waypoint) is not None:
        rng = np.random.default_rng([seed, task.number, place, int(visits[place])])
        visits[place] += 1
        value = float(task.field[place] + noise * rng.standard_normal())
        loop.tell([Reading(len(regrets), place, value)])
        regrets.append(best - sign * float(task.field[place]))
        if len(regrets) == readings:
            break
    return Outcome(np.cumsum(regrets) / np.arange(1, len(regrets) + 1), bound)
