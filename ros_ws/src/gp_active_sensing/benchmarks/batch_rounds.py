"""Play searches in batches round by round: no robots, no clock, no gate for outliers.

    python benchmarks/batch_rounds.py batch_5 batch_10 batch_alone --kept FOLDER [--seeds 50]
        [--policies ucb_dpp_max,gp_bucb] [--configurations hartmann6] [--told]

The scenarios, policies and seeds are those of the experiments named. What is left out beside
`gp-active-sensing experiment` is what a mission adds to the published algorithms: driving, the
scores of the map, and the gate that sets surprising readings aside. Decisions and noise have the
same keys, so that a mission in which nothing was set aside goes to the same places.

Each search is a line of ``FOLDER/<experiment>.jsonl``, written as it ends. A run that was stopped
goes on where it was; seeds are the slowest, so that what is there can be compared at any time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from gp_active_sensing.util.process import commit, one_blas_thread

one_blas_thread()

import numpy as np  # noqa: E402

from gp_active_sensing.experiments import Experiment, load_experiment  # noqa: E402
from gp_active_sensing.experiments.plan import TrialSpec  # noqa: E402
from gp_active_sensing.planning.bandits.base import View, view_of  # noqa: E402
from gp_active_sensing.planning.bandits.dpp_batch import Dpp, relevance_region  # noqa: E402
from gp_active_sensing.planning.bandits.sequential_batch import (  # noqa: E402
    Ahead,
    Hallucination,
)
from gp_active_sensing.sim import build_loop, build_world, scenario_from_mapping  # noqa: E402
from gp_active_sensing.topology.base import Topology  # noqa: E402
from gp_active_sensing.types import FloatArray  # noqa: E402

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"
EDGE = 0.05
"""A place is at the edge of its box if a feature is so near to its least or largest [share]."""


def play(config: dict[str, Any], *, tells: bool = False) -> dict[str, Any]:
    """Play a search for the maximum of a field that stands still.

    Args:
        config: complete scenario, as `TrialSpec` has it.
        tells: of gp_bucb and b_est, measure also how much the members of a batch tell of a place.

    Returns:
        ``regret`` (T, B) of each reading, ``value`` (T, B) of it, ``named`` (T,) regret of the
        place with the largest posterior mean after each round, ``edge`` (T,) share of the places
        read that are at the edge of their box; of policies with a relevance region ``region`` (T,),
        its share of all places; with `tells` ``told`` (T,), see `told`.
    """
    scenario = scenario_from_mapping(config)
    world = build_world(scenario)
    loop = build_loop(scenario, world.topology, budget=world.budget)
    field = world.truth.at(0.0)
    edge = edge_of(world.topology)
    names = [f"probe_{number}" for number in range(1, scenario.probes + 1)]
    at: dict[str, int | None] = dict.fromkeys(names, world.start)
    visits = np.zeros(world.topology.n, dtype=np.int64)
    found: dict[str, Any] = {"regret": [], "value": [], "named": [], "edge": []}
    view = view_of(loop.belief, np.arange(world.topology.n))
    while goals := choose(loop, at):
        if isinstance(loop.policy, Dpp):
            found.setdefault("region", []).append(region_share(loop, view))
        if tells and isinstance(loop.policy, Hallucination):
            found.setdefault("told", []).append(told(loop, list(goals.values())))
        values = []
        for place in goals.values():
            reading = world.sensor.read(place, int(visits[place]), 0)
            assert reading is not None, "a sensor with dropouts"
            visits[place] += 1
            values.append(reading.value)
            loop.tell([reading])
        at |= goals
        places = np.array(list(goals.values()))
        view = view_of(loop.belief, np.arange(world.topology.n))
        found["regret"].append((field.max() - field[places]).tolist())
        found["value"].append(values)
        found["named"].append(float(field.max() - field[int(np.argmax(view.mean))]))
        found["edge"].append(float(edge[places].mean()))
    return found


def choose(loop: Any, at: dict[str, int | None]) -> dict[str, int]:
    """Return the goal of each probe, all chosen before any of them is read; {} at the end."""
    goals: dict[str, int] = {}
    for name, place in at.items():
        waiting = {other: at[other] for other in at if other not in goals and other != name}
        plan = loop.ask(place, pending=tuple(goals.values()), probe=name, waiting=waiting)
        if plan.waypoint is None:
            break
        goals[name] = plan.waypoint
    return goals


def region_share(loop: Any, view: View) -> float:
    """Return the share of places in R⁺, as the round was chosen by.

    Args:
        loop: after its choice and before its readings.
        view: of every place, as it was then.
    """
    state = loop.policy_state
    stage = int(state.get("policy", state)["round"])
    widths = loop.policy.widths(view, loop.belief)
    width = widths(stage, view.locations, view.std)
    after = widths(stage + 1, view.locations, view.std)
    floor = float((view.mean - width * view.std).max())
    return float(relevance_region(view.mean, view.std, after, floor).mean())


def told(loop: Any, goals: list[int]) -> float:
    """Return what the members before the last tell of a place at most, ``log(σ_fb/σ)`` [nat].

    That is what C has to be an upper bound of. [Kathuria2016, Sec. 3.1]
    """
    ahead = Ahead(loop.belief)
    before = ahead.std()
    for place in goals[:-1]:
        ahead.read(place)
    return float(np.log(before / np.maximum(ahead.std(), 1e-12)).max())


def edge_of(topology: Topology) -> FloatArray:
    """Return (n,) whether a place is at the edge of the box of all."""
    low, high = topology.features.min(axis=0), topology.features.max(axis=0)
    share = (topology.features - low) / (high - low)
    return np.asarray((np.minimum(share, 1.0 - share) < EDGE).any(axis=1))


def wanted(
    experiment: Experiment, policies: Collection[str], configurations: Collection[str]
) -> Iterator[TrialSpec]:
    """Yield the trials, seed by seed; every name given has to be one of the file's."""
    for kind, given in (("policy", policies), ("configuration", configurations)):
        known = {str(getattr(trial, kind)) for trial in experiment.trials}
        if unknown := sorted(set(given) - known):
            msg = f"{experiment.config.name} has no {kind} {unknown}; it has {sorted(known)}"
            raise SystemExit(msg)
    for trial in sorted(experiment.trials, key=lambda trial: trial.seed):
        if policies and trial.policy not in policies:
            continue
        if not configurations or trial.configuration in configurations:
            yield trial


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiments", nargs="+", help="batch_5, … or a file of your own")
    parser.add_argument("--kept", type=Path, required=True, help="folder of the lines")
    parser.add_argument("--seeds", type=int, help="another number of seeds than the file's")
    parser.add_argument("--policies", default="", help="labels, by commas; default: all")
    parser.add_argument("--configurations", default="", help="labels, by commas; default: all")
    parser.add_argument("--told", action="store_true", help="measure what C is a bound of, too")
    options = parser.parse_args()
    policies = [label for label in options.policies.split(",") if label]
    configurations = [label for label in options.configurations.split(",") if label]
    options.kept.mkdir(parents=True, exist_ok=True)
    source = commit()
    for name in options.experiments:
        file = EXPERIMENTS / f"{name}.yaml"
        experiment = load_experiment(file if file.is_file() else name, seeds=options.seeds)
        kept = options.kept / f"{experiment.config.name}.jsonl"
        lines = kept.read_text(encoding="utf-8").splitlines() if kept.is_file() else []
        done = {json.loads(line)["key"] for line in lines}
        with kept.open("a", encoding="utf-8") as out:
            for trial in wanted(experiment, policies, configurations):
                if trial.key in done:
                    continue
                started = time.process_time()
                found = play(dict(trial.config), tells=options.told)
                line = {"key": trial.key, **trial.labels(), "probes": trial.config["probes"]}
                seconds = time.process_time() - started
                line |= found | {"seconds": seconds, "commit": source}
                out.write(json.dumps(line, allow_nan=False) + "\n")
                out.flush()
                sys.stderr.write(f"{experiment.config.name}: {trial}, {seconds:.2f} s\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
