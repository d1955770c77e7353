"""What the launch files share: arguments with types, how processes start and end, recording.

Imports neither ROS nor ``launch``: an installation by pip has no ``launch``, and there `runner`
starts the nodes of the same files.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gp_active_sensing.config import param_of
from gp_active_sensing.errors import ConfigError, MissingDependencyError, RunError, suggest
from gp_active_sensing.mission.config import PoseConfig
from gp_active_sensing.mission.names import numbered, probe_topic
from gp_active_sensing.planning import policies
from gp_active_sensing.ros.exit_codes import crashed, ended_in_order, said
from gp_active_sensing.ros.parameter_files import check_parameter_file
from gp_active_sensing.ros.processes import END_SECONDS, KILL_SECONDS, RESPAWN_SECONDS
from gp_active_sensing.util.process import THREAD_VARIABLES
from gp_active_sensing.util.resources import find_resource, list_resources

__all__ = [
    "ARGUMENTS",
    "SENSOR_PARAMETERS",
    "SENSOR_TOPICS",
    "VIEW_TOPICS",
    "Argument",
    "Given",
    "OnExit",
    "arguments",
    "node_environment",
]

_PROFILE_VARIABLES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")


@dataclass(frozen=True)
class Argument:
    """One argument of a launch file, ``name:=value``.

    Args:
        name: its name.
        help: one sentence, with the unit.
        default: used when not given; with "" the parameter file decides.
        kind: str, int, float or bool; or a parser of the text, which raises ConfigError.
        choices: allowed words.
        required: must be given.
    """

    name: str
    help: str
    default: str = ""
    kind: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    required: bool = False

    @property
    def declaration(self) -> dict[str, Any]:
        """The keywords of ``DeclareLaunchArgument``."""
        found: dict[str, Any] = {"name": self.name, "description": self.help}
        if not self.required:
            found["default_value"] = self.default
        if self.choices:
            found["choices"] = [*(() if self.default else ("",)), *self.choices]
        return found

    def parse(self, text: str) -> Any:
        """Return the value, or None for an empty one; raise ConfigError for a wrong one."""
        problem, value = "", None
        if text and self.choices and text not in self.choices:
            problem = f"expected one of {', '.join(self.choices)}, got {text!r}."
            problem += suggest(text, self.choices)
        elif text:
            try:
                value = _truth(text) if self.kind is bool else self.kind(text)
            except ConfigError:
                raise
            except ValueError:
                problem = f"expected {_KINDS[self.kind]}, got {text!r}"
        elif self.required:
            problem = f"is required ({self.help}); give {self.name}:=…"
        if problem:
            msg = f"{self.name}: {problem}"
            raise ConfigError(msg)
        return value


_KINDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false"}


def _truth(text: str) -> bool:
    return ("false", "true").index(text.lower()) == 1


def _shipped(kind: str, suffix: str) -> str:
    names = [name.split("/")[0] for name in list_resources(kind) if suffix in name]
    known = ", ".join(sorted({name.removesuffix(suffix) for name in names}))
    return f"or one that ships with the package: {known}" if known else "or a name"


def _pose_types() -> tuple[str, ...]:
    kind = next(field for field in dataclasses.fields(PoseConfig) if field.name == "type")
    return param_of(kind).choices or ()


def _flag(name: str, help_: str) -> Argument:
    return Argument(name, help_, "false", bool)


_TRUTH = ("true", "false")
_POLICIES = tuple(policies.names())
_BAGS, _SCENARIOS = _shipped("bags", "/"), _shipped("sim", ".yaml")
_MAPS = _shipped("maps", ".geojson")
_ALL = (
    Argument("bag", f"rosbag2 folder, .mcap or .db3 file, {_BAGS}", required=True),
    Argument("rate", "times the bag's own speed; 0 = as fast as can be taken in", kind=float),
    Argument("scenario", f"scenario: a path, {_SCENARIOS}", "town"),
    Argument("map", f"road map: a path, {_MAPS}; empty = that of params_file or scenario"),
    Argument("decisions", "say where the planner would have gone from there", "", bool, _TRUTH),
    Argument("policy", "how the next place is chosen", choices=_POLICIES),
    Argument("budget", "number of places to observe", kind=int),
    Argument("plan_ahead", "plan while the probe drives", "", bool, _TRUTH),
    Argument("seed", "key of every random draw", kind=int),
    Argument("speed_factor", "simulated seconds per second", kind=float),
    Argument("reading_topic", "topic of the readings", "reading"),
    Argument("reading_type", "message type of the readings, package/msg/Name"),
    Argument("reading_field", "path of the value in the message, such as twist.twist.linear.x"),
    Argument("reading_variance_field", "path of the noise variance in the message"),
    Argument("pose_topic", "topic of the pose", "pose"),
    Argument("pose_type", "message type of the pose", choices=_pose_types()),
    Argument("waypoint_topic", "topic of the next waypoint; goal_pose for Nav2", "next_waypoint"),
    Argument("query_topic", "topic of the questions to an expert", "expert/query"),
    Argument("answer_topic", "topic of its answers", "expert/answer"),
    Argument("map_topic", "topic of the map and its places (markers)", "~/map"),
    Argument("field_topic", "topic of the believed field (point cloud)", "~/field"),
    Argument("plan_topic", "topic of the plan (path); of several `probes` one each", "~/plan"),
    Argument("probes_topic", "topic of where the probes are (markers)", "~/probes"),
    Argument("belief_topic", "topic of the belief over hyper-parameters", "~/length_scale_belief"),
    Argument(
        "probes",
        "several probes: how many (3: probe_1, probe_2, probe_3), or their names with commas; "
        "empty = one, without a namespace; in simulation, as many as the scenario says",
        kind=numbered,
    ),
    Argument(
        "navigate",
        "topic: the waypoint on its topic; action: as a goal of Nav2's NavigateToPose as well",
        choices=("topic", "action"),
    ),
    _flag("salvage", "play what can be read of a damaged bag"),
    Argument("run_dir", "folder for journal and records: new, or of a mission to resume; or auto"),
    _flag("respawn", "start active_sensing again after a crash; with run_dir it resumes"),
    Argument("record", "new folder: record inputs, outputs and journal with `ros2 bag record`"),
    _flag("exit_at_end", "end once the mission is over"),
    Argument("params_file", "ROS parameter file; arguments go before it"),
    _flag("use_sim_time", "take the time from /clock"),
    _flag("rviz", "show the field, the map and the plan in RViz"),
)
ARGUMENTS = {argument.name: argument for argument in _ALL}
"""Every argument that a launch file may have, by its name."""

SENSOR_TOPICS = {"reading": "reading_topic", "pose": "pose_topic"}
"""Topic -> argument with its other name."""
SENSOR_PARAMETERS = {
    "reading.type": "reading_type",
    "reading.field": "reading_field",
    "reading.variance_field": "reading_variance_field",
    "pose.type": "pose_type",
}
"""Parameter -> argument with its value."""
VIEW_TOPICS = {
    "~/map": "map_topic",
    "~/field": "field_topic",
    "~/probes": "probes_topic",
    "~/length_scale_belief": "belief_topic",
}
"""Topics that several probes have one of, as `SENSOR_TOPICS`; each probe has its own plan."""


def arguments(*names: str, **defaults: str) -> tuple[Argument, ...]:
    """Return arguments by their names, those with another default at the end."""
    others = (dataclasses.replace(ARGUMENTS[name], default=d) for name, d in defaults.items())
    return (*(ARGUMENTS[name] for name in names), *others)


class Given:
    """The values of a launch file's arguments, and what follows from them for its processes.

    Args:
        known: the arguments of the launch file.
        texts: argument -> text, such as ``context.launch_configurations``.

    Raises:
        ConfigError: wrong values, or a parameter file that ROS cannot read.
        ResourceError: a parameter file that does not exist.
    """

    def __init__(self, known: Iterable[Argument], texts: Mapping[str, str]) -> None:
        self._values: dict[str, Any] = {}
        self._failures: list[str] = []
        self._files: list[str] = []
        problems: list[str] = []
        for argument in known:
            try:
                text = texts.get(argument.name, argument.default)
                self._values[argument.name] = argument.parse(text)
            except ConfigError as error:
                problems.extend(error.problems)
        if problems:
            raise ConfigError(problems, source="launch")
        if self._values["params_file"]:
            file = find_resource("config", self._values["params_file"]).absolute()
            check_parameter_file(file)
            self._files = [str(file)]

    def __getitem__(self, name: str) -> Any:
        """Return the value of an argument, None when it is empty."""
        return self._values[name]

    def parameters(self, names: Mapping[str, str], **fixed: Any) -> list[Any]:
        """Return the parameters of a node: the parameter file, then those of arguments.

        Args:
            names: parameter -> argument; an empty argument sets nothing.
            fixed: parameters with their values; None sets nothing.
        """
        from launch_ros.parameter_descriptions import ParameterValue

        def typed(value: Any) -> Any:
            if isinstance(value, tuple):
                return list(value)  # launch takes a tuple for parts of one text
            # Without a type, launch would read the text "5" as a number.
            return ParameterValue(value, value_type=str) if isinstance(value, str) else value

        values = {**{name: self[argument] for name, argument in names.items()}, **fixed}
        given = {name: typed(value) for name, value in values.items() if value is not None}
        return [*self._files, given] if given else self._files

    def remappings(
        self, topics: Mapping[str, str], *, each: Sequence[str] | None = None, of: str = ""
    ) -> list[tuple[str, str]]:
        """Return the remappings of topics that have another name.

        Args:
            topics: topic -> argument with its other name.
            each: names of several probes, with these topics in the namespace of each.
            of: another node, whose private topics ``~/`` stand for.

        Raises:
            ConfigError: several probes share a topic with a / in front.
        """
        names = {topic: self[argument] or topic for topic, argument in topics.items()}
        if each:
            names = _for_each(each, names)
        found = [(topic, other) for topic, other in names.items() if other != topic]
        return [(_private(topic, of), _private(other, of)) for topic, other in found]

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

    def recorder(self, *, use_sim_time: bool) -> list[Any]:
        """Return what records the topics and the journal of the nodes, where that is wanted.

        Topics are recorded in any namespace: the names of several probes may be known to the
        scenario only.

        Raises:
            MissingDependencyError: no ``ros2 bag`` is installed.
            ConfigError: the folder exists.
        """
        from launch.actions import ExecuteProcess

        folder = self["record"]
        if not folder:
            return []
        modules = ("ros2bag", "rosbag2_py")
        if shutil.which("ros2") is None or not all(map(importlib.util.find_spec, modules)):
            msg = (
                "record: needs the command `ros2 bag` of a ROS 2 installation, which is not here: "
                "sudo apt install ros-$ROS_DISTRO-rosbag2 and source its setup file, or leave "
                "record:=… out"
            )
            raise MissingDependencyError(msg)
        if Path(folder).exists():
            msg = f"record: {folder} exists; give a new folder"
            raise ConfigError(msg)
        named = {name: ARGUMENTS[name].default for name in ARGUMENTS if name.endswith("_topic")}
        topics = [self._values.get(name) or default for name, default in named.items()]
        words = [re.escape(topic.lstrip("/")) for topic in topics if topic[0] != "~"]
        words += ["active_sensing/.+", "diagnostics", "tf", "tf_static"]
        command = ["ros2", "bag", "record", "--output", folder, "--disable-keyboard-controls"]
        command += ["--regex", f"/({'|'.join(words)})$", *["--use-sim-time"] * use_sim_time]
        command += ["--qos-profile-overrides-path", str(find_resource("launch", "record_qos.yaml"))]
        # With the number of SIGINT `ros2` says that it was interrupted.
        ends = self.process("recorder", required=False, when_asked=(signal.SIGINT,))
        return [ExecuteProcess(cmd=command, **ends)]

    def rviz(self, *, use_sim_time: bool) -> list[Any]:
        """Return RViz with our view, where that is wanted."""
        from launch_ros.actions import Node

        if not self["rviz"]:
            return []
        shown = {"next_waypoint": "waypoint_topic", "~/plan": "plan_topic", **VIEW_TOPICS}
        topics = {topic: name for topic, name in shown.items() if name in self._values}
        return [
            Node(
                package="rviz2",
                executable="rviz2",
                arguments=["-d", str(find_resource("rviz", "gp_active_sensing.rviz"))],
                parameters=[{"use_sim_time": use_sim_time}],
                remappings=self.remappings(topics, of="active_sensing"),
                **self.process("rviz2", required=False),
            )
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


def _private(topic: str, node: str) -> str:
    """Return a topic whose ``~/`` stands for another node than the one that remaps it."""
    return f"{node}/{topic[2:]}" if node and topic.startswith("~/") else topic


def _for_each(names: Sequence[str], remappings: Mapping[str, str]) -> dict[str, str]:
    """Return remappings for each of several probes."""
    shared = sorted(other for other in remappings.values() if other.startswith("/"))
    if shared and len(names) > 1:
        msg = (
            f"{', '.join(shared)}: several probes cannot share a topic; without the / in front it "
            f"is {probe_topic(names[0], shared[0].lstrip('/'))} and so on"
        )
        raise ConfigError(msg)
    return {
        probe_topic(name, topic): other if other.startswith("/") else probe_topic(name, other)
        for name in names
        for topic, other in remappings.items()
    }


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
