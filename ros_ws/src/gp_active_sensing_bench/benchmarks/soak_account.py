"""What became of each reading of a soak, by the journal: used once, twice, or not at all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Account:
    """What is in the journal of the readings that were sent.

    Args:
        sent: readings of the probe, until the mission was over.
        after: those sent later.
        used: readings that the journal says are in the belief; an average counts all of its.
        unused: stamps of those of `sent` that are in no event.
        doubled: how often a reading is in an event besides the first.
        wrong: events whose number or average is not that of the readings sent in their time, less
            those set aside.
        foreign: readings in the journal that the probe did not send.
        gated: readings set aside at the end.
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
    """Compare the readings that were sent, by their stamps [ns], with a journal."""
    order = np.argsort(np.asarray(stamps, dtype=np.int64), kind="stable")
    stamp = np.asarray(stamps, dtype=np.int64)[order]
    value = np.asarray(values, dtype=float)[order]
    gated = _set_aside(events)
    # What is set aside is in no average of its time.
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
    """Return the readings, by stamp and value, that are set aside at the end."""
    gated: Counter[tuple[int, float]] = Counter()
    for event in events:
        if event["event"] == "gated":
            gated[int(event["stamp_ns"]), float(event["value"])] += 1
        elif event.get("taken_back") and int(event.get("count", 1)) == 1:
            gated[int(event["stamp_ns"]), float(event["value"])] -= 1
    return +gated
