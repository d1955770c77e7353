"""Measure time and memory of decisions on maps of 600 to 100,000 places.

``python bench_large.py SPEC`` makes one measurement. SPEC is a `Line` as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import resource
import statistics
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
from common import CORE, Section, cholesky_seconds, quantiles  # noqa: E402

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on  # noqa: E402
from gp_active_sensing.config import from_mapping  # noqa: E402
from gp_active_sensing.planning import Policy, PolicyState, build_policy  # noqa: E402
from gp_active_sensing.planning.request import PlanRequest  # noqa: E402
from gp_active_sensing.topology import MapConfig, Topology, build_topology  # noqa: E402
from gp_active_sensing.types import Budget, Plan, PlanLimit  # noqa: E402

CITY = 20_000
GRIDS = {600: (30, 20), 2500: (50, 50), 10_000: (100, 100), 40_000: (200, 200), 100_000: (400, 250)}
POLICIES = ("tour", "bal", "integrated_variance", "lawnmower", "gp_ucb")
CLOCK = time.process_time


@dataclass(frozen=True)
class Line:
    """Settings of one measurement.

    Args:
        map: map of the mission.
        policy: name of the policy.
        moves: budget, as a multiple of the mean length of a move.
        stages: number of decisions after the first decision.
        readings: number of places with a reading before the first decision.
        seconds: time limit of a decision [s]; None = limit of 500 expansions.
        probes: number of robots that plan in turn.
    """

    map: dict[str, Any]
    policy: str
    moves: int = 120
    stages: int = 10
    readings: int = 1
    seconds: float | None = None
    probes: int = 1


def grid(columns: int, rows: int) -> dict[str, Any]:
    return {"kind": "grid", "columns": columns, "rows": rows, "spacing": 1.0}


class Mission:
    """Mission with timed decisions, on a field of sine waves."""

    def __init__(self, line: Line) -> None:
        self.topology: Topology = build_topology(from_mapping(MapConfig, line.map))
        self.belief: Belief = belief_on(from_mapping(BeliefConfig, {}), self.topology)
        self.policy: Policy = build_policy({"name": line.policy})
        self.at = self.topology.n // 2
        step = self.topology.n // (2 * line.probes)
        self.others = [self.at + step * number for number in range(1, line.probes)]
        self.goals: list[int] = []
        """Goals of all robots except the current one, in planning order."""
        self.state: PolicyState = None
        moves = getattr(self.topology, "moves", ())
        usual = float(np.mean([move.metres for out in moves for move in out]))
        self.left = Budget(metres=line.moves * usual)
        self.limit = PlanLimit(expansions=500)
        if line.seconds is not None:
            self.limit = PlanLimit(seconds=line.seconds)
        self.took: list[float] = []
        self._rng = np.random.default_rng(0)
        self._scale = 0.4 / usual
        before = self._rng.permutation(self.topology.n)[: line.readings - 1]
        for place in (*before.tolist(), self.at):
            self.read(place)

    def read(self, place: int) -> None:
        """Take a reading at a place. Append the time of the belief's update [s] to `took`."""
        x, y = self._scale * self.topology.positions[place]
        value = np.sin(x) + np.cos(0.7 * y) + 0.1 * self._rng.normal()
        begun = CLOCK()
        self.belief.observe(place, float(value))
        self.belief.adapt()
        _ = self.belief.weights
        self.took.append(CLOCK() - begun)

    def ask(self) -> tuple[float, Plan]:
        """Return the processor time of a decision [s], and its plan."""
        begun = CLOCK()
        request = PlanRequest(
            self.belief, self.topology, self.at, limit=self.limit, clock=CLOCK,
            rng=np.random.default_rng(0), remaining=self.left, pending=self.goals,
            waiting=self.others[: len(self.others) - len(self.goals)],
        )  # fmt: skip
        plan, self.state = self.policy.plan(request, self.state)
        return CLOCK() - begun, plan

    def follow(self, plan: Plan) -> None:
        """Assign a plan to the current robot. Then take the reading at the next robot's goal."""
        self.others.append(self.at)
        self.goals.append(plan.waypoints[0])
        if len(self.goals) < len(self.others):  # the next robot has no goal yet
            self.at = self.others.pop(0)
            return
        self.others.pop(0)
        self.at = self.goals.pop(0)
        self.left = self.left.minus(cost=plan.cost)
        self.read(self.at)


def predict_seconds(positions: np.ndarray, readings: int) -> float:
    """Return the time of scikit-learn's prediction at all places [s]; NaN = not installed."""
    try:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import Matern
    except ImportError:
        return math.nan
    places = np.random.default_rng(0).permutation(len(positions))[:readings]
    model = GaussianProcessRegressor(Matern(10.0, nu=1.5), alpha=0.01, optimizer=None)
    model.fit(positions[places], np.sin(positions[places, 0]))
    begun = CLOCK()
    model.predict(positions, return_std=True)
    return CLOCK() - begun


def measure(line: Line) -> dict[str, float]:
    """Return times [s] and memory [MB] of one mission."""
    Mission(Line(grid(4, 4), line.policy, 6)).ask()  # load all modules first
    begun = CLOCK()
    mission = Mission(line)
    built = CLOCK() - begun
    yardstick = [cholesky_seconds(repeats=3, clock=CLOCK)]
    first, plan = mission.ask()
    later = []
    for _ in range(line.stages):
        if not plan.waypoints:
            break
        mission.follow(plan)
        spent, plan = mission.ask()
        later.append(spent)
    yardstick.append(cholesky_seconds(repeats=3, clock=CLOCK))
    median, late, _ = quantiles(mission.took)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return {
        "places": mission.topology.n,
        "built": built,
        "first": first,
        "median": float(np.median(later)) if later else math.nan,
        "largest": max(later, default=math.nan),
        "reading": median,
        "reading_p99": late,
        "mb": memory,
        "cholesky": float(np.median(yardstick)),
        "sklearn": predict_seconds(mission.topology.positions, max(60, line.readings)),
    }


def child(line: Line, package: str | None) -> dict[str, float]:
    """Measure in a fresh process, which imports from the folder `package`; None = this checkout."""
    spec = json.dumps(dataclasses.asdict(line))
    command = [sys.executable, str(Path(__file__).resolve()), spec]
    environment = dict(os.environ)
    if package is not None:
        environment["PYTHONPATH"] = package
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.stderr.write(done.stderr)
        done.check_returncode()
    return dict(json.loads(done.stdout.splitlines()[-1]))


def lines(city: Path, *, quick: bool) -> list[Line]:
    if quick:
        return [Line(grid(5, 4), "tour", 8, stages=2)]
    found = [Line(grid(*size), policy) for size in GRIDS.values() for policy in POLICIES]
    found.append(Line(grid(*GRIDS[100_000]), "tour", readings=200))
    found.append(Line(grid(*GRIDS[100_000]), "tour", readings=200, seconds=1.0))
    found.append(Line(grid(*GRIDS[100_000]), "gp_ucb", readings=200, seconds=1.0))
    found += [Line(grid(*GRIDS[10_000]), "tour", n, seconds=1.0, probes=3) for n in (120, 1000)]
    for file in ("town.geojson", str(city)):
        roads = {"kind": "roads", "file": file, "largest_component": True}
        found += [Line(roads, policy) for policy in ("tour", "bal")]
    return found


def taken_over() -> float:
    """Return the time to move a belief to a map that has grown to 9,801 places [s]."""
    sys.path.insert(0, str(CORE))
    from tests.unit.mission.grids import LIVE, drive_on, house, take

    drive = drive_on(None, house((0.0, 0.0, 100.0, 90.0)), map={**LIVE, "spacing": 1.0}, belief={})
    drive.start()
    begun = CLOCK()
    assert take(drive, house((0.0, 0.0, 100.0, 100.0)))
    return CLOCK() - begun


def growth(rows: list[tuple[str, float, float]]) -> str:
    """Return, for each policy, the exponent with which time grows with the number of places."""
    found = []
    for policy in dict.fromkeys(row[0] for row in rows):
        n, first = np.log(np.array([row[1:] for row in rows if row[0] == policy])).T
        if len(n) > 1:
            found.append(f"{policy} {np.polyfit(n, first, 1)[0]:.2f}")
    return ", ".join(found)


def run(*, quick: bool = False, only: list[str] | None = None) -> Section:
    """Return the table. GPAS_BEFORE may name the package folder of another checkout for comparison.

    Args:
        quick: True for small maps only.
        only: policies or numbers of places; None = all.
    """
    from make_city import make_city

    from gp_active_sensing.export.geojson import text_of

    before = os.environ.get("GPAS_BEFORE")
    section = Section(
        "Large maps",
        "python benchmarks/run.py large",
        "",
        ("code", "map", "policy", "places", "read", "limit", "first s", "/ Cholesky", "median s",
         "/ Cholesky", "largest s", "reading ms", "p99 ms", "memory MB", "sklearn predict s"),
    )  # fmt: skip
    grown: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        city = Path(folder) / "city.geojson"
        if not quick:
            city.write_text(text_of(make_city(CITY)), encoding="utf-8")
        for line in lines(city, quick=quick):
            kind = line.map["kind"]
            size = math.prod(line.map[k] for k in ("columns", "rows")) if kind == "grid" else kind
            if only and not {line.policy, str(size)} & set(only):
                continue
            for code, package in (("before", before), ("now", None)):
                if code == "before" and before is None:
                    continue
                found = child(line, package)
                if code == "now" and kind == "grid" and line.readings == line.probes == 1:
                    grown.append((line.policy, found["places"], found["first"]))
                ratio = [found[key] / found["cholesky"] for key in ("first", "median")]
                section.rows.append(
                    (code, kind, line.policy, int(found["places"]), line.readings,
                     ("500 expansions" if line.seconds is None else f"{line.seconds} s")
                     + (f", {line.probes} probes, {line.moves} moves" if line.probes > 1 else ""),
                     found["first"], ratio[0], found["median"], ratio[1], found["largest"],
                     1e3 * found["reading"], 1e3 * found["reading_p99"], float(round(found["mb"])),
                     found["sklearn"])
                )  # fmt: skip
    section.text = (
        "Budgets of metres as long as 120 usual moves; moves bind; default belief. *First*: the "
        "first decision on a map of which no ways are known yet; *median*: of the 10 after it, "
        "each with one more reading. *Reading*: until the weights are up to date. Processor "
        "seconds, one BLAS thread, and over those of a 1000 × 1000 Cholesky before and after in "
        "the same process. *sklearn predict*: mean and standard deviation of every place from 60 "
        "readings (or as many as were read) under one λ. Growth exponent of the first decision: "
        f"{growth(grown)}. A grown occupancy grid is taken over in "
        f"{statistics.median(taken_over() for _ in range(1 if quick else 5)):.2f} s."
    )
    return section


if __name__ == "__main__":
    print(json.dumps(measure(Line(**json.loads(sys.argv[1])))))
