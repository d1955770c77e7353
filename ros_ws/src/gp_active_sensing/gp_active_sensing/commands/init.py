"""The command ``init``: a few questions, and the parameter file of a mission of one's own robot."""

from __future__ import annotations

import contextlib
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gp_active_sensing.errors import ActiveSensingError, MissingDependencyError

if TYPE_CHECKING:
    from gp_active_sensing.mission.config import PoseConfig
    from gp_active_sensing.mission.mission_file import MissionMap
    from gp_active_sensing.ros.running_system import Heard, RunningSystem

__all__ = ["init"]

T = TypeVar("T")
_LAUNCH = "ros2 launch gp_active_sensing probe.launch.py params_file:={}"
_RUNNER = "python -m gp_active_sensing.ros.runner probe params_file:={}"
_NEEDED = ("map", "reading", "pose", "budget")
_TEMPERATURE = "sensor_msgs/msg/Temperature"
_FIX = "sensor_msgs/msg/NavSatFix"
_ODOMETRY = "nav_msgs/msg/Odometry"
_SEVERAL = 2.5
"""Of the time between two poses: how old one may be, so that one that is lost does not matter."""


@click.command()
@click.option("--map", metavar="MAP", help="A file, a shipped map, WxH or X0,Y0,X1,Y1 [m].")
@click.option("--spacing", type=float, metavar="M", help="Between neighbouring places.")
@click.option("--frame", default="", help="Of the map's positions, where its file says none.")
@click.option("--reading", metavar="TOPIC", help="Topic of the readings.")
@click.option("--reading-type", default="", metavar="TYPE", help="package/msg/Name.")
@click.option("--field", default="", metavar="PATH", help="Of the value in the message.")
@click.option("--pose", metavar="TOPIC", help="Topic of the pose, or tf.")
@click.option("--pose-type", default="", metavar="TYPE", help="package/msg/Name.")
@click.option("--datum", default="", metavar="LAT,LON", help="The map's origin, for NavSatFix.")
@click.option(
    "--delay", type=float, metavar="S", help="How much older a reading is than its stamp."
)
@click.option("--probes", default="", metavar="NAMES", help="Several: 2, or boat_1,boat_2.")
@click.option("--waypoint", default="", metavar="TOPIC", help="Of the waypoints: goal_pose, …")
@click.option("--budget", metavar="N", help="40 (places), 2 km, 30 min; several with commas.")
@click.option("--run-dir", metavar="DIR", help="For the records.  [default: auto]")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default="mission.yaml",
    show_default=True,
    help="The file to write.",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--offline", is_flag=True, help="Do not look at the running ROS system.")
def init(out: Path, force: bool, offline: bool, **given: Any) -> None:
    """Write the parameter file of a mission of your own robot.

    What is not given is asked: the map, the readings, their field, the pose, the budget, and where
    the records go. A running ROS system is looked at for what fits. The exit code is 1 when
    something does not; the file is written all the same.
    """
    missing = [f"--{name}" for name in _NEEDED if not given[name]]
    if missing and not has_terminal():
        msg = f"there is no terminal to ask on; give {', '.join(missing)} as well"
        raise click.UsageError(msg)
    if out.exists() and not force:
        msg = f"{out} exists; give another name (--out), or --force to replace it"
        raise click.UsageError(msg)
    with _system(offline=offline) as system:
        draft = _Draft(given, system, asking=bool(missing))
        draft.answer()
        text = draft.text(out)
    from gp_active_sensing.util.files import write_whole

    write_whole(out, text)
    for line in draft.told:
        click.echo(line)
    if draft.misfits:
        click.secho("Does not fit:", fg="yellow")
        for misfit in draft.misfits:
            click.echo(f"  - {misfit}")
    click.echo(f"wrote {out}. Start it:\n  {_start(out)}")
    sys.exit(1 if draft.misfits else 0)


def has_terminal() -> bool:
    """Return whether there is somebody to ask."""
    return sys.stdin.isatty()


def _start(out: Path) -> str:
    return (_LAUNCH if shutil.which("ros2") else _RUNNER).format(out)


@contextlib.contextmanager
def _system(*, offline: bool) -> Iterator[RunningSystem | None]:
    """Yield the running ROS system, None where there is no ROS to ask."""
    if offline:
        yield None
        return
    try:
        from gp_active_sensing.ros.environment import require_ros

        require_ros()
        from gp_active_sensing.ros.running_system import running_system
    except MissingDependencyError as error:
        click.echo(f"note: topics and types are not looked at, since {error}")
        yield None
        return
    with running_system() as system:
        yield system


@dataclass
class _Draft:
    """What is known of the mission, and what does not fit."""

    given: dict[str, Any]
    system: RunningSystem | None
    asking: bool
    told: list[str] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    topics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    probes: tuple[str, ...] = ()
    heard: Mapping[str, Heard] = field(default_factory=dict)
    max_age: float | None = None
    map_text: str = ""

    def answer(self) -> None:
        """Ask what is not given, look at what is there, and compare."""
        from gp_active_sensing.mission.mission_file import read_budget, read_position
        from gp_active_sensing.mission.names import numbered

        self.probes = numbered(self.given["probes"]) if self.given["probes"] else ()
        if self.system is not None:
            named = [self.given[key] for key in ("reading", "pose") if self.given[key]]
            wanted = [name for topic in named for name in self._names(topic.split()[0])]
            self.topics = self.system.topics(wanted if len(named) == 2 else ())
            if not self.topics:
                self.told.append("no ROS system is running here: topics are not looked at")
        self.map = self._ask("map", "Map: a file, or a rectangle such as 60x40 [m]", self._read_map)
        self._ask_streams()
        self.budget = self._ask("budget", "Budget: 2 km, 30 min, or 40 (places)", read_budget)
        self.run_dir = self._ask("run_dir", "Folder of the records", str, "auto")
        self.datum = read_position(self.given["datum"]) if self.given["datum"] else None
        self._look()
        self._tell()

    def _ask(
        self, key: str, question: str, read: Callable[[str], T], default: str | None = None
    ) -> T:
        """Return what an answer means; ask again where it means nothing."""
        if self.given[key] or not self.asking:
            return read(self.given[key] or default or "")

        def value_of(text: str) -> T:
            try:
                return read(text)
            except ActiveSensingError as error:
                raise click.UsageError(str(error)) from None

        found: T = click.prompt(question, default=default, value_proc=value_of)
        return found

    def _read_map(self, text: str) -> MissionMap:
        from gp_active_sensing.mission.mission_file import in_words, read_map

        found = read_map(text, spacing=self.given["spacing"], frame=self.given["frame"])
        self.map_text = text
        if self.asking:
            click.echo(f"  {in_words(found.places)}")
        return found

    # -- readings and poses --------------------------------------------------------------------

    def _ask_streams(self) -> None:
        from gp_active_sensing.mission.stream_config import TF, PoseConfig, ReadingConfig

        poses = {_ODOMETRY, *(_choices(PoseConfig) - {TF})}
        of_poses = {name for name, types in self.topics.items() if poses & set(types)}
        others = sorted(set(self.topics) - of_poses)
        topic, type = self._stream("reading", "Topic of the readings", others, _TEMPERATURE)
        numbers, likely = self._numbers(type)
        if self.asking and not self.given["field"] and numbers:
            click.echo(f"  numbers in {type}: {', '.join(numbers[:20])}")
        usual = ReadingConfig().field if type == _TEMPERATURE else likely
        path = self._ask("field", "Field of the value", str, usual or None)
        self.reading = _checked(ReadingConfig, topic=topic, type=type, field=path or "")
        topic, type = self._stream("pose", "Topic of the pose, or tf", sorted(of_poses), _ODOMETRY)
        tf = {"type": TF} if topic == TF else {"topic": topic, "type": type}
        self.pose = _checked(PoseConfig, **tf)

    def _stream(self, what: str, question: str, likely: list[str], usual: str) -> tuple[str, str]:
        """Return topic and type of a stream; a type that is not given is the running system's."""
        if self.asking and not self.given[what] and likely:
            for name in likely[:12]:
                click.echo(f"  {name} ({', '.join(self.topics[name])})")
        one = likely[0] if len(likely) == 1 else None
        words = self._ask(what, question, str.split, one)
        if not 1 <= len(words) <= 2:
            msg = f"--{what}: expected a topic, and its type if nobody publishes it, got {words}"
            raise click.UsageError(msg)
        topic, type = words[0], self.given[f"{what}_type"] or "".join(words[1:])
        found = self.topics.get(self._names(topic)[0], (usual,))
        return topic, type or found[0]

    def _names(self, topic: str) -> list[str]:
        """Return the names of a topic from the root, one for each probe."""
        from gp_active_sensing.mission.names import probe_topic

        found = [probe_topic(probe, topic) for probe in self.probes or ("",)]
        return [f"/{name.lstrip('/')}" for name in found]

    def _numbers(self, type: str) -> tuple[list[str], str]:
        if self.system is None:
            return [], ""
        from gp_active_sensing.messages.fields import number_paths, value_path
        from gp_active_sensing.ros.to_messages import RosTypes

        try:
            found = number_paths(type, RosTypes())
        except ActiveSensingError:  # said among what does not fit
            return [], ""
        return found, value_path(found)

    # -- the running system --------------------------------------------------------------------

    def _look(self) -> None:
        """Compare with the running system, and take from it what nobody said."""
        if self.system is None:
            self._need_datum()
            return
        from gp_active_sensing.ros import fit

        if misfit := fit.field_misfit(self.reading):
            self.misfits.append(misfit)
        if not self.topics:
            self._need_datum()
            return
        streams = {"reading": (self.reading.topic, self.reading.type)}
        streams["pose"] = (self.pose.topic, self.pose.type)
        if self.pose.type == "tf":
            del streams["pose"]
        there: dict[str, str] = {}
        named = [(w, name, t) for w, (topic, t) in streams.items() for name in self._names(topic)]
        for what, name, type in named:
            if problem := fit.topic_misfit(what, name, type, self.topics):
                self.misfits.append(problem)
            elif not (what == "reading" and misfit):
                there[name] = type
        self.heard = self.system.hear(there)
        for what, name, _ in named:
            if name not in there:
                continue
            if what == "reading":
                self.misfits += fit.reading_misfits(self.reading, self.heard[name])
            else:
                self._adopt(self.heard[name])
                pose = _with(self.pose, datum=self.datum)
                self.misfits += fit.pose_misfits(
                    pose,
                    self.heard[name],
                    self.map.places,
                    transforms=fit.has_transforms(self.topics),
                )

    def _adopt(self, heard: Heard) -> None:
        """Take frame, origin and the age of poses from what is heard, where nobody says them."""
        from gp_active_sensing.mission.mission_file import read_map

        fix = self.pose.type == _FIX
        if not self.map.from_file and not self.given["frame"] and heard.frame and not fix:
            again = {"spacing": self.given["spacing"], "frame": heard.frame}
            self.map = read_map(self.map_text, **again)
        if fix and self.datum is None and not self.map.from_file and heard.messages:
            message = heard.messages[-1]
            if message.status.status != -1 and math.isfinite(message.latitude):
                self.datum = (round(message.latitude, 7), round(message.longitude, 7))
                self.notes["pose.datum"] = "where the robot was: the rectangle's origin"
        period = 1.0 / heard.rate
        if period > 0.8 * self.pose.max_age:
            self.max_age = round(_SEVERAL * period, 1)
            self.notes["pose.max_age"] = f"s: poses come every {period:.1f} s"

    def _need_datum(self) -> None:
        if self.pose.type == _FIX and self.datum is None and self.map.places.datum is None:
            self.misfits.append(
                f"pose: {_FIX} is a position on earth, and the map does not say where it is: give "
                "--datum LATITUDE,LONGITUDE of its origin (x east, y north), or a map in degrees"
            )

    # -- the file ------------------------------------------------------------------------------

    def _tell(self) -> None:
        from gp_active_sensing.mission.mission_file import in_words

        self.told.append(f"map: {in_words(self.map.places)}")
        for heard in self.heard.values():
            if heard.messages:
                rate = "" if math.isnan(heard.rate) else f", {heard.rate:.3g} Hz"
                frame = f", frame {heard.frame}" if heard.frame else ""
                self.told.append(f"{heard.topic}: heard{rate}{frame}")

    def text(self, out: Path) -> str:
        """Return the file."""
        from gp_active_sensing.mission.mission_file import in_words, mission_text

        parameters: dict[str, Any] = {f"map.{k}": v for k, v in self.map.section.items()}
        first = next(iter(parameters))
        self.notes[first] = in_words(self.map.places)
        self.notes["map.spacing"] = "m between neighbouring places"
        parameters |= {
            "reading.topic": self.reading.topic,
            "reading.type": self.reading.type,
            "reading.field": self.reading.field,
        }
        if self.given["delay"] is not None:
            parameters["reading.delay"] = self.given["delay"]
        if self.pose.type != "tf":
            parameters["pose.topic"] = self.pose.topic
        parameters["pose.type"] = self.pose.type
        if self.datum is not None:
            parameters["pose.datum"] = list(self.datum)
        if self.max_age is not None:
            parameters["pose.max_age"] = self.max_age
        if self.given["waypoint"]:
            parameters["waypoint.topic"] = self.given["waypoint"]
        if self.probes:
            parameters["probes"] = list(self.probes)
        parameters |= {f"budget.{key}": amount for key, amount in self.budget.items()}
        parameters["run_dir"] = self.run_dir
        if "/clock" in self.topics:
            parameters["use_sim_time"] = True
        notes = {**_NOTES, **self.notes}
        return mission_text(parameters, notes, start=_start(out))


_NOTES = {
    "reading.field": "path of the value in the message",
    "pose.datum": "latitude and longitude of the map's origin",
    "reading.delay": "s; how much older a reading is than its stamp",
    "probes": "each has its topics in its namespace",
    "waypoint.topic": "where to go next: geometry_msgs/msg/PoseStamped",
    "budget.readings": "places to observe",
    "budget.metres": "m to drive",
    "budget.seconds": "s",
    "run_dir": "journal, records and report; auto: below ~/.ros",
    "use_sim_time": "/clock is published",
}


def _choices(kind: Any) -> set[str]:
    import dataclasses

    from gp_active_sensing.config import param_of

    (found,) = (param_of(f).choices for f in dataclasses.fields(kind) if f.name == "type")
    return set(found or ())


def _checked(kind: type[T], **values: Any) -> T:
    from gp_active_sensing.config import from_mapping

    return from_mapping(kind, values, path="reading" if "field" in values else "pose")


def _with(pose: PoseConfig, **values: Any) -> PoseConfig:
    import dataclasses

    return dataclasses.replace(pose, **values)
