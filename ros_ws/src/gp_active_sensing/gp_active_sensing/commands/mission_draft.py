"""Draft of a parameter file, which ``init`` makes from answers and the running ROS system."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gp_active_sensing.commands import echo
from gp_active_sensing.config import from_mapping, param_of
from gp_active_sensing.errors import ActiveSensingError, ConfigError, MapError, one_line
from gp_active_sensing.messages.conversions import number_paths, value_path
from gp_active_sensing.messages.occupancy import MAP_TYPE
from gp_active_sensing.messages.occupancy import read_map as read_grid
from gp_active_sensing.mission.config import MissionConfig, WaypointConfig
from gp_active_sensing.mission.mission_file import (
    MissionMap,
    datum_misfit,
    in_words,
    limitless,
    live_map,
    mission_text,
    read_budget,
    read_map,
    read_position,
    read_sortie,
    read_speed,
)
from gp_active_sensing.mission.names import numbered, probe_topic
from gp_active_sensing.mission.stream_config import TF, PoseConfig, ReadingConfig
from gp_active_sensing.ros.received import LISTEN_SECONDS, TopicSample, pose_needs, reading_needs
from gp_active_sensing.topology import MapConfig

if TYPE_CHECKING:
    from gp_active_sensing.ros.running_system import RunningSystem

T = TypeVar("T")
_MAP_QUESTION = "Map: a file, a rectangle such as 60x40 [m], or a topic such as /map"
_TEMPERATURE = "sensor_msgs/msg/Temperature"
_FIX = "sensor_msgs/msg/NavSatFix"
_ODOMETRY = "nav_msgs/msg/Odometry"
_BY_NAME = {
    "pose": (
        (r"fix|gps|gnss|nav_?sat|global_position", _FIX),
        (r"amcl|with_?cov", "geometry_msgs/msg/PoseWithCovarianceStamped"),
        (r"odom", _ODOMETRY),
        (r"pose", "geometry_msgs/msg/PoseStamped"),
    ),
    "reading": (
        (r"temp", _TEMPERATURE),
        (r"humid", "sensor_msgs/msg/RelativeHumidity"),
        (r"press", "sensor_msgs/msg/FluidPressure"),
        (r"illum|light", "sensor_msgs/msg/Illuminance"),
        (r"range|sonar|echo|depth|altimeter", "sensor_msgs/msg/Range"),
    ),
}
"""Assumed message type of a topic that is not published, by a pattern of the topic's name."""
_FIELDS = {
    "sensor_msgs/msg/RelativeHumidity": "relative_humidity",
    "sensor_msgs/msg/FluidPressure": "fluid_pressure",
    "sensor_msgs/msg/Illuminance": "illuminance",
    "sensor_msgs/msg/Range": "range",
}
"""Name of the field that has the measured value, by message type."""
_ASSUMED = "assumed; check it"


@dataclass
class MissionDraft:
    """Draft of a parameter file, with notes and problems.

    Args:
        given: options of the command.
        system: running ROS system; None = no system.
        asking: True = ask the user for missing values.
        lines: lines to print with the results.
        misfits: a sentence for each answer that does not fit the running system.
        notes: comments for the parameter file, by parameter.
        topics: message types of each topic of the running system.
        probes: names of several probes.
        received: messages received on each topic.
        needs: parameters that must change to suit the message rates of the topics.
        speed: speed of the robot where the map has no limit [m/s]; None = not needed.
        map_text: answer for the map.
        main: name of the main quantity in a mission with several quantities.
        further: settings of the further quantities, by name.
    """

    given: dict[str, Any]
    system: RunningSystem | None
    asking: bool
    lines: list[str] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    topics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    probes: tuple[str, ...] = ()
    received: Mapping[str, TopicSample] = field(default_factory=dict)
    needs: dict[str, float] = field(default_factory=dict)
    speed: float | None = None
    map_text: str = ""
    main: str = "main"
    further: Mapping[str, ReadingConfig] = field(default_factory=dict)

    def answer(self) -> None:
        """Ask for missing values, inspect the running system, and compare both."""
        self.probes = numbered(self.given["probes"]) if self.given["probes"] else ()
        self.speed = read_speed(self.given["speed"]) if self.given["speed"] else None
        if self.given.get("further") and "=" in (self.given["reading"] or ""):
            self.main, _, topic = self.given["reading"].partition("=")
            self.given = {**self.given, "reading": topic}
        if self.system is not None:
            named = [self.given[key] for key in ("reading", "pose") if self.given[key]]
            wanted = [name for topic in named for name in self._names(topic.split()[0])]
            if grid := self.given["map_topic"]:
                wanted.append(_from_root(grid))
            self.topics = self.system.topics(wanted if len(named) == 2 else ())
            if not self.topics:
                self.lines.append("no ROS system is running here: topics are not looked at")
        if self.asking and not self.given["map"]:
            for name in self._grids()[:12]:
                echo(f"  {name} ({MAP_TYPE})")
        self.map = self._ask("map", _MAP_QUESTION, self._read_map)
        self._ask_streams()
        self.budget = self._ask("budget", "Budget: 2 km, 30 min, or 40 (places)", read_budget)
        self.speed = self._find_speed()
        self._ask_habits()
        self.run_dir = self._ask("run_dir", "Folder of the records", str, "auto")
        self.datum = read_position(self.given["datum"]) if self.given["datum"] else None
        if self.datum and self.map.places:
            self.misfits += filter(None, [datum_misfit(self.datum, self.map.places)])
        self._compare()
        self._report()

    def _ask_habits(self) -> None:
        returns = {True: "yes", False: "no", None: ""}[self.given["return_home"]]
        self.given = {**self.given, "return_home": returns}
        self.sortie = self._ask("sortie", "One battery: 2 km, 30 min, or nothing", read_sortie, "")
        home = "yes" if self.sortie else "no"
        self.home = self._ask("return_home", "Return to the start (yes, no)", _yes, home)
        self.unit = self._ask("unit", "Unit of the readings, such as degC, or nothing", str, "")
        self.settle = self._ask("settle", "Time to settle at each place [s]", _seconds, "0")
        self.formats = self._ask("export", "Formats of the map at the end", _formats, "csv")

    def _ask(
        self, key: str, question: str, read: Callable[[str], T], default: str | None = None
    ) -> T:
        if self.given[key] or not self.asking:
            return read(str(self.given[key] or default or ""))

        def value_of(text: str) -> T:
            try:
                return read(text)
            except ActiveSensingError as error:
                raise click.UsageError(str(error)) from None

        found: T = click.prompt(question, default=default, value_proc=value_of)
        return found

    def _read_map(self, text: str) -> MissionMap:
        if topic := self._grid_topic(text):
            found = self._read_grid(topic)
        else:
            found = read_map(text, **self._of_map(), speed=self.speed)
        self.map_text = text
        if self.asking and found.places is not None:
            echo(f"  {one_line(in_words(found.places))}")
        return found

    def _of_map(self) -> dict[str, Any]:
        return {key: self.given[key] for key in ("spacing", "radius", "frame")}

    def _find_speed(self) -> float | None:
        """Return the robot's speed [m/s]; None = not given and not needed for the budget."""
        why = limitless(self.map.places)
        if self.speed is not None:
            if not why:
                self.lines.append(
                    "note: all roads of the map have speed limits, so that --speed has no effect; "
                    "probe.speed is that of a robot that does not go by them"
                )
            return self.speed
        if not why or "seconds" not in self.budget:
            return None
        if self.asking:
            question = f"Speed of the robot [m/s], since {why}"
            return self._ask("speed", question, read_speed, f"{MapConfig.speed:g}")
        self.lines.append(
            f"note: {why}, and the budget in time counts {MapConfig.speed:g} m/s there: give the "
            "robot's speed (--speed)"
        )
        return MapConfig.speed

    # -- a map by topic ------------------------------------------------------------------------

    def _grids(self) -> list[str]:
        return [name for name, types in self.topics.items() if MAP_TYPE in types]

    def _grid_topic(self, text: str) -> str:
        """Return the topic in an answer for the map; "" if the answer is a file or a rectangle."""
        if self.given["map_topic"]:
            return str(self.given["map_topic"])
        if not self.topics:  # no running system
            return ""
        is_topic = text.startswith("/") and not Path(text).exists() and not Path(text).suffix
        return text if is_topic or _from_root(text) in self._grids() else ""

    def _read_grid(self, topic: str) -> MissionMap:
        """Return the map of a topic; its places are known only if a message arrives."""
        if self.system is not None and self.topics:
            from gp_active_sensing.ros import running_system

            name = _from_root(topic)
            misfit = running_system.topic_misfit("map", name, MAP_TYPE, self.topics)
            if not misfit:
                message = self.system.latched(name, MAP_TYPE)
                try:
                    if message is not None:
                        return live_map(topic, read_grid(message), **self._of_map())
                    misfit = running_system.silent_map(name)
                except MapError as error:
                    misfit = f"map: {name}: {error}"
            if self.asking:
                echo(f"  {one_line(misfit)}")
            self.misfits.append(misfit)
        return live_map(topic, None, **self._of_map())

    # -- readings and poses --------------------------------------------------------------------

    def _ask_streams(self) -> None:
        [poses] = (param_of(f).choices for f in dataclasses.fields(PoseConfig) if f.name == "type")
        of_poses = {name for name, types in self.topics.items() if set(poses or ()) & set(types)}
        others = sorted(set(self.topics) - of_poses)
        topic, type = self._stream("reading", "Topic of the readings", others, _TEMPERATURE)
        numbers, usual = self._numbers(type)
        if self.asking and not self.given["field"] and numbers:
            echo(f"  numbers in {type}: {', '.join(numbers[:20])}")
        path = self._ask("field", "Field of the value", str, usual or None)
        self.reading = _checked(ReadingConfig, "reading", topic=topic, type=type, field=path or "")
        self.further = dict(map(self._quantity, self.given.get("further", ())))
        topic, type = self._stream("pose", "Topic of the pose, or tf", sorted(of_poses), _ODOMETRY)
        tf = {"type": TF} if topic == TF else {"topic": topic, "type": type}
        self.pose = _checked(PoseConfig, "pose", **tf)

    def _stream(self, what: str, question: str, likely: list[str], usual: str) -> tuple[str, str]:
        """Return topic and message type of a stream, from an option or the user's answer."""
        if self.asking and not self.given[what] and likely:
            for name in likely[:12]:
                echo(f"  {name} ({', '.join(self.topics[name])})")
        one = likely[0] if len(likely) == 1 else None
        words = self._ask(what, question, str.split, one)
        if not 1 <= len(words) <= 2:
            msg = f"--{what}: expected a topic, and its type if nobody publishes it, got {words}"
            raise click.UsageError(msg)
        topic, given = words[0], self.given[f"{what}_type"] or "".join(words[1:])
        if topic == TF:
            return topic, given or usual
        type, note = self._type_of(what, topic, given, usual)
        if note:
            self.notes[f"{what}.type"] = note
        if note == _ASSUMED and not self.topics:
            self.lines.append(
                f"note: nobody publishes {topic}, and its name does not tell its message type: "
                f"{usual} is assumed; give --{what}-type"
            )
        return topic, type

    def _type_of(self, what: str, topic: str, given: str, usual: str) -> tuple[str, str]:
        """Return the message type of a topic, and a note if the type is a guess."""
        found = self.topics.get(self._names(topic)[0], ())
        if given or found:
            return given or found[0], ""
        named = next((t for name, t in _BY_NAME[what] if re.search(name, topic.lower())), "")
        return named or usual, "by the name of the topic" if named else _ASSUMED

    def _quantity(self, text: str) -> tuple[str, ReadingConfig]:
        """Return name and settings of a further quantity; message type and field may be guesses."""
        name, _, rest = text.partition("=")
        topic, type, path = [*rest.split(","), "", ""][:3]
        if not (name and topic):
            msg = f"--further: expected NAME=TOPIC, such as chlorophyll=/sonde/chl, got {text!r}"
            raise click.UsageError(msg)
        key = f"readings.{name}"
        type, note = self._type_of("reading", topic, type, _TEMPERATURE)
        if note:
            self.notes[f"{key}.type"] = note
        path = path or self._numbers(type)[1]
        return name, _checked(ReadingConfig, key, topic=topic, type=type, field=path)

    def _names(self, topic: str) -> list[str]:
        """Return the absolute names of a topic, one name per probe."""
        return [_from_root(probe_topic(probe, topic)) for probe in self.probes or ("",)]

    def _numbers(self, type: str) -> tuple[list[str], str]:
        """Return the numeric fields of a message type ([] = not known), and the default field."""
        found: list[str] = []
        if self.system is not None:
            from gp_active_sensing.ros.to_messages import RosTypes

            with contextlib.suppress(ActiveSensingError):  # reported with the misfits
                found = number_paths(type, RosTypes())
        if type == _TEMPERATURE:
            return found, ReadingConfig().field
        return found, (value_path(found) if found else "") or _FIELDS.get(type, "")

    # -- the running system --------------------------------------------------------------------

    def _compare(self) -> None:
        if self.system is None:
            self._need_datum()
            return
        from gp_active_sensing.ros import running_system

        if misfit := running_system.field_misfit(self.reading):
            self.misfits.append(misfit)
        if not self.topics:
            self._need_datum()
            return
        streams: dict[str, ReadingConfig | PoseConfig] = {"reading": self.reading}
        if self.pose.type != TF:
            streams["pose"] = self.pose
        for each in self.further.values():
            problems = (
                running_system.topic_misfit("reading", name, each.type, self.topics)
                for name in self._names(each.topic)
            )
            self.misfits += filter(None, (running_system.field_misfit(each), *problems))
        there: dict[str, str] = {}
        named = [(w, name, s.type) for w, s in streams.items() for name in self._names(s.topic)]
        for what, name, type in named:
            if problem := running_system.topic_misfit(what, name, type, self.topics):
                self.misfits.append(problem)
            elif not (what == "reading" and misfit):
                there[name] = type
        self.received = self.system.receive(there, self._report_slow)
        if self.pose.type == TF:
            self.misfits += self._tf_misfits()
        for what, name, _ in named:
            if name not in there:
                continue
            if what == "reading":
                self.misfits += running_system.reading_misfits(self.reading, self.received[name])
            else:
                self._adopt(self.received[name])
                pose = dataclasses.replace(self.pose, datum=self.datum)
                self.misfits += running_system.pose_misfits(
                    pose, self.received[name], self.map.places, self._why_no_transform
                )
                if note := running_system.roads_note(self.received[name], self.map.places):
                    self.lines.append(f"note: {note}")
        for kind in ("pose", "reading"):
            topics = [name for what, name, _ in named if what == kind and name in there]
            self._find_needs(kind, [self.received[name] for name in topics])
        self._check_waypoint_listeners(self.system)

    def _report_slow(self, topics: list[str]) -> None:
        echo(f"listening to {', '.join(topics)} (up to {LISTEN_SECONDS:g} s)")

    def _find_needs(self, what: str, received: list[TopicSample]) -> None:
        if what == "pose":
            found = pose_needs(self.pose, received)
        else:
            found = reading_needs(self.reading, MissionConfig(), received)
            for each in received:
                if each.is_single:
                    self.lines.append(
                        f"note: {each.topic} came once in {LISTEN_SECONDS:g} s: set "
                        "mission.reading_timeout to more than twice the time between two readings"
                    )
        for key, (value, note) in found.items():
            self.needs[key], self.notes[key] = value, note

    def _check_waypoint_listeners(self, system: RunningSystem) -> None:
        from gp_active_sensing.ros.running_system import waypoint_note

        names = self._names(self.given["waypoint"] or WaypointConfig.topic)
        listeners, poses = system.listeners(names), self._names(self.pose.topic)
        notes = [waypoint_note(name, listeners, self.topics, poses) for name in names]
        self.lines += [f"note: {note}" for note in notes if note]

    def _tf_misfits(self) -> list[str]:
        target = self.map.frame
        bodies = [probe_topic(p, self.pose.child_frame.lstrip("/")) for p in self.probes or ("",)]
        problems = [self._why_no_transform(target, body) for body in bodies] if target else []
        return [f"pose: {problem}" for problem in problems if problem]

    def _why_no_transform(self, target: str, source: str) -> str:
        """Return the reason why poses cannot be transformed; "" = no problem."""
        from gp_active_sensing.ros import running_system

        if self.system is None:
            return ""
        return running_system.tf_problem(self.topics) or self.system.why_no_transform(
            target, source
        )

    def _adopt(self, received: TopicSample) -> None:
        """Fill in frame and origin from received messages if the user gave none."""
        fix = self.pose.type == _FIX
        if not self.map.from_file and not self.given["frame"] and received.frame and not fix:
            self.map = read_map(self.map_text, **{**self._of_map(), "frame": received.frame})
        if fix and self.datum is None and not self.map.from_file and received.messages:
            message = received.messages[-1]
            if message.status.status != -1 and math.isfinite(message.latitude):
                self.datum = (round(message.latitude, 7), round(message.longitude, 7))
                self.notes["pose.datum"] = "where the robot was: the rectangle's origin"

    def _need_datum(self) -> None:
        places = self.map.places
        if self.pose.type == _FIX and self.datum is None and (not places or not places.datum):
            self.misfits.append(
                f"pose: {_FIX} is a position on earth, and the map does not say where it is: give "
                "--datum LATITUDE,LONGITUDE of its origin (x east, y north), or a map in degrees"
            )

    # -- the file ------------------------------------------------------------------------------

    def _report(self) -> None:
        self.lines.append(f"map: {self._describe_map()}")
        for received in self.received.values():
            if received.messages:
                rate = f", {received.in_words}" if received.in_words else ""
                frame = f", frame {received.frame}" if received.frame else ""
                self.lines.append(f"{received.topic}: heard{rate}{frame}")

    def _describe_map(self) -> str:
        if self.map.places is None:
            return f"the first one that comes on {self.map.section['topic']}"
        now = ", now: " if "topic" in self.map.section else ""
        shipped = f"; it ships with the package: {self.map.shipped}" if self.map.shipped else ""
        of = f"of {self.map.section['topic']}" if now else ""
        return f"{of}{now}{in_words(self.map.places)}{shipped}"

    def text(self, start: str) -> str:
        """Return the text of the parameter file; `start` is the command that starts the mission."""
        of_map = {f"map.{key}": value for key, value in self.map.section.items()}
        self.notes[next(iter(of_map))] = self._describe_map()
        self.notes["map.spacing"] = "m between neighbouring places"
        main = f"readings.{self.main}" if self.further else "reading"

        def own(key: str) -> str:
            return main + key.removeprefix("reading") if key.startswith("reading.") else key

        values: dict[str, Any] = {
            **of_map,
            "map.speed": self.speed,
            f"{main}.topic": self.reading.topic,
            f"{main}.type": self.reading.type,
            f"{main}.field": self.reading.field,
            f"{main}.unit": self.unit,
            f"{main}.delay": self.given["delay"],
            **{
                f"readings.{name}.{key}": getattr(each, key)
                for name, each in self.further.items()
                for key in ("topic", "type", "field")
            },
            "pose.topic": None if self.pose.type == TF else self.pose.topic,
            "pose.type": self.pose.type,
            "pose.datum": None if self.datum is None else list(self.datum),
            **{own(key): value for key, value in self.needs.items()},
            "waypoint.topic": self.given["waypoint"] or None,
            "probes": list(self.probes) or None,
            **{f"budget.{key}": amount for key, amount in self.budget.items()},
            "probe.end": "start" if self.home else None,
            **{f"probe.sortie.{key}": amount for key, amount in self.sortie.items()},
            "mission.settle": self.settle or None,
            "mission.export": list(self.formats) if self.given["export"] or self.asking else None,
            "name": self.given["name"] or None,
            "run_dir": self.run_dir,
            "use_sim_time": "/clock" in self.topics or None,
        }
        parameters = {key: value for key, value in values.items() if value is not None}
        notes = _NOTES | {own(key): note for key, note in self.notes.items()}
        return mission_text(parameters, notes, start=start)


_NOTES = {
    "map.inflation": "m, the radius of the robot",
    "map.speed": "m/s of the robot where the map has no limit; a budget in time goes by it",
    "reading.field": "path of the value in the message",
    "reading.unit": "such as degC; shown beside every value",
    "pose.datum": "latitude and longitude of the map's origin",
    "reading.delay": "s; how much older a reading is than its stamp",
    "probes": "each has its topics in its namespace",
    "waypoint.topic": "where to go next: geometry_msgs/msg/PoseStamped",
    "budget.readings": "places to observe",
    "budget.metres": "m to drive",
    "budget.seconds": "s",
    "probe.end": "back to where it began, within the budget",
    "probe.sortie.metres": "m that one battery lasts for; then it waits for ~/resume",
    "probe.sortie.seconds": "s that one battery lasts for; then it waits for ~/resume",
    "mission.settle": "s at each place before a reading counts",
    "mission.export": "formats of the map at the end",
    "name": "of the mission, on its pages",
    "run_dir": "journal, records and report; auto: below ~/.ros",
    "use_sim_time": "/clock is published",
}


def _yes(text: str) -> bool:
    if text.strip().lower() in ("y", "yes", "n", "no", ""):
        return text.strip().lower().startswith("y")
    msg = f"expected yes or no, got {text!r}"
    raise ConfigError(msg)


def _seconds(text: str) -> float:
    if not text.strip(" 0."):
        return 0.0
    found = read_budget(text if re.search("[A-Za-z]", text) else f"{text} s", "settle")
    if list(found) != ["seconds"]:
        msg = f"settle: expected a time, such as 30 s or 2 min, got {text!r}"
        raise ConfigError(msg)
    return float(found["seconds"])


def _formats(text: str) -> tuple[str, ...]:
    formats = tuple(word.strip() for word in text.split(",") if word.strip())
    return _checked(MissionConfig, "mission", export=formats).export


def _from_root(topic: str) -> str:
    return f"/{topic.lstrip('/')}"


def _checked(kind: type[T], path: str, **values: Any) -> T:
    return from_mapping(kind, values, path=path)
