"""Find the place of each reading from the poses, and pass it on or count why it is rejected."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.clocks import Latency, elapsed
from gp_active_sensing.mission.inbox import BATCH, Envelope, RawReading
from gp_active_sensing.mission.ingestion.backlog import Backlog, DuplicateFilter
from gp_active_sensing.mission.ingestion.delay_estimate import DelayMonitor
from gp_active_sensing.mission.ingestion.odometer import Odometer
from gp_active_sensing.mission.ingestion.outlier_gate import KEPT, OutlierGate
from gp_active_sensing.mission.ingestion.pipeline import ReadingPipeline
from gp_active_sensing.mission.ingestion.pose_sync import PoseFilter, PoseSynchronizer
from gp_active_sensing.mission.ingestion.visits import (
    AveragingWindow,
    ClosestPoint,
    PendingReading,
    SegmentCoverage,
    SettlingTimer,
)
from gp_active_sensing.mission.matching import MapMatcher, Match
from gp_active_sensing.mission.poses import Headings, Pose, PoseTrack, mounted
from gp_active_sensing.mission.stream_config import (
    KEPT_SECONDS,
    WAITING_SECONDS,
    PoseConfig,
    ReadingConfig,
    most_per_second,
)
from gp_active_sensing.records.events import Event, ReadingGated, ReadingUsed
from gp_active_sensing.types import Clock, Reading
from gp_active_sensing.util.wording import moment

__all__ = ["Ingestion"]

logger = logging.getLogger(__name__)

_NO_POSE = (
    "no pose within pose.max_age of its time; compare the stamps of both topics, and whether poses "
    "come late, or not at all, on a busy machine"
)
_NOISE, _ROAD = 0.2, 10.0
"""Largest noise of a pose, in distances between places; and what counts as one on roads [m]."""
_BESIDE = 0.4
"""A sensor that sits farther off than this reads in another cell, in distances between places."""


class Ingestion:
    """Finds the place of each reading and tells it to the loop; nothing is lost uncounted.

    Args:
        loop: the engine.
        matcher: finds places.
        track: looks up poses.
        coverage: part of a road segment that must be driven for its readings to count.
        reading: how readings are taken in.
        pose: how poses are taken in.
        clock: monotonic seconds, that may stand still during a step.
        running: the same that never do, for latencies; None = `clock`.
        journal: takes an event for each accepted reading.
        name: of the probe, for messages.
    """

    def __init__(
        self,
        loop: SensingLoop,
        matcher: MapMatcher,
        track: PoseTrack,
        *,
        coverage: float,
        reading: ReadingConfig,
        pose: PoseConfig,
        clock: Clock,
        running: Clock | None = None,
        journal: Callable[[Event], None] = lambda event: None,
        name: str = "",
    ) -> None:
        self.loop = loop
        self.matcher = matcher
        self.track = track
        self._unit = reading.unit
        self._delay = reading.delay
        self.mount: tuple[float, ...] = (0.0, 0.0)
        """Where the sensor sits: x ahead, y to the left of the pose, and perhaps z above it [m]."""
        self.visits = SegmentCoverage(
            coverage, lambda before, after: after in loop.topology.neighbours(before)
        )
        fastest = most_per_second(reading)
        kept = max(KEPT, round(KEPT_SECONDS * fastest))
        gate = OutlierGate(loop, reading.gate, reading.gate_places, kept)
        window = None if reading.window is None else AveragingWindow(reading.window)
        self.nearing = None if reading.window is not None else ClosestPoint(matcher.spacing)
        """Where those of one stay are one reading, the first ones wait until it is near."""
        self.pipeline = ReadingPipeline(
            loop, gate, window, clock=running or clock, journal=journal, unit=reading.unit
        )
        self.pipeline.stays.near = matcher.near
        self.pipeline.stays.stretch = matcher.stretch
        self.here: Match | None = None
        self.off_map = False
        self.expected: Collection[int] = ()
        self.odometer = Odometer(
            _NOISE * (_ROAD if matcher.has_lines else matcher.spacing),
            matcher.driven,
            twists=bool(pose.twist_topic),
        )
        self.known = DuplicateFilter()
        """Readings used before a restart, which may be sent again."""
        self.poses = 0
        """Poses that were used."""
        self.checks = PoseFilter(track, pose.max_ahead, matcher.snap_distance, name)
        self.catch_up = Backlog(clock, wanted=reading.catch_up or pose.catch_up)
        self.capacity = round(WAITING_SECONDS * fastest)
        """Largest number of readings that wait for a pose."""
        self._holds = pose.max_age if pose.latched else None
        """How long a reading waits before the newest pose holds for it [s]; None = never."""
        self._waiting = PoseSynchronizer(track, pose.wait, self.capacity)
        self._late = 0.0
        """How long the newest pose had lain somewhere when it was used [s]."""
        self._headings = Headings()
        self._seat(reading.mount or (0.0, 0.0))
        self.dwelling = SettlingTimer()
        self.lag = DelayMonitor(self._position_at)
        self._clock = clock

    @property
    def delay(self) -> float:
        """How much older readings are than their stamps [s]."""
        return self._delay

    @delay.setter
    def delay(self, seconds: float) -> None:
        self._delay = seconds
        self.lag.clear()
        if self.nearing is not None:
            self.nearing.restart()

    @property
    def metres(self) -> float:
        """Driven since the mission began."""
        return self.odometer.metres

    @property
    def counted(self) -> Pose | None:
        """Up to where `metres` are counted."""
        return self.odometer.counted

    @property
    def heading(self) -> float | None:
        """Return the heading of the newest pose [rad]; None = not known."""
        newest = self.track.newest
        return newest.heading if newest is not None and math.isfinite(newest.heading) else None

    @property
    def rejected(self) -> Counter[str]:
        """Return the counts of rejected readings, by reason."""
        return self.pipeline.rejected

    @property
    def newest_place(self) -> int | None:
        """Observed for the first time since the probe set out; the latest such place."""
        return self.pipeline.newest_place

    @property
    def open(self) -> bool:
        """False once the mission is over: readings are then counted, not used."""
        return self.pipeline.open

    @open.setter
    def open(self, yes: bool) -> None:
        self.pipeline.open = yes

    @property
    def latency(self) -> Latency:
        """From a message to the belief."""
        return self.pipeline.latency

    @latency.setter
    def latency(self, latency: Latency) -> None:
        self.pipeline.latency = latency

    @property
    def waiting(self) -> int:
        """Readings that wait for a pose."""
        return len(self._waiting)

    @property
    def averaging(self) -> int:
        """Readings in a window that is open, or that wait for the probe to come nearer."""
        return len(self.pipeline.window) + (0 if self.nearing is None else len(self.nearing))

    def set_out(self, path: Collection[int]) -> None:
        """Expect the probe on a way from here on."""
        self.expected = frozenset(path)
        self.pipeline.newest_place = None

    def take(self, arrivals: Collection[Envelope], most: int = BATCH) -> list[Reading]:
        """Use what came; return the readings that were accepted.

        Args:
            arrivals: what came.
            most: messages of what was missed that are used when none came.
        """
        ready: list[PendingReading] = []
        reached = None
        for what, received, _ in self.catch_up.pass_on(arrivals, self.loop.clock_ns, most):
            reached = received - self._late
            try:
                if isinstance(what, Pose):
                    self._late, reached = self._lateness(received), received
                    ready += self._take_pose(what, received)
                    ready += self._placed(self._waiting.after_pose(received))
                    ready += self._come_nearer(received)
                elif isinstance(what, RawReading):
                    ready += self._take_reading(what, received)
            except Exception:  # one message must not take the others along
                self._count("error", f"{what} (see below)")
                logger.exception("cannot use %s", what)
        if reached is None:
            reached = self._clock() - self._late
        ready += self._placed(self._waiting.after_time(reached))
        ready += self._hold_pose(reached)
        self._reject_unfinished("partial_visit", "too little of its road was driven")
        told = self.pipeline.take(ready)
        if (newest := self.track.newest) is not None:
            told += self.pipeline.pass_time(newest.stamp_ns, self._place_here())
        return told

    def stop_waiting(self) -> list[Reading]:
        """Use or reject the readings that wait for more poses; return those accepted."""
        told = self.take(self.catch_up.release()) if self.catch_up.going_on else []
        ready = self._placed(self._waiting.take_all())
        if self.nearing is not None:
            ready += self.nearing.take_all()
        self.visits.clear()
        self._reject_unfinished("partial_visit", "too little of its road was driven")
        return told + self.pipeline.take(ready) + self.pipeline.close()

    def restart_clock(self) -> None:
        """Forget what belongs to a time before the clock went back."""
        reason, why = "clock_backwards", "the clock went back"
        waited = self._waiting.take_all()
        if self.nearing is not None:
            waited += self.nearing.take_all()
        for held in waited:
            self._reject(reason, held.reading, why)
        self.visits.clear()
        self._reject_unfinished(reason, why)
        for held in self.pipeline.window.close():
            self.rejected[reason] += held.count
        self.pipeline.stays.clear()
        self.track.clear()
        self.checks.restart()
        for forgets in (self._headings, self.dwelling, self.lag):
            forgets.clear()
        self.odometer.restart()

    def accept_gated(self) -> tuple[int, list[Reading]]:
        """Use the gated readings; return their number and the result."""
        return self.pipeline.accept_gated()

    def restore(self, event: ReadingUsed | ReadingGated) -> None:
        """Record a reading from before a restart, besides telling it."""
        self.pipeline.restore(event)

    def _reject_unfinished(self, reason: str, why: str) -> None:
        """Reject the readings of visits that ended before enough of the road was driven."""
        for held in self.visits.left:
            self._reject(reason, held.reading, why)
        self.visits.left.clear()

    def _take_pose(self, pose: Pose, received: float) -> list[PendingReading]:
        topology = self.loop.topology
        heights = topology.heights is not None
        why = self.checks.unusable(pose, topology.frame, self.loop.clock_ns, heights=heights)
        if why is not None:
            self._count(*why)
            return []
        before = self.track.newest
        pose = self.checks.sure(pose, self.matcher.extent, self.matcher.rise)
        judgement = self.checks.judge(pose, self.odometer.sigma)
        if judgement == "jumped":
            self.rejected["pose_jumped"] += 1
            return []
        pose = self._headings.filled(pose, before)
        added = self.track.add(pose, self.loop.clock_ns)
        if added is None:
            self._count(
                "pose_too_old", f"pose at {moment(pose.stamp_ns)}, long before the newest one: it"
            )
            return []
        self.poses += 1
        self.checks.note(pose)
        if added == "restarted":
            logger.warning(
                "poses go on at %s, long before one that had come: the stamp of that one was "
                "wrong, or the clock was set back; what was before is forgotten",
                moment(pose.stamp_ns),
            )  # fmt: skip
            for forgets in (self._headings, self.dwelling, self.lag):
                forgets.clear()
            if self.nearing is not None:
                self.nearing.restart()
            self.odometer.restart()
        elif added == "late":
            return []
        elif judgement == "relocated":
            self.odometer.restart()
            self.track.cut()
        self.odometer.add(pose)
        self.lag.moved(pose.stamp_ns)
        match = self._match(pose)
        self.off_map = match is None
        if match is None:
            up = f", {pose.z:.1f}" if self.matcher.has_heights else ""
            self._count("pose_off_map", f"pose at ({pose.x:.1f}, {pose.y:.1f}{up})")
            self.dwelling.drive(None, 0.0, pose.stamp_ns)
            return []
        self.here = match
        self.dwelling.drive(match.place, self._apart(match.place, pose), pose.stamp_ns)
        # Readings belong where the sensor is, and so do the roads that they wait for.
        sensor = self._sensor(pose)
        there = match if sensor is pose else self._match(sensor)
        if there is None or not self.matcher.is_line(there.place):
            return []
        return self.visits.drive(there.place, there.fraction, pose.stamp_ns, received)

    def _hold_pose(self, now: float) -> list[PendingReading]:
        """Let the newest pose hold at the time of readings that no pose came for."""
        pose = self.track.newest
        if self._holds is None or pose is None:
            return []
        stamp_ns = self._waiting.newest_without(now, self._holds)
        if stamp_ns is None or stamp_ns <= pose.stamp_ns:
            return []
        ready = self._take_pose(replace(pose, stamp_ns=stamp_ns), now)
        ready += self._placed(self._waiting.after_pose(now))
        return ready + self._come_nearer(now)

    @property
    def holds_pose(self) -> bool:
        """Return whether silent poses only mean that the probe stands."""
        return self._holds is not None

    def _come_nearer(self, received: float) -> list[PendingReading]:
        """Return the readings of points that count by now.

        Readings have come up to the newest pose, less their delay. That is where the probe is here.
        """
        pose, match = self.track.newest, None if self.off_map else self.here
        if self.nearing is None or pose is None:
            return []
        if self._delay:
            pose = self.track.at(pose.stamp_ns - round(1e9 * self._delay))
            if pose is None:
                return []
        sensor = self._sensor(pose)
        if self._delay or sensor is not pose:
            match = self._match(sensor)
        if match is None or self.matcher.is_line(match.place):
            return self.nearing.drive(None, 0.0, pose.stamp_ns, received)
        apart = self._apart(match.place, sensor)
        return self.nearing.drive(match.place, apart, pose.stamp_ns, received)

    def _position_at(self, stamp_ns: int) -> tuple[float, float] | None:
        pose = self.track.at(stamp_ns)
        if pose is None:
            return None
        sensor = self._sensor(pose)
        return sensor.x, sensor.y

    def _sensor(self, pose: Pose, mount: tuple[float, ...] | None = None) -> Pose:
        """Return where the sensor was, the pose itself for one that sits there.

        Args:
            pose: of the probe.
            mount: where the sensor sits; None = where the newest reading's does.
        """
        return mounted(pose, self.mount if mount is None else mount)

    def _apart(self, place: int, pose: Pose) -> float:
        """Return the distance from a place's point [m], 0 on a road."""
        if self.matcher.is_line(place):
            return 0.0
        return self.matcher.apart(place, pose.x, pose.y, pose.z)

    def _lateness(self, received: float) -> float:
        """Return how long after it came a pose is used [s].

        Those that came since may lie in a queue still: readings go on waiting for them. In
        hundredths, so that a replay, whose clock is only about that of the mission, sees the same.
        """
        return math.floor(100.0 * max(0.0, elapsed(received, self._clock()))) / 100.0

    def _place_here(self) -> int | None:
        return None if self.here is None or self.off_map else self.here.place

    def _match(self, pose: Pose) -> Match | None:
        expected = {*self.expected, *(() if self.here is None else (self.here.place,))}
        return self.matcher.match(pose.x, pose.y, pose.heading, expected, pose.z)

    def _take_reading(self, raw: RawReading, received: float) -> list[PendingReading]:
        stamp_ns = raw.stamp_ns - round(1e9 * self._delay)
        if self.known.holds(stamp_ns, raw.value):
            self.rejected["already_used"] += 1
            return []
        reading = Reading(stamp_ns, None, raw.value, raw.noise_variance, raw.source)
        held = PendingReading(reading, received, mount=raw.mount)
        if raw.mount is not None:
            self._seat(raw.mount)
        bad_variance = raw.noise_variance is not None and not (
            math.isfinite(raw.noise_variance) and raw.noise_variance > 0
        )
        if not math.isfinite(raw.value) or bad_variance:
            return [held]  # the loop rejects it with the right word, wherever it was taken
        self.lag.read(stamp_ns, raw.value)
        if self._waiting.has_pose(held, received):
            return self._place(held)
        if (oldest := self._waiting.add(held)) is not None:
            self._reject("no_pose", oldest.reading, "too many readings wait")
        return [] if self.nearing is None else self.nearing.stand(stamp_ns, received)

    def _placed(self, waited: Collection[PendingReading]) -> list[PendingReading]:
        return [ready for held in waited for ready in self._place(held)]

    def _place(self, held: PendingReading) -> list[PendingReading]:
        reading = held.reading
        pose = self.track.at(reading.stamp_ns)
        if pose is None:
            self._reject("no_pose", reading, _NO_POSE)
            return []
        sensor = self._sensor(pose, held.mount)
        match = self._match(sensor)
        location = None if match is None else match.place
        above = self.matcher.has_heights
        if location is None and above and self.open:
            self._reject("off_map", reading, _off_map(sensor, self.matcher.snap_distance))
            return []
        placed = replace(
            reading,
            location=location,
            position=(sensor.x, sensor.y, sensor.z) if above else (sensor.x, sensor.y),
            position_variance=sensor.variance,
            height_variance=sensor.z_variance if above else 0.0,
        )
        if location is not None and not self._has_settled(location, pose, sensor):
            self.rejected["settling"] += 1
            return []
        if location is not None and self.open and self.loop.costs(location):
            if self.matcher.is_line(location):
                return self.visits.hold(location, placed, held.received)
            if self.nearing is not None:
                return self.nearing.hold(location, PendingReading(placed, held.received))
        return [PendingReading(placed, held.received)]

    def _has_settled(self, place: int, pose: Pose, sensor: Pose) -> bool:
        """Return whether the probe had been long enough where a reading was taken."""
        if self.dwelling.seconds > 0.0 and sensor is not pose:
            at = self._match(pose)
            place = place if at is None else at.place
        return self.dwelling.has_settled(place, pose.stamp_ns)

    def _seat(self, mount: tuple[float, ...]) -> None:
        """Take note of where the sensor sits, and say when that is in another place's cell."""
        if mount == self.mount:
            return
        self.mount = mount
        beside, above = math.hypot(*mount[:2]), sum(mount[2:])
        layers = self.matcher.layers
        if layers is not None and abs(above) > _BESIDE * layers:
            logger.warning(
                "the sensor sits %.2f m %s the pose, and places lie %.2f m above one another: at "
                "the waypoint of a place the probe reads near or in another one. Readings count "
                "where they were taken; let the driver bring the sensor to the waypoint, such as "
                "by publishing the sensor's pose",
                abs(above),
                "above" if above > 0.0 else "below",
                layers,
            )
        if not self.matcher.has_lines and beside > _BESIDE * self.matcher.spacing:
            logger.warning(
                "the sensor sits %.2f m off the pose, and places are %.2f m apart: at the waypoint "
                "of a place the probe reads near or in another one. Readings count where they were "
                "taken; take a larger spacing, or let the driver bring the sensor to the waypoint",
                beside,
                self.matcher.spacing,
            )

    def _count(self, reason: str, what: str) -> None:
        self.rejected[reason] += 1
        if self.rejected[reason] in (1, 10, 100) or self.rejected[reason] % 1000 == 0:
            logger.warning("%s is not used (%s, %d so far)", what, reason, self.rejected[reason])

    def _reject(self, reason: str, reading: Reading, why: str) -> None:
        value = f"{reading.value:g}{f' {self._unit}' if self._unit else ''}"
        self._count(reason, f"reading {value} at {moment(reading.stamp_ns)}: {why}; it")


def _off_map(sensor: Pose, snap_distance: float) -> str:
    where = f"({sensor.x:.1f}, {sensor.y:.1f}, {sensor.z:.1f})"
    return f"taken at {where}, farther than {snap_distance:g} m from every place"
