"""[Teng2020, Sec. 6.1] again: where does the true kernel lose its belief?

Too few inducing inputs, an optimisation that ends early, or data that do not tell the kernels
apart: so the belief is held against the exact evidence of the kernels.

python benchmarks/bench_vbks_evidence.py [--smoke] [--kept DIR] [--pictures DIR]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from kernel_selection.exact import Posterior
from vbks_data import TRUTHS, Truth, some, synthetic
from vbks_evidence_tables import (
    SIX,
    draw,
    of_evidence,
    of_fits,
    of_inducing,
    of_shares,
    of_starts,
)
from vbks_optimum import Collapsed, Evidence, Rows, drawn_starts, evidence, of_twins
from vbks_runs import Kept, Report, run_alone

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import kernel_set, parse
from gp_active_sensing.learning.kernel_selection.config import VbksConfig

INDUCING, BATCH = 64, 256
FLOORS = (0.1, 0.03)
SHARES = (0.1, 0.2, 0.4, 0.7)
"""Besides all of the data."""


@dataclass(frozen=True)
class Size:
    """How much is done.

    Args:
        seeds: data sets of each true kernel.
        small: kernels that are weighed by exact evidence, and that a belief is learned over.
        large: kernels of the larger set; data sets and noises with which it is learned. On the
            first data set from shares of the data, too.
        steps, every, starts: of a fit at most, between its estimates, of each kernel.
        searches: of the most probable θ from draws, besides true θ and twins; steps of each.
        held: inducing inputs with which the true kernel is looked at.
        compared: numbers of starts that are compared, on how many data sets.
        shares: of the data that a belief is learned from, besides all.
    """

    seeds: int = 5
    small: str = "k12"
    large: tuple[str, int, tuple[float, ...]] = ("k144", 3, (0.1,))
    steps: int = 600
    every: int = 20
    starts: int = 8
    searches: tuple[int, int] = (1, 60)
    held: tuple[int, ...] = (16, 32, 64, 128)
    compared: tuple[tuple[int, ...], int] = ((4, 8, 16), 2)
    shares: tuple[float, ...] = SHARES
    floors: tuple[float, ...] = FLOORS
    six: tuple[str, ...] = field(default=SIX)


FULL = Size()
SMOKE = Size(
    seeds=1,
    small="PER×LIN×RQ,(PER+RQ)×LIN,PER×LIN×SE",
    large=("PER×LIN×RQ,(PER+RQ)×LIN,PER×LIN×SE,SE", 1, ()),
    steps=6,
    every=3,
    starts=2,
    searches=(1, 3),
    held=(8,),
    compared=((1, 2), 1),
    shares=(0.3,),
    floors=(0.1,),
    six=("PER×LIN×RQ", "PER×LIN×SE"),
)


@dataclass(frozen=True)
class Piece:
    """Something that is computed once and kept.

    Args:
        kind: "evidence", "fit", "held" or "starts".
        where: what its table sorts it by.
        seed: of the data set.
        make: computes it.
    """

    kind: str
    where: tuple[Any, ...]
    seed: int
    make: Callable[[], Any]

    @property
    def key(self) -> str:
        """What it is kept by."""
        return " | ".join(str(part) for part in (self.kind, *self.where, self.seed))


def pieces(size: Size) -> Iterator[Piece]:
    """All of them, the most wanted first."""
    every, least = range(size.seeds), size.floors[0]
    kernels, more, floors = size.large

    def fit(truth: Truth, names: str, floor: float, share: float, seed: int) -> Piece:
        make = partial(learned, truth, names, floor, share, seed, size)
        return Piece("fit", (truth.name, names, floor, share), seed, make)

    for floor in (0.01, 0.03, 0.1):
        for truth in TRUTHS:
            for seed in every:
                make = partial(held, truth, floor, seed, size.held)
                yield Piece("held", (truth.name, floor), seed, make)
    for floor in size.floors:
        for seed in every:
            for truth in TRUTHS:
                yield fit(truth, size.small, floor, 1.0, seed)
                make = partial(weighed, truth, floor, seed, size)
                yield Piece("evidence", (truth.name, floor), seed, make)
    for seed in every[:1]:
        yield from (fit(t, size.small, least, x, seed) for t in TRUTHS for x in size.shares)
    counts, sets = size.compared
    for seed in range(sets):
        for starts in counts:
            for race in (True, False):
                make = partial(compared, starts, race, seed, size)
                yield Piece("starts", (starts, race), seed, make)
    for floor in floors:
        yield from (fit(truth, kernels, floor, 1.0, 0) for truth in TRUTHS)
    for seed in every[1:]:
        yield from (fit(t, size.small, least, x, seed) for t in TRUTHS for x in size.shares)
    for floor in floors:
        yield from (fit(t, kernels, floor, x, 0) for x in size.shares for t in TRUTHS)
        for seed in range(1, more):
            yield from (fit(truth, kernels, floor, 1.0, seed) for truth in TRUTHS)


def names_of(kernels: str) -> list[str]:
    """Names of a set of kernels."""
    return [str(expression) for expression in kernel_set(kernels)]


def config(size: Size, seed: int, floor: float, starts: int, **more: Any) -> VbksConfig:
    """How a belief is learned."""
    return VbksConfig(
        inducing=INDUCING, batch=BATCH, centre=False, seed=seed, noise_floor=floor,
        iterations=size.steps, evaluate_every=size.every, restarts=starts, **more,
    )  # fmt: skip


def weighed(truth: Truth, floor: float, seed: int, size: Size) -> dict[str, Any]:
    """The evidence of every kernel; the true one's search begins at its true θ, too."""
    rows = Rows.of(synthetic(truth, seed))
    searches, steps = size.searches
    setting = config(size, seed, floor, searches)
    names = list(dict.fromkeys([*names_of(size.small), *size.six]))
    found: dict[str, Evidence] = {}

    def better(composite: Composite, starts: list[np.ndarray]) -> None:
        made = evidence(composite, rows, floor, starts, inducing=INDUCING, steps=steps)
        known = found.get(composite.name)
        if known is None or made.laplace > known.laplace:
            found[composite.name] = made

    began = time.process_time()
    for name in names:
        composite = Composite(parse(name), 1)
        starts = drawn_starts(composite, rows, setting)
        if name == truth.name:
            starts.append(truth.scaled(rows.unit, rows.scale))
        better(composite, starts)
    for name in names:
        composite = Composite(parse(name), 1)
        twins = of_twins(composite, {k: one.theta for k, one in found.items()})
        if twins:
            better(composite, twins)
    kernels = {
        name: {"laplace": one.laplace, "exact": one.exact, "lost": one.lost}
        for name, one in found.items()
    }
    return {"kernels": kernels, "cpu_s": time.process_time() - began}


def learned(
    truth: Truth, kernels: str, floor: float, share: float, seed: int, size: Size
) -> dict[str, Any]:
    """The belief over kernels from the first rows, all at once."""
    return belief_of(truth, kernels, share, seed, config(size, seed, floor, size.starts))


def compared(starts: int, race: bool, seed: int, size: Size) -> dict[str, Any]:
    """The same of a few kernels, from so many starts, with the race or without it."""
    more = {} if race else {"race": ()}
    setting = config(size, seed, size.floors[0], starts, **more)
    return belief_of(TRUTHS[0], ",".join(size.six), 1.0, seed, setting)


def belief_of(
    truth: Truth, kernels: str, share: float, seed: int, setting: VbksConfig
) -> dict[str, Any]:
    """What a fit says of the kernels, and what it took."""
    from gp_active_sensing.learning.kernel_selection import select_kernels

    rows = synthetic(truth, seed)
    rows = some(rows, np.arange(round(share * len(rows.outputs))))
    began = time.process_time()
    model = select_kernels(rows, kernel_set(kernels), setting)
    return {
        "names": list(model.names),
        "q": np.asarray(model.belief.probabilities).tolist(),
        "softmax": np.asarray(model.belief.softmax).tolist(),
        "bounds": [fit.bound for fit in model.fits],
        "converged": sum(fit.outcome.startswith("converged") for fit in model.fits),
        "cpu_s": time.process_time() - began,
    }


def held(truth: Truth, floor: float, seed: int, counts: tuple[int, ...]) -> dict[str, float]:
    """Exact log p(y|θ) at the true θ less the collapsed bound with so many inducing inputs."""
    rows = Rows.of(synthetic(truth, seed))
    composite, theta = truth.composite(), truth.scaled(rows.unit, rows.scale)
    exact = Posterior(composite, rows.X, rows.y, floor).log_likelihood(theta)
    return {
        str(count): exact - Collapsed(composite, rows, floor, count).log_likelihood(theta)
        for count in counts
    }


def run(*, smoke: bool = False, kept_only: bool = False, pictures: Path | None = None) -> Report:
    """Evidence, beliefs and tables.

    Args:
        smoke: takes seconds.
        kept_only: compute nothing; the tables are of what ``--kept`` has.
        pictures: folder that the picture is drawn into.
    """
    size = SMOKE if smoke else FULL
    kept = Kept("vbks_evidence" + "_smoke" * smoke)
    found: dict[str, dict[Any, dict[int, Any]]] = {}
    for piece in pieces(size):
        if piece.key in kept.found or not kept_only:
            table = found.setdefault(piece.kind, {})
            table.setdefault(piece.where, {})[piece.seed] = kept.get(piece.key, piece.make)
    how = (
        f"{INDUCING} inducing inputs, mini-batches of {BATCH}, noise as said at least, "
        f"{size.starts} starts of which the worse half is dropped three times, {size.steps} steps "
        "at most"
    )
    exact, fits = found.get("evidence", {}), found.get("fit", {})
    weighed_set = size.small, names_of(size.small)
    if pictures is not None:
        draw(fits, exact, weighed_set, pictures)
    few = f"{INDUCING} inducing inputs, mini-batches of {BATCH}, noise {size.floors[0]:g} at least"
    sections = [
        of_evidence(exact, names_of(size.small), INDUCING),
        of_fits(fits, exact, weighed_set, how),
        of_shares(fits, how),
        of_starts(found.get("starts", {}), few),
        of_inducing(found.get("held", {})),
    ]
    return Report([section for section in sections if section.rows])


if __name__ == "__main__":
    sys.exit(run_alone(run, __doc__))
