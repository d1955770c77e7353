"""Read the recorded mission in a bag: what its node published on ``~/journal``."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gp_active_sensing.errors import ReplayError
from gp_active_sensing.replay.bag import Bag, BagMessage
from gp_active_sensing.replay.options import ReplayDefaults, as_recorded
from gp_active_sensing.replay.topics import Topics
from gp_active_sensing.util.wording import moment

__all__ = ["Frame", "Recording", "find_recording"]

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
    """

    topic: str
    base: ReplayDefaults
    frames: list[Frame] = field(default_factory=list)
    lost: int = 0

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
                    found.append(Recording(topic, _base(bag, setup_of)))
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
        return ReplayDefaults(as_recorded(setup["config"]), setup.get("scenario"), topics)
    except (KeyError, TypeError, AttributeError) as error:
        msg = (
            f"bag {bag.path}: the journal's setup lacks {error}; it is of another version. Replay "
            "it with --scenario or --params"
        )
        raise ReplayError(msg) from error
