"""Count how often a boat enters shallow water, on simulated lakes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from common import CORE, Kept, Report, Section

COMMAND = "python benchmarks/run.py limits"
COLUMNS, ROWS, STEP, LOW, METRES = 16, 12, 5.0, 1.0, 4500.0
WAVES, MEAN, DEVIATION = 80, 3.0, 1.6
KINDS = {"punctual sensor, exact poses": (0.0, 0.0), "sensor 2 s late, poses ± 1 m": (2.0, 1.0)}
"""Delay of the sensor [s] and standard deviation of the poses [m], by kind of boat."""


def lake(number: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return a random lake: a function from points (..., 2) to the depth [m]."""
    rng = np.random.default_rng([7, number])
    waves = rng.normal(size=(WAVES, 2)) / rng.uniform(10, 25)
    phases = rng.uniform(0, 2 * np.pi, WAVES)
    size = DEVIATION * np.sqrt(2 / WAVES)
    return lambda points: MEAN + size * np.cos(points @ waves.T + phases).sum(axis=-1)


def run(*, quick: bool = False, starts: int | None = None, kept_only: bool = False) -> Report:
    logging.getLogger("gp_active_sensing").setLevel(logging.ERROR)
    sys.path.insert(0, str(CORE))
    kept = Kept("limits")
    section = Section(
        "Limits on drawn lakes with shoals",
        COMMAND,
        f"Lakes of {COLUMNS} × {ROWS} places each {STEP:g} m, 3 m deep on average with a standard "
        f"deviation of {DEVIATION:g} m. Belief default, policy tour, at least {LOW:g} m with a "
        f"probability of 99 %, {METRES:g} m of budget, back to the start, which is the deepest "
        "place. The boat has 1.5 m/s and sounds twice a second with a noise of 0.05 m. *Crossings*:"
        " places along the boat's true way, each time it comes nearest to another one. *Below*: "
        "those whose true depth is less. *Safe*: deep enough places that are joined to the start by"
        " such places.",
        ("boat", "lakes", "crossings", "below", "share", "safe places reached",
         "ways home through closed"),
    )  # fmt: skip
    for number in range(starts or (2 if quick else 100)):
        for name in KINDS:
            key = f"{name} {number}"
            if key not in kept.rows and not kept_only:
                kept.add({"key": key, "kind": name, **sail(number, *KINDS[name])})
    for name in {row["kind"]: None for row in kept.rows.values()}:
        rows = [row for row in kept.rows.values() if row["kind"] == name]
        total = {k: sum(row[k] for row in rows) for k in rows[0] if k not in ("key", "kind")}
        section.rows.append(
            (name, len(rows), total["crossings"], total["below"],
             f"{100 * total['below'] / total['crossings']:.2f} %",
             f"{100 * total['reached'] / total['safe']:.1f} %", total["homes"])
        )  # fmt: skip
    return Report([section])


def sail(number: int, delay: float, deviation: float) -> dict[str, Any]:
    """Return counts of crossed and reached places in a mission on lake `number`."""
    from tests.robots import Localisation, Robot, Voyage

    depth, noise = lake(number), np.random.default_rng([8, number])
    grid = np.array([(c * STEP, r * STEP) for r in range(ROWS) for c in range(COLUMNS)])
    start = grid[[np.argmax(depth(grid))]]
    config = {
        "map": {"kind": "grid", "columns": COLUMNS, "rows": ROWS, "spacing": STEP},
        "limit": {"expansions": 200},
        "seed": number,
        "probe": {"end": "start"},
        "limits": {"at_least": LOW},
        "budget": {"metres": METRES},
        "reading": {"delay": delay},
        "mission": {"wait_for_reading": False},
    }
    robot = Robot(*start[0].tolist(), speed=1.5, acceleration=0.5)
    poses = Localisation(white=deviation, variance=2 * deviation**2, seed=number)
    voyage = Voyage(config, robot, poses, rate=2.0, delay=delay)
    voyage.field = lambda *at: float(depth(np.array(at))) + 0.05 * noise.normal()
    loop, homes = voyage.mission.loop, 0
    points = loop.topology.positions

    def nearest(way: np.ndarray) -> np.ndarray:
        return np.square(way[:, None] - points).sum(axis=-1).argmin(axis=1)

    while voyage.mission.state != "ended":
        voyage.step()
        if loop.returning_home and robot.goal:
            homes += int(nearest(np.array([robot.goal]))[0] in loop.beyond)
    deep = depth(points) >= LOW
    ways = loop.whole.closed_to(np.flatnonzero(~deep).tolist()).ways_from(nearest(start)[0])
    safe = {place for place in range(len(points)) if ways.route(place) is not None}
    places = nearest(np.array(robot.way))
    crossed = places[np.r_[True, np.diff(places) != 0]]
    return {
        "crossings": len(crossed),
        "below": int((~deep[crossed]).sum()),
        "safe": len(safe),
        "reached": len(safe & set(crossed.tolist())),
        "homes": homes,
    }
