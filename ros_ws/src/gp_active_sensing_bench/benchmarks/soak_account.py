"""Account of the readings of a soak from the journal: used once, twice, or not at all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Account:
    """Account of sent readings in a journal.

    Args:
        sent: number of readings before the end of the mission.
        after: number of readings after the end of the mission.
        used: number of readings in the belief; an average counts as all its readings.
        unused: stamps of sent readings without an event.
        doubled: number of repeated uses of readings.
        wrong: number of events whose count or average does not match the readings of their time.
        foreign: number of readings in the journal that the probe did not send.
        gated: number of gated readings at the end.
    """

    sent: int
    after: int
    used: int
    unused: tuple[int, ...]
    doubled: int
    wrong: int
    foreign: int
    gated: int


def account(
    stamps: Sequence[int], values: Sequence[float], events: Sequence[Mapping[str, Any]]
) -> Account:
    """Compare the sent readings, by their stamps [ns], with a journal."""
    order = np.argsort(np.asarray(stamps, dtype=np.int64), kind="stable")
    stamp = np.asarray(stamps, dtype=np.int64)[order]
    value = np.asarray(values, dtype=float)[order]
    gated = _set_aside(events)
    # Gated readings are in no average of their time.
    aside = np.isin(stamp, [stamp_ns for stamp_ns, _ in gated])
    sent_order = order
    stamp, value, order = stamp[~aside], value[~aside], order[~aside]
    times = np.zeros(len(stamp), dtype=np.int64)
    used = wrong = foreign = 0
    last = -1
    for event in events:
        if event["event"] != "reading":
            continue
        count = int(event.get("count", 1))
        until = int(event["stamp_ns"])
        since = int(event["first_ns"]) if count > 1 else until
        low, high = np.searchsorted(stamp, since), np.searchsorted(stamp, until, side="right")
        used += count
        foreign += max(0, count - int(high - low))
        if high == low:
            continue
        times[low:high] += 1
        last = max(last, int(order[low:high].max()))
        off = abs(float(np.mean(value[low:high])) - float(event["value"]))
        wrong += count != high - low or not math.isclose(off, 0.0, abs_tol=1e-6)
    over = any(event["event"] == "end" for event in events)
    counted = order <= last if over else np.ones(len(order), dtype=bool)
    sent = int((sent_order <= last).sum()) if over else len(sent_order)
    return Account(
        sent=sent,
        after=len(sent_order) - sent,
        used=used,
        unused=tuple(stamp[counted & (times == 0)].tolist()),
        doubled=int(np.clip(times - 1, 0, None).sum()),
        wrong=wrong,
        foreign=foreign,
        gated=sum(gated.values()),
    )


def _set_aside(events: Sequence[Mapping[str, Any]]) -> Counter[tuple[int, float]]:
    """Return the readings that are gated at the end, by stamp and value."""
    gated: Counter[tuple[int, float]] = Counter()
    for event in events:
        if event["event"] == "gated":
            gated[int(event["stamp_ns"]), float(event["value"])] += 1
        elif event.get("taken_back") and int(event.get("count", 1)) == 1:
            gated[int(event["stamp_ns"]), float(event["value"])] -= 1
    return +gated
