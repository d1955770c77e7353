"""What several seeds on one and the same field can and cannot say."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from gp_active_sensing_bench.plan import ExperimentConfig

__all__ = ["one_field_notes", "shared_places"]

_DRAWN = ("gp", "sumo")
"""Kinds of fields that another seed makes another one."""


def one_field_notes(
    config: ExperimentConfig, records: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a sentence for each configuration whose seeds all have the same field.

    Standard errors over such seeds are those of starts and noise. They say nothing of another
    field, where every policy may be better or worse by more than that.

    Args:
        config: of the experiment.
        records: of its trials.
    """
    if any(key.partition(".")[0] in ("field", "map") for key in config.seeded):
        return
    for label in dict.fromkeys(record["configuration"] for record in records):
        mine = [record for record in records if record["configuration"] == label]
        fixed = all(record["config"]["field"].get("kind", "gp") not in _DRAWN for record in mine)
        if len({record["seed"] for record in mine}) < 2 or not fixed:
            continue
        yield (
            f"{label}: all seeds have the same field. Standard errors are over starts and noise on "
            f"this one field and say nothing of other fields{_in_common(mine)}."
        )


def _in_common(records: Sequence[Mapping[str, Any]]) -> str:
    """Return what missions of one policy share at their end, as the end of a sentence."""
    ways: dict[tuple[str, Any], list[set[int]]] = {}
    for record in records:
        read = {int(s["location"]) for s in record["stages"] if s.get("location") is not None}
        if read:
            ways.setdefault((record["policy"], record["budget"]), []).append(read)
    shares = [shared_places(found) for found in ways.values() if len(found) > 1]
    if not shares:
        return ""
    low, high = (round(100.0 * share) for share in (min(shares), max(shares)))
    which = f"{low} %" if low == high else f"{low} to {high} %"
    return f"; two missions of a policy have {which} of their places in common"


def shared_places(ways: Sequence[Collection[int]]) -> float:
    """Return the share of places that two missions have in common, mean over the pairs.

    Of two missions it is the number of places that both read, over the smaller number of places
    read. Two random choices of k of n places share k / n.

    Raises:
        ValueError: fewer than two missions, or one that read nothing.
    """
    sets = [set(way) for way in ways]
    if len(sets) < 2 or not all(sets):
        msg = f"expected at least two missions with places, got {[len(one) for one in sets]}"
        raise ValueError(msg)
    pairs = [len(a & b) / min(len(a), len(b)) for a, b in combinations(sets, 2)]
    return math.fsum(pairs) / len(pairs)
