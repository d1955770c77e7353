"""Log messages of a mission: its decisions, budgets, pauses, and sensors that stamp too late."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.mission.ingestion.delay_estimate import (
    CANDIDATES,
    LEAST,
    DelayEstimate,
    DelayMonitor,
)
from gp_active_sensing.types import WORST, Aim, Budget, FloatArray, Plan
from gp_active_sensing.util.wording import brief, distance, shown

if TYPE_CHECKING:
    from gp_active_sensing.mission.mission import Mission

__all__ = [
    "DEACTIVATED",
    "FINISHING",
    "MissionLog",
    "advice",
    "as_mapping",
    "budget_left",
    "budget_words",
    "delays_of",
    "loudness",
    "say_delay",
]


DEACTIVATED = "the node was deactivated"
FINISHING = "about to finish"
"""Why a mission pauses for a moment, before it ends."""


def loudness(reason: str) -> int:
    """Return the level at which a pause is said: what nobody asked for is a warning."""
    if reason == FINISHING:
        return logging.DEBUG
    asked = reason == DEACTIVATED or reason.startswith("asked")
    return logging.INFO if asked else logging.WARNING


def budget_words(budget: Budget, aim: Aim | None = None) -> str:
    """Return what may be spent, such as "20 readings, 500 m", and until when."""
    limits = ((budget.readings, "readings"), (budget.metres, "m"), (budget.seconds, "s"))
    found = [shown(limit, unit) for limit, unit in limits if limit is not None]
    if aim is not None:
        what = "of the worst place " if aim.of == WORST else ""
        found.append(f"until the promised error {what}is {aim.error:.6g}")
    return ", ".join(found) or "no limit"


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


class MissionLog:
    """Says each thing once; may be used from several threads.

    Args:
        mission: what it is about.
        policy: its name, for the words.
        unit: of the readings, "" when not known.
    """

    def __init__(self, mission: Mission, policy: str, unit: str = "") -> None:
        from gp_active_sensing.planning import explain as sentences

        self._mission = mission
        self._policy = policy
        self._sentences = sentences
        self._unit = f" {unit}" if unit else ""
        self.value_unit = sentences.value_unit(policy)
        """Of the bounds on a decision's value, "" where it is not known."""
        self._tenths: dict[str, int] = {}
        self._decided: list[tuple[str, int, Plan]] = []
        """Decisions that nothing has been said of: probe, stage, plan."""
        self._uncertainty = ""
        self._lock = threading.Lock()

    def decision(self, probe: str, plan: Plan) -> None:
        """Keep a decision until `decisions`; of a plan that leads home the mission says it."""
        if plan.waypoints:
            with self._lock:
                number = self._mission.probes[probe].stages.number
                self._decided.append((probe, number, plan))

    def decisions(
        self, std: FloatArray, weights: FloatArray | None = None, *, known: bool = True
    ) -> None:
        """Say where the probes go next and why, each after what the stage before has brought.

        Args:
            std: (n,) of the field at every place, in the unit of the readings.
            weights: (n,) of these places; None = those of the mission's map.
            known: False where `std` has no meaning yet: no reading has said what the scale is.
        """
        with self._lock:
            ready = [decided for decided in self._decided if self._follows(*decided[:2])]
            self._decided = [decided for decided in self._decided if decided not in ready]
            for probe, number, plan in ready:
                self._say(probe, number, plan, self._uncertainty_now(std, weights) if known else "")

    def _follows(self, probe: str, number: int) -> bool:
        """Whether all earlier stages of a probe have been told, or a later one is decided."""
        left = self._mission.probes[probe].stages.unrecorded
        later = any(name == probe and n > number for name, n, _ in self._decided)
        return later or all(stage.number >= number for stage in left)

    def _say(self, probe: str, number: int, plan: Plan, uncertainty: str) -> None:
        names, words = self._mission.loop.topology.names, self._sentences
        whose = f" of {probe}" if probe else ""
        place = words.called(names[plan.waypoints[0]])
        metres = plan.cost.metres
        way = distance(metres) if metres > 0.0 else "here"
        logger.info("stage %d%s: next: %s (%s)%s", number, whose, place, way, uncertainty)
        why = words.why(plan, names, self._policy)
        logger.info("stage %d%s: %s", number, whose, f"{why[0].lower()}{why[1:]}")

    def _uncertainty_now(self, std: FloatArray, weights: FloatArray | None) -> str:
        """Return how little is known of the map (root mean variance), and how little was."""
        with np.errstate(over="ignore", invalid="ignore"):
            if weights is None:
                weights = self._mission.loop.topology.weights
            now = float(np.sqrt(np.average(np.square(std), weights=weights)))
        if not math.isfinite(now):
            return ""
        before, self._uncertainty = self._uncertainty, brief(now)
        change = f"{before} → " if before not in ("", self._uncertainty) else ""
        return f"; map uncertainty {change}{self._uncertainty}{self._unit}"

    def budget(self) -> None:
        """Say how much is left, whenever another tenth of it is spent."""
        for what, unit, left, whole in budget_left(self._mission):
            tenth = max(0, math.ceil(10.0 * left / whole - 1e-9))
            before = self._tenths.get(what)
            self._tenths[what] = tenth
            if before is not None and tenth != before:
                share = max(0.0, left / whole)
                logger.info(
                    "%.0f %% left of the %s: %.4g of %.4g%s", 100 * share, what, left, whole, unit
                )


def budget_left(mission: Mission) -> Iterator[tuple[str, str, float, float]]:
    """Yield what the budget limits, its unit, what is left of it and what it was in all."""
    whole = mission.budget
    if whole.readings is not None:
        readings = mission.loop.remaining.readings
        yield "readings", "", float(readings or 0), float(whole.readings)
    for name, probe in mission.probes.items():
        whose = f" of {name}" if name else ""
        for what, unit, left, total in (
            ("metres", " m", probe.purse.metres, whole.metres),
            ("seconds", " s", probe.purse.seconds, whole.seconds),
        ):
            if left is not None and total is not None:
                yield f"{what}{whose}", unit, left, total
