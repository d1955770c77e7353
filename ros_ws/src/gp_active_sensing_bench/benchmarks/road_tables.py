"""Tables of road missions.

The difference between a policy and `REFERENCE` is taken for each field and start. The differences
are averaged first over the starts of each field, and then over the fields. The standard error is
computed over fields, or over blocks of fields that are close in time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from common import Row, mean_of, shown

REFERENCE = "ie"
Pair = tuple[int, int]


class Missions:
    """Results of missions on one set of fields.

    Args:
        rows: results of `road_runs.play`.
        blocks: (fields,) index of the block to which each field belongs.
        columns: numbers of readings after which the map was scored.
    """

    def __init__(self, rows: Sequence[Row], blocks: Sequence[int], columns: Sequence[int]) -> None:
        self.columns = tuple(columns)
        self.blocks = tuple(blocks)
        self._by: dict[str, dict[Pair, Row]] = defaultdict(dict)
        for row in rows:
            if len(row["marks"]) == len(columns):
                self._by[row["policy"]][row["field"], row["start"]] = row
        self.policies = tuple(self._by)

    def of(self, policy: str) -> dict[Pair, Row]:
        """Return the results of a policy by (field, start)."""
        return self._by.get(policy, {})

    def fields(self, policy: str) -> list[int]:
        """Return the fields on which a policy and the reference have a common start."""
        both = self.of(policy).keys() & self.of(REFERENCE).keys()
        return sorted({field for field, _ in both})

    def means(self, policy: str, key: str, column: int) -> dict[int, float]:
        """Return the mean of a score over the starts, by field."""
        return _by_field({pair: r["marks"][column][key] for pair, r in self.of(policy).items()})

    def differences(
        self, policy: str, key: str, column: int, less: str = REFERENCE
    ) -> dict[int, float]:
        """Return the mean of the paired differences from the policy `less`, by field."""
        mine, theirs = self.of(policy), self.of(less)
        return _by_field(
            {
                pair: mine[pair]["marks"][column][key] - theirs[pair]["marks"][column][key]
                for pair in sorted(mine.keys() & theirs.keys())
            }
        )

    def over(
        self, policy: str, key: str, column: int, less: str = REFERENCE, *, blocks: bool
    ) -> tuple[float, float, int]:
        """Return mean, standard error and number of the differences of all fields or all blocks."""
        groups: dict[int, list[float]] = defaultdict(list)
        for field, value in self.differences(policy, key, column, less).items():
            groups[self.blocks[field] if blocks else field].append(value)
        found = np.array([np.mean(values) for values in groups.values()])
        return (*mean_of(found), found.size)


def _by_field(values: Mapping[Pair, float]) -> dict[int, float]:
    found: dict[int, list[float]] = defaultdict(list)
    for (field, _), value in values.items():
        found[field].append(value)
    return {field: math.fsum(v) / len(v) for field, v in sorted(found.items())}


def error_rows(name: str, missions: Missions, *, blocks: bool) -> list[list[object]]:
    """Return a row for each policy with the RMSPE minus that of the reference policy."""
    rows: list[list[object]] = []
    for policy in missions.policies:
        count = len(missions.fields(policy))
        cells, n = [], count
        for column in range(len(missions.columns)):
            if policy == REFERENCE:
                values = np.array(list(missions.means(policy, "rmspe", column).values()))
                cells.append(shown(*mean_of(values)))
                continue
            mean, error, n = missions.over(policy, "rmspe", column, blocks=blocks)
            cells.append(shown(mean, error))
        runs = len(missions.of(policy))
        label = f"{policy}: RMSPE" if policy == REFERENCE else f"{policy} − {REFERENCE}"
        rows.append([name, label, *cells, f"{count} / {n} / {runs}"])
    return rows


def pair_rows(
    name: str, missions: Missions, pairs: Sequence[tuple[str, str]], *, blocks: bool
) -> list[list[object]]:
    """Return a row for each pair of policies with the difference in RMSPE."""
    rows: list[list[object]] = []
    over = partial(missions.over, blocks=blocks)
    for policy, less in pairs:
        runs = len(missions.of(policy).keys() & missions.of(less).keys())
        if not runs:
            continue
        found = [over(policy, "rmspe", c, less) for c in range(len(missions.columns))]
        count = len(missions.differences(policy, "rmspe", 0, less))
        cells = [shown(mean, error) for mean, error, _ in found]
        rows.append([name, f"{policy} − {less}", *cells, f"{count} / {found[0][2]} / {runs}"])
    return rows


def cost_rows(name: str, missions: Missions) -> list[list[object]]:
    """Return a row for each policy: the kilometres at each budget, and the planning time [s]."""
    rows: list[list[object]] = []
    for policy in missions.policies:

        def mean(key: str, column: int, policy: str = policy) -> tuple[float, float]:
            return mean_of(np.array(list(missions.means(policy, key, column).values())))

        columns = range(len(missions.columns))
        driven = [mean("metres", column) for column in columns]
        cells = [shown(value / 1000.0, error / 1000.0, digits=1) for value, error in driven]
        fields = len(missions.means(policy, "metres", 0))
        rows.append([name, policy, *cells, shown(*mean("plan", -1)), fields])
    return rows


def network_rows(networks: Mapping[str, Missions]) -> list[list[object]]:
    """Return a row for each policy: difference from the reference, averaged over networks [%]."""
    rows: list[list[object]] = []
    for policy in dict.fromkeys(p for found in networks.values() for p in found.policies):
        if policy == REFERENCE or not all(found.fields(policy) for found in networks.values()):
            continue
        cells: list[object] = [policy]
        for column in range(min(len(found.columns) for found in networks.values())):
            shares = np.array([_percent(one, policy, column) for one in networks.values()])
            each = ", ".join(f"{share:.1f}" for share in shares)
            cells.append(f"{shown(*mean_of(shares), digits=1)} ({each})")
        rows.append(cells)
    return rows


def _percent(missions: Missions, policy: str, column: int) -> float:
    """Return a policy's mean difference from the reference, in % of the reference's mean error."""
    found = missions.differences(policy, "rmspe", column)
    theirs = missions.means(REFERENCE, "rmspe", column)
    base = math.fsum(theirs[field] for field in found) / len(found)
    return 100.0 * math.fsum(found.values()) / len(found) / base
