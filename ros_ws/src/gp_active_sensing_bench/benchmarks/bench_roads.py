"""Repeat Experiment 2 of the BAL paper over many fields.

``--kept FOLDER`` stores results, from which an interrupted run continues.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial

from common import Kept, Section
from network_data import data_folder
from road_fields import FIELDS, TITLES, RoadFields
from road_runs import Task, play
from road_tables import Missions, cost_rows, error_rows, network_rows, pair_rows

COMMAND = "GPAS_DATA=… python benchmarks/run.py roads"
MAIN = ("ie", "apgd", "bal N'=3", "random")
MORE = ("bal N'=4", "spread", "integrated_variance", "max_entropy")
LAST = ("bal N'=5", "tour")
"""Slow policies, which are simulated last on random fields and in San Jose."""
PAIRS = (
    ("bal N'=3", "apgd"),
    ("bal N'=4", "apgd"),
    ("bal N'=4", "bal N'=3"),
    ("bal N'=5", "apgd"),
    ("bal N'=5", "bal N'=4"),
    ("spread", "bal N'=4"),
    ("tour", "bal N'=4"),
    ("tour", "bal N'=5"),
    ("tour", "spread"),
)
"""Pairs of policies that are compared directly."""
NETWORKS = {"San Jose": 12, "Tampines": 3, "town": 3, "Monaco": 2}
"""Number of fields of measured or simulated speeds, by road network."""
DRAWS, CLEAR = "draws, as learned", "draws, clear"


def tasks(*, quick: bool = False) -> Iterator[Task]:
    """Yield all missions in descending order of importance."""
    if quick:
        yield from _all("San Jose", range(2), range(2), MAIN)
        return
    traffic = {name: count for name, count in NETWORKS.items() if name != "San Jose"}
    yield from _all("San Jose", range(12), range(2), MAIN)
    yield from _all(DRAWS, range(40), range(1), MAIN)
    for name, count in traffic.items():
        yield from _all(name, range(count), range(1), MAIN)
    yield from _all("San Jose", range(12), range(2), MORE)
    yield from _all(DRAWS, range(8), range(1, 3), MAIN)
    yield from _all(DRAWS, range(40), range(1), MORE)
    for name, count in traffic.items():
        yield from _all(name, range(count), range(1), MORE)
        yield from _all(name, range(count), range(1, 2), (*MAIN, *MORE))
    yield from _all(CLEAR, range(40), range(1), (*MAIN, *MORE))
    for policy in LAST:
        yield from _all("San Jose", range(12), range(2), (policy,))
        yield from _all(DRAWS, range(40), range(1), (policy,))
        yield from _all(CLEAR, range(40), range(1), (policy,))


def _all(name: str, fields: range, starts: range, policies: Sequence[str]) -> Iterator[Task]:
    for field in fields:
        for start in starts:
            yield from (Task(name, field, start, policy) for policy in policies)


def gather(wanted: Sequence[Task], *, play_them: bool) -> list[dict[str, object]]:
    """Simulate the missions that are not stored. Return all results."""
    kept = Kept("roads")
    for number, task in enumerate(wanted, start=1):
        if task.key in kept.rows or not play_them:
            continue
        began = time.monotonic()
        kept.add(play(task))
        sys.stderr.write(f"{number}/{len(wanted)} {task}: {time.monotonic() - began:.1f} s\n")
    return [dict(kept.rows[task.key]) for task in wanted if task.key in kept.rows]


def run(*, quick: bool = False, kept_only: bool = False) -> Section:
    """Simulate the missions and return their tables.

    Args:
        quick: True for two fields of San Jose only.
        kept_only: True to use only the results stored in the folder ``--kept``.
    """
    logging.getLogger("gp_active_sensing").setLevel(logging.ERROR)
    section = Section("Experiment 2 over many fields", COMMAND)
    if data_folder() is None:
        section.text = "**Not run: GPAS_DATA names no folder.**"
        return section
    rows = gather(list(tasks(quick=quick)), play_them=not kept_only)
    parts: list[str] = []
    networks: dict[str, Missions] = {}
    cost: list[list[object]] = []
    for name, make in FIELDS.items():
        mine = [row for row in rows if row["fields"] == name]
        if not mine:
            continue
        fields = make()
        missions = Missions(mine, fields.blocks, fields.checkpoints)
        parts.append(_errors(fields, missions))
        cost += cost_rows(name, missions)
        if name in NETWORKS:
            networks[name] = missions
    budgets = ("first", "second", "third", "fourth")
    if cost:
        columns = (*(f"{one} [km]" for one in budgets), "planning [s]", "n")
        parts.append(_table(COST, ("fields", "policy", *columns), cost))
    if len(networks) > 1 and (found := network_rows(networks)):
        title = (
            "Difference to `ie` in percent of its RMSPE, a network counting once: mean ± standard "
            f"error over {len(networks)} networks ({', '.join(networks)}), at the four budgets."
        )
        parts.append(_table(title, ("policy", "first", "second", "third", "fourth"), found))
    spent = sum(float(str(row["seconds"])) for row in rows) / 60.0
    parts.append(f"{len(rows)} missions, {spent:.1f} minutes of one core.")
    section.text = "\n\n".join(parts)
    return section


COST = (
    "What they cost: kilometres driven for the readings of the four budgets, and seconds of the "
    "planner until the last; mean ± standard error over n fields."
)


def _errors(fields: RoadFields, missions: Missions) -> str:
    """Return tables of errors as text: over fields, and over blocks of fields close in time."""
    columns = tuple(f"{n} readings" for n in fields.checkpoints)
    head = ("fields", "", *columns, "fields / units / missions")
    make = partial(error_rows, fields.name, missions)
    others = partial(pair_rows, fields.name, missions, PAIRS)
    tables = [_table(f"{TITLES[fields.name]} RMSPE [{fields.unit}].", head, make(blocks=False))]
    tables[0] += _lines(others(blocks=False))
    if 1 < len(set(fields.blocks)) < len(fields.blocks):
        again = "The same, errors over blocks of three weeks that follow one another."
        tables.append(_table(again, head, make(blocks=True)) + _lines(others(blocks=True)))
    return "\n\n".join(tables)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    return f"{title}\n{_lines([head])}\n|{' --- |' * len(head)}{_lines(rows)}"


def _lines(rows: Sequence[Sequence[object]]) -> str:
    return "".join("\n| " + " | ".join(map(str, row)) + " |" for row in rows)
