"""Read the recorded mission in a bag (``~/journal``), and find the messages that its node used."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gp_active_sensing.errors import ReplayError
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.records.events import MapChanged
from gp_active_sensing.replay.bag import Bag, BagMessage
from gp_active_sensing.replay.options import ReplayDefaults, as_recorded
from gp_active_sensing.replay.topics import TopicReader, Topics
from gp_active_sensing.util.wording import moment

__all__ = ["Frame", "MessageLookup", "Recording", "find_recording"]


What: TypeAlias = Pose | RawReading
AHEAD_NS = 60_000_000_000
"""How much later than the node the recorder may have had a message [ns of the bag]."""
MOST = 100_000
"""Messages of a topic that wait to be asked for; the node did not use what is older."""


class MessageLookup:
    """Reads on in a bag until a message turns up.

    A message with a stamp is known by it, one without by its turn.

    Args:
        bag: which is open.
        feed: reads the messages.
    """

    def __init__(self, bag: Bag, feed: TopicReader) -> None:
        self._messages: Iterator[BagMessage] = bag.messages(feed.topics)
        self._feed = feed
        self._next: BagMessage | None = next(self._messages, None)
        self._stamped: dict[tuple[str, str], OrderedDict[int, deque[What]]] = {}
        self._unstamped: dict[tuple[str, str], deque[What]] = {}
        self.read = 0
        """Messages."""

    def find(self, noted: What, probe: str, until_ns: int) -> What | None:
        """Return the message that the node used, None when the bag does not have it.

        Args:
            noted: what it was, by the journal.
            probe: whose.
            until_ns: when the node's use of it was recorded.
        """
        key = (_kind(noted), probe)
        if key not in self._feed.kinds:
            return None
        while True:
            pool = self._stamped.setdefault(key, OrderedDict())
            if waiting := pool.get(noted.stamp_ns):
                # A publisher may stamp several alike.
                found = noted if noted in waiting else waiting[0]
                waiting.remove(found)
                if not waiting:
                    del pool[noted.stamp_ns]
                return _as_noted(found, noted)
            if queue := self._unstamped.get(key):
                return dataclasses.replace(queue.popleft(), stamp_ns=noted.stamp_ns)
            if self._next is None or self._next.stamp_ns > until_ns + AHEAD_NS:
                return None
            self._read_on(self._next)

    def _read_on(self, message: BagMessage) -> None:
        self.read += 1
        for heard in self._feed.read(message, message.stamp_ns):
            what = heard.what
            key = (_kind(what), heard.probe)
            if not heard.stamped:
                self._unstamped.setdefault(key, deque(maxlen=MOST)).append(what)
                continue
            pool = self._stamped.setdefault(key, OrderedDict())
            pool.setdefault(what.stamp_ns, deque()).append(what)
            if len(pool) > MOST:
                pool.popitem(last=False)
        self._next = next(self._messages, None)


def _as_noted(found: What, noted: What) -> What:
    """Return a message of the bag with what the node knew of it besides, by the journal.

    That is what tf said, and how sure of a pose it took the localisation to be.
    """
    if isinstance(found, RawReading) and isinstance(noted, RawReading):
        return dataclasses.replace(found, mount=noted.mount)
    if isinstance(found, Pose) and isinstance(noted, Pose):
        if found.frame != noted.frame:
            return noted
        return dataclasses.replace(
            found,
            variance=noted.variance,
            turn_variance=noted.turn_variance,
            z_variance=noted.z_variance,
        )
    return found


def _kind(what: What) -> str:
    return "pose" if isinstance(what, Pose) else "reading"


logger = logging.getLogger(__name__)

JOURNAL = "journal"
STRING = "std_msgs/msg/String"


@dataclass(frozen=True)
class Frame:
    """One frame of a mission's trace; see `mission.input_log`.

    Args:
        stamp_ns: when it was recorded.
        content: as it was published.
    """

    stamp_ns: int
    content: Mapping[str, Any]

    @property
    def events(self) -> list[dict[str, Any]]:
        """Of the journal."""
        return [dict(event) for event in self.content.get("events", ())]


@dataclass
class Recording:
    """A recorded mission.

    Args:
        topic: where its frames were published.
        base: its configuration.
        frames: in order.
        lost: frames that are not in the bag.
        map: topic and mark of the map it began with, where maps came by a topic; {} elsewhere.
        setup: all that was said before the first frame.
    """

    topic: str
    base: ReplayDefaults
    frames: list[Frame] = field(default_factory=list)
    lost: int = 0
    map: Mapping[str, Any] = field(default_factory=dict)
    setup: Mapping[str, Any] = field(default_factory=dict)

    @property
    def marks(self) -> list[str]:
        """Of the maps that the mission used, in their order; [] where none came by a topic."""
        if not self.map:
            return []
        later = [str(e["mark"]) for e in self.events if e.get("event") == MapChanged.KIND]
        return [str(self.map["mark"]), *later]

    @property
    def topics(self) -> dict[str, Topics]:
        """Of every probe, also of those that joined later."""
        found = dict(self.base.topics)
        for frame in self.frames:
            for name in frame.content.get("config", {}).get("probes", ()):
                found.setdefault(name, Topics(f"/{name}/reading", f"/{name}/pose"))
        return found

    @property
    def events(self) -> Iterator[dict[str, Any]]:
        """All events."""
        for frame in self.frames:
            yield from frame.events


def find_recording(bag: Bag) -> Recording | None:
    """Return the mission that a bag holds; the longest where it holds several.

    Raises:
        ReplayError: frames that are none (of another version, or damaged).
    """
    names = [t.name for t in bag.topics if t.name.rsplit("/", 1)[-1] == JOURNAL]
    names = [t.name for t in bag.topics if t.name in names and t.type == STRING]
    found = [recording for name in names for recording in _read(bag, name)]
    if not found:
        return None
    best = max(found, key=lambda recording: len(recording.frames))
    if len(found) > 1:
        logger.warning(
            "bag %s holds %d missions; the longest is replayed, of %s",
            bag.path,
            len(found),
            best.topic,
        )
    return best


def _read(bag: Bag, topic: str) -> list[Recording]:
    """Return the missions of a topic, one after the other."""
    found: list[Recording] = []
    setup_of: Any = None
    number = 0
    for message in bag.messages([topic]):
        for content in _frames(bag, message):
            if content is None:
                return found  # a topic of somebody else's
            if "setup" not in content:
                number = _add(found, message.stamp_ns, content, number)
            elif content["setup"] != setup_of:  # else: said again to a subscriber that came later
                setup_of, number = content["setup"], 0
                if found and setup_of.get("earlier"):
                    found[-1].frames.append(Frame(message.stamp_ns, content))
                else:
                    where = setup_of.get("map") or {}
                    found.append(Recording(topic, _base(bag, setup_of), map=where, setup=setup_of))
    return found


def _add(found: list[Recording], stamp_ns: int, content: Mapping[str, Any], number: int) -> int:
    """Add a frame to the newest mission; return its number."""
    this = int(content["n"])
    if not found or this <= number:  # its beginning is not in the bag; or it came twice
        return number
    found[-1].lost += this - number - 1
    found[-1].frames.append(Frame(stamp_ns, content))
    return this


def _frames(bag: Bag, message: BagMessage) -> Iterator[Any]:
    """Yield the frames of a message; None when it is something else."""
    try:
        frames = json.loads(bag.decode(message).data)
    except (ValueError, ReplayError) as error:
        if bag.salvage:
            logger.warning(
                "a journal message at %s is damaged: %s", moment(message.stamp_ns), error
            )
            return
        if isinstance(error, ReplayError):
            raise
        frames = None
    if isinstance(frames, list) and all(isinstance(f, dict) and "n" in f for f in frames):
        yield from frames
    else:
        yield None


def _base(bag: Bag, setup: Mapping[str, Any]) -> ReplayDefaults:
    try:
        topics = {
            str(name): Topics(str(pair["reading"]), str(pair["pose"]))
            for name, pair in setup["topics"].items()
        }
        config = as_recorded(setup["config"], setup)
        return ReplayDefaults(config, setup.get("scenario"), topics)
    except (KeyError, TypeError, AttributeError) as error:
        msg = (
            f"bag {bag.path}: the journal's setup lacks {error}; it is of another version. Replay "
            "it with --scenario or --params"
        )
        raise ReplayError(msg) from error
