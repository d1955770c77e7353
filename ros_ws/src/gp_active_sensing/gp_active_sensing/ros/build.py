"""From the parameters of the node ``active_sensing`` to the things that do the work."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gp_active_sensing.belief import build_belief
from gp_active_sensing.config import to_mapping
from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.records import RunDirectory
from gp_active_sensing.ros.inbox import Inbox
from gp_active_sensing.ros.intake import Intake
from gp_active_sensing.ros.matching import MapMatcher
from gp_active_sensing.ros.mission import Mission
from gp_active_sensing.ros.poses import PoseTrack
from gp_active_sensing.ros.recording import Recorder
from gp_active_sensing.ros.settings import DEFAULT_PLAN_SECONDS, ActiveSensingConfig
from gp_active_sensing.sim import Truth, build_world, scenario_from_mapping
from gp_active_sensing.topology import build_topology
from gp_active_sensing.types import Clock, PlanLimit

__all__ = ["Parts", "build_parts", "plan_limit"]

logger = logging.getLogger(__name__)

_SECTIONS = ("map", "belief", "policy", "budget", "limit")


@dataclass(frozen=True)
class Parts:
    """What a configured node consists of besides its topics."""

    mission: Mission
    recorder: Recorder
    matcher: MapMatcher


def plan_limit(seconds: float | None, expansions: int | None) -> PlanLimit:
    """Return the limit of a decision; a robot never plans without one."""
    if seconds is None and expansions is None:
        return PlanLimit(seconds=DEFAULT_PLAN_SECONDS)
    return PlanLimit(seconds, expansions)


def build_parts(
    config: ActiveSensingConfig,
    scenario: Mapping[str, Any] | None,
    *,
    clock: Clock = time.monotonic,
) -> Parts:
    """Build the engine, the mission and its records.

    Args:
        config: the node's parameters.
        scenario: plain data of the scenario they started from, None = none.
        clock: monotonic seconds.

    Raises:
        ActiveSensingError: a map, belief, policy or run directory that cannot be used.
    """
    topology = build_topology(config.map)
    loop = SensingLoop(
        topology,
        build_belief(config.belief, topology.features, topology.feature_names),
        build_policy(config.policy),
        budget=config.budget.budget(),
        seed=config.seed,
        limit=plan_limit(config.limit.seconds, config.limit.expansions),
        retries=config.mission.retries,
        clock=clock,
    )
    matcher = MapMatcher(topology, config.mission.snap_distance)
    loop.snap_distance = matcher.snap_distance
    kept = _effective(config, scenario)
    truth, unit = _truth(kept, scenario)
    run = RunDirectory.create(config.run_dir, kept) if config.run_dir else None
    recorder = Recorder(run, kept, topology, truth=truth, unit=unit)
    intake = Intake(
        loop,
        matcher,
        PoseTrack(config.pose.max_age, config.pose.history),
        coverage=config.mission.coverage,
        pose_wait=config.pose.wait,
        clock=clock,
        journal=recorder.event,
    )
    radius = config.mission.arrival_radius
    if radius is None:
        radius = 5.0 if matcher.has_lines else min(5.0, 0.4 * matcher.spacing)
    seconds_of_queue = 20.0
    capacity = round(seconds_of_queue * (config.reading.rate + config.pose.rate))
    mission = Mission(
        loop,
        intake,
        Inbox(max(1000, capacity)),
        config.mission,
        arrival_radius=radius,
        clock=clock,
        ahead=config.plan_ahead_samples if config.plan_ahead else 0,
        journal=recorder.event,
    )
    return Parts(mission, recorder, matcher)


def _effective(config: ActiveSensingConfig, scenario: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the mission runs with, in the words of a scenario."""
    whole = to_mapping(config)
    kept: dict[str, Any] = dict(scenario) if scenario is not None else {"name": "mission"}
    kept.update({section: whole[section] for section in _SECTIONS})
    kept["seed"] = config.seed
    return kept


def _truth(kept: Mapping[str, Any], scenario: Mapping[str, Any] | None) -> tuple[Truth | None, str]:
    """Return the noise-free field and its unit where the scenario knows it."""
    if scenario is None:
        return None, ""
    try:
        whole = scenario_from_mapping(kept)
        return build_world(whole).truth, whole.field.unit
    except ActiveSensingError as error:
        logger.warning("the truth of the scenario is not known on this map: %s", error)
        return None, ""
