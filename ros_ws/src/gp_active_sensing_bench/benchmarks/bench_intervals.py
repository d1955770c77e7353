"""Compare the errors that a belief predicts with the actual errors.

The report also has the coverage of the 90 % intervals at places without a reading. Missions use the
default belief. Field, start and noise depend only on the number of the field.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from belief_data import rng_of
from belief_scores import Mixture, score
from common import Report, Section
from interval_choice import COMMAND, KINDS, TOO_LARGE, choice, drawn, driven
from interval_ends import ends
from mapping_fields import MOVES, arenas, step_of
from mapping_runs import EXPANSIONS, Task, _drive, begin

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.planning import build_policy

POLICIES = ("lawnmower", "tour")
BUDGETS, STARTS = (40, 60, 120), 6
COUNTS, NOISES, PLACES = (1, 5, 30), (0.3, 0.05, 0.01), 40


def run(*, quick: bool = False, starts: int | None = None, budgets: str = "") -> Report:
    """Return the report.

    With `quick`, the report has only two tables, from one field of each data set and 40 moves.
    """
    logging.getLogger("gp_active_sensing").setLevel(logging.ERROR)
    draws = starts or (1 if quick else STARTS)
    given = [int(word) for word in budgets.split(",") if word]
    moves = given or list(BUDGETS[:1] if quick else BUDGETS)
    found = [routes(draws, moves), repeats(draws)]
    return Report(found if quick else [*found, *choice(draws), ends(max(1, draws // 4))])


def routes(draws: int, budgets: Sequence[int]) -> Section:
    """Return a table of missions on maps without roads."""
    section = Section(
        "Promised and actual error along routes",
        COMMAND,
        f"{draws} draws of each field. *Not kept*: share of missions whose actual error is more "
        f"than {TOO_LARGE} times the promised one. *Ratio*: the median of actual over promised "
        "error. *By 10*: the same after ten places. *In 90 %*: share of true values of unread "
        "places in the 90 % intervals.",
        ("policy", "moves", "missions", "not kept", "ratio", "by 10", "in 90 %"),
    )
    for policy in POLICIES:
        for k in budgets:
            rows = [
                mission(name, number, policy, k) for name in driven() for number in range(draws)
            ]
            ratio, early, held = (np.array(column) for column in zip(*rows, strict=True))
            section.rows.append(
                (policy, k, len(rows), f"{np.mean(ratio > TOO_LARGE):.2f}",
                 f"{np.median(ratio):.2f}", f"{np.nanmedian(early):.2f}", f"{np.mean(held):.2f}")
            )  # fmt: skip
    return section


def mission(name: str, number: int, policy: str, moves: int) -> tuple[float, float, float]:
    """Return three figures of a mission.

    The figures are the actual error divided by the predicted error at the end, this ratio after ten
    read places, and the coverage of the intervals at unread places at the end.
    """
    field = arenas(1, 1)[name, MOVES].field(number)
    step, known = step_of(field.topology), field.known
    words = json.dumps({"name": policy})
    task = Task(name, MOVES, moves, number, policy, words, EXPANSIONS)
    loop, noisy, at = begin(task, field, step, build_policy(json.loads(words)))

    def ratio() -> float:
        mean, variance = loop.belief.predict()
        actual = np.mean((mean[known] - field.values[known]) ** 2)
        return math.sqrt(float(actual / np.mean(variance[known])))

    went, early = [at], math.nan
    while (plan := loop.ask(at)).waypoint is not None:
        at = _drive(loop, plan.path, noisy, went)
        loop.moved(plan.cost)
        if math.isnan(early) and np.count_nonzero(loop.belief.visited) >= 10:
            early = ratio()
    left = known[~loop.belief.visited[known]]
    held = score(Mixture.of(loop.belief, left), field.values[left]).covered
    return ratio(), early, held


def repeats(draws: int) -> Section:
    """Return a table of tests with several readings of each place, by noise of the sensor."""
    section = Section(
        "Many readings of a place, and good sensors",
        COMMAND,
        f"{draws} draws of each kind on 24 × 20 cells, {PLACES} random places. Each cell: share of "
        f"true values in the 90 % intervals, error in standard deviations of the field, with "
        f"{', '.join(map(str, COUNTS))} readings a place. Noise in those deviations, too.",
        ("field", *(f"noise {noise:g}" for noise in NOISES)),
    )
    for kind in (*KINDS, "two scales"):
        cells: list[Any] = [kind]
        for noise in NOISES:
            some = [repeated(kind, draws, count, noise) for count in COUNTS]
            cells.append("; ".join(f"{held:.2f}, {error:.2f}" for held, error in some))
        section.rows.append(tuple(cells))
    return section


def repeated(kind: str, draws: int, count: int, noise: float) -> tuple[float, float]:
    """Return coverage and RMSE over random fields of a kind; `count` = readings of each place."""
    held, squares = [], []
    for number in range(draws):
        field, rng = drawn(kind, number), rng_of("repeats", number)
        places = rng.permutation(field.topology.n)[:PLACES]
        belief = belief_on(BeliefConfig(), field.topology, quiet=True)
        for place in places.tolist():
            for value in field.values[place] + noise * rng.standard_normal(count):
                belief.observe(place, float(value))
            belief.adapt()
        left = np.setdiff1d(np.arange(field.topology.n), places)
        found = score(Mixture.of(belief, left), field.values[left])
        held.append(found.covered)
        squares.append(found.rmse**2)
    return float(np.mean(held)), math.sqrt(float(np.mean(squares)))
