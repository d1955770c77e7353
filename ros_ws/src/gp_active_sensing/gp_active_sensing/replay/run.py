"""Replaying a bag: from its path to a run directory."""

from __future__ import annotations

import csv
import dataclasses
import io
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.errors import ConfigError, ReplayError
from gp_active_sensing.mission.clocks import VirtualClock
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents, build_parts
from gp_active_sensing.mission.live_map import FirstMap
from gp_active_sensing.records.journal import seal
from gp_active_sensing.records.run_directory import JOURNAL, RunDirectory, json_ready
from gp_active_sensing.replay.bag import Bag
from gp_active_sensing.replay.driver import Driver
from gp_active_sensing.replay.maps import BagMaps
from gp_active_sensing.replay.options import ReplayOptions, check_program, settled, topics_of
from gp_active_sensing.replay.recorded import MessageLookup, Recording, find_recording
from gp_active_sensing.replay.stages import Show
from gp_active_sensing.replay.topics import TopicReader, Topics, find_topics
from gp_active_sensing.replay.verify import ReproducibilityCheck
from gp_active_sensing.sim.world import known_of
from gp_active_sensing.topology.kept_maps import GridMap
from gp_active_sensing.topology.stored import check_places
from gp_active_sensing.types import Cost
from gp_active_sensing.util.files import write_whole

__all__ = ["MAP", "Replayed", "replay_bag"]

logger = logging.getLogger(__name__)

_NOTHING = ReplayOptions()
MAP = "map.csv"
"""The final map, in the run directory."""


@dataclass(frozen=True)
class Replayed:
    """What a replay left.

    Args:
        run_dir: records, journal, summary and the final map.
        summary: as in ``summary.json``.
    """

    run_dir: Path
    summary: dict[str, Any]


def replay_bag(
    path: Path | str,
    out: Path,
    given: ReplayOptions = _NOTHING,
    *,
    salvage: bool = False,
    belief_only: bool = False,
    show: Show = lambda record: None,
    begin: Callable[[str, int], Callable[[int], None]] = lambda what, total: lambda read: None,
) -> Replayed:
    """Replay a bag through the code of the node.

    A recorded mission of ours is done again and compared, unless something is said that makes it
    another one; otherwise the mission follows the probe.

    Args:
        path: rosbag2 folder, .mcap or .db3 file.
        out: new directory for the records.
        given: configuration.
        salvage: read what can be read of a damaged bag.
        belief_only: decide nothing; only learn.
        show: takes each record.
        begin: told what is replayed and how many messages there are; returns what is told how
            many have been read.

    Raises:
        ReplayError: a bag that cannot be read, or has not what is needed.
        ActiveSensingError: a configuration, map or directory that cannot be used.
    """
    with Bag(path, salvage=salvage) as bag:
        recording = find_recording(bag)
        again = recording is not None and not belief_only and not given.changes
        base = None if recording is None else recording.base
        held = {topic.name: topic.type for topic in bag.topics}
        config, scenario = settled(given, base, held, follow=not again)
        if not belief_only:
            check_program(given, base, config)
        if config.pose.type == "tf" and not again:
            msg = "pose.type: tf cannot be replayed; name a pose topic of the bag: --pose-topic"
            raise ConfigError(msg)
        if again and recording is not None:
            topics = dict(recording.topics)  # its journal has what they lack
        else:
            topics = dict(find_topics(bag, topics_of(given, base, config)))
        count = sum(t.count for t in bag.topics if t.name in _names(topics))
        if not count and not again:
            msg = f"bag {bag.path}: no messages on {', '.join(sorted(_names(topics)))}"
            raise ReplayError(msg)
        clockwork = VirtualClock()
        config = dataclasses.replace(config, run_dir=str(out))
        maps: BagMaps | None = None
        marked: dict[str, GridMap] = {}
        first: FirstMap | None = None
        if config.map.topic:
            told = recording.map if again and recording is not None else {}
            maps = BagMaps(bag, config.map, str(told.get("topic", "")))
            if again and recording is not None and recording.marks:
                marked = maps.marked(recording.marks)
                first = FirstMap.of(config.map, marked[recording.marks[0]])
            else:
                first = maps.first()
        built = _Builder(config, scenario, clockwork, first)
        parts = built()
        topology = parts.mission.loop.topology
        if again and recording is not None:
            check_places(recording.setup, topology, f"bag {bag.path}")
        heights = topology.heights is not None
        feed = TopicReader(bag, config, topics, topology.frame, topology.datum, heights=heights)
        driver: ReproducibilityCheck | Driver
        if again and recording is not None:
            _say_lost(recording)
            progress = begin("again", count)
            lookout = MessageLookup(bag, feed)
            driver = ReproducibilityCheck(
                parts, built.go_on, config, lookout, clockwork, maps=marked, show=show
            )
            status = driver.run(recording, progress)
            read = lookout.read
        else:
            progress = begin("belief" if belief_only else "decisions", count)
            driver = Driver(parts, feed, clockwork, decide=not belief_only, maps=maps, show=show)
            status = driver.run(bag, progress)
            read = driver.read
        details = {
            "bag": str(bag.path),
            "messages": read,
            "unreadable": dict(feed.unreadable),
            "lost": None if bag.loss is None else bag.loss.lost,
            "damage": [] if bag.loss is None else list(bag.loss.damage),
            **driver.outcome(),
        }
        driven = driver.driven if belief_only and isinstance(driver, Driver) else None
        return _written(driver.parts, out, status, details, driven)


class _Builder:
    """Builds the mission, and builds it again where another process went on with it."""

    def __init__(
        self,
        config: ActiveSensingConfig,
        scenario: dict[str, Any] | None,
        clockwork: VirtualClock,
        first: FirstMap | None,
    ) -> None:
        self._config, self._scenario, self._clockwork = config, scenario, clockwork
        self._first = first

    def __call__(self) -> MissionComponents:
        config = dataclasses.replace(self._config, resume=False)
        return build_parts(
            config,
            self._scenario,
            clock=self._clockwork,
            driver="replay",
            known_of=known_of,
            first=self._first,
        )

    def go_on(self, journal: Sequence[Mapping[str, Any]]) -> MissionComponents:
        """Return the mission as another process would have gone on with it."""
        with RunDirectory.begin_again(self._config.run_dir) as run:
            lines = [seal(json_ready(dict(event)), n) for n, event in enumerate(journal, start=1)]
            write_whole(run.path / JOURNAL, b"".join(lines))
        config = dataclasses.replace(self._config, resume=True)
        return build_parts(
            config,
            self._scenario,
            clock=self._clockwork,
            driver="replay",
            known_of=known_of,
            first=self._first,
        )


def _names(topics: dict[str, Topics]) -> set[str]:
    return {name for pair in topics.values() for name in (pair.reading, pair.pose)}


def _say_lost(recording: Recording) -> None:
    if recording.lost:
        logger.warning(
            "%d parts of the journal are not in the bag; what is after them may differ",
            recording.lost,
        )


def _written(
    parts: MissionComponents, out: Path, status: str, details: dict[str, Any], driven: Cost | None
) -> Replayed:
    """Write summary and final map; what was driven is the mission's, where nothing else is said."""
    recorder = parts.recorder
    summary = recorder.summary(parts.mission, status)
    summary["latency"] = {}  # there is none: nobody waited
    if driven is not None:
        summary["metres"], summary["seconds"] = driven
    summary["replay"] = details
    if recorder.run is None:
        msg = f"{out}: the run directory is gone"
        raise ReplayError(msg)
    recorder.run.write_summary(summary)
    recorder.close()
    write_whole(out / MAP, _map_text(parts))
    return Replayed(out, summary)


def _map_text(parts: MissionComponents) -> str:
    """Return the map as a table: place, where it is, mean, standard deviation, readings."""
    loop = parts.mission.loop
    mean, variance = loop.belief.predict()
    std = np.sqrt(np.maximum(variance, 0.0))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    axes = ("x", "y", "z")[: loop.topology.points.shape[1]]
    writer.writerow(("place", *axes, "mean", "std", "observed"))
    for place, name in enumerate(loop.topology.names):
        where = loop.topology.points[place].tolist()
        observed = int(loop.belief.observed[place])
        writer.writerow((name, *where, float(mean[place]), float(std[place]), observed))
    return text.getvalue()
