"""What the launch files share: arguments, how processes start and end, recording, RViz.

Imports neither ROS nor ``launch``: an installation by pip has no ``launch``, and there `runner`
starts the nodes of the same files.
"""

from __future__ import annotations

import contextlib
import dataclasses
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
from gp_active_sensing.errors import ConfigError, MissingDependencyError, RunError
from gp_active_sensing.mission.config import PoseConfig
from gp_active_sensing.mission.names import numbered, probe_topic
from gp_active_sensing.planning import policies
from gp_active_sensing.ros.environment import crashed, ended_in_order, said
from gp_active_sensing.ros.parameter_files import check_parameter_file
from gp_active_sensing.ros.processes import END_SECONDS, KILL_SECONDS, RESPAWN_SECONDS
from gp_active_sensing.util.process import THREAD_VARIABLES
from gp_active_sensing.util.resources import find_resource, list_resources
from gp_active_sensing.util.yaml_files import parse_yaml

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
_PROFILE_VARIABLES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")


def _shipped(kind: str, suffix: str) -> str:
    names = [name.split("/")[0] for name in list_resources(kind) if suffix in name]
    known = ", ".join(sorted({name.removesuffix(suffix) for name in names}))
    return f"or one that ships with the package: {known}" if known else "or a name"


BAGS, MAPS = _shipped("bags", "/"), _shipped("maps", ".geojson")
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
    rviz: bool | None = param(False, help="show the field, the map and the plan in RViz")
    params_file: str | None = param(None, help="ROS parameter file; arguments go before it")
    _failures: list[str] = dataclasses.field(default_factory=list, init=False)

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
            check_parameter_file(file)
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

    def viewer(self, *, use_sim_time: bool | None, **topics: str | None) -> list[Any]:
        """Return RViz with our view, where that is wanted.

        Args:
            use_sim_time: take the time from /clock.
            topics: with their other names, besides those below the node.
        """
        from launch_ros.actions import Node

        if not self.rviz:
            return []
        shown = remap({"~/plan": self.plan_topic, **self.view_topics, **topics})
        node = "active_sensing"  # whose ~ it is
        return [
            Node(
                package="rviz2",
                executable="rviz2",
                arguments=["-d", str(find_resource("rviz", "gp_active_sensing.rviz"))],
                parameters=[{"use_sim_time": bool(use_sim_time)}],
                remappings=[(a.replace("~", node), b.replace("~", node)) for a, b in shown],
                **self.process("rviz2", required=False),
            )
        ]


@dataclass(frozen=True, kw_only=True)
class SensorArguments(Arguments):
    """Arguments of a launch file that takes readings and poses of any type."""

    reading_topic: str | None = param("reading", help="topic of the readings")
    reading_type: str | None = param(None, help="message type of the readings, package/msg/Name")
    reading_field: str | None = param(
        None, help="path of the value in the message, such as twist.twist.linear.x"
    )
    reading_variance_field: str | None = param(
        None, help="path of the noise variance in the message"
    )
    pose_topic: str | None = param("pose", help="topic of the pose")
    pose_type: str | None = param(None, help="message type of the pose", choices=_POSE_TYPES)

    @property
    def sensor_parameters(self) -> dict[str, str | None]:
        """Parameters of the node for readings and poses."""
        return {
            "reading.type": self.reading_type,
            "reading.field": self.reading_field,
            "reading.variance_field": self.reading_variance_field,
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
    respawn: bool | None = param(
        False, help="start active_sensing again after a crash; with run_dir it resumes"
    )
    record: str | None = param(
        None, help="new folder: record inputs, outputs and journal with `ros2 bag record`"
    )

    def __post_init__(self) -> None:
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
    if len(each) > 1 and (shared := sorted(other for _, other in named if other[0] == "/")):
        msg = (
            f"{', '.join(shared)}: several probes cannot share a topic; without the / in front it "
            f"is {probe_topic(each[0], shared[0].lstrip('/'))} and so on"
        )
        raise ConfigError(msg)
    return [
        (probe_topic(name, topic), other if other[0] == "/" else probe_topic(name, other))
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
