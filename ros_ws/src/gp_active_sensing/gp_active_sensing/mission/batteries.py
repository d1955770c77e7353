"""Change the batteries of probes at their end places, and use the charge that they publish."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.planning.base import crosses
from gp_active_sensing.planning.budget import (
    BudgetConstraint,
    allowed,
    in_metres,
    least_of,
)
from gp_active_sensing.records.events import BatteryNoted, Event, SortieChanged
from gp_active_sensing.types import Cost

logger = logging.getLogger(__name__)

Journal = Callable[[Event], None]


def is_worth_it(probe: ProbeState, at: int | None, pending: tuple[int, ...], owed: Cost) -> bool:
    """Return whether a probe can read more once its battery is changed.

    Args:
        probe: nothing is chosen for it any more.
        at: where it stands.
        pending: waypoints that other probes are sent to.
        owed: driven since its budget was charged last.
    """
    loop, sortie, end = probe.loop, probe.sortie, probe.purse.end
    if not sortie.limited or end is None or at is None or loop.good_enough():
        return False
    if sortie.number > 1 and not sortie.stages:
        return False  # another battery would not help
    readings = loop.readings_for(probe.name, pending)
    left = replace(in_metres(probe.purse.minus(cost=owed), loop.speed), readings=readings)
    home = BudgetConstraint(loop.topology, left).way_home(at)
    if home is None or (readings is not None and readings <= 0):
        return False
    left = least_of(in_metres(sortie.fresh(), loop.speed), left.minus(cost=home.cost))
    constraint, known = BudgetConstraint(loop.topology, left), probe.observed.copy()
    if not (crosses(loop.policy) or loop.revisits):
        known[list(pending)] = True
        return bool(constraint.drives(end, known, loop.unavailable))
    known[[*pending, *loop.unavailable]] = True
    ways = loop.topology.ways_from(end)
    there = ~known & np.isfinite(ways.seconds)
    return bool((there & allowed(constraint, ways, there.astype(np.int64))).any())


def begin_change(probe: ProbeState, journal: Journal, now_ns: int) -> str:
    """Wait for another battery of a probe at its end place; return what somebody has to do."""
    sortie, name = probe.sortie, probe.name
    if not sortie.waiting:
        journal(SortieChanged(number=sortie.number, over=True, stamp_ns=now_ns, probe=name))
        sortie.waiting = True
    how = f" of {name}, then call ~/resume or ~/{name}/join" if name else ", then call ~/resume"
    return f"sortie {sortie.number} is over: change the battery{how}"


def end_change(probe: ProbeState, journal: Journal, now_ns: int) -> None:
    """Go on with another battery."""
    number = probe.sortie.number + 1
    journal(SortieChanged(number=number, over=False, stamp_ns=now_ns, probe=probe.name))
    probe.renew(number)
    logger.info("%ssortie %d begins", f"{probe.name}: " if probe.name else "", number)


def update_battery(probe: ProbeState, level: float, journal: Journal, now_ns: int) -> None:
    """Use the charge of a probe's battery, 0 to 1."""
    if probe.sortie.is_news(level):
        where = probe.whereabouts()
        journal(BatteryNoted(level=level, where=where, stamp_ns=now_ns, probe=probe.name))
        probe.sortie.note_level(level, where.odometer)
