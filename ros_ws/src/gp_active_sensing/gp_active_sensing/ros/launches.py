"""The launches there are: probe, traffic_sim and replay."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from gp_active_sensing.config import param_of
from gp_active_sensing.errors import UnknownNameError, suggest
from gp_active_sensing.mission.config import PoseConfig
from gp_active_sensing.mission.names import numbered
from gp_active_sensing.planning import policies
from gp_active_sensing.ros.launching import Argument, LaunchSpec, NodeSpec, Use
from gp_active_sensing.util.resources import list_resources

__all__ = ["LAUNCHES", "launch_spec"]


def launch_spec(name: str) -> LaunchSpec:
    """Return a launch by its name.

    Raises:
        UnknownNameError: no such launch; the message has the nearest match.
    """
    try:
        return LAUNCHES[name]
    except KeyError:
        known = ", ".join(LAUNCHES)
        msg = f"unknown launch {name!r}.{suggest(name, LAUNCHES)} Known: {known}"
        raise UnknownNameError(msg) from None


def _shipped(kind: str, suffix: str) -> str:
    found = list_resources(kind)
    names = ", ".join(name.removesuffix(suffix) for name in found if name.endswith(suffix))
    return f"a path, or one that ships with the package: {names}" if names else "a path"


def _shipped_bags() -> str:
    names = sorted({name.split("/")[0] for name in list_resources("bags") if "/" in name})
    return f"or one that ships with the package: {', '.join(names)}" if names else "or a name"


def _pose_types() -> tuple[str, ...]:
    kind = next(field for field in dataclasses.fields(PoseConfig) if field.name == "type")
    return param_of(kind).choices or ()


_POLICY = Argument("policy", "how the next place is chosen", choices=tuple(policies.names()))
_BUDGET = Argument("budget", "number of places to observe", kind=int)
_SEED = Argument("seed", "key of every random draw", kind=int)
_PLAN_AHEAD = Argument(
    "plan_ahead", "plan while the probe drives", choices=("true", "false"), kind=bool
)
_PROBES = Argument(
    "probes",
    "several probes: how many (3: probe_1, probe_2, probe_3), or their names with commas; empty = "
    "one, without a namespace; in simulation, as many as the scenario says",
    kind=numbered,
)
_RECORD = Argument("record", "new folder: record inputs, outputs and journal there (rosbag2)")
_RUN_DIR = Argument(
    "run_dir",
    "directory for journal and records: a new one, one whose mission is to go on, or auto",
)
_RESPAWN = Argument(
    "respawn",
    "start active_sensing again when it was killed or crashed; with run_dir it goes on where it "
    "was",
    "false",
    bool,
)
_NAVIGATE = Argument(
    "navigate",
    "topic: the waypoint on its topic; action: as a goal of Nav2's NavigateToPose as well",
    choices=("topic", "action"),
)
_SCENARIO_HELP = f"scenario, {_shipped('sim', '.yaml')}"
_RVIZ = Argument("rviz", "show the field, the map and the plan in RViz", "false", bool)
_MAP = Argument(
    "map", f"road map, {_shipped('maps', '.geojson')}; empty = that of params_file or scenario"
)
_SENSOR = (
    Argument("reading_topic", "topic of the readings", "reading"),
    Argument("reading_type", "message type of the readings, package/msg/Name"),
    Argument("reading_field", "path of the value in the message, such as twist.twist.linear.x"),
    Argument("reading_variance_field", "path of the noise variance in the message"),
    Argument("pose_topic", "topic of the pose", "pose"),
    Argument("pose_type", "message type of the pose", choices=_pose_types()),
)
_SENSOR_PARAMETERS = {
    "reading.type": Use("reading_type"),
    "reading.field": Use("reading_field"),
    "reading.variance_field": Use("reading_variance_field"),
    "pose.type": Use("pose_type"),
}
_VIEWS = (
    Argument("map_topic", "topic of the map and its places (markers)", "~/map"),
    Argument("field_topic", "topic of the believed field (point cloud)", "~/field"),
    Argument("plan_topic", "topic of the plan (path); of several `probes` one each", "~/plan"),
    Argument("probes_topic", "topic of where the probes are (markers)", "~/probes"),
    Argument(
        "belief_topic",
        "topic of the belief over the hyper-parameters (numbers)",
        "~/length_scale_belief",
    ),
)
_VIEW_TOPICS = {
    "~/map": Use("map_topic"),
    "~/field": Use("field_topic"),
    "~/probes": Use("probes_topic"),
    "~/length_scale_belief": Use("belief_topic"),
}
_PLAN_TOPIC = {"~/plan": Use("plan_topic")}
"""Of each of several probes; the rest is of all of them."""
_SENSOR_TOPICS = {"reading": Use("reading_topic"), "pose": Use("pose_topic")}
_MISSION_PARAMETERS = {
    "policy.name": Use("policy"),
    "budget.readings": Use("budget"),
    "plan_ahead": Use("plan_ahead"),
}


def _params_file(name: str) -> Argument:
    return Argument("params_file", "ROS parameter file; arguments go before it", name)


def _rviz(use_sim_time: bool | Use, remappings: Mapping[str, Use] | None = None) -> NodeSpec:
    return NodeSpec(
        "rviz2",
        "rviz2",
        package="rviz2",
        arguments=("-d", "rviz/gp_active_sensing.rviz"),
        parameters={"use_sim_time": use_sim_time},
        remappings={**_VIEW_TOPICS, **_PLAN_TOPIC, **(remappings or {})},
        private_of="active_sensing",
        only_if="rviz",
        required=False,
    )


def _recorder(use_sim_time: bool | Use) -> NodeSpec:
    return NodeSpec(
        "bag_recorder",
        "bag_recorder",
        parameters={
            "bag": Use("record"),
            "node": "active_sensing",
            "use_sim_time": use_sim_time,
        },
        only_if="record",
        required=False,
    )


_PROBE = LaunchSpec(
    "probe",
    "sense with a real probe: readings and poses in, the next waypoint out",
    (
        _MAP,
        _POLICY,
        _BUDGET,
        _PLAN_AHEAD,
        *_SENSOR,
        Argument(
            "waypoint_topic", "topic of the next waypoint; goal_pose for Nav2", "next_waypoint"
        ),
        Argument("query_topic", "topic of the questions to an expert", "expert/query"),
        Argument("answer_topic", "topic of its answers", "expert/answer"),
        *_VIEWS,
        _PROBES,
        _NAVIGATE,
        _RUN_DIR,
        _RESPAWN,
        _RECORD,
        _params_file("probe.yaml"),
        Argument("use_sim_time", "take the time from /clock", "false", bool),
        _RVIZ,
    ),
    (
        NodeSpec(
            "active_sensing",
            "active_sensing",
            parameters={
                "map.file": Use("map"),
                **_MISSION_PARAMETERS,
                "probes": Use("probes"),
                **_SENSOR_PARAMETERS,
                "waypoint.navigate": Use("navigate"),
                "run_dir": Use("run_dir"),
                "use_sim_time": Use("use_sim_time"),
            },
            remappings={
                **_SENSOR_TOPICS,
                "next_waypoint": Use("waypoint_topic"),
                **_PLAN_TOPIC,
            },
            shared={
                "expert/query": Use("query_topic"),
                "expert/answer": Use("answer_topic"),
                **_VIEW_TOPICS,
            },
            per_probe="probes",
            respawn="respawn",
        ),
        _recorder(Use("use_sim_time")),
        _rviz(Use("use_sim_time"), {"next_waypoint": Use("waypoint_topic")}),
    ),
)

_TRAFFIC_SIM = LaunchSpec(
    "traffic_sim",
    "sense with a simulated probe that drives through a simulated field or live traffic",
    (
        Argument("scenario", _SCENARIO_HELP, "town"),
        _POLICY,
        _BUDGET,
        _PLAN_AHEAD,
        _SEED,
        Argument("speed_factor", "simulated seconds per second", kind=float),
        *_VIEWS,
        _PROBES,
        _RUN_DIR,
        _RESPAWN,
        _RECORD,
        Argument("exit_at_end", "end once the mission is over", "false", bool),
        _params_file("traffic_sim.yaml"),
        _RVIZ,
    ),
    (
        NodeSpec(
            "simulator",
            "simulator",
            parameters={
                "scenario": Use("scenario"),
                "seed": Use("seed"),
                "policy_name": Use("policy"),
                "probes": Use("probes"),
                "speed_factor": Use("speed_factor"),
                # active_sensing ends the launch, once its records are written.
                "exit_at_end": False,
            },
        ),
        NodeSpec(
            "active_sensing",
            "active_sensing",
            parameters={
                "scenario": Use("scenario"),
                **_MISSION_PARAMETERS,
                "probes": Use("probes"),
                "seed": Use("seed"),
                "run_dir": Use("run_dir"),
                "mission.exit_at_end": Use("exit_at_end"),
                "use_sim_time": True,
            },
            remappings=_PLAN_TOPIC,
            shared=_VIEW_TOPICS,
            per_probe="probes",
            respawn="respawn",
        ),
        _recorder(True),
        _rviz(True),
    ),
)

_REPLAY = LaunchSpec(
    "replay",
    "learn the field from the readings and poses of a bag, and say where one should have gone",
    (
        Argument("bag", f"rosbag2 folder, .mcap or .db3 file, {_shipped_bags()}", required=True),
        Argument("rate", "times the bag's own speed; 0 = as fast as can be taken in", kind=float),
        Argument("scenario", f"where map and belief come from: {_SCENARIO_HELP}", "town"),
        _MAP,
        Argument(
            "decisions",
            "take decisions: where the planner would have gone from where the probe was",
            choices=("true", "false"),
            kind=bool,
        ),
        _POLICY,
        _BUDGET,
        *_SENSOR,
        *_VIEWS,
        Argument("salvage", "play what can be read of a damaged bag", "false", bool),
        _RUN_DIR,
        _params_file("replay.yaml"),
        _RVIZ,
    ),
    (
        NodeSpec(
            "active_sensing",
            "active_sensing",
            parameters={
                "scenario": Use("scenario"),
                "map.file": Use("map"),
                "policy.name": Use("policy"),
                "budget.readings": Use("budget"),
                "mission.begin": Use("decisions"),
                **_SENSOR_PARAMETERS,
                "run_dir": Use("run_dir"),
                "use_sim_time": True,
            },
            remappings={**_SENSOR_TOPICS, **_PLAN_TOPIC},
            shared=_VIEW_TOPICS,
        ),
        NodeSpec(
            "bag_player",
            "bag_player",
            parameters={
                "bag": Use("bag"),
                "rate": Use("rate"),
                "salvage": Use("salvage"),
                # Not what the node publishes itself, of which a recorded mission is full.
                "topics": (Use("reading_topic"), Use("pose_topic")),
                "journal": "active_sensing/journal",
                "wait_for": (Use("reading_topic"), Use("pose_topic")),
                "finish": "active_sensing/finish",
            },
        ),
        _rviz(True),
    ),
)

LAUNCHES: dict[str, LaunchSpec] = {spec.name: spec for spec in (_PROBE, _TRAFFIC_SIM, _REPLAY)}
"""Every launch by its name, which is also that of its file in ``launch/``."""
