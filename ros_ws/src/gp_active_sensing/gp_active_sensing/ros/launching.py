"""What the launch files share: arguments, how processes start and end, recording, RViz.

Imports neither ROS nor ``launch``: an installation by pip has no ``launch``, and there `runner`
starts the nodes of the same files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import os
import re
import shutil
import signal
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from gp_active_sensing.config import from_mapping, param, param_of
from gp_active_sensing.errors import (
    ActiveSensingError,
    ConfigError,
    MissingDependencyError,
    RunError,
)
from gp_active_sensing.mission.config import PoseConfig
from gp_active_sensing.mission.names import numbered, probe_names, probe_topic, shared_topics
from gp_active_sensing.planning import policies
from gp_active_sensing.replay.options import parameters_of
from gp_active_sensing.ros.environment import crashed, ended_in_order, said
from gp_active_sensing.ros.parameter_files import check_parameter_file
from gp_active_sensing.ros.processes import END_SECONDS, KILL_SECONDS, RESPAWN_SECONDS
from gp_active_sensing.util.process import THREAD_VARIABLES
from gp_active_sensing.util.resources import find_resource, list_resources
from gp_active_sensing.util.yaml_files import parse_yaml
from gp_active_sensing.web.serve import MISSING, can_serve

__all__ = [
    "BAGS",
    "MAPS",
    "SCENARIOS",
    "Arguments",
    "MissionArguments",
    "OnExit",
    "SensorArguments",
    "declarations",
    "node_environment",
    "read_arguments",
    "remap",
]

A = TypeVar("A", bound="Arguments")
PACKAGE = "gp_active_sensing"
LOG_LEVELS = ("debug", "info", "warn", "error", "fatal")
_PROFILE_VARIABLES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")


def _shipped(kind: str, *ends: str) -> str:
    found = {
        name.split("/")[0].removesuffix(e)
        for name in list_resources(kind)
        for e in ends
        if e in name
    }
    known = ", ".join(sorted(found))
    return f"or one that ships with the package: {known}" if known else "or a name"


BAGS, MAPS = _shipped("bags", "/"), _shipped("maps", ".geojson", ".yaml", ".plan")
SCENARIOS = _shipped("sim", ".yaml")
"""For the help of arguments: what ships."""
_POSE_TYPES = next(
    param_of(field).choices for field in dataclasses.fields(PoseConfig) if field.name == "type"
)


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Arguments of every launch file, ``name:=value``; an empty value is None.

    What is None leaves the matter to the parameter file. A launch file adds its own.
    """

    policy: str | None = param(None, help="how the next place is chosen", choices=policies.names())
    budget: int | None = param(None, help="number of places to observe")
    run_dir: str | None = param(
        None, help="folder for journal and records: new, or of a mission to resume; or auto"
    )
    map_topic: str | None = param("~/map", help="topic of the map and its places (markers)")
    field_topic: str | None = param("~/field", help="topic of the believed field (point cloud)")
    plan_topic: str | None = param(
        "~/plan", help="topic of the plan (path); of several `probes` one each"
    )
    probes_topic: str | None = param("~/probes", help="topic of where the probes are (markers)")
    belief_topic: str | None = param(
        "~/length_scale_belief", help="topic of the belief over the hyper-parameters (numbers)"
    )
    web: bool | None = param(False, help="serve a live page of the mission, said at the start")
    web_host: str | None = param(
        None, help="address of the live page; empty = this machine only, 0.0.0.0 = all reach it"
    )
    web_port: int | None = param(None, help="port of the live page; empty = any that is free")
    rviz: bool | None = param(False, help="show the field, the map and the plan in RViz")
    params_file: str | None = param(None, help="ROS parameter file; arguments go before it")
    map_frame: str | None = param(
        None, help="frame of the map, of poses and waypoints; empty = that of params_file or map"
    )
    namespace: str | None = param(
        None, help="namespace of the nodes, and of the topics without a / in front"
    )
    log_level: str | None = param(None, help="what the nodes log", choices=LOG_LEVELS)
    _failures: list[str] = dataclasses.field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.namespace is not None:
            probe_names([self.namespace.strip("/")], "namespace")

    @functools.cached_property
    def in_file(self) -> Mapping[str, Any]:
        """What the parameter file says for `active_sensing`, nested; {} when it cannot be read."""
        with contextlib.suppress(ActiveSensingError):
            if self.params_file:
                return parameters_of(find_resource("config", self.params_file))
        return {}

    def topic_of(self, stream: str) -> str:
        """Return the topic of a stream (reading, pose, waypoint): as given, or in the file."""
        given = getattr(self, f"{stream}_topic", None)
        usual = "next_waypoint" if stream == "waypoint" else stream
        return given or str(self.in_file.get(stream, {}).get("topic") or usual)

    @property
    def view_topics(self) -> dict[str, str | None]:
        """Topics that several probes have one of, and their other names; not the plan."""
        return {
            "~/map": self.map_topic,
            "~/field": self.field_topic,
            "~/probes": self.probes_topic,
            "~/length_scale_belief": self.belief_topic,
        }

    def parameters(self, given: Mapping[str, Any]) -> list[Any]:
        """Return the parameters of a node: the parameter file, then those that are not None.

        Raises:
            ConfigError: a parameter file that ROS cannot read.
            ResourceError: one that does not exist.
        """
        from launch_ros.parameter_descriptions import ParameterValue

        found: list[Any] = []
        if self.params_file:
            file = find_resource("config", self.params_file).absolute()
            check_parameter_file(file, self.namespace or "")
            found.append(str(file))
        # Without a type, launch would read the text "5" as a number.
        typed = {
            name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
            for name, value in given.items()
            if value is not None
        }
        return [*found, typed] if typed else found

    def process(self, name: str, **on_exit: Any) -> dict[str, Any]:
        """Return the keywords that ``Node`` and ``ExecuteProcess`` share; see `OnExit`."""
        ended = OnExit(name, self._failures, **on_exit)
        return {
            "name": name,
            "output": "screen",
            "additional_env": node_environment(os.environ),
            "sigterm_timeout": f"{END_SECONDS:g}",
            "sigkill_timeout": f"{KILL_SECONDS:g}",
            "respawn": ended.respawn,
            "respawn_delay": RESPAWN_SECONDS,
            "on_exit": ended,
        }

    def node(self, name: str, given: Mapping[str, Any], **on_exit: Any) -> dict[str, Any]:
        """Return the keywords of a ``Node`` of ours.

        Args:
            name: of the node, and of its program.
            given: parameters, those that are None left out.
            on_exit: see `OnExit`.
        """
        return {
            "package": PACKAGE,
            "executable": name,
            "parameters": self.parameters(given),
            **self._of_nodes,
            **self.process(name, **on_exit),
        }

    @property
    def _of_nodes(self) -> dict[str, Any]:
        found: dict[str, Any] = {"namespace": self.namespace} if self.namespace else {}
        if self.log_level:
            found["ros_arguments"] = ["--log-level", self.log_level]
        return found

    @property
    def kept_in(self) -> str | None:
        """The run directory: a live page needs one, wherever it is."""
        named = self.run_dir or self.in_file.get("run_dir")
        return "auto" if self.web and not named else self.run_dir

    def live_page(self) -> list[Any]:
        """Return what serves the live page, where that is wanted; its end does not end the launch.

        Raises:
            MissingDependencyError: the library that serves it is not installed.
        """
        from launch_ros.actions import Node

        if not self.web:
            return []
        if not can_serve():
            msg = f"web: {MISSING}, or leave web:=true out"
            raise MissingDependencyError(msg)
        found = self.node("live_page", {}, required=False)
        served = {"host": self.web_host, "port": self.web_port, "run_dir": self.run_dir}
        # Not the parameter file, which is about the mission.
        found["parameters"] = [{name: value for name, value in served.items() if value is not None}]
        return [Node(**found)]

    def viewer(self, *, use_sim_time: bool | None) -> list[Any]:
        """Return RViz with our view, where that is wanted.

        Args:
            use_sim_time: take the time from /clock.
        """
        from launch_ros.actions import Node

        if not self.rviz:
            return []
        shown = {"~/plan": self.plan_topic, **self.view_topics}
        shown["next_waypoint"] = self.topic_of("waypoint")
        node = "active_sensing"  # whose ~ it is
        # The view has whole names, which a namespace does not move: they are remapped to others.
        moved = [
            (f"/{topic}".replace("~", node), (other or topic).replace("~", node))
            for topic, other in shown.items()
            if self.namespace or (other and other != topic)
        ]
        frame = self.map_frame or str(self.in_file.get("map", {}).get("frame") or "")
        view = ["-d", str(find_resource("rviz", "gp_active_sensing.rviz"))]
        return [
            Node(
                package="rviz2",
                executable="rviz2",
                arguments=[*view, *(["-f", frame] if frame else [])],
                parameters=[{"use_sim_time": bool(use_sim_time)}],
                remappings=moved,
                **self._of_nodes,
                **self.process("rviz2", required=False),
            )
        ]


@dataclass(frozen=True, kw_only=True)
class SensorArguments(Arguments):
    """Arguments of a launch file that takes readings and poses of any type."""

    reading_topic: str | None = param(
        None, help="topic of the readings; empty = that of params_file, or reading"
    )
    reading_type: str | None = param(None, help="message type of the readings, package/msg/Name")
    reading_field: str | None = param(
        None, help="path of the value in the message, such as twist.twist.linear.x"
    )
    reading_variance_field: str | None = param(
        None, help="path of the noise variance in the message"
    )
    pose_topic: str | None = param(
        None, help="topic of the pose; empty = that of params_file, or pose"
    )
    pose_type: str | None = param(None, help="message type of the pose", choices=_POSE_TYPES)

    @property
    def sensor_parameters(self) -> dict[str, str | None]:
        """Parameters of the node for readings and poses."""
        return {
            "reading.topic": self.reading_topic,
            "reading.type": self.reading_type,
            "reading.field": self.reading_field,
            "reading.variance_field": self.reading_variance_field,
            "pose.topic": self.pose_topic,
            "pose.type": self.pose_type,
        }


@dataclass(frozen=True, kw_only=True)
class MissionArguments(Arguments):
    """Arguments of a launch file whose probes go where they are sent."""

    plan_ahead: bool | None = param(None, help="plan while the probe drives")
    probes: str | None = param(
        None,
        help="several probes: how many (3: probe_1, probe_2, probe_3), or their names with commas; "
        "empty = one, without a namespace; in simulation, as many as the scenario says",
    )
    exit_at_end: bool | None = param(
        None, help="end once the mission is over; empty = as params_file says, or false"
    )
    respawn: bool | None = param(
        False, help="start active_sensing again after a crash; with run_dir it resumes"
    )
    record: str | None = param(
        None, help="new folder: record inputs, outputs and journal with `ros2 bag record`"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.names

    @property
    def names(self) -> list[str] | None:
        """The names of several probes."""
        return list(numbered(self.probes)) if self.probes else None

    def recorder(self, topics: Iterable[str | None], *, use_sim_time: bool | None) -> list[Any]:
        """Return what records the topics and the journal of the nodes, where that is wanted.

        Topics are recorded in any namespace: the names of several probes may be known to the
        scenario only.

        Args:
            topics: that the node hears and sends, besides those below it.
            use_sim_time: stamp messages with the time of /clock.

        Raises:
            MissingDependencyError: no ``ros2 bag`` is installed.
            ConfigError: the folder exists.
        """
        from launch.actions import ExecuteProcess

        if not self.record:
            return []
        modules = ("ros2bag", "rosbag2_py")
        if shutil.which("ros2") is None or not all(map(importlib.util.find_spec, modules)):
            msg = (
                "record: needs the command `ros2 bag` of a ROS 2 installation, which is not here: "
                "sudo apt install ros-$ROS_DISTRO-rosbag2 and source its setup file, or leave "
                "record:=… out"
            )
            raise MissingDependencyError(msg)
        if Path(self.record).exists():
            msg = f"record: {self.record} exists; give a new folder"
            raise ConfigError(msg)
        names = [*topics, *self.view_topics.values(), self.plan_topic]
        words = [re.escape(name.lstrip("/")) for name in names if name and name[0] != "~"]
        words += ["active_sensing/.+", "diagnostics", "tf", "tf_static"]
        regex = f"/({'|'.join(words)})$"
        command = ["ros2", "bag", "record", "--output", self.record, "--regex", regex]
        command += ["--qos-profile-overrides-path", str(find_resource("launch", "record_qos.yaml"))]
        command += ["--disable-keyboard-controls", *["--use-sim-time"] * bool(use_sim_time)]
        # With the number of SIGINT `ros2` says that it was interrupted.
        ends = self.process("recorder", required=False, when_asked=(signal.SIGINT,))
        return [ExecuteProcess(cmd=command, **ends)]


def declarations(kind: type[Arguments]) -> Iterator[dict[str, Any]]:
    """Yield the keywords of ``DeclareLaunchArgument`` for each argument."""
    for field in dataclasses.fields(kind):
        info, default = param_of(field), field.default
        found: dict[str, Any] = {"name": field.name, "description": info.help}
        if default is not dataclasses.MISSING:
            words = {None: "", True: "true", False: "false"}
            found["default_value"] = words.get(default, default)
        if info.choices:
            found["choices"] = ["", *info.choices]
        if field.init:
            yield found


def read_arguments(kind: type[A], texts: Mapping[str, str], *, strict: bool = False) -> A:
    """Return the arguments of a launch file.

    Args:
        kind: their class.
        texts: argument -> text, such as ``context.launch_configurations``.
        strict: refuse others.

    Raises:
        ConfigError: with every argument that is unknown or has a wrong value.
    """
    hints = typing.get_type_hints(kind)
    given: dict[str, Any] = {}
    for name, text in texts.items():
        hint = hints.get(name)
        if (hint is None and not strict) or (hint is str and not text):
            continue  # of another launch file; or required and not given
        given[name] = text or None
        if text and str not in (hint, *typing.get_args(hint)):
            with contextlib.suppress(ConfigError):
                given[name] = parse_yaml(text)
    return from_mapping(kind, given, source="launch")


def remap(
    topics: Mapping[str, str | None], each: Sequence[str] | None = None
) -> list[tuple[str, str]]:
    """Return the remappings of topics that have another name.

    Args:
        topics: with their other names.
        each: names of several probes, each with these topics in its namespace.

    Raises:
        ConfigError: several probes share a topic with a / in front.
    """
    named = [(topic, other) for topic, other in topics.items() if other and other != topic]
    if not each:
        return named
    if problem := shared_topics([other for _, other in named], each):
        raise ConfigError(problem)
    return [
        (probe_topic(name, topic), probe_topic(name, other))
        for name in each
        for topic, other in named
    ]


@dataclass(frozen=True)
class OnExit:
    """What the end of a process means for a launch.

    Args:
        name: the process.
        failures: how processes of this launch have failed; added to.
        required: its end ends the launch.
        respawn: it is started again when it was killed or crashed.
        when_asked: more exit codes of an end in order that was asked for.
    """

    name: str
    failures: list[str]
    required: bool = True
    respawn: bool = False
    when_asked: tuple[int, ...] = ()

    def __call__(self, event: Any, context: Any) -> list[Any] | None:
        """Handle the event of ``launch``; return the actions that follow.

        Raises:
            RunError: a process failed. This is the only way for ``ros2 launch`` to end with
                another code than 0; it ends the other processes.
        """
        from launch.actions import Shutdown

        code, asked = event.returncode, context.is_shutdown
        if self.respawn and crashed(code) and not asked:
            return None
        if not ended_in_order(code, asked=asked, more=self.when_asked):
            self.failures.append(f"{self.name} ended with {said(code)}")
        if not self.required:
            return None
        if self.failures:
            reason = "; ".join(self.failures)
            self.failures.clear()
            raise RunError(reason)
        return [Shutdown(reason=f"{self.name} ended")]


def node_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that nodes should have and the given environment has not.

    Fast DDS finds its peers within a quarter of a second with our profile, otherwise in up to
    three. Planning works on small matrices, where more threads only get into each other's way (and
    results are the same to the bit with one thread only).
    """
    added = {name: "1" for name in THREAD_VARIABLES if name not in environment}
    if not any(name in environment for name in _PROFILE_VARIABLES):
        added[_PROFILE_VARIABLES[0]] = str(find_resource("config", "fastdds.xml").absolute())
    return added
