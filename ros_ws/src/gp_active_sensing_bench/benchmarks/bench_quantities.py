"""Measure missions with several quantities, with and without a link between two quantities.

Fields are draws of Gaussian processes with a Matérn 3/2 kernel, scaled to mean 0 and standard
deviation 1. Errors are root mean squares over all places, in standard deviations of the field.
"""

from __future__ import annotations

import logging
import math
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from belief_data import rng_of
from common import Kept, Report, Section, mean_of, shown

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.belief.link import follow, probability_of_link
from gp_active_sensing.kernels.base import Matern32
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.request import QuantityBelief
from gp_active_sensing.topology import Topology, make_grid
from gp_active_sensing.types import Budget, PlanLimit, Reading

COMMAND = "python benchmarks/run.py quantities"
NOISE, UNITS = 0.1, (1.0, 40.0, 0.02)
MANY, FEW = 200, 10
LENGTH = 5.0
"""Length-scale of the linked fields [cells]."""
LENGTHS = (2.5, 5.0, 10.0)
"""Length-scales of the three quantities of a mission [cells]."""
METRES, CELLS, AT_ONCE = 90.0, (16, 12), 3
"""Budget of a mission [m], size of its map [cells], and number of waypoints driven per decision."""
TOGETHER, APART, FIRST = "one route for three", "three missions", "planned for one"


class Kind(NamedTuple):
    """Two quantities, of which one has `many` readings and the other has `few` readings.

    `same` is True if both quantities are read at the same places.
    """

    name: str
    correlation: float
    many: int
    few: int
    same: bool


KINDS = (
    Kind("unrelated", 0.0, MANY, FEW, False),
    Kind("related, ρ = 0.9", 0.9, MANY, FEW, False),
    Kind("related, ρ = 0.9, the same places and half as many more", 0.9, 6 * FEW, 4 * FEW, True),
    Kind("related, ρ = 0.9, the same places", 0.9, 4 * FEW, 4 * FEW, True),
)


def run(*, quick: bool = False, starts: int | None = None, kept_only: bool = False) -> Report:
    logging.getLogger("gp_active_sensing").setLevel(logging.ERROR)
    draws = starts or (2 if quick else 40)
    kept = Kept("quantities")
    sections = [part(draws, kept, play=not kept_only) for part in (links, routes)]
    return Report(sections if kept_only else [*sections, costs(400 if quick else 10_000)])


def drawn(topology: Topology, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Return a random field (n,) with mean 0 and standard deviation 1; `scale` = length-scale."""
    points = topology.points
    K = Matern32().correlations(points, points, np.array([[scale]]))[0]
    field = np.linalg.cholesky(K + 1e-9 * np.eye(len(points))) @ rng.standard_normal(len(points))
    return np.asarray((field - field.mean()) / field.std())


def error(belief: Belief, values: np.ndarray) -> float:
    return float(np.sqrt(np.mean((belief.predict()[0] - values) ** 2)) / values.std())


# -- links ---------------------------------------------------------------------------------------


def links(draws: int, kept: Kept, *, play: bool) -> Section:
    """Return a table of a sparse quantity's errors with and without a link to a dense quantity."""
    section = Section(
        "A link to a quantity that is read at many places",
        COMMAND,
        f"{draws} draws of two fields on 20 × 20 cells, length-scale {LENGTH:g} cells, noise "
        f"{NOISE:g} standard deviations, random places, belief default. *Change*: of the error of "
        "the sparse quantity by the link, the mean of the paired ratios with its standard error. "
        "*In 90 %*: share of true values inside the 90 % intervals, without and with. The link is "
        "`auto`, the default: it is made, kept or removed after each reading. The prior probability"
        " of a link was chosen on other draws. Without a link each quantity has the belief that a "
        "mission for it alone would have.",
        ("fields", "readings", "draws", "without", "with", "change", "worst", "in 90 %", "P(link)"),
    )
    for kind in KINDS:
        rows = []
        for number in range(draws):
            key = f"link {kind.name} {number}"
            if key not in kept.rows and play:
                kept.add({"key": key, "found": pair(kind, number)})
            if key in kept.rows:
                rows.append(kept.rows[key]["found"])
        if not rows:
            continue
        found = np.array(rows)
        change = 100.0 * (found[:, 1] / found[:, 0] - 1.0)
        section.rows.append(
            (kind.name, f"{kind.many}, {kind.few}", len(rows), f"{found[:, 0].mean():.3f}",
             f"{found[:, 1].mean():.3f}", f"{shown(*mean_of(change), 1, sign=True)} %",
             f"{change.max():+.1f} %", f"{found[:, 2].mean():.2f}, {found[:, 3].mean():.2f}",
             f"{found[:, 4].mean():.2f}")
        )  # fmt: skip
    return section


def pair(kind: Kind, number: int) -> list[float]:
    """Return [error, error with link, coverage, coverage with link, probability of the link]."""
    rng = rng_of(f"linked {kind.correlation} {kind.same} {kind.few}", number)
    topology = make_grid(20, 20, 1.0)
    dense, own = drawn(topology, LENGTH, rng), drawn(topology, LENGTH, rng)
    sparse = kind.correlation * dense + math.sqrt(1.0 - kind.correlation**2) * own
    order = rng.permutation(topology.n), rng.permutation(topology.n)
    noise = NOISE * rng.standard_normal((2, topology.n))
    source, template = (belief_on(BeliefConfig(), topology, quiet=True) for _ in range(2))
    read(source, 3.0 * (dense + noise[0]), order[0][: kind.many])
    found = [template.copy(), template.copy()]
    places = order[0 if kind.same else 1][: kind.few]
    errors, held = [], []
    for belief, link in zip(found, ((), (template, source)), strict=True):
        read(belief, 40.0 * (sparse + noise[1]), places, *link)
        errors.append(error(belief, 40.0 * sparse))
        mixture = belief.mixture()
        low, high = mixture.quantiles(np.array([0.05, 0.95]))
        held.append(float(np.mean((low <= 40.0 * sparse) & (40.0 * sparse <= high))))
    return [*errors, *held, probability_of_link(found[1])]


def read(belief: Belief, values: np.ndarray, places: np.ndarray, *link: Belief) -> None:
    for number, place in enumerate(places.tolist()):
        belief.observe(place, float(values[place]))
        if link:
            follow(belief, *link)
        if number % 10 == 9:
            belief.adapt()


def costs(places: int) -> Section:
    """Return a table of the time and memory that a link between quantities takes on a large map."""
    topology = make_grid(places // 100, 100, 1.0)
    rng = rng_of("costs", places)
    values = topology.points @ rng.normal(size=2) + rng.normal(size=topology.n)
    order = rng.permutation(topology.n)
    source, template = (belief_on(BeliefConfig(), topology, quiet=True) for _ in range(2))
    read(source, values, order[:MANY])
    source.predict()
    section = Section(
        f"What a link costs on {topology.n:,} places",
        COMMAND,
        f"{MANY} readings of the dense quantity, {FEW} of the sparse one. *Map*: of the sparse "
        "quantity after these, the link included. *Reading*: another one, and the map after it. "
        "Seconds of the processor. *MB*: what the belief then holds more, and most at a time.",
        ("link", "candidates", "map [s]", "reading [s]", "held [MB]", "most [MB]"),
    )
    for name in ("without", "with"):
        belief = template.copy()
        read(belief, values, order[-FEW:])
        tracemalloc.start()
        times = [time.process_time()]
        if name == "with":
            follow(belief, template, source)
        belief.predict()
        times.append(time.process_time())
        read(belief, values, order[MANY : MANY + 1])
        belief.predict()
        times.append(time.process_time())
        sizes = [f"{size / 1e6:.0f}" for size in tracemalloc.get_traced_memory()]
        tracemalloc.stop()
        section.rows.append((name, len(belief.weights), *np.diff(times).round(2), *sizes))
    return section


# -- routes --------------------------------------------------------------------------------------


def routes(draws: int, kept: Kept, *, play: bool) -> Section:
    """Return a table that compares three kinds of routes for three quantities.

    The kinds are a common route, a mission for each quantity, and a route for the first quantity.
    """
    count = min(draws, 20)
    section = Section(
        "One route for three quantities",
        COMMAND,
        f"{CELLS[0]} × {CELLS[1]} cells of 1 m, policy tour, a decision each {AT_ONCE} "
        f"waypoints, belief default, noise {NOISE:g} standard deviations, the same starts. "
        f"*{TOGETHER}*: {METRES:g} m, all three are planned for and read. *{APART}*: "
        f"{METRES / 3:g} m each, every mission plans for one quantity and reads it. *{FIRST}*: "
        f"{METRES:g} m for the first quantity, the roughest; all three are read. Changes are "
        "paired, with standard errors.",
        ("quantity (length-scale)", "missions", TOGETHER, APART, FIRST, f"against {APART}",
         f"against {FIRST}"),
    )  # fmt: skip
    rows = []
    for number in range(count):
        key = f"route {number}"
        if key not in kept.rows and play:
            kept.add({"key": key, "found": three(number)})
        if key in kept.rows:
            rows.append(kept.rows[key]["found"])
    if not rows:
        return section
    found = np.array(rows)  # (draws, 3 kinds of routes, 3 quantities)
    names = [f"{i + 1} ({scale:g} m)" for i, scale in enumerate(LENGTHS)]
    for i, name in enumerate([*names, "mean of the three"]):
        each = found.mean(axis=2) if i == 3 else found[:, :, i]
        changes = [100.0 * (each[:, 0] / each[:, other] - 1.0) for other in (1, 2)]
        section.rows.append(
            (name, len(rows), *(f"{value:.3f}" for value in each.mean(axis=0)),
             *(f"{shown(*mean_of(change), 1, sign=True)} %" for change in changes))
        )  # fmt: skip
    return section


def three(number: int) -> list[list[float]]:
    """Return the errors (3, 3) for the three kinds of `routes` and the three quantities."""
    rng = rng_of("routes", number)
    topology = make_grid(*CELLS, 1.0)
    fields = [drawn(topology, s, rng) * u for s, u in zip(LENGTHS, UNITS, strict=True)]
    noisy = [f + NOISE * f.std() * rng.standard_normal(topology.n) for f in fields]
    start = int(rng.integers(topology.n))
    errors = []
    for weights in ((1.0, 1.0, 1.0), (1.0, 0.0, 0.0)):
        beliefs = mission(topology, noisy, weights, METRES, start, number)
        errors.append([error(b, f) for b, f in zip(beliefs, fields, strict=True)])
    alone = [
        error(next(mission(topology, [noisy[i]], (1.0,), METRES / 3, start, number)), fields[i])
        for i in range(3)
    ]
    return [errors[0], alone, errors[1]]


def mission(
    topology: Topology,
    noisy: Sequence[np.ndarray],
    weights: Sequence[float],
    metres: float,
    at: int,
    seed: int,
) -> Iterator[Belief]:
    """Yield the belief about each quantity after a mission that reads all quantities."""
    beliefs = [belief_on(BeliefConfig(), topology, quiet=True) for _ in noisy]
    names = [f"q{i}" for i in range(len(noisy))]
    others = [QuantityBelief(n, b, w) for n, b, w in zip(names, beliefs, weights, strict=True)]
    loop = SensingLoop(
        topology,
        beliefs[0],
        build_policy({"name": "tour"}),
        budget=Budget(metres=metres),
        seed=seed,
        limit=PlanLimit(expansions=40),
        name=names[0],
        weight=weights[0],
        quantities=others[1:],
    )

    def drive(path: Sequence[int]) -> int:
        for place in path:
            loop.tell(
                Reading(0, place, float(values[place]), quantity=name)
                for values, name in zip(noisy, names, strict=True)
                if not loop.belief_of(name).observed[place]
            )
        return path[-1]

    drive([at])
    while (plan := loop.ask(at)).waypoint is not None:
        for place in plan.waypoints[:AT_ONCE]:
            way = topology.ways_from(at, "metres").route(place)
            assert way is not None
            at = drive(way.path)
            loop.moved(way.cost)
    yield from (loop.belief_of(name) for name in names)
