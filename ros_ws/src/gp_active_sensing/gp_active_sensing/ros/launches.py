"""Arguments and processes of the three launch files.

This module imports neither ROS nor ``launch``. `launch_actions` converts the processes to actions
of ``ros2 launch``. After an installation by pip, `runner` starts the same processes without ROS 2's
command ``ros2``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from gp_active_sensing.config import Param, declared, from_mapping, param, param_of
from gp_active_sensing.errors import (
    ActiveSensingError,
    ConfigError,
    MissingDependencyError,
    UnknownNameError,
    suggest,
)
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.names import numbered, probe_names
from gp_active_sensing.planning import policies
from gp_active_sensing.replay.options import parameters_of
from gp_active_sensing.ros.parameter_files import check_parameter_file
from gp_active_sensing.util.resources import find_resource, list_resources
from gp_active_sensing.util.yaml_files import parse_yaml
from gp_active_sensing.web.serve import MISSING, can_serve

A = TypeVar("A", bound="Arguments")
PACKAGE = "gp_active_sensing"
LOG_LEVELS = ("debug", "info", "warn", "error", "fatal")


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
"""Names of the shipped scenarios, for the help of arguments."""


def _sets(key: str, *, help: str = "", choices: Iterable[str] = ()) -> Any:
    """Declare an argument that sets the parameter `key` of `active_sensing`.

    `help` and `choices` default to those of the parameter. If the argument has no value, the
    parameter keeps the value from the parameter file.
    """
    kind: Any = ActiveSensingConfig
    info = Param()
    for part in key.split("."):
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):  # else a key of the policy
            info, kind = next((param_of(f), hint) for f, hint in declared(kind) if f.name == part)
    own = Param(help or info.help, choices=tuple(choices) or info.choices)
    return dataclasses.field(default=None, metadata={"param": own, "sets": key})


@dataclass(frozen=True, kw_only=True)
class Process:
    """Node process of a launch.

    Args:
        name: name of the process and of the node.
        command: program and its arguments; () = `runner.command_of` determines the command.
        package, executable: ROS names of the node's program.
        params_file: parameter file; `parameters` override its values.
        parameters: value of each parameter, by its dotted name.
        arguments: arguments that precede the ROS arguments.
        remappings: pairs (topic, new name).
        required: True = the launch ends with this process.
        respawn: True = the process is started again after a crash.
    """

    name: str
    command: tuple[str, ...] = ()
    package: str = PACKAGE
    executable: str = ""
    params_file: str = ""
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    remappings: tuple[tuple[str, str], ...] = ()
    namespace: str = ""
    log_level: str = ""
    required: bool = True
    respawn: bool = False


def _file(name: str | None) -> Any:
    return param(name, help="ROS parameter file. Launch arguments replace its values")


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Arguments of every launch, ``name:=value``.

    An empty value counts as None. None = the value from the parameter file is used.
    """

    policy: str | None = _sets(
        "policy.name", help="how the next place is chosen", choices=policies.names()
    )
    budget: int | None = _sets("budget.readings", help="number of places to observe")
    run_dir: str | None = _sets(
        "run_dir",
        help="folder for journal and records: a new folder, the folder of a mission to continue, "
        "or auto",
    )
    web: bool | None = param(
        False, help="serve a live page of the mission; its address is printed at the start"
    )
    web_host: str | None = param(
        None,
        help="address of the live page. Empty = this machine only; 0.0.0.0 = reachable from all "
        "machines",
    )
    web_port: int | None = param(None, help="port of the live page. Empty = any free port")
    rviz: bool | None = param(False, help="show the field, the map and the plan in RViz")
    params_file: str | None = _file(None)
    map_frame: str | None = _sets("map.frame", help="frame of the map, of poses and waypoints")
    namespace: str | None = param(
        None, help="namespace of the nodes, and of topics without a leading /"
    )
    log_level: str | None = param(
        None, help="lowest severity that the nodes log", choices=LOG_LEVELS
    )

    def __post_init__(self) -> None:
        if self.namespace is not None:
            probe_names([self.namespace.strip("/")], "namespace")

    def processes(self) -> list[Process]:
        """Return the processes of the launch.

        Raises:
            ConfigError: ROS cannot read the parameter file.
            ActiveSensingError: a file or library is missing.
        """
        raise NotImplementedError

    @functools.cached_property
    def in_file(self) -> Mapping[str, Any]:
        """Parameters of `active_sensing` in the parameter file, nested; {} = no readable file."""
        with contextlib.suppress(ActiveSensingError):
            if self.params_file:
                return parameters_of(find_resource("config", self.params_file))
        return {}

    def topic_of(self, stream: str) -> str:
        """Return a stream's topic from its argument, or else from the parameter file."""
        given = getattr(self, f"{stream}_topic", None)
        usual = "next_waypoint" if stream == "waypoint" else stream
        return given or str(self.in_file.get(stream, {}).get("topic") or usual)

    def node(self, name: str, given: Mapping[str, Any], **more: Any) -> Process:
        """Return the process of this package's node `name`. Parameters that are None are omitted.

        Raises:
            ConfigError: ROS cannot read the parameter file.
            ResourceError: the parameter file does not exist.
        """
        file = ""
        if self.params_file:
            path = find_resource("config", self.params_file).absolute()
            check_parameter_file(path, self.namespace or "")
            file = str(path)
        return self._node(name, given, executable=name, **{"params_file": file, **more})

    def _node(self, name: str, given: Mapping[str, Any], **more: Any) -> Process:
        return Process(
            name=name,
            parameters={key: value for key, value in given.items() if value is not None},
            namespace=self.namespace or "",
            log_level=self.log_level or "",
            **more,
        )

    def views(self, *, use_sim_time: bool) -> Iterator[Process]:
        """Yield the processes of the views that are requested (live page, RViz).

        Raises:
            MissingDependencyError: the library of the live page is not installed.
        """
        if self.web:
            if not can_serve():
                msg = f"web: {MISSING}, or leave web:=true out"
                raise MissingDependencyError(msg)
            served = {"host": self.web_host, "port": self.web_port, "run_dir": self.run_dir}
            # The parameter file has parameters of the mission, not of the view.
            yield self.node("live_page", served, params_file="", required=False)
        if self.rviz:
            shown = {f"active_sensing/{name}": "" for name in ("map", "field", "plan", "probes")}
            shown["next_waypoint"] = self.topic_of("waypoint")
            frame = self.map_frame or str(self.in_file.get("map", {}).get("frame") or "")
            view = ["-d", str(find_resource("rviz", "gp_active_sensing.rviz"))]
            yield self._node(
                "rviz2",
                {"use_sim_time": use_sim_time},
                package="rviz2",
                executable="rviz2",
                arguments=(*view, *(["-f", frame] if frame else [])),
                # The view has absolute names, which a namespace does not change.
                remappings=tuple(
                    (f"/{topic}", other or topic)
                    for topic, other in shown.items()
                    if self.namespace or other not in ("", topic)
                ),
                required=False,
            )

    @property
    def mission_parameters(self) -> dict[str, Any]:
        """Parameters of `active_sensing` that the launch arguments set.

        If a live page is requested without a run directory, the run directory is ``auto``.
        """
        found = {
            str(field.metadata["sets"]): getattr(self, field.name)
            for field in dataclasses.fields(self)
            if "sets" in field.metadata
        }
        if self.web and not (self.run_dir or self.in_file.get("run_dir")):
            found["run_dir"] = "auto"
        return found


@dataclass(frozen=True, kw_only=True)
class SensorArguments(Arguments):
    """Arguments of a launch that reads poses and readings from topics of any type."""

    reading_topic: str | None = _sets("reading.topic", help="topic of the readings")
    reading_type: str | None = _sets(
        "reading.type", help="message type of the readings, package/msg/Name"
    )
    reading_field: str | None = _sets("reading.field")
    reading_variance_field: str | None = _sets(
        "reading.variance_field", help="path of the noise variance in the message"
    )
    pose_topic: str | None = _sets("pose.topic", help="topic of the pose")
    pose_type: str | None = _sets("pose.type", help="message type of the pose")


@dataclass(frozen=True, kw_only=True)
class MissionArguments(Arguments):
    """Arguments of a launch whose probes drive to waypoints."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "record": "was removed; start `ros2 bag record` beside it (docs/viewing.md#recording)",
        **ActiveSensingConfig.REMOVED,
    }
    WERE: ClassVar[Mapping[str, Any]] = ActiveSensingConfig.WERE
    IGNORED: ClassVar[tuple[str, ...]] = ActiveSensingConfig.IGNORED

    probes: str | None = param(
        None,
        help="several probes: a number (3: probe_1, probe_2, probe_3), or names separated by "
        "commas. Empty = one probe without a namespace; in a simulation, the number in the "
        "scenario",
    )
    exit_at_end: bool | None = _sets("mission.exit_at_end")
    respawn: bool | None = param(
        False,
        help="true = start active_sensing again after a crash. With run_dir the mission is "
        "continued",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.names

    @property
    def names(self) -> list[str] | None:
        """Names of the probes of a fleet; None = the argument `probes` is not given."""
        return list(numbered(self.probes)) if self.probes else None

    @property
    def mission_parameters(self) -> dict[str, Any]:
        """Parameters of `active_sensing` that the launch arguments set, including `probes`."""
        return {**super().mission_parameters, "probes": self.names}


@dataclass(frozen=True, kw_only=True)
class Probe(MissionArguments, SensorArguments):
    """Sense with a real probe: readings and poses in, the next waypoint out."""

    map: str | None = _sets("map.file", help=f"map file: a path, {MAPS}")
    waypoint_topic: str | None = _sets(
        "waypoint.topic", help="topic of the next waypoint. Nav2 needs goal_pose"
    )
    grid_topic: str | None = _sets(
        "map.topic",
        help="topic of a nav_msgs/msg/OccupancyGrid that gives the map, in place of "
        "the argument `map`",
    )
    navigate: str | None = _sets(
        "waypoint.navigate",
        help="topic: publish the waypoint on its topic only. action: send it also as a goal of "
        "Nav2's NavigateToPose",
    )
    params_file: str | None = _file("probe.yaml")
    use_sim_time: bool | None = param(
        None, help="true = take the time from /clock. Empty = the setting in params_file, or false"
    )

    def processes(self) -> list[Process]:
        """Return the processes of `active_sensing` and of the views."""
        parameters = {**self.mission_parameters, "use_sim_time": self.use_sim_time}
        simulated = self.use_sim_time
        if simulated is None:
            simulated = bool(self.in_file.get("use_sim_time"))
        return [
            self.node("active_sensing", parameters, respawn=bool(self.respawn)),
            *self.views(use_sim_time=simulated),
        ]


@dataclass(frozen=True, kw_only=True)
class Replay(SensorArguments):
    """Learn the field from the readings and poses of a bag, and publish the planner's choices."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "salvage": "was removed; `gp-active-sensing replay --salvage` reads a damaged bag",
    }

    bag: str = param(help=f"rosbag2 folder, .mcap or .db3 file, {BAGS}")
    rate: float | None = param(
        None, help="multiple of the bag's own speed. 0 = as fast as the node can process it"
    )
    scenario: str | None = param(
        "town", help=f"where map and belief come from: a scenario, {SCENARIOS}"
    )
    map: str | None = _sets(
        "map.file", help=f"map file: a path, {MAPS}; empty = that of the scenario"
    )
    decisions: bool | None = _sets(
        "mission.begin",
        help="true = compute where the planner would have sent the probe",
    )
    params_file: str | None = _file("replay.yaml")

    def processes(self) -> list[Process]:
        """Return the processes of `active_sensing`, `bag_player` and the views."""
        parameters = {**self.mission_parameters, "scenario": self.scenario, "use_sim_time": True}
        player = {
            "bag": self.bag,
            "rate": self.rate,
            # The topics that `active_sensing` publishes itself are not played.
            "topics": [self.topic_of("reading"), self.topic_of("pose")],
            "listener": "active_sensing",
        }
        return [
            self.node("active_sensing", parameters),
            self.node("bag_player", player),
            *self.views(use_sim_time=True),
        ]


@dataclass(frozen=True, kw_only=True)
class TrafficSim(MissionArguments):
    """Sense with a simulated probe that drives through a simulated field or live traffic."""

    scenario: str | None = param("town", help=f"scenario: a path, {SCENARIOS}")
    seed: int | None = _sets("seed")
    speed_factor: float | None = param(None, help="simulated seconds per real second")
    params_file: str | None = _file("traffic_sim.yaml")

    def processes(self) -> list[Process]:
        """Return the processes of `simulator`, `active_sensing` and the views."""
        simulated = {
            "scenario": self.scenario,
            "seed": self.seed,
            "policy_name": self.policy,
            "map_frame": self.map_frame,
            "probes": self.names,
            "speed_factor": self.speed_factor,
        }
        parameters = {**self.mission_parameters, "scenario": self.scenario, "use_sim_time": True}
        return [
            self.node("simulator", simulated),
            self.node("active_sensing", parameters, respawn=bool(self.respawn)),
            *self.views(use_sim_time=True),
        ]


LAUNCHES: dict[str, type[Arguments]] = {
    "probe": Probe,
    "replay": Replay,
    "traffic_sim": TrafficSim,
}
"""Class that has the arguments of a launch, by the name of the launch file."""


def find_launch(name: str) -> type[Arguments]:
    """Return the class that has the arguments of a launch.

    Raises:
        UnknownNameError: the launch does not exist; the message proposes the most similar name.
    """
    if name not in LAUNCHES:
        known = ", ".join(LAUNCHES)
        msg = f"unknown launch {name!r}.{suggest(name, LAUNCHES)} Known: {known}"
        raise UnknownNameError(msg)
    return LAUNCHES[name]


def declarations(kind: type[Arguments]) -> Iterator[dict[str, Any]]:
    """Yield the keyword arguments of ``DeclareLaunchArgument`` for each launch argument."""
    for field in dataclasses.fields(kind):
        info, default = param_of(field), field.default
        found: dict[str, Any] = {"name": field.name, "description": info.help}
        if default is not dataclasses.MISSING:
            words = {None: "", True: "true", False: "false"}
            found["default_value"] = words.get(default, default)
        if info.choices:
            found["choices"] = ["", *info.choices]
        yield found


def parsed(text: str) -> Any:
    """Parse a text as YAML; return the text itself if it is not valid YAML."""
    with contextlib.suppress(ConfigError):
        return parse_yaml(text)
    return text


def read_arguments(kind: type[A], texts: Mapping[str, str], *, strict: bool = False) -> A:
    """Convert texts to the arguments of a launch.

    `texts` maps names of arguments to values, like ``context.launch_configurations``. Missing
    arguments have their defaults. `strict` True = an unknown argument is an error; False = it is
    ignored.

    Raises:
        ConfigError: an argument is unknown, removed or has a wrong value.
    """
    hints = typing.get_type_hints(kind)
    given: dict[str, Any] = {}
    for name, text in texts.items():
        hint = hints.get(name)
        if (name not in hints and not strict) or (hint is str and not text):
            continue  # the argument is unknown, or required and missing
        given[name] = text or None
        if text and str not in (hint, *typing.get_args(hint)):
            given[name] = parsed(text)
    return from_mapping(kind, given, source="launch")
