"""Fields that change: why figures of SparQ-GP-UCB's paper come out, or do not.

    python benchmarks/sparq_why.py TABLE [--runs N]

Each prints a table for the page `experiments/results/sparq.md`: the synthetic field, T = 500.
`±` is the standard error over the runs; all rows of a table have the same fields and noise.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence

from gp_active_sensing.util.process import one_blas_thread

one_blas_thread()

import numpy as np  # noqa: E402
from changing_fields import (  # noqa: E402
    DELTA,
    Played,
    World,
    one_behind,
    play,
    play_random,
    stay,
    synthetic,
)
from forgetting_filter import play_filter  # noqa: E402

from gp_active_sensing.types import FloatArray  # noqa: E402

ENDS = 45.0
"""Places with |x| of so much and more are the ends of [-50, 50]."""


def said(values: Sequence[float] | FloatArray) -> str:
    """Return mean ± standard error."""
    found = np.asarray(values, dtype=float)
    return f"{found.mean():.3f} ± {found.std(ddof=1) / np.sqrt(len(found)):.3f}"


def tv(epsilon: float) -> dict[str, object]:
    return {"name": "tv_gp_ucb", "epsilon": epsilon, "delta": DELTA}


def ucb(scale: float) -> dict[str, object]:
    return {"name": "gp_ucb", "scale": scale, "delta": DELTA}


def sparq(world: World, **more: object) -> dict[str, object]:
    return {"name": "sparq_gp_ucb", "norm": world.norm, "delta": DELTA, **more}


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(*cells: object) -> None:
    row(*cells)
    print("|" + " --- |" * len(cells), flush=True)


def averages(missions: Sequence[Played]) -> str:
    """Return ``R_T / T`` of whole missions."""
    return said([m.average[-1] for m in missions])


def late(missions: Sequence[Played]) -> str:
    """Return the mean regret of the last 100 decisions."""
    return said([m.regret[-100:].mean() for m in missions])


def forgetting(runs: int) -> None:
    """TV-GP-UCB by ε and by what β_t is divided by, without fresh values and with them."""
    world = synthetic()
    ways = [(scale, ask) for ask in ("nowhere", "spread") for scale in (1.0, 5.0, 20.0)]
    words = {"nowhere": "", "spread": " + extra"}
    head("ε", *(f"β/{scale:g}{words[ask]}" for scale, ask in ways))
    for epsilon in (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5):
        cells = []
        for scale, ask in ways:
            given = {"epsilon": epsilon, "scale": scale, "ask": ask}
            cells.append(averages([play_filter(world, seed, **given) for seed in range(runs)]))
        row(epsilon, *cells)


def lengths(runs: int) -> None:
    """TV-GP-UCB by ε and by the length-scale that it is told."""
    fitted = synthetic().belief
    told = (float(np.ravel(fitted.length_scales)[0]), 20.0, 60.0, 120.0)
    head("ε", *(f"ℓ = {ell:g}: R_T / T (at the ends)" for ell in told))
    worlds = [synthetic(prior=dataclasses.replace(fitted, length_scales=(ell,))) for ell in told]
    for epsilon in (0.01, 0.1, 0.2, 0.3):
        cells = []
        for world in worlds:
            found = [play_filter(world, seed, epsilon=epsilon) for seed in range(runs)]
            ends = [(np.abs(world.points[m.places, 0]) >= ENDS).mean() for m in found]
            cells.append(f"{averages(found)} ({100 * np.mean(ends):.0f} %)")
        row(epsilon, *cells)
    for edge in (0, -1):
        alone = world.best[1:] - world.field[1:, edge]
        print(f"\nAlways at x = {world.points[edge, 0]:g}: {alone.mean():.3f}", flush=True)


def windows(runs: int) -> None:
    """R-, SW- and W-GP-UCB by how much they forget."""
    world = synthetic()
    head("W, or 1 / (1 - γ)", "r_gp_ucb", "sw_gp_ucb", "w_gp_ucb")
    for size in (2, 5, 9, 20, 69):
        policies: list[dict[str, object]] = [
            {"name": "r_gp_ucb", "window": float(size), "delta": DELTA},
            {"name": "sw_gp_ucb", "window": float(size), "delta": DELTA},
            {"name": "w_gp_ucb", "gamma": 1.0 - 1.0 / size, "delta": DELTA},
        ]
        row(size, *(averages([play(world, p, seed) for seed in range(runs)]) for p in policies))


def start(runs: int) -> None:
    """GP-UCB from a place at random, and from the middle of the region."""
    world = synthetic()
    points = np.array([50, 100, 200, 500])
    head("gp_ucb", *(f"T = {t}" for t in points))
    for scale in (1.0, 5.0, 20.0):
        for middle in (False, True):
            first = len(world.points) // 2 if middle else None
            found = [play(world, ucb(scale), seed, start=first) for seed in range(runs)]
            cells = np.array([m.average[points - 1] for m in found]).T
            where = "the middle" if middle else "a place at random"
            row(f"β/{scale:g}, from {where}", *map(said, cells))


def speed(runs: int) -> None:
    """SparQ-GP-UCB where the peak moves faster: what was asked holds for less long."""
    usual = synthetic()
    head(
        "rad a step", "sparq_gp_ucb", "last 100", "a step behind", "the best fixed place", "random"
    )
    for turn in (0.1, 0.3, 1.0, 3.0):
        world = synthetic(speed=turn, prior=usual.belief)
        found = [play(world, sparq(usual), seed) for seed in range(runs)]
        known, fixed = (f"{m.average[-1]:.3f}" for m in (one_behind(world), stay(world)))
        chance = averages([play_random(world, seed) for seed in range(runs)])
        row(turn, averages(found), late(found), known, fixed, chance)


def questions(runs: int) -> None:
    """SparQ-GP-UCB by how many places it asks about."""
    world = synthetic()
    head("c", "R_T / T", "last 100", "extra readings")
    for factor in (0.0, 0.5, 1.0, 2.0, 6.0):
        found = [play(world, sparq(world, query_factor=factor), seed) for seed in range(runs)]
        row(factor, averages(found), late(found), f"{np.mean([m.asked for m in found]):,.0f}")


def compare(runs: int) -> None:
    """TV-GP-UCB of the package and by the filter, `runs` without and 2 with fresh values."""
    world = synthetic()
    head("ε", "extra", "package", "filter", "package minus filter", "same places", "runs")
    for epsilon, ask, count in (
        (0.01, "nowhere", runs),
        (0.1, "nowhere", runs),
        (0.01, "random", 2),
    ):
        policy, extra = tv(epsilon), ask == "random"
        ours = [play(world, policy, seed, extra=extra) for seed in range(count)]
        exact = [play_filter(world, seed, epsilon=epsilon, ask=ask) for seed in range(count)]
        pairs = list(zip(ours, exact, strict=True))
        apart = said([a.average[-1] - b.average[-1] for a, b in pairs])
        same = 100 * np.mean([(a.places == b.places).mean() for a, b in pairs])
        row(epsilon, ask, averages(ours), averages(exact), apart, f"{same:.0f} %", count)


TABLES: dict[str, tuple[Callable[[int], None], int]] = {
    "forgetting": (forgetting, 10),
    "lengths": (lengths, 5),
    "filter": (compare, 5),
    "windows": (windows, 5),
    "start": (start, 10),
    "speed": (speed, 5),
    "questions": (questions, 5),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=tuple(TABLES))
    parser.add_argument("--runs", type=int, help="seeds 0 … N - 1; default: 5 or 10")
    options = parser.parse_args()
    make, runs = TABLES[options.table]
    make(options.runs or runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
