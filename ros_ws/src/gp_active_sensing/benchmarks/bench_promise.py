"""How large the error of the map is when a mission ends by the promised one, `budget.error`."""

from __future__ import annotations

import numpy as np
from common import Section

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.belief.promise import FEWEST, SURE, met
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.topology import make_grid
from gp_active_sensing.types import Aim

FIELDS = 60
SIDE = 16
STEPS = 120
ERRORS = (0.6, 0.45, 0.3)
"""Asked for, in standard deviations of the field."""
KERNELS = ("matern12", "matern32", "se")
ORDERS = ("evenly spread", "where least is known")


FIRST = 100
"""Seed of the first field; on those from 0 on the rule was made."""


def field(seed: int) -> tuple[np.ndarray, float, str, float]:
    """Return a draw on the grid, the sensor's noise, its kernel and its length-scale.

    The kernel, the length-scale (1.5 to 8 spacings), the part that is each place's own (none, or
    up to 30 % of the variance), the noise and the mean are drawn as well.
    """
    rng = np.random.default_rng([18, seed])
    places = make_grid(SIDE, SIDE, 1.0).positions
    kernel = str(rng.choice(KERNELS))
    length_scale = float(np.exp(rng.uniform(np.log(1.5), np.log(8.0))))
    own = float(rng.uniform(0.0, 0.3)) * int(rng.integers(2))
    noise = float(rng.uniform(0.05, 0.4))
    K = build_kernel(kernel).correlations(places, places, np.array([[length_scale]]))[0]
    K = (1.0 - own) * K + (own + 1e-9) * np.eye(len(places))
    truth = float(rng.normal(0, 5)) + np.linalg.cholesky(K) @ rng.standard_normal(len(places))
    return truth, noise, kernel, length_scale


def spread(positions: np.ndarray) -> list[int]:
    """Return the places in an order of which every beginning is spread evenly."""
    order = [int(np.argmin(np.hypot(*(positions - positions.mean(axis=0)).T)))]
    apart = np.hypot(*(positions - positions[order[0]]).T)
    while len(order) < len(positions):
        order.append(int(np.argmax(apart)))
        apart = np.minimum(apart, np.hypot(*(positions - positions[order[-1]]).T))
    return order


def chosen(belief: Belief, order: list[int], where_least: bool) -> int:
    """Return the next place to read."""
    if where_least and belief.settled:
        _, variance = belief.predict()
        return int(np.argmax(np.where(belief.observed, -1.0, variance)))
    return next(place for place in order if not belief.observed[place])


class Ends:
    """Where missions ended by one rule: readings, what was promised, and the error there was."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, float, float]] = []
        self.never = 0

    def cells(self, asked: float) -> tuple[str, ...]:
        """Return the figures of a table's row."""
        if not self.rows:
            return ("–", "–", "–", "–", "–", str(self.never))
        readings, promised, error = np.array(self.rows).T
        return (
            f"{readings.mean():.1f}",
            f"{promised.mean():.3f}",
            f"{error.mean():.3f}",
            f"{np.mean(error <= asked):.0%}",
            f"{np.quantile(error, 0.9) / asked:.2f}, {error.max() / asked:.2f}",
            str(self.never),
        )


def run(smoke: bool = False) -> Section:
    section = Section(
        "The promised error of the map when a mission ends by it",
        "python benchmarks/run.py promise",
        f"{FIELDS} draws on {SIDE} × {SIDE} places (standard deviation 1; kernel one of "
        f"{', '.join(KERNELS)}, length-scale 1.5 to 8 spacings, up to 30 % of the variance each "
        "place's own, noise 0.05 to 0.4, all drawn), believed in as by a mission without a "
        "`belief` section. A mission ends at the first reading after which the rule holds, and "
        f"after {STEPS} readings at the latest (never). `promise`: the promised error is at most "
        "that asked for. `and sure`: and the error to be expected is so with a probability of "
        f"{SURE:.0%}, from {FEWEST} places on, as `budget.error` asks. error: root mean square of "
        "mean less truth over all places. kept: share of the missions whose error is at most what "
        "was asked for.",
        (
            "order", "asked", "rule", "readings", "promised", "error", "kept",
            "error / asked, 90 % and worst", "never",
        ),
    )  # fmt: skip
    positions = make_grid(SIDE, SIDE, 1.0).positions
    topology = make_grid(SIDE, SIDE, 1.0)
    weights, order = topology.weights, spread(positions)
    for name in ORDERS:
        ends = {(asked, rule): Ends() for asked in ERRORS for rule in ("promise", "and sure")}
        for seed in range(FIRST, FIRST + (4 if smoke else FIELDS)):
            truth, noise, _, _ = field(seed)
            rng = np.random.default_rng([18, seed, 1])
            belief = belief_on(BeliefConfig(), topology)
            open_ = dict.fromkeys(ends)
            for count in range(1, STEPS + 1):
                place = chosen(belief, order, name == ORDERS[1])
                belief.observe(place, float(truth[place] + rng.normal(0, noise)))
                belief.adapt()
                found = belief.mixture()
                promise = belief.promise(weights, found)
                if promise is None:
                    continue
                error = float(np.sqrt(np.mean(np.square(found.moments()[0] - truth))))
                for asked, rule in list(open_):
                    if promise.error > asked:
                        continue
                    if rule == "and sure" and not met(Aim(asked), belief, topology):
                        continue
                    ends[asked, rule].rows.append((count, promise.error, error))
                    del open_[asked, rule]
                if not open_:
                    break
            for key in open_:
                ends[key].never += 1
        for (asked, rule), found in ends.items():
            section.rows.append((name, f"{asked:g}", rule, *found.cells(asked)))
    return section
