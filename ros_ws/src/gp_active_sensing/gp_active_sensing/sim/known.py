"""What a mission may know about the true field of a scenario, to compare its map with."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.records.ground_truth import NOTHING, FieldKnowledge
from gp_active_sensing.sim.scenario import scenario_from_mapping
from gp_active_sensing.sim.world import build_world

__all__ = ["known_of"]

logger = logging.getLogger(__name__)


def known_of(scenario: Mapping[str, Any]) -> FieldKnowledge:
    """Return the truth of a scenario, its sensor and its unit; nothing where there is none.

    Args:
        scenario: plain data, as a mission keeps it.
    """
    try:
        whole = scenario_from_mapping(scenario)
        if whole.field.kind == "sumo":
            logger.info("the truth is in the simulator's SUMO: no scores of the map")
            return FieldKnowledge(unit=whole.field.unit)
        world = build_world(whole)
    except ActiveSensingError as error:
        logger.warning("the truth of the scenario is not known on this map: %s", error)
        return NOTHING
    return FieldKnowledge(world.truth, world.sensor, whole.field.unit)
