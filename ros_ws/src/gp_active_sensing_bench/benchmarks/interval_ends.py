"""Compare rules that end a mission at a target error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from belief_data import rng_of
from common import Kept, Row, Section
from interval_choice import COMMAND, DRAWN, driven, field_of
from mapping_fields import step_of
from mapping_runs import _drive, _prior

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.aim import FEWEST, SURE, AimForecast, not_seen
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.types import Aim, Budget, PlanLimit, Reading

POLICIES, SHARES, MOVES, EXPANSIONS = ("lawnmower", "tour"), (0.5, 0.3), 300, 100
"""Policies, target errors [standard deviations of the field], and largest numbers of moves in a
mission and of expansions in a decision."""
RULES = {
    "expected error, 90 %": ("expected", 0.9),
    "error, 90 %": ("actual", 0.9),
    f"error, {SURE:.0%}": ("actual", SURE),
}
"""Attribute of `Stage` and required value of the attribute, for each rule that ends a mission."""


class Stage(NamedTuple):
    """State of a mission at one stage.

    The probabilities are 0 as long as the predicted error exceeds the target error.

    Args:
        moves: number of moves so far.
        ratio: actual error divided by the target error.
        expected: probability that the expected error is at most the target error.
        actual: probability that the actual error is at most the target error.
    """

    moves: float
    ratio: float
    expected: float
    actual: float


def mission(name: str, number: int, policy: str, share: float) -> Row:
    """Return a mission's stages. The target error is `share` standard deviations of the field."""
    field = field_of(name, number)
    topology, step, known = field.topology, step_of(field.topology), field.known
    rng = rng_of(name, number)
    noisy = field.values + field.noise * rng.standard_normal(topology.n)
    at = int(rng.choice(known))
    asked = share * float(field.values[known].std())
    loop = SensingLoop(
        topology, _prior(topology).copy(), build_policy({"name": policy}),
        budget=Budget(metres=MOVES * step), seed=number, limit=PlanLimit(expansions=EXPANSIONS),
        aim=Aim(asked),
    )  # fmt: skip
    loop.set_aside.update(np.flatnonzero(~np.isfinite(field.values)).tolist())
    loop.tell([Reading(0, at, float(noisy[at]))])
    went, moves, stages = [at], 0.0, list[Stage]()
    while True:
        read = int(np.count_nonzero(loop.belief.visited))
        if read >= FEWEST and not not_seen(loop.belief, topology, loop.unavailable):
            mean = loop.belief.predict()[0]
            error = math.sqrt(float(np.mean((mean[known] - field.values[known]) ** 2)))
            stages.append(
                Stage(moves, error / asked, *_chances(loop.belief, topology.weights, asked))
            )
        plan = loop.ask(at)
        if plan.waypoint is None:
            break
        at = _drive(loop, plan.path, noisy, went)
        loop.moved(plan.cost)
        moves += plan.cost.metres / step
    return {"key": f"{name}|{number}|{policy}|{share}", "policy": policy, "stages": stages}


def _chances(belief: Belief, weights: np.ndarray, asked: float) -> tuple[float, float]:
    """Return the fields `expected` and `actual` of a `Stage` for the target error `asked`."""
    found = belief.mixture()
    every = np.arange(len(found.weights))
    forecast = AimForecast(Aim(asked), belief, weights, every, found.weights, found)
    mean, variance = found.transform.moments(found.mean, found.variance)
    shares = weights / weights.sum()
    own, apart = variance @ shares, np.square(mean - found.moments()[0]) @ shares
    if found.weights @ (own + apart) > asked**2:
        return 0.0, 0.0
    most = (asked**2 - apart) / np.maximum(own, 1e-300)
    below = float(found.weights @ (most[:, None] >= belief.scale_factors(128)).mean(axis=1))
    return below, forecast.assurance(np.ones(len(every)))


def ended(stages: Sequence[Sequence[float]], rule: str) -> Stage | None:
    """Return the first stage at which a rule ends the mission; None = no stage."""
    every = (Stage(*stage) for stage in stages)
    column, sure = RULES[rule]
    return next((one for one in every if getattr(one, column) >= sure), None)


def ends(draws: int) -> Section:
    """Return a table of errors and moves of the missions, for each rule that ends a mission."""
    kept, section = Kept("ends"), Section(
        "Missions that end by an error",
        COMMAND,
        f"{draws} draws of each of {len(driven()) + len(DRAWN)} fields, {SHARES} of its deviation "
        f"asked for, {MOVES} moves at most. *Rule*: what has to be at most that, and how probable "
        "by the belief. All rules on the same route, which is planned for the last. *Kept*: share "
        "of the missions that ended whose error is at most the one asked for. *Moves*: mean over "
        "the missions that end by all rules.",
        ("policy", "rule", "ended", "kept", "error over asked, median", "largest", "moves"),
    )  # fmt: skip
    rows: list[Row] = []
    for number in range(draws):
        for policy in POLICIES:
            for name in (*driven(), *DRAWN):
                for share in SHARES:
                    key = f"{name}|{number}|{policy}|{share}"
                    if key not in kept.rows:
                        kept.add(mission(name, number, policy, share))
                    rows.append(kept.rows[key])
    for policy in POLICIES:
        mine = [row["stages"] for row in rows if row["policy"] == policy]
        found: list[dict[str, Any]] = [{rule: ended(one, rule) for rule in RULES} for one in mine]
        whole = [one for one in found if all(one.values())]
        for rule in RULES:
            ratio = np.array([one[rule].ratio for one in found if one[rule]])
            moves = float(np.mean([one[rule].moves for one in whole]))
            section.rows.append(
                (policy, rule, f"{len(ratio)} of {len(mine)}", f"{np.mean(ratio <= 1.0):.2f}",
                 f"{np.median(ratio):.2f}", f"{ratio.max():.2f}", f"{moves:.0f}")
            )  # fmt: skip
    return section
