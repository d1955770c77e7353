"""Read rows from a rosbag2 recording: readings, and where they were taken."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.errors import ConfigError, ReadingError
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.replay.bag import Bag
from gp_active_sensing.replay.options import ReplayDefaults, ReplayOptions, settled, topics_of
from gp_active_sensing.replay.topics import TopicReader, Topics, find_topics
from gp_active_sensing.replay.verify import find_recording
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.data.dataset import Dataset, MemmapWriter, ReadOptions, check_inputs

INPUTS = ("x", "y", "hours")
"""Possible inputs: position [m] and time [h] of a reading."""
_CHUNK = 4096


def is_bag(data: str) -> bool:
    """Return whether a path, or the name of a shipped bag, is one."""
    path = Bag(data).path
    if path.is_dir():
        files = (file.suffix for file in path.iterdir())
        return (path / "metadata.yaml").is_file() or any(s in (".mcap", ".db3") for s in files)
    return path.suffix.lower() in (".mcap", ".db3")


def read_bag(
    path: Path | str, inputs: Sequence[str], given: ReplayOptions, how: ReadOptions
) -> Dataset:
    """Return every reading of a bag, at the position of the probe at its time; no map is needed.

    Args:
        path: rosbag2 folder, .mcap or .db3 file, or the name of a shipped one.
        inputs: (d,) of `INPUTS`; hours are counted since the first reading.
        given: topics, message types and fields; sections `reading` and `pose` of its overrides.
        how: scale and transform of the values, and the like.

    Raises:
        ConfigError: other inputs, or a message type or field that the bag does not have.
        ReplayError: a bag that cannot be read.
        ReadingError: readings that kernels cannot be learned from, see `Dataset.checked`.
    """
    check_inputs(inputs, INPUTS, "a bag has")
    with Bag(path) as bag:
        recording = find_recording(bag)
        base = None if recording is None else recording.base
        held = {topic.name: topic.type for topic in bag.topics}
        nowhere = ReplayDefaults(
            {"map": {"kind": "line", "count": 2}}, None, {}
        )  # a node has some map
        config, _ = settled(given, base or nowhere, held, follow=True)
        if config.pose.type == "tf":
            msg = "pose.type: tf cannot be read; name a pose topic of the bag: --pose-topic"
            raise ConfigError(msg)
        topics = find_topics(bag, topics_of(given, base, config))
        feed = TopicReader(bag, config, topics, frame="map")
        tracks = _tracks(bag, feed, topics)
        with closing(MemmapWriter(len(inputs), how.folder)) as store:
            found = _Found(inputs, how, store)
            _read(bag, feed, topics, tracks, round(1e9 * config.pose.max_age), found)
            X, y = store.arrays()
    notes = [f"{n} left out: readings {why}" for why, n in found.lost.items() if n]
    notes += [f"{n} left out: readings counted as {why}" for why, n in feed.refused.items()]
    unreadable = sum(feed.unreadable.values())
    if unreadable:
        notes.append(f"{unreadable} left out: messages that cannot be read")
    recipe: dict[str, Any] = {
        "kind": "bag",
        "scale": how.scale,
        "transform": how.transform,
        "times": {},
    }
    if "hours" in inputs and found.first_ns is not None:
        stamp = _iso(found.first_ns)
        notes.append(f"hours are counted since {stamp}")
        recipe["times"] = {"hours": stamp}
    unit = config.reading.field.rsplit(".", 1)[-1]
    rows = Dataset(X, y, tuple(inputs), unit, str(bag.path), tuple(notes), recipe)
    return rows.checked(held_out=how.held_out)


@dataclass
class _Found:
    """Inputs of a bag, as they are found."""

    inputs: Sequence[str]
    how: ReadOptions
    store: MemmapWriter
    first_ns: int | None = None
    lost: dict[str, int] = field(default_factory=dict)

    def lose(self, why: str, which: Any) -> None:
        """Count readings (m,) that are not used."""
        self.lost[why] = self.lost.get(why, 0) + int(which.sum())

    def add(self, x: FloatArray, y: FloatArray, stamps: Any, values: FloatArray) -> None:
        """Add readings (m,) with positions and stamps."""
        if self.first_ns is None:
            given = (self.how.origins or {}).get("hours")
            # In whole microseconds, as the recipe has it: read again, the hours are the same.
            self.first_ns = int(stamps[0]) // 1000 * 1000 if given is None else _ns(given)
        hours = (stamps - np.int64(self.first_ns)) / 3.6e12
        columns = {"x": x, "y": y, "hours": hours}
        out = self.how.output(values, "a reading")
        self.store.add(np.column_stack([*(columns[name] for name in self.inputs), out]))


def _tracks(bag: Bag, feed: TopicReader, topics: Mapping[str, Topics]) -> dict[str, _Track]:
    """Return where each probe was."""
    tracks = {name: _Track() for name in topics}
    names = {pair.pose for pair in topics.values()}
    frames: set[str] = set()
    for message in bag.messages(names):
        for heard in feed.read(message, message.stamp_ns):
            if isinstance(heard.what, Pose):
                tracks[heard.probe].add(heard.what)
                frames.add(heard.what.frame.lstrip("/"))
    if len(frames) > 1:
        msg = (
            f"bag {bag.path}: poses are in frames {', '.join(sorted(frames))}; expected one. Say "
            "which topic is meant with --pose-topic"
        )
        raise ReadingError("wrong_frame", msg)
    return tracks


class _Track:
    """Positions of a probe by time; 24 bytes each."""

    def __init__(self) -> None:
        self._stamps, self._x, self._y = array("q"), array("d"), array("d")
        self._sorted: tuple[Any, FloatArray, FloatArray] | None = None

    def add(self, pose: Pose) -> None:
        if math.isfinite(pose.x) and math.isfinite(pose.y):
            self._stamps.append(pose.stamp_ns)
            self._x.append(pose.x)
            self._y.append(pose.y)

    def at(self, stamps: Any, max_age_ns: int) -> tuple[FloatArray, FloatArray, Any]:
        """Return x, y (m,) at times, and whether a pose is near enough, as `PoseTrack.at` does."""
        if self._sorted is None:
            order = np.argsort(np.array(self._stamps, dtype=np.int64), kind="stable")
            known = (np.array(column)[order] for column in (self._stamps, self._x, self._y))
            self._sorted = tuple(known)  # type: ignore[assignment]
        assert self._sorted is not None
        times, x, y = self._sorted
        if not len(times):
            nothing = np.zeros(len(stamps))
            return nothing, nothing, nothing.astype(np.bool_)
        after = np.searchsorted(times, stamps, side="right")
        before = np.maximum(after - 1, 0)
        follows = np.minimum(after, len(times) - 1)
        apart = np.minimum(np.abs(stamps - times[before]), np.abs(times[follows] - stamps))
        # Relative to the first pose: nanoseconds of a date do not fit into a float.
        now, then = (stamps - times[0]).astype(np.float64), (times - times[0]).astype(np.float64)
        near = (after > 0) & (apart <= max_age_ns)
        return np.interp(now, then, x), np.interp(now, then, y), near


def _read(
    bag: Bag,
    feed: TopicReader,
    topics: Mapping[str, Topics],
    tracks: Mapping[str, _Track],
    max_age_ns: int,
    found: _Found,
) -> None:
    """Add every reading that has a position."""
    pending: dict[str, list[RawReading]] = {name: [] for name in topics}

    def flush(name: str) -> None:
        readings, pending[name] = pending[name], []
        values = np.array([r.value for r in readings], dtype=np.float64)
        stamps = np.array([r.stamp_ns for r in readings], dtype=np.int64)
        x, y, near = tracks[name].at(stamps, max_age_ns)
        finite = np.isfinite(values)
        found.lose("that are no finite number", ~finite)
        why = f"without a pose within {1e-9 * max_age_ns:g} s (pose.max_age)"
        found.lose(why, finite & ~near)
        kept = finite & near
        if kept.any():
            found.add(x[kept], y[kept], stamps[kept], values[kept])

    for message in bag.messages({pair.reading for pair in topics.values()}):
        for heard in feed.read(message, message.stamp_ns):
            if isinstance(heard.what, RawReading):
                pending[heard.probe].append(heard.what)
                if len(pending[heard.probe]) >= _CHUNK:
                    flush(heard.probe)
    for name in topics:
        if pending[name]:
            flush(name)


def _iso(stamp_ns: int) -> str:
    seconds, rest = divmod(stamp_ns, 1_000_000_000)
    found = datetime.fromtimestamp(seconds, timezone.utc)
    return found.replace(microsecond=rest // 1000).isoformat()


def _ns(text: str) -> int:
    apart = datetime.fromisoformat(text) - datetime.fromtimestamp(0, timezone.utc)
    return (apart // timedelta(microseconds=1)) * 1000
