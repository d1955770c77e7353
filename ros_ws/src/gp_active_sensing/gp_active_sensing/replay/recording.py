"""Find the recorded mission in a bag by the frames on ``~/journal`` (`mission.input_log`)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gp_active_sensing.errors import ReplayError
from gp_active_sensing.records.events import MapChanged
from gp_active_sensing.replay.bag import Bag, BagMessage
from gp_active_sensing.replay.topics import Topics
from gp_active_sensing.util.wording import moment

logger = logging.getLogger(__name__)

JOURNAL = "journal"
STRING = "std_msgs/msg/String"


@dataclass
class Recording:
    """Mission whose journal is recorded as frames on a topic.

    Args:
        config: parameters of the node.
        scenario: scenario of the mission; None = no scenario.
        topics: topics of each probe.
        topic: topic of the frames.
        setup: first frame.
        frames: all frames of the mission's journal.
        lost: number of frames that are not in the bag.
    """

    config: Mapping[str, Any]
    scenario: Mapping[str, Any] | None
    topics: Mapping[str, Topics]
    topic: str = ""
    setup: Mapping[str, Any] = field(default_factory=dict)
    frames: list[Mapping[str, Any]] = field(default_factory=list)
    lost: int = 0

    @property
    def map_topic(self) -> str:
        """Topic of the mission's maps; "" for a map from a file."""
        return str((self.setup.get("map") or {}).get("topic", ""))

    @property
    def marks(self) -> list[str]:
        """Checksums of the used maps, in order; [] for a map from a file."""
        if not (first := self.setup.get("map")):
            return []
        events = (event for frame in self.frames for event in frame.get("events", ()))
        later = [str(event["mark"]) for event in events if event.get("event") == MapChanged.KIND]
        return [str(first["mark"]), *later]


def find_recording(bag: Bag) -> Recording | None:
    """Return the longest mission in a bag, or None. Raises ReplayError for an unreadable frame."""
    topics = [t.name for t in bag.topics if t.type == STRING]
    topics = [name for name in topics if name.rsplit("/", 1)[-1] == JOURNAL]
    found = [recording for name in topics for recording in _read(bag, name)]
    best = max(found, key=lambda recording: len(recording.frames), default=None)
    if best is not None and len(found) > 1:
        text = "bag %s holds %d missions; replaying the longest, of %s"
        logger.warning(text, bag.path, len(found), best.topic)
    return best


def _read(bag: Bag, topic: str) -> list[Recording]:
    found: list[Recording] = []
    setup: Any = None
    number = 0
    for message in bag.messages([topic]):
        for frame in _frames(bag, message):
            if frame is None:
                return found  # a topic of another program
            if "setup" not in frame:
                this = int(frame["n"])
                if found and this > number:  # else its setup is missing, or the frame is repeated
                    found[-1].lost += this - number - 1
                    found[-1].frames.append(frame)
                    number = this
            elif frame["setup"] != setup:  # else published again for a late subscriber
                setup, number = frame["setup"], 0
                if found and setup.get("earlier"):  # a restarted mission
                    found[-1].frames.append(frame)
                else:
                    found.append(_begun(bag, topic, setup))
    return found


def _frames(bag: Bag, message: BagMessage) -> Iterator[Any]:
    """Yield the frames in a message, or None if the message has other content."""
    try:
        frames = json.loads(bag.decode(message).data)
    except (ValueError, ReplayError) as error:
        if bag.salvage:
            when = moment(message.stamp_ns)
            logger.warning("a journal message at %s is damaged: %s", when, error)
            return
        if isinstance(error, ReplayError):
            raise
        frames = None
    if isinstance(frames, list) and all(isinstance(f, dict) and "n" in f for f in frames):
        yield from frames
    else:
        yield None


def _begun(bag: Bag, topic: str, setup: Mapping[str, Any]) -> Recording:
    """Return the mission whose first frame is `setup`. Raises ReplayError for an unknown format."""
    try:
        topics = {
            str(name): Topics(
                str(pair["reading"]),
                str(pair["pose"]),
                str(pair.get("twist", "")),
                {str(of): str(topic) for of, topic in pair.get("further", {}).items()},
            )
            for name, pair in setup["topics"].items()
        }
        return Recording(setup["config"], setup.get("scenario"), topics, topic, setup)
    except (KeyError, TypeError, AttributeError) as error:
        msg = (
            f"bag {bag.path}: the journal's setup lacks {error}; it is of another version. Replay "
            "it with --scenario or --params"
        )
        raise ReplayError(msg) from error
