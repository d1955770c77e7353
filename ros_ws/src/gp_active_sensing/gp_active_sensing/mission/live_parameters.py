"""Apply parameters that may change during a mission."""

from __future__ import annotations

import logging
from operator import attrgetter

from gp_active_sensing.mission import changes
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents, plan_limit
from gp_active_sensing.util.wording import shown

logger = logging.getLogger(__name__)

LIVE = (
    "limit.seconds",
    "limit.expansions",
    "budget.readings",
    "budget.metres",
    "budget.seconds",
    "budget.error",
    "budget.error_of",
    "reading.gate",
    "reading.gate_places",
    "reading.delay",
    "mission.arrival_radius",
    "mission.reading_timeout",
    "mission.retries",
    "mission.wait_for_reading",
    "mission.silent_places",
    "mission.first_leg",
    "mission.settle",
    "mission.drive_timeout",
    "mission.block_seconds",
    "mission.lost_after",
    "mission.exit_at_end",
    "expert.timeout",
    "expert.max_age",
    "expert.max_ahead",
    "waypoint.rate",
    "waypoint.altitude",
)
"""Names of the parameters that take effect at once; others take effect at the next `configure`."""


def adjust(parts: MissionComponents, before: ActiveSensingConfig, now: ActiveSensingConfig) -> None:
    """Apply a changed configuration, and log the differences."""
    mission = parts.mission
    _log_changes(before, now)
    with mission.lock:
        if now.limit != before.limit:
            mission.loop.limit = plan_limit(now.limit.seconds, now.limit.expansions)
        if now.mission != before.mission:
            changes.set_config(mission, now.mission)
        for probe in mission.probes.values():
            gate = probe.ingestion.pipeline.gate
            gate.limit, gate.places = now.reading.gate, now.reading.gate_places
            if now.reading.delay != before.reading.delay:
                probe.set_delay(now.reading.delay)
        if mission.consulting is not None:
            mission.consulting.books.config = now.expert
        if now.budget != before.budget:
            aim, aims = now.budget.aim(now.main), now.budget.aims(now.main)
            changes.set_budget(mission, now.budget.budget(), aim, aims)


def _log_changes(before: ActiveSensingConfig, now: ActiveSensingConfig) -> None:
    """Log the changed parameters except the budget, which the mission logs."""
    texts = []
    for name in LIVE:
        old, new = map(attrgetter(name), (before, now))
        if old != new and not name.startswith("budget."):
            texts.append(f"{name} is now {shown(new)} (was {shown(old)})")
    if texts:
        logger.info("changed: %s", ", ".join(texts))
