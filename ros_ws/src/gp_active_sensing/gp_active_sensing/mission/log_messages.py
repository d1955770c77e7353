"""Texts of log messages: budgets, pauses and delays of sensors."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from gp_active_sensing.mission.ingestion.delay_estimate import (
    CANDIDATES,
    LEAST,
    DelayEstimate,
    DelayMonitor,
)
from gp_active_sensing.types import WORST, Aim, Budget
from gp_active_sensing.util.wording import shown

logger = logging.getLogger(__name__)

DEACTIVATED = "the node was deactivated"
FINISHING = "about to finish"
"""Reason of the short pause before the end of a mission."""
NEW = 0.3
"""An estimated delay is logged again if it has changed by more than this [s]."""


def loudness(reason: str) -> int:
    """Return the log level for the reason of a pause: WARNING if nobody requested the pause."""
    if reason == FINISHING:
        return logging.DEBUG
    asked = reason == DEACTIVATED or reason.startswith("asked")
    return logging.INFO if asked else logging.WARNING


def budget_text(budget: Budget, aim: Aim | None = None) -> str:
    """Return a budget and a target error in words, such as "20 readings, 500 m"."""
    limits = ((budget.readings, "readings"), (budget.metres, "m"), (budget.seconds, "s"))
    found = [shown(limit, unit) for limit, unit in limits if limit is not None]
    if aim is not None:
        what = "of the worst place " if aim.of == WORST else ""
        found.append(f"until the expected error {what}is {aim.error:.6g}")
    return ", ".join(found) or "no limit"


def advice(estimate: DelayEstimate, delay: float = 0.0, key: str = "reading") -> str:
    """Return advice on an estimated delay; `delay` [s] is configured in section `key`."""
    whole, margin = delay + estimate.seconds, 2.0 * estimate.error
    below = estimate.seconds - margin <= CANDIDATES[0]  # may be less than all candidates
    above = estimate.seconds + margin >= CANDIDATES[-1]
    if delay > 0.0 and abs(whole) < LEAST:
        return f"the readings are no older than their stamps: set {key}.delay: 0"
    if whole < 0.0:
        more = " or more" if below else ""
        return (
            f"the poses are stamped about {-whole:.1f} s{more} too late, or readings too early: "
            "correct the stamps of the poses (a sensor mounted ahead of the pose looks the same)"
        )
    more = " or more" if above else " or less" if below else ""
    return (
        f"the readings are about {whole:.1f} s{more} older than their stamps: set {key}.delay: "
        f"{whole:.1f} (a sensor mounted behind the pose looks the same)"
    )


def log_delay(watch: DelayMonitor, name: str, delay: float, quantity: str = "") -> None:
    """Log a new estimate of the delay of a probe's sensor."""
    if watch.estimate is None:
        return
    if watch.logged is not None and abs(watch.estimate.seconds - watch.logged) <= NEW:
        return
    watch.logged = watch.estimate.seconds
    logger.warning(
        "%s%s; with this delay %d readings are exp(%.0f) times as probable. Without it the map is "
        "wrong where the probe moved",
        f"{name}: " if name else "",
        advice(watch.estimate, delay, f"readings.{quantity}" if quantity else "reading"),
        watch.estimate.samples,
        watch.estimate.evidence,
    )


def delays_of(probes: Iterable[tuple[str, DelayMonitor, float]]) -> list[dict[str, Any]]:
    """Return the estimated delays as plain data for JSON."""
    return [
        {
            **({"probe": name} if name else {}),
            "seconds": delay + found.seconds,
            "error": found.error,
            "evidence": found.evidence,
            "readings": found.samples,
            "set": delay,
        }
        for name, watch, delay in probes
        if (found := watch.estimate) is not None
    ]
