"""What is said of readings whose stamps are too late."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from gp_active_sensing.mission.lag import CANDIDATES, DelayEstimate, LagWatch

__all__ = ["advice", "delays_of", "say_delay"]

logger = logging.getLogger(__name__)


def advice(estimate: DelayEstimate, delay: float = 0.0) -> str:
    """Return what to do about a delay, in words.

    Args:
        estimate: beyond `delay`.
        delay: parameter `reading.delay` as it is [s].
    """
    whole = delay + estimate.seconds
    if whole < 0.0:
        return (
            f"the poses are stamped about {-whole:.1f} s too late, or readings too early: correct "
            "the stamps of the poses"
        )
    more = " or more" if estimate.seconds >= float(CANDIDATES[-1]) else ""
    older = f"the readings are about {whole:.1f} s{more} older than their stamps"
    return f"{older}: set reading.delay: {whole:.1f}"


def say_delay(watch: LagWatch, name: str, delay: float) -> None:
    """Say once of a probe that its readings are better explained by other stamps."""
    if watch.estimate is None or watch.said:
        return
    watch.said = True
    logger.warning(
        "%s%s (%d readings together are exp(%.0f) times as probable where the probe was then; as "
        "it is the map is wrong where it moved)",
        f"{name}: " if name else "",
        advice(watch.estimate, delay),
        watch.estimate.samples,
        watch.estimate.evidence,
    )


def delays_of(probes: Iterable[tuple[str, LagWatch, float]]) -> list[dict[str, Any]]:
    """Return the delays that were found, as plain data.

    Args:
        probes: name, watch and `reading.delay` as it is [s] of each.
    """
    found: list[dict[str, Any]] = []
    for name, watch, delay in probes:
        if (estimate := watch.estimate) is not None:
            found.append(
                {
                    **({"probe": name} if name else {}),
                    "seconds": delay + estimate.seconds,
                    "error": estimate.error,
                    "evidence": estimate.evidence,
                    "set": delay,
                }
            )
    return found
