"""Compare the map errors of policies, and of planners from other projects, for equal budgets.

All policies have equal fields, starts, noise and budgets, and the default belief.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from adapters import environments
from common import Kept, Report, Row
from mapping_fields import QUICK, Arena, arenas
from mapping_runs import AHEAD, DENSEST, EVENLY, EXPANSIONS, FEW, ROWS, Task, play
from mapping_tables import REFERENCE, Results, densest, report

from gp_active_sensing.errors import ActiveSensingError, ConfigError
from gp_active_sensing.planning import build_policy
from gp_active_sensing.util.yaml_files import load_yaml

BUDGETS, STARTS, DRAWS = (60, 120, 240), 10, 40
QUICK_BUDGETS, QUICK_STARTS, QUICK_DRAWS = (60,), 2, 2
POLICIES: dict[str, dict[str, Any]] = {
    "tour": {"name": "tour"},
    "integrated_variance": {"name": "integrated_variance"},
    "bal": {"name": "bal"},
    "mutual_information": {"name": "mutual_information"},
    "ie": {"name": "ie"},
    "max_entropy": {"name": "max_entropy"},
    "random": {"name": "random"},
    "lawnmower": {"name": "lawnmower"},
    "spread": {"name": "spread"},
    EVENLY: {"name": EVENLY},
}
"""Configurations of the compared policies, by label."""


def run(
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    policies: str = "",
    own: Path | None = None,
    starts: int | None = None,
    budgets: str = "",
    processes: int = 1,
    reference: str = REFERENCE,
    kept_only: bool = False,
) -> Report:
    """Simulate all requested missions and return their tables.

    Args:
        quick: True for a few data sets and starts, and one budget.
        only: parts of the names of data sets, or of "name/mode".
        policies: labels separated by commas; "" = all.
        own: YAML file of further policies by label.
        starts: number of missions on each data set.
        budgets: budgets in moves, separated by commas.
        processes: number of processes.
        reference: label of the policy with which each policy is compared.
        kept_only: True to use only the results stored in the folder ``--kept``.
    """
    began = time.perf_counter()
    known = POLICIES | environments() | ({} if own is None else dict(load_yaml(own)))
    labels = _words(policies) or list(known)
    if unknown := [label for label in labels if label not in known]:
        msg = f"--policies: unknown {', '.join(unknown)}; known are {', '.join(known)}"
        raise ConfigError([msg])
    usable, skipped = able({label: known[label] for label in labels})
    draws = (QUICK_STARTS, QUICK_DRAWS) if quick else (STARTS, DRAWS)
    places = chosen(arenas(*(draws if starts is None else (starts, starts))), only, quick)
    moves = [int(word) for word in _words(budgets)] or list(QUICK_BUDGETS if quick else BUDGETS)
    tasks = [
        task_of(one, k, number, label, policy)
        for number in range(max((one.draws for one in places), default=0))
        for k in moves
        for one in places
        for label, policy in usable.items()
        if number < one.draws and not (one.roads and policy["name"] in ROWS)
    ]
    rows, failed = gather(tasks, processes, play_them=not kept_only)
    minutes = (time.perf_counter() - began) / 60.0
    shown = list(usable)
    if EVENLY in shown:
        shown.insert(shown.index(EVENLY), DENSEST)
    results = Results([*rows, *densest(rows)], shown, places, moves, reference)
    return report(results, skipped, failed, minutes)


def task_of(place: Arena, moves: int, number: int, label: str, policy: Mapping[str, Any]) -> Task:
    if policy["name"] == "bal" and "horizon" not in policy:
        policy = {**policy, "horizon": AHEAD[place.mode]}
    limit = FEW.get((policy["name"], place.mode), EXPANSIONS)
    return Task(place.name, place.mode, moves, number, label, json.dumps(policy), limit)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def chosen(
    known: Mapping[tuple[str, str], Arena], wanted: Sequence[str], quick: bool
) -> list[Arena]:
    """Return the arenas whose names contain a word of `wanted`.

    Raises:
        ConfigError: a word is in no name.
    """
    found = [one for one in known.values() if wanted or not quick or (one.name, one.mode) in QUICK]
    if not wanted:
        return found
    fitting = {w: [o for o in found if w.lower() in f"{o.name}/{o.mode}".lower()] for w in wanted}
    if nothing := [word for word, some in fitting.items() if not some]:
        names = "; ".join(f"{name}/{mode}" for name, mode in known)
        msg = f"--only: nothing is called {', '.join(nothing)}; there are {names}"
        raise ConfigError([msg])
    some = [one for ones in fitting.values() for one in ones]
    return [one for one in found if one in some]


def able(known: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the available policies, and the reasons for unavailable ones, by label."""
    usable: dict[str, Any] = {}
    skipped: dict[str, str] = {}
    for label, policy in known.items():
        try:
            if "missing" in policy:
                skipped[label] = str(policy["missing"])
                continue
            if policy["name"] != EVENLY:
                build_policy(policy)
            usable[label] = dict(policy)
        except ActiveSensingError as error:
            skipped[label] = str(error).split(" Registered:")[0].strip().replace("\n", " ")
    return usable, skipped


# -- missions ----------------------------------------------------------------------------------


def gather(
    tasks: Sequence[Task], processes: int, *, play_them: bool = True
) -> tuple[list[Row], dict[str, str]]:
    """Simulate the missions that are not stored in the folder ``--kept``.

    Returns:
        Results of all missions, and the reasons for failures by key.
    """
    kept = Kept("mapping")
    missing = [task for task in tasks if task.key not in kept.rows] if play_them else []
    sys.stderr.write(f"{len(missing)} missions to be played, {len(tasks) - len(missing)} kept\n")
    failed: dict[str, str] = {}
    began = time.perf_counter()

    def take(task: Task, outcome: Any) -> None:
        where = f"{task.label}, {task.name} ({task.mode}), {task.moves} moves"
        try:
            row = outcome()
        except Exception as error:  # one failure must not end all missions
            failed.setdefault(where, f"{type(error).__name__}: {error}")
            sys.stderr.write(f"{where}, draw {task.number}: {error!r}\n")
            return
        kept.add(row)
        spent = time.perf_counter() - began
        sys.stderr.write(f"{spent:.0f} s: {where}, draw {task.number}: {row['rmse']:.4g}\n")

    if processes <= 1:
        for task in missing:
            take(task, lambda task=task: play(task))
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            waiting = {pool.submit(play, task): task for task in missing}
            for one in as_completed(waiting):
                take(waiting[one], one.result)
    return [kept.rows[task.key] for task in tasks if task.key in kept.rows], failed
