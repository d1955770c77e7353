"""Check from a journal that each sent reading was used exactly once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Account:
    """Numbers of readings in a journal.

    Args:
        sent: number of readings sent before the end of the mission.
        after: number of readings sent after the end of the mission.
        used: number of readings in the belief, including those inside averages.
        unused: stamps of the sent readings without an event in the journal [ns].
        doubled: number of times that a reading was used again.
        wrong: number of events whose count or average does not match the sent readings.
        foreign: number of readings in the journal that were never sent.
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
    """Compare sent readings, by their time stamps [ns], with the events of a journal."""
    order = np.argsort(np.asarray(stamps, dtype=np.int64), kind="stable")
    stamp = np.asarray(stamps, dtype=np.int64)[order]
    value = np.asarray(values, dtype=float)[order]
    gated = _set_aside(events)
    # Averages leave out gated readings.
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
    """Count the readings that are gated at the end, by (stamp, value)."""
    gated: Counter[tuple[int, float]] = Counter()
    for event in events:
        if event["event"] == "gated":
            gated[int(event["stamp_ns"]), float(event["value"])] += 1
        elif event.get("taken_back") and int(event.get("count", 1)) == 1:
            gated[int(event["stamp_ns"]), float(event["value"])] -= 1
    return +gated
