"""Refuse a first leg longer than the map is wide: map, frame or datum is probably wrong."""

from __future__ import annotations

import math

from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.types import Plan

__all__ = ["first_leg_refusal"]


def first_leg_refusal(probe: ProbeState, plan: Plan) -> str:
    """Return why a probe must not set out on its first leg, "" when it may, or has before.

    Args:
        probe: that the plan is for; its pose is the newest one.
        plan: the decision, not given out yet.
    """
    config, ingestion = probe.config, probe.ingestion
    pose = ingestion.track.newest
    if probe.stages.number or not plan.path or pose is None or config.follow == "probe":
        return ""
    topology, matcher = probe.loop.topology, ingestion.matcher
    # Anyone who is on the map may be so far off its edge.
    extent = matcher.extent + matcher.snap_distance
    longest = extent if config.first_leg is None else config.first_leg
    x, y, _ = topology.goals[plan.path[-1]].tolist()
    metres = math.hypot(x - pose.x, y - pose.y)
    if metres <= longest:
        return ""
    limit = (
        f"the map's extent of {longest:.0f} m"
        if config.first_leg is None
        else f"mission.first_leg of {longest:g} m"
    )
    return (
        f"the first leg{f' of {probe.name}' if probe.name else ''} would be {metres:.0f} m, from "
        f"its pose ({pose.x:.1f}, {pose.y:.1f}) to {topology.names[plan.path[-1]]} at "
        f"({x:.1f}, {y:.1f}), more than {limit}. Is {topology.name!r} the right map, and the pose "
        f"in its frame {topology.frame!r} (pose.datum of a NavSatFix)? If all is right, set "
        f"mission.first_leg to {math.ceil(metres)}.0 or more. Then call ~/resume"
    )
