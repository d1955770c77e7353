"""Updating the belief: one more reading when |D| places are observed, and fast sensors."""

from __future__ import annotations

import time

import numpy as np
from common import Section, cholesky_seconds, median_seconds

from gp_active_sensing.belief import BeliefConfig, build_belief


def run() -> Section:
    section = Section(
        "Updating the belief",
        "python benchmarks/run.py belief",
        "7 length-scales, one core; time from a reading to the new weights, with |D| places "
        "observed, for a reading of a new place, of the last place again, and of an old place "
        "again; and the prediction of mean and variance at 700 places.",
        (
            "places observed",
            "new place ms",
            "last place ms",
            "old place ms",
            "predict 700 ms",
            "new place / Cholesky",
        ),
    )
    rng = np.random.default_rng(0)
    for size in (100, 240, 1000, 2000):
        belief = build_belief(
            BeliefConfig(
                length_scales=tuple(np.geomspace(1.0, 64.0, 7)),
                signal_std=(10.0,),
                noise_std=(0.25,),
            ),
            rng.uniform(0, 100, size=(size + 700, 2)),
        )
        for place in range(size):
            belief.observe(place, float(rng.normal()))
        _ = belief.weights
        fresh = iter(range(size, size + 50))

        def update(place: int, belief=belief) -> None:
            belief.observe(place, 0.5)
            _ = belief.weights

        yardstick = cholesky_seconds()
        new = median_seconds(lambda fresh=fresh, update=update: update(next(fresh)), 9)
        last = median_seconds(lambda size=size, update=update: update(size + 8), 9)
        old = median_seconds(lambda update=update: update(int(rng.integers(50))), 9)
        where = np.arange(size, size + 700)
        predict = median_seconds(lambda b=belief, w=where: b.predict(w), 5)
        section.rows.append(
            (size, 1e3 * new, 1e3 * last, 1e3 * old, 1e3 * predict, new / yardstick)
        )
    started = time.perf_counter()
    belief = build_belief(
        BeliefConfig(length_scales=tuple(np.geomspace(1.0, 64.0, 7))), np.arange(100.0)[:, None]
    )
    for place, value in zip(
        rng.integers(100, size=100_000).tolist(), rng.normal(size=100_000).tolist(), strict=True
    ):
        belief.observe(place, value)
    _ = belief.weights
    section.text += (
        f" 100 000 readings of 100 places, told one by one, then the weights: "
        f"{time.perf_counter() - started:.2f} s."
    )
    return section
