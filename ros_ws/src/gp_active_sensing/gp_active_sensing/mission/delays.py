"""Log messages about sensor delays: readings whose stamps are too late."""

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

__all__ = ["advice", "as_mapping", "delays_of", "say_delay"]

NEW = 0.3
"""A delay is said again when it is another by more [s]."""
logger = logging.getLogger(__name__)


def advice(estimate: DelayEstimate, delay: float = 0.0) -> str:
    """Return what to do about a delay, in words.

    Args:
        estimate: beyond `delay`.
        delay: parameter `reading.delay` as it is [s].
    """
    whole = delay + estimate.seconds
    below = (
        estimate.seconds - 2.0 * estimate.error <= CANDIDATES[0]
    )  # smaller ones are not compared
    above = estimate.seconds + 2.0 * estimate.error >= CANDIDATES[-1]
    if delay > 0.0 and abs(whole) < LEAST:
        return "the readings are no older than their stamps: set reading.delay: 0"
    if whole < 0.0:
        more = " or more" if below else ""
        return (
            f"the poses are stamped about {-whole:.1f} s{more} too late, or readings too early: "
            "correct the stamps of the poses (a sensor mounted ahead of the pose looks the same)"
        )
    more = " or more" if above else " or less" if below else ""
    return (
        f"the readings are about {whole:.1f} s{more} older than their stamps: set reading.delay: "
        f"{whole:.1f} (a sensor mounted behind the pose looks the same)"
    )


def as_mapping(estimate: DelayEstimate, delay: float) -> dict[str, Any]:
    """Return a delay as plain data.

    Args:
        estimate: beyond `delay`.
        delay: parameter `reading.delay` as it is [s].
    """
    return {
        "seconds": delay + estimate.seconds,
        "error": estimate.error,
        "evidence": estimate.evidence,
        "readings": estimate.samples,
        "set": delay,
    }


def say_delay(watch: DelayMonitor, name: str, delay: float) -> None:
    """Say of a probe that its readings are better explained by other stamps, when that is new."""
    if watch.estimate is None:
        return
    if watch.said is not None and abs(watch.estimate.seconds - watch.said) <= NEW:
        return
    watch.said = watch.estimate.seconds
    logger.warning(
        "%s%s; %d readings together are exp(%.0f) times as probable where the probe was then, and "
        "as it is the map is wrong where it moved",
        f"{name}: " if name else "",
        advice(watch.estimate, delay),
        watch.estimate.samples,
        watch.estimate.evidence,
    )


def delays_of(probes: Iterable[tuple[str, DelayMonitor, float]]) -> list[dict[str, Any]]:
    """Return the delays that were found, as plain data.

    Args:
        probes: name, watch and `reading.delay` as it is [s] of each.
    """
    return [
        {**({"probe": name} if name else {}), **as_mapping(watch.estimate, delay)}
        for name, watch, delay in probes
        if watch.estimate is not None
    ]
