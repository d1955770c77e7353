"""Diagnostics of one of several probes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gp_active_sensing.mission.fleet import LEFT
from gp_active_sensing.mission.ingestion.coverage import MOST_HELD
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.names import probe_topic
from gp_active_sensing.mission.probe import NO_POSE, ProbeState
from gp_active_sensing.ros.topic_monitor import TopicMonitor

__all__ = ["buffer_levels", "probe_state", "probe_status", "rejection_problems"]

OK, WARN = 0, 1
ASKED_FOR = ("settling",)
"""Reasons not to use a reading that a parameter asks for: counted, and no problem."""


def probe_state(probe: ProbeState) -> str:
    """Return in a word what a probe is about."""
    if probe.gone:
        if probe.gone.startswith(LEFT):
            return "left"
        return "absent" if probe.gone == NO_POSE else "silent"
    if probe.plan is not None:
        return "driving"
    if probe.stages.home is not None:
        return "going home"
    if probe.home:
        return "home"
    return "resting" if probe.resting else "deciding"


def probe_status(
    probe: ProbeState, streams: Mapping[str, TopicMonitor], refused: Counter[str]
) -> tuple[int, str, dict[str, object]]:
    """Return level, summary and values of a probe.

    Args:
        probe: which one.
        streams: by topic.
        refused: its messages that could not be used at all, by reason.
    """
    pose, reading = (streams[probe_topic(probe.name, topic)] for topic in ("pose", "reading"))
    state, target, left = probe_state(probe), probe.target, probe.left
    why = (probe.gone or probe.resting).removeprefix(LEFT)
    waypoint = "" if target is None else probe.loop.topology.names[target]
    missing = ", ".join(stream.name for stream in (pose, reading) if not stream.count)
    values: dict[str, object] = {
        "state": state,
        "why": why,
        "waypoint": waypoint,
        "missing_topics": missing,
        "metres_left": "unlimited" if left.metres is None else left.metres,
        "seconds_left": "unlimited" if left.seconds is None else left.seconds,
        "metres_driven": probe.stages.driven.metres,
        "seconds_driven": probe.stages.driven.seconds,
        "poses_received": pose.count,
        "poses_per_second": pose.rate,
        "seconds_since_pose": pose.silence,
        "readings_received": reading.count,
        "readings_per_second": reading.rate,
        "seconds_since_reading": reading.silence,
        "waiting_for_pose": probe.ingestion.waiting,
        "waiting_for_coverage": probe.ingestion.visits.waiting,
    }
    rejected = Counter(dict(probe.ingestion.rejected)) + refused
    values |= {f"rejected_{word}": n for word, n in sorted(rejected.items())}
    summary = f"{state} to {waypoint}" if waypoint and state == "driving" else state
    summary += f" ({why})" if why else ""
    problems = [f"nothing heard of {missing}"] if missing and state != "left" else []
    if pose.quiet and state != "left":
        problems.append(f"no pose for {pose.silence:.0f} s")
    problems += rejection_problems(rejected)
    level = WARN if problems or state in ("absent", "silent") else OK
    return level, "; ".join([summary, *problems]), values


def rejection_problems(rejected: Mapping[str, int]) -> list[str]:
    """Return what is wrong with messages that were not used, by the word of the reason."""
    total = sum(count for word, count in rejected.items() if word not in ASKED_FOR)
    return [f"{total} rejected"] if total else []


def buffer_levels(mission: Mission) -> dict[str, object]:
    """Return how much waits or is kept, of all probes together, and how much may be of each."""
    ingestions = [probe.ingestion for probe in mission.probes.values()]
    one = ingestions[0]
    return {
        "inbox_capacity": mission.inbox.capacity,
        "waiting_for_pose_capacity": one.taking.waiting,
        "waiting_for_coverage_capacity": MOST_HELD,
        "averaging": sum(ingestion.averaging for ingestion in ingestions),
        "gated_kept": sum(len(ingestion.pipeline.gate) for ingestion in ingestions),
        "gated_kept_capacity": one.pipeline.gate.capacity,
        "poses_kept": sum(len(ingestion.track) for ingestion in ingestions),
        "poses_kept_capacity": one.track.capacity,
    }
