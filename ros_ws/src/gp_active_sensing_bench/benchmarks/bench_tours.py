"""How a decision of `tour` grows: with places, with what is left to drive, with candidates λ.

``python bench_tours.py SPEC`` measures one line (JSON, see `Line`), in a process of its own so that
peak memory is its own.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gp_active_sensing.util.process import one_blas_thread

one_blas_thread()

import numpy as np  # noqa: E402
from common import Section, cholesky_seconds, quantiles  # noqa: E402

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on  # noqa: E402
from gp_active_sensing.config import from_mapping  # noqa: E402
from gp_active_sensing.planning import Policy, PolicyState, build_policy  # noqa: E402
from gp_active_sensing.planning.base import PlanRequest  # noqa: E402
from gp_active_sensing.topology import MapConfig, Topology, build_topology  # noqa: E402
from gp_active_sensing.types import Budget, Plan, PlanLimit  # noqa: E402

LIMIT = 500
STAGES = 20
CITY = 20_000
GRIDS = {150: (15, 10), 300: (20, 15), 600: (30, 20), 1200: (40, 30), 2500: (50, 50)}
MOVES = (15, 30, 60, 120, 240)
SCALES = (1.0, 1.5, 2.5, 4.0, 6.0, 9.0, 14.0, 20.0)
"""Candidates for the length-scale, in spacings."""
BELIEFS: dict[str, dict[str, Any]] = {
    "7 λ": {"length_scales": SCALES[:7], "signal_std": [1.0], "noise_std": [0.1]},
    "24 λ": {
        "kernel": ["matern12", "matern32", "se"], "length_scales": SCALES, "signal_std": [1.0],
        "noise_std": [0.1],
    },
    "default": {},
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """What one process measures.

    Args:
        map: of the mission.
        belief: what is known beforehand; {} = the default.
        moves: that the budget of metres is for.
        stages: decisions of the mission after the first one.
    """

    map: dict[str, Any]
    belief: dict[str, Any]
    moves: int
    stages: int = STAGES


def grid(columns: int, rows: int) -> dict[str, Any]:
    """Return a map of cells 1 m apart."""
    return {"kind": "grid", "columns": columns, "rows": rows, "spacing": 1.0}


class Mission:
    """A probe on a map whose field is a few waves; its decisions are timed.

    Args:
        line: what is measured.
    """

    def __init__(self, line: Line) -> None:
        self.topology: Topology = build_topology(from_mapping(MapConfig, line.map))
        config = from_mapping(BeliefConfig, line.belief)
        self.belief: Belief = belief_on(config, self.topology)
        self.policy: Policy = build_policy({"name": "tour"})
        self.at = self.topology.n // 2
        self.state: PolicyState = None
        self.left = Budget(metres=line.moves * self._usual_move())
        self._rng = np.random.default_rng(0)
        self._scale = 0.4 / self._usual_move()
        self.read()

    def _usual_move(self) -> float:
        """Return the mean way to a neighbour [m]."""
        moves = getattr(self.topology, "moves", ())
        return float(np.mean([move.metres for out in moves for move in out]))

    def read(self) -> None:
        """Read where the probe stands."""
        x, y = self._scale * self.topology.positions[self.at]
        value = np.sin(x) + np.cos(0.7 * y) + 0.1 * self._rng.normal()
        self.belief.observe(self.at, float(value))
        self.belief.adapt()
        self.belief.predict()  # what every stage computes anyway is no part of a decision

    def ask(self, limit: PlanLimit) -> tuple[float, Plan, PolicyState]:
        """Return processor seconds, plan and state of a decision."""
        begun = time.process_time()
        plan, state = self.policy.plan(
            PlanRequest(
                self.belief,
                self.topology,
                self.at,
                limit=limit,
                rng=np.random.default_rng(0),
                remaining=self.left,
            ),
            self.state,
        )
        return time.process_time() - begun, plan, state

    def go(self, plan: Plan, state: PolicyState) -> None:
        """Drive to the waypoint of a plan and read there."""
        self.state = state
        self.left = self.left.minus(readings=1, cost=plan.cost)
        self.at = plan.waypoints[0]
        self.read()


def measure(line: Line) -> dict[str, float]:
    """Return seconds and MB of the decisions of one mission."""
    small = Mission(Line(grid(4, 4), BELIEFS["7 λ"], 6))
    small.ask(PlanLimit(expansions=LIMIT))  # loads what is loaded once
    mission = Mission(line)
    at_once, _, _ = mission.ask(PlanLimit(seconds=0.0))
    first, plan, state = mission.ask(PlanLimit(expansions=LIMIT))
    tried, hit = plan.expanded, plan.deadline_hit
    seconds, later, hits = [], [], [hit]
    for _ in range(line.stages):
        mission.go(plan, state)
        later.append(mission.ask(PlanLimit(seconds=0.0))[0])
        spent, plan, state = mission.ask(PlanLimit(expansions=LIMIT))
        if not plan.waypoints:
            break
        seconds.append(spent)
        hits.append(plan.deadline_hit)
    median, _, largest = quantiles(seconds)
    return {
        "places": mission.topology.n,
        "candidates": len(mission.belief.weights),
        "at_once": at_once,
        "first": first,
        "tried": tried,
        "later": float(np.median(later)),
        "median": median,
        "largest": largest,
        "cut_off": float(np.mean(hits)),
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    }


def child(line: Line) -> dict[str, float]:
    """Measure in a fresh process."""
    spec = json.dumps(dataclasses.asdict(line))
    command = [sys.executable, str(Path(__file__).resolve()), spec]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        done.check_returncode()
    return dict(json.loads(done.stdout.splitlines()[-1]))


def lines(city: Path, *, quick: bool) -> list[tuple[str, str, Line]]:
    """Return what is varied, what it is then, and what is measured."""
    if quick:
        return [("places", "grid", Line(grid(5, 4), BELIEFS["7 λ"], 8, stages=2))]
    middle = grid(*GRIDS[600])
    roads = {"kind": "roads", "file": str(city), "largest_component": True}
    found = [("places", "grid", Line(grid(*size), {}, 120)) for size in GRIDS.values()]
    found.append(("places", "roads", Line(roads, {}, 120)))
    found += [("moves", "grid", Line(middle, {}, moves)) for moves in MOVES]
    found += [("candidates", "grid", Line(middle, belief, 120)) for belief in BELIEFS.values()]
    return found


def run(*, quick: bool = False) -> Section:
    """Return the section."""
    from make_city import make_city

    from gp_active_sensing.topology.loaders import map_text

    yardstick = cholesky_seconds()
    section = Section(
        "What a decision of tour costs",
        "python benchmarks/run.py tours",
        "Budgets of so many metres as that many usual moves have; moves bind; the default "
        "settings of `tour`, and the default belief where it is not said otherwise. *Begin*: the "
        "first decision of a mission, on a map of which no ways are known yet; *at once*: with no "
        f"time, what is answered first; *whole*: with the limit of {LIMIT} expansions (routes "
        f"tried). *Later*: medians of the {STAGES} decisions after it, each with one more reading. "
        "`cut off`: share of decisions that the limit ended. Processor seconds, one BLAS thread; a "
        f"1000 × 1000 Cholesky took {yardstick:.3g} s. `memory`: peak of the process.",
        ("varied", "map", "places", "moves left", "λ", "begin, at once s", "begin, whole s",
         "routes", "later, at once s", "later, whole s", "largest s", "cut off", "memory MB"),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        city = Path(folder) / "city.geojson"
        if not quick:
            city.write_text(map_text(make_city(CITY), "roads")[0], encoding="utf-8")
        for varied, kind, line in lines(city, quick=quick):
            found = child(line)
            section.rows.append(
                (
                    varied,
                    kind,
                    int(found["places"]),
                    line.moves,
                    int(found["candidates"]),
                    found["at_once"],
                    found["first"],
                    int(found["tried"]),
                    found["later"],
                    found["median"],
                    found["largest"],
                    f"{100 * found['cut_off']:.0f} %",
                    float(round(found["mb"])),
                )
            )
    return section


if __name__ == "__main__":
    print(json.dumps(measure(Line(**json.loads(sys.argv[1])))))
