"""Cross-validation of constants of the belief. Each fold leaves out one source of data.

A variant changes a constant, such as the amplitude of the long-range component.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from belief_data import Field, data_sets, rng_of
from belief_scores import Mixture, score
from belief_trials import SPARE
from common import Kept, Row, Section, mean_of, shown
from mapping_fields import MOVES, arenas, step_of
from mapping_runs import EXPANSIONS, _drive

from gp_active_sensing.belief import BeliefConfig, belief_on, build, grid
from gp_active_sensing.belief import belief as belief_module
from gp_active_sensing.belief.aim import SURE, assurance
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.topology.grids import make_grid
from gp_active_sensing.types import Budget, PlanLimit, Reading

KINDS = {"smooth": ("se", 5.0), "with a slope": ("matern32", 5.0), "rough": ("matern12", 5.0)}
"""Kernel and length-scale [cells] of random fields, by kind."""
DRAWN = (*KINDS, "two scales", "skewed")
COUNTS, BUDGETS = (10, 20, 40, 60), (60, 120)
"""Numbers of readings at random places, and numbers of moves of a lawnmower."""
EARLY = (10, 25)
"""Numbers of read places after which the map of a running lawnmower mission is scored."""
SLOW = ("San Jose", "Tampines", "Monaco", "town 7")
"""Data sets that are left out, because their networks are large."""
TOO_LARGE = 1.2
"""A prediction is wrong if the actual error exceeds `TOO_LARGE` × the predicted error."""
NOW = "now"
"""Name of the variant with the current constants."""


def _long(amplitude: float, extent: float) -> list[tuple[Any, str, Any]]:
    """Return the changes that give the long-range component another amplitude and length-scale."""
    half = grid.LengthScaleGrid.half.fget
    assert half is not None
    scaled = property(lambda self: tuple(2.0 * extent * one for one in half(self)))
    return [(build, "LONG", amplitude), (grid.LengthScaleGrid, "half", scaled)]


VARIANTS: dict[str, list[tuple[Any, str, Any]]] = {
    NOW: [],
    "no long part": _long(0.0, 0.5),
    **{
        f"{amplitude:g}, {word}": _long(amplitude, extent)
        for word, extent in (("half", 0.5), ("whole", 1.0))
        for amplitude in (0.5, 1.0, 2.0, 4.0)
        if (amplitude, extent) != (1.0, 0.5)
    },
    **{f"{nat:g} nat": [(belief_module, "_CLEAR", nat)] for nat in (1.0, 2.0, math.inf)},
    **{f"none {w:g}": [(build, "NONE_WEIGHT", w)] for w in (1.0, 1e-6)},
    "pruned at 10⁻⁴": [(grid, "_NOTHING", 1e-4)],
    "lengths in steps of 1.2": [(grid, "_FINE", 1.2)],
}
"""Changes of each variant, as (module or class, attribute, value)."""
FAMILIES = {
    "long part": [NOW, *(v for v in VARIANTS if "part" in v or "half" in v or "whole" in v)],
    "transform": [NOW, *(v for v in VARIANTS if "nat" in v)],
    "none": [NOW, *(v for v in VARIANTS if "none" in v)],
    "pruning": [NOW, *(v for v in VARIANTS if "pruned" in v)],
    "steps": [NOW, *(v for v in VARIANTS if "steps" in v)],
}
"""Groups of variants. The best variant of each group is chosen independently."""
COMMAND = "GPAS_DATA=… python benchmarks/run.py intervals"


@contextmanager
def varied(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, attribute, value in VARIANTS[name]:
            stack.enter_context(patch.object(owner, attribute, value))
        yield


def drawn(kind: str, number: int) -> Field:
    """Return a random field: mean 10, standard deviation 1, or log-normal for the kind `skewed`."""
    topology = make_grid(24, 20, 1.0, neighbours=8, name="plane")
    parts = {"two scales": [(0.7, "matern32", 15.0), (0.3, "matern32", 2.5)]}.get(kind)
    parts = parts or [(1.0, *KINDS.get(kind, ("matern32", 5.0)))]
    at = topology.positions
    K = sum(s * build_kernel(name).correlation(at, at, np.array([ell])) for s, name, ell in parts)
    root = np.linalg.cholesky(K + 1e-8 * np.eye(topology.n))
    values = root @ rng_of(kind, number).standard_normal(topology.n)
    return Field(topology, np.exp(values) if kind == "skewed" else 10.0 + values, 0.1)


@cache
def field_of(name: str, number: int) -> Field:
    return drawn(name, number) if name in DRAWN else sources()[name](number)


@cache
def sources() -> dict[str, Any]:
    """Return, by data set, the function from the number of a field to the field."""
    fields = {name: one.field for name, one in data_sets().items()}
    fields |= {name: one.field for (name, mode), one in arenas(1, 1).items() if mode == MOVES}
    return fields


@cache
def driven() -> list[str]:
    """Return the names of the data sets that have moves between neighbours and no roads."""
    every = arenas(1, 1).values()
    return [one.name for one in every if one.mode == MOVES and not one.roads]


def source_of(name: str) -> str:
    """Return the source of a data set. Data sets of the same raster or lab have the same source."""
    return {"lab humidity": "lab temperature", "sim/town_slots": "sim/town"}.get(
        name, name.split(",")[0]
    )


class Order(NamedTuple):
    """Distinct places in reading order. `counts`: numbers of readings with a scored map."""

    places: list[int]
    noisy: np.ndarray
    counts: Sequence[int]


@cache
def order_of(name: str, number: int, moves: int) -> Order | None:
    """Return the places that a lawnmower reads in `moves` moves; 0 moves = random places.

    None = the field has too few places.
    """
    field = field_of(name, number)
    rng = rng_of(name, number)
    noisy = field.values + field.noise * rng.standard_normal(field.topology.n)
    if not moves:
        counts = [k for k in COUNTS if k + SPARE <= len(field.known)]
        places = rng.permutation(field.known)[: max(counts, default=0)].tolist()
        return Order(places, noisy, counts) if counts else None
    at, topology = int(rng.choice(field.known)), field.topology
    # The belief does not affect the route of a lawnmower.
    known = BeliefConfig(length_scales=(step_of(topology),), kernel="se")
    loop = SensingLoop(
        topology, belief_on(known, topology, quiet=True), build_policy({"name": "lawnmower"}),
        budget=Budget(metres=moves * step_of(topology)), seed=number,
        limit=PlanLimit(expansions=EXPANSIONS),
    )  # fmt: skip
    loop.set_aside.update(np.flatnonzero(~np.isfinite(field.values)).tolist())
    loop.tell([Reading(0, at, float(noisy[at]))])
    went = [at]
    while (plan := loop.ask(at)).waypoint is not None:
        at = _drive(loop, plan.path, noisy, went)
        loop.moved(plan.cost)
    places = [p for p in dict.fromkeys(went) if np.isfinite(field.values[p])]
    counts = [k for k in EARLY if k < len(places)]
    return Order(places, noisy, [*counts, len(places)])


def tasks_of(draws: int) -> list[tuple[str, int, int]]:
    """Return the arguments of `order_of` for all tasks."""
    every = [name for name in dict.fromkeys([*data_sets(), *driven(), *DRAWN]) if name not in SLOW]
    return [
        (name, number, moves)
        for number in range(draws)
        for name in every
        for moves in (0, *BUDGETS)
        if not moves or name in driven() or name in DRAWN
    ]


def replay(name: str, number: int, moves: int, variant: str) -> Row | None:
    """Return the scores of the map that a variant of the belief predicts; None = too few places."""
    order = order_of(name, number, moves)
    if order is None:
        return None
    field = field_of(name, number)
    known, nlpd, covered, ratio, below = field.known, [], [], [], []
    weights = np.isfinite(field.values).astype(float)
    with varied(variant):
        belief = belief_on(BeliefConfig(), field.topology, quiet=True)
        for k, place in enumerate(order.places, 1):
            belief.observe(place, float(order.noisy[place]))
            belief.adapt()
            if k not in order.counts:
                continue
            mean, variance = belief.predict()
            error = math.sqrt(float(np.mean((mean[known] - field.values[known]) ** 2)))
            left = np.setdiff1d(known, order.places[:k])
            found = score(Mixture.of(belief, left), field.values[left])
            nlpd.append(found.nlpd)
            covered.append(found.covered)
            ratio.append(error / math.sqrt(float(np.mean(variance[known]))))
            below.append(assurance(belief, weights, error))
    key = f"{name}|{number}|{moves}|{variant}"
    return {"key": key, "name": name, "moves": moves, "variant": variant,
            "nlpd": nlpd, "covered": covered, "ratio": ratio, "below": below}  # fmt: skip


def rows_of(draws: int) -> list[Row]:
    """Return the scores of all tasks. Scores in the folder ``--kept`` are not computed again."""
    kept = Kept("choice")
    for name, number, moves in tasks_of(draws):
        for variant in VARIANTS:
            if f"{name}|{number}|{moves}|{variant}" in kept.rows:
                continue
            if (row := replay(name, number, moves, variant)) is not None:
                kept.add(row)
    return list(kept.rows.values())


class Figures(NamedTuple):
    """Summary of scores.

    Args:
        nlpd: mean negative log predictive density [nat].
        covered: mean coverage of the 90 % intervals.
        above: fraction of predictions whose actual error exceeds `TOO_LARGE` × the predicted error.
        median: median of the ratio of actual to predicted error.
        beyond: fraction of actual errors above the quantile `SURE` of the error under the belief.
    """

    nlpd: float
    covered: float
    above: float
    median: float
    beyond: float


def figures(rows: Sequence[Row]) -> Figures:
    ratio, below = (np.array([x for row in rows for x in row[word]]) for word in ("ratio", "below"))
    nlpd, covered = ([float(np.mean(row[word])) for row in rows] for word in ("nlpd", "covered"))
    return Figures(
        float(np.mean(nlpd)), float(np.mean(covered)), float(np.mean(ratio > TOO_LARGE)),
        float(np.median(ratio)), float(np.mean(below > SURE)),
    )  # fmt: skip


def choice(draws: int) -> list[Section]:
    """Return a table of all variants, and a table of chosen variants.

    For each source, the second table shows the variants with the smallest NLPD on other sources.
    """
    rows, table = rows_of(draws), dict[str, dict[str, Figures]]()
    for source in dict.fromkeys(source_of(row["name"]) for row in rows):
        mine = [row for row in rows if source_of(row["name"]) == source]
        table[source] = {v: figures([row for row in mine if row["variant"] == v]) for v in VARIANTS}
    return [_variants(table, draws), _left_out(table)]


def _variants(table: Mapping[str, Mapping[str, Figures]], draws: int) -> Section:
    section = Section(
        "Variants of the belief on the same readings",
        COMMAND,
        f"{draws} draws of each of {len(table)} sources of data: random places, and where there "
        "are no roads lawnmower routes. Means over sources, each counting once, with the standard "
        "error of the paired difference. *NLPD*: less that of the belief as it is [nat]. *Not "
        f"kept*: actual error above {TOO_LARGE} times the promised one. *Ratio*: median of actual "
        "over promised error. *Beyond*: actual error beyond the one that the belief gives a "
        "probability of 90 %. The long part's amplitude [variances of the smooth part] and length "
        "[extents]; the evidence for another transform [nat]; the weight of no correlation; the "
        "least mass of a candidate.",
        ("variant", "NLPD", "in 90 %", "not kept", "ratio", "beyond"),
    )
    for variant in VARIANTS:
        some = np.array([table[source][variant] for source in table])
        apart = some[:, 0] - np.array([table[source][NOW].nlpd for source in table])
        section.rows.append(
            (variant, shown(*mean_of(apart), 3, sign=True) or "∞",
             *(f"{value:.2f}" for value in some[:, 1:].mean(axis=0)))
        )  # fmt: skip
    return section


def _left_out(table: Mapping[str, Mapping[str, Figures]]) -> Section:
    section = Section(
        "What the other sources choose, on the one that is left out",
        COMMAND,
        "Chosen: the least mean NLPD over all other sources. Then, on the source that is left out, "
        "*as it is* and *chosen* (of the long part): NLPD, in 90 %, not kept, ratio, beyond.",
        ("left out", *FAMILIES, "as it is", "chosen"),
    )
    for source in table:
        others = [other for other in table if other != source]

        def mean(variant: str, others: Sequence[str] = others) -> float:
            return float(np.mean([table[o][variant].nlpd - table[o][NOW].nlpd for o in others]))

        best = {family: min(some, key=mean) for family, some in FAMILIES.items()}
        both = table[source][NOW], table[source][best["long part"]]
        cells = [", ".join(f"{value:.2f}" for value in one) for one in both]
        section.rows.append((source, *best.values(), *cells))
    return section
