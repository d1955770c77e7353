"""Convert the messages of a bag to messages of a node's inbox, and read maps from a bag."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gp_active_sensing.errors import (
    ConfigError,
    MapError,
    MissingDependencyError,
    ReadingError,
    ReplayError,
    suggest,
)
from gp_active_sensing.messages.conversions import ValueReader, pose_reader, split_type_name
from gp_active_sensing.messages.occupancy import MAP_TYPE, check_size, read_map
from gp_active_sensing.messages.twists import Twists
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.live_map import FirstMap
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.stream_config import MOST_BYTES, ReadingConfig
from gp_active_sensing.records.run_map import GridMap
from gp_active_sensing.replay.bag import Bag, BagMessage
from gp_active_sensing.topology import MapConfig
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.live import mark_of
from gp_active_sensing.util.wording import is_reported

_WORDS = {
    "float64": "double",
    "float32": "float",
    "bool": "boolean",
    "byte": "octet",
    "char": "uint8",
}
"""Names of types in rosidl, by their names in message definitions."""


class BagTypes:
    """Message types of a typestore of rosbags; implements `MessageTypes`."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def fields(self, name: str) -> Mapping[str, str]:
        """Return the fields of a type. Raises MissingDependencyError or ConfigError."""
        package, short = split_type_name(name)
        known = self._store.fielddefs
        found = known.get(f"{package}/msg/{short}")
        if found is None:
            shorts = [other.rsplit("/", 1)[1] for other in known if other.startswith(f"{package}/")]
            if not shorts:
                msg = (
                    f"message type {name!r}: neither the bag nor the standard messages define "
                    f"anything of {package}; record with a recorder that keeps definitions (MCAP "
                    "does)"
                )
                raise MissingDependencyError(msg)
            msg = (
                f"message type {name!r}: {package} has no message {short}.{suggest(short, shorts)}"
            )
            raise ConfigError(msg)
        return {field: _written(kind) for field, kind in found[1]}


def _written(kind: Any) -> str:
    """Return a field's type as rosidl writes it, such as ``sequence<double>``."""
    sort, detail = kind
    if sort.name == "BASE":
        return _WORDS.get(detail[0], str(detail[0]))
    if sort.name == "NAME":
        return str(detail)
    inner, length = detail
    return (
        f"{_written(inner)}[{length}]" if sort.name == "ARRAY" else f"sequence<{_written(inner)}>"
    )


logger = logging.getLogger(__name__)

Refuse = Callable[[str, str, str], int]


@dataclass(frozen=True)
class Topics:
    """Topics of one probe in a bag; `further` has the topics of further quantities by name."""

    reading: str
    pose: str
    twist: str = ""
    further: Mapping[str, str] = field(default_factory=dict)


class ProbeMessage(NamedTuple):
    """Message for the inbox of a probe."""

    probe: str
    what: Pose | RawReading


def find_topics(bag: Bag, topics: Mapping[str, Topics]) -> Mapping[str, Topics]:
    """Check that a bag has the topics of each probe; return these topics.

    Raises:
        ReplayError: a topic is missing; the message lists the topics of the bag.
    """
    by_name = {topic.name for topic in bag.topics}
    missing = [
        f"{name} ({kind})"
        for pair in topics.values()
        for kind, name in (("reading", pair.reading), ("pose", pair.pose))
        if name not in by_name
    ]
    if missing:
        contents = ", ".join(f"{t.name} ({t.type}, {t.count})" for t in bag.topics) or "nothing"
        msg = (
            f"bag {bag.path}: has no topic {', '.join(missing)}; it holds {contents}. Say which "
            "topics are meant: --reading-topic, --pose-topic"
        )
        raise ReplayError(msg)
    return topics


class TopicReader:
    """Reader of values and poses in the messages of a bag; unreadable messages are counted.

    Args:
        config: message types and fields.
        topics: topics of each probe.
        topology: the map.
        refuse: function that counts an unusable reading by kind, reason and probe, and returns the
            count.

    Raises:
        ConfigError: the bag lacks a configured message type or field.
        ReplayError: the definition of a type cannot be read.
    """

    def __init__(
        self,
        bag: Bag,
        config: ActiveSensingConfig,
        topics: Mapping[str, Topics],
        topology: Topology,
        refuse: Refuse,
    ) -> None:
        reading, pose = config.reading, config.pose
        self._bag = bag
        self._refuse = refuse
        self._streams: dict[str, list[tuple[str, str]]] = {}
        self._twists: dict[str, Twists] = {}
        by_name = {topic.name for topic in bag.topics}
        for name, pair in topics.items():
            self._streams.setdefault(pair.reading, []).append((name, "reading"))
            for quantity, topic in pair.further.items():
                if topic in by_name:
                    self._streams.setdefault(topic, []).append((name, f"readings.{quantity}"))
                else:
                    text = "bag %s: has no topic %s: %s is not known there"
                    logger.warning(text, bag.path, topic, quantity)
            self._streams.setdefault(pair.pose, []).append((name, "pose"))
            if pair.twist in by_name:
                self._streams.setdefault(pair.twist, []).append((name, "twist"))
                self._twists[name] = Twists(pose.twist_type)
            elif pair.twist:
                text = "bag %s: has no topic %s (pose.twist_topic): speeds are not known"
                logger.warning(text, bag.path, pair.twist)
        sensors: dict[str, ReadingConfig] = {"reading": reading}
        sensors |= {f"readings.{quantity}": each for quantity, each in config.further.items()}
        types = {"pose": pose.type, "twist": pose.twist_type}
        self._check_types({**types, **{key: each.type for key, each in sensors.items()}})
        self._read_value = {
            (topic, key): ValueReader(BagTypes(bag.typestore(topic)), sensors[key], key)
            for topic, uses in self._streams.items()
            for _, key in uses
            if key in sensors
        }
        self._read_pose = pose_reader(
            pose.type,
            datum=pose.origin(topology.datum),
            frame=topology.frame,
            covariance=pose.covariance == "use",
            zero_altitude=pose.zero_altitude,
            heights=topology.heights is not None,
        )
        self.unreadable: Counter[str] = Counter()
        """Number of messages of each topic that cannot be decoded."""
        self.why = ""
        """Reason why the first unreadable message cannot be decoded."""

    def _check_types(self, types: Mapping[str, str]) -> None:
        by_name = {topic.name: topic.type for topic in self._bag.topics}
        for topic, uses in self._streams.items():
            for _, key in uses:
                expected = "/msg/".join(split_type_name(types[key]))
                if by_name.get(topic, expected) != expected:
                    name = "pose.twist_type" if key == "twist" else f"{key}.type"
                    msg = (
                        f"{name}: topic {topic} of bag {self._bag.path} is {by_name[topic]}, "
                        f"expected {expected}; give --set {name}={by_name[topic]}"
                    )
                    raise ConfigError(msg)

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics to read from the bag."""
        return tuple(self._streams)

    def read(self, message: BagMessage, now_ns: int) -> list[ProbeMessage]:
        """Return the content of a message; [] for an unreadable message, which is counted."""
        try:
            streams = self._streams[message.topic]
            read = all(key.startswith("reading") for _, key in streams)
            most = MOST_BYTES["reading" if read else "pose"]
            if len(message.data) > most:
                msg = f"a message of {message.topic} has {len(message.data)} bytes, at most {most}"
                raise ReplayError(msg)
            content = self._bag.decode(message)
            found = [self._convert(message.topic, *stream, content, now_ns) for stream in streams]
        except (ReplayError, AttributeError, TypeError, ValueError, OverflowError) as error:
            self.unreadable[message.topic] += 1
            if self.unreadable[message.topic] == 1:
                self.why = str(error)
                logger.warning("%s; such messages are left out and counted", error)
            return []
        return [envelope for envelope in found if envelope is not None]

    def _convert(
        self, topic: str, probe: str, key: str, content: object, now_ns: int
    ) -> ProbeMessage | None:
        if key == "twist":
            self._twists[probe].note(content, now_ns)
            return None
        if key == "pose":
            pose = self._read_pose(content)
            pose = dataclasses.replace(pose, stamp_ns=pose.stamp_ns or now_ns)
            if probe in self._twists:
                pose = self._twists[probe].beside(pose)
            return ProbeMessage(probe, pose)
        try:
            value = self._read_value[topic, key].read(content)
        except ReadingError as error:
            count = self._refuse("readings", error.reason, probe)
            if is_reported(count):
                what = f"a message of topic {topic}"
                logger.warning("%s %s: not used (%s, %d so far)", what, error, error.reason, count)
            return None
        raw = RawReading(
            value.stamp_ns or now_ns,
            value.value,
            value.noise_variance,
            quantity=key.partition(".")[2],
        )
        return ProbeMessage(probe, raw)


class BagMaps:
    """Maps on a topic of a bag; an unreadable map is left out with a warning.

    Args:
        config: settings of the map.
        topic: name of the topic; "" = the topic of `config`.

    Raises:
        ReplayError: the bag does not have the topic, or it has another type.
    """

    def __init__(self, bag: Bag, config: MapConfig, topic: str = "") -> None:
        self._bag, self._config = bag, config
        by_name = {t.name: t.type for t in bag.topics}
        wanted = (topic,) if topic else (config.topic, f"/{config.topic.lstrip('/')}")
        self.topic = next((name for name in wanted if name in by_name), "")
        if not self.topic:
            grids = ", ".join(name for name, kind in by_name.items() if kind == MAP_TYPE) or "none"
            msg = (
                f"bag {bag.path}: has no topic {wanted[-1]}, from which the map comes (map.topic); "
                f"topics of {MAP_TYPE} in it: {grids}. Record it, too, or give the map as a file: "
                "--map"
            )
            raise ReplayError(msg)
        if by_name[self.topic] != MAP_TYPE:
            msg = (
                f"bag {bag.path}: topic {self.topic} is {by_name[self.topic]}, not "
                f"{MAP_TYPE}; set map.topic"
            )
            raise ReplayError(msg)

    def read(self, message: BagMessage) -> GridMap | None:
        """Return the map of a message; None for an unreadable message."""
        try:
            check_size(message.data)
            return read_map(self._bag.decode(message))
        except (MapError, ReplayError, AttributeError, TypeError, ValueError) as error:
            logger.warning("a map of topic %s is left out: %s", self.topic, error)
            return None

    def first(self) -> FirstMap:
        """Return the first map with which a mission can begin. Raises ReplayError without a map."""
        why = "there is no message"
        for found in self._all():
            try:
                return FirstMap.of(self._config, found)
            except (MapError, ConfigError) as error:
                why = str(error)
        msg = f"bag {self._bag.path}: no map of topic {self.topic} can be used: {why}"
        raise ReplayError(msg)

    def marked(self, marks: Collection[str]) -> dict[str, GridMap]:
        """Return the maps whose checksums are `marks`. Raises ReplayError if a map is missing."""
        found = {mark_of(m.grid): m for m in self._all()}
        if missing := sorted(set(marks) - set(found)):
            msg = (
                f"bag {self._bag.path}: {len(missing)} of the {len(set(marks))} maps that the "
                f"mission used are not in topic {self.topic}; it cannot be done again. Begin to "
                "record before the node starts"
            )
            raise ReplayError(msg)
        return {mark: found[mark] for mark in marks}

    def _all(self) -> Iterator[GridMap]:
        for message in self._bag.messages([self.topic]):
            if (found := self.read(message)) is not None:
                yield found
