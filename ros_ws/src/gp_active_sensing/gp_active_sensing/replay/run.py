"""Replay a bag into a run directory.

A recorded mission is repeated and compared (`replay.verify`). For any other bag, the route of the
probe is fixed. At each observed place, the mission computes the next place that it would have
chosen.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import logging
import time
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
from gp_active_sensing.mission.requests import DecisionRequest
from gp_active_sensing.records.journal import seal
from gp_active_sensing.records.run_directory import JOURNAL, RunDirectory
from gp_active_sensing.records.run_map import check_places
from gp_active_sensing.replay.bag import Bag, BagMessage
from gp_active_sensing.replay.options import ReplayOptions, check_program, settled, topics_of
from gp_active_sensing.replay.recording import Recording, find_recording
from gp_active_sensing.replay.stages import ReplayStages, Show
from gp_active_sensing.replay.topics import BagMaps, TopicReader, find_topics
from gp_active_sensing.replay.verify import ReproducibilityCheck
from gp_active_sensing.sim.world import field_knowledge
from gp_active_sensing.types import Cost
from gp_active_sensing.util.files import json_ready, write_whole
from gp_active_sensing.util.tables import write_rows

logger = logging.getLogger(__name__)

_NOTHING = ReplayOptions()
MAP = "map.csv"
"""Name of the final map in the run directory."""
ENDED = "the bag ends here"

Progress = Callable[[int], None]
Begin = Callable[[str, int], Progress]


@dataclass(frozen=True)
class ReplayResult:
    """Result of a replay."""

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
    begin: Begin = lambda what, total: lambda read: None,
) -> ReplayResult:
    """Replay a bag with the code of the node.

    A recorded mission is repeated and compared. With changed options, and for other bags, the
    mission follows the recorded route of the probe.

    Args:
        path: rosbag2 folder, .mcap or .db3 file.
        out: new directory for the records.
        given: configuration.
        salvage: True = read the intact parts of a damaged bag.
        belief_only: True = estimate the map without planning.
        show: callback for each record.
        begin: callback that receives the kind of replay and its number of messages or frames. It
            returns a callback that receives the number read so far.

    Raises:
        ReplayError: the bag cannot be read, or lacks a topic or a reading.
        ActiveSensingError: the configuration, the map or the directory cannot be used.
    """
    with Bag(path, salvage=salvage) as bag:
        recording = find_recording(bag)
        again = recording is not None and not belief_only and not given.changes
        types = {topic.name: topic.type for topic in bag.topics}
        config, scenario = settled(given, recording, types, follow=not again)
        if not belief_only:
            check_program(given, recording, config)
        config = dataclasses.replace(config, run_dir=str(out))
        if again and recording is not None:
            return _repeated(bag, recording, config, scenario, show, begin)
        if config.pose.type == "tf":
            msg = "pose.type: tf cannot be replayed; name a pose topic of the bag: --pose-topic"
            raise ConfigError(msg)
        topics = find_topics(bag, topics_of(given, recording, config))
        names = {name for pair in topics.values() for name in (pair.reading, pair.pose)}
        count = sum(topic.count for topic in bag.topics if topic.name in names)
        if not count:
            msg = f"bag {bag.path}: no messages on {', '.join(sorted(names))}"
            raise ReplayError(msg)
        maps = BagMaps(bag, config.map) if config.map.topic else None
        clock = VirtualClock()
        parts = _build(config, scenario, clock, None if maps is None else maps.first())
        mission = parts.mission
        feed = TopicReader(bag, config, topics, mission.loop.topology, mission.inbox.refuse)
        player = _Player(parts, feed, clock, decide=not belief_only, maps=maps, show=show)
        player.run(bag, begin("belief" if belief_only else "decisions", count))
        details = {"unreadable": dict(feed.unreadable), **player.outcome()}
        driven = player.driven if belief_only else None
        used = mission.loop.counts["accepted"]
        status = "finished" if used else "failed"
        done = _written(parts, bag, status, player.read, details, driven)
    if not used:
        raise _nothing_used(done, feed)
    return done


def _nothing_used(done: ReplayResult, feed: TopicReader) -> ReplayError:
    why = [f"{count} {word}" for word, count in done.summary["rejected_by_reason"].items()]
    why += [f"{count} of {topic} undecodable" for topic, count in feed.unreadable.items()]
    msg = (
        f"bag {done.summary['replay']['bag']}: none of its {done.summary['replay']['messages']} "
        f"messages gave a reading ({', '.join(why) or 'no message on the reading topics'}); "
        f"{feed.why or 'docs/ros.md#reasons explains these words'}. Records: {done.run_dir}"
    )
    return ReplayError(msg)


def _repeated(
    bag: Bag,
    recording: Recording,
    config: ActiveSensingConfig,
    scenario: dict[str, Any] | None,
    show: Show,
    begin: Begin,
) -> ReplayResult:
    clock = VirtualClock()
    maps, first = {}, None
    if config.map.topic:
        maps = BagMaps(bag, config.map, recording.map_topic).marked(recording.marks)
        first = FirstMap.of(config.map, maps[recording.marks[0]])
    build = functools.partial(_build, config, scenario, clock, first)
    parts = build()
    check_places(recording.setup, parts.mission.loop.topology, f"bag {bag.path}")
    if recording.lost:
        text = "%d parts of the journal are not in the bag; decisions after them may differ"
        logger.warning(text, recording.lost)
    check = ReproducibilityCheck(parts, build, config, clock, maps=maps, show=show)
    status = check.run(recording, begin("again", len(recording.frames)))
    return _written(check.parts, bag, status, check.read, check.outcome())


def _build(
    config: ActiveSensingConfig,
    scenario: dict[str, Any] | None,
    clock: VirtualClock,
    first: FirstMap | None,
    journal: Sequence[Mapping[str, Any]] | None = None,
) -> MissionComponents:
    if journal is not None:
        with RunDirectory.begin_again(config.run_dir) as run:
            lines = [seal(json_ready(dict(event)), n) for n, event in enumerate(journal, start=1)]
            write_whole(run.path / JOURNAL, b"".join(lines))
    config = dataclasses.replace(config, resume=journal is not None)
    return build_parts(
        config, scenario, clock=clock, driver="replay", field_knowledge=field_knowledge, first=first
    )


class _Player:
    def __init__(
        self,
        parts: MissionComponents,
        feed: TopicReader,
        clockwork: VirtualClock,
        *,
        decide: bool,
        maps: BagMaps | None,
        show: Show,
    ) -> None:
        self.parts = parts
        self.read = 0
        """Number of messages so far."""
        self._stages = ReplayStages(parts, show)
        self._feed, self._maps, self._clockwork = feed, maps, clockwork
        self._decide = decide
        self._first_ns: int | None = None
        self._now_ns = 1

    def run(self, bag: Bag, progress: Progress) -> None:
        """Play a bag to its end. Raises ReplayError for a damaged bag."""
        if self._decide:
            self.parts.mission.start()
        topics = [*self._feed.topics, *([self._maps.topic] if self._maps else [])]
        for message in bag.messages(topics):
            self.read += 1
            if self._first_ns is None:
                self._first_ns = message.stamp_ns
            self._now_ns = max(self._now_ns, message.stamp_ns)
            self._clockwork.set(1e-9 * (self._now_ns - self._first_ns))
            self._put(message)
            self._step()
            progress(self.read)
        self._stages.stop(ENDED, over=True)

    def _put(self, message: BagMessage) -> None:
        mission, maps = self.parts.mission, self._maps
        if maps is None or message.topic != maps.topic:
            for envelope in self._feed.read(message, self._now_ns):
                mission.inbox.put(envelope.what, self._clockwork(), envelope.probe)
        elif mission.map is not None and (found := maps.read(message)) is not None:
            mission.map.adopt(mission, found)

    @property
    def driven(self) -> Cost:
        """Cost of all probes since the first message."""
        metres = sum(probe.ingestion.metres for probe in self.parts.mission.probes.values())
        return Cost(metres, 1e-9 * (self._now_ns - (self._first_ns or self._now_ns)))

    def outcome(self) -> dict[str, Any]:
        """Return the result for the summary."""
        checks = [probe.ingestion.checks for probe in self.parts.mission.probes.values()]
        found: dict[str, Any] = {
            "mode": "decisions" if self._decide else "belief",
            "orientations_ignored": sum(each.bad_orientations for each in checks),
        }
        if self._decide:
            found["information"] = dataclasses.asdict(self._stages.gained)
        return found

    def _step(self) -> None:
        asked = True
        while asked:
            asked = False
            for step in self.parts.mission.step(self._now_ns):
                if isinstance(step.job, DecisionRequest):
                    asked = self._do(step.job) or asked

    def _do(self, job: DecisionRequest) -> bool:
        """Answer a request; return whether the request was for a decision."""
        if job.decide:
            job.loop.clock = time.monotonic
            plan = job.ask()
            if not self.parts.mission.decided(job, plan):
                return True
            if plan.waypoint is not None:
                self._stages.decided(job.loop, job.pending)
        self._stages.show(job)
        return job.decide


def _written(
    parts: MissionComponents,
    bag: Bag,
    status: str,
    read: int,
    details: dict[str, Any],
    driven: Cost | None = None,
) -> ReplayResult:
    """Write summary and final map; `driven` replaces the mission's driven metres and seconds."""
    recorder = parts.recorder
    if recorder.run is None:
        msg = f"bag {bag.path}: the run directory is gone"
        raise ReplayError(msg)
    summary = recorder.summary(parts.mission, status)
    summary["latency"] = {}  # no latency in a replay
    if driven is not None:
        summary["metres"], summary["seconds"] = driven
    loss = bag.loss
    summary["replay"] = {
        "bag": str(bag.path),
        "messages": read,
        "unreadable": {},
        "lost": None if loss is None else loss.lost,
        "damage": [] if loss is None else list(loss.damage),
        **details,
    }
    out = recorder.run.path
    recorder.run.write_summary(summary)
    recorder.close()
    write_whole(out / MAP, _map_text(parts))
    return ReplayResult(out, summary)


def _map_text(parts: MissionComponents) -> str:
    """Return the map as a table: place, coordinates, and mean, std, observed of each quantity."""
    loop = parts.mission.loop
    columns = [loop.topology.names, *loop.topology.points.T.tolist()]
    head = ["place", *("x", "y", "z")[: len(columns) - 1]]
    for name in ("", *loop.quantities):
        mean, variance = loop.belief_of(name).predict()
        read = loop.belief_of(name).observed.astype(int)
        columns += [mean.tolist(), np.sqrt(np.maximum(variance, 0.0)).tolist(), read.tolist()]
        head += [name, f"{name}_std", f"{name}_read"] if name else ["mean", "std", "observed"]
    text = io.StringIO()
    write_rows(text, [head, *zip(*columns, strict=True)])
    return text.getvalue()
