"""Receive a probe's readings of one quantity: find their places, and count rejected readings."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection
from dataclasses import replace

from gp_active_sensing.loop import Receiver
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.ingestion.backlog import DuplicateFilter
from gp_active_sensing.mission.ingestion.delay_estimate import DelayMonitor
from gp_active_sensing.mission.ingestion.outlier_gate import KEPT, OutlierGate
from gp_active_sensing.mission.ingestion.pipeline import ReadingPipeline
from gp_active_sensing.mission.ingestion.pose_sync import PoseSynchronizer
from gp_active_sensing.mission.ingestion.visits import (
    AveragingWindow,
    ClosestPoint,
    PendingReading,
    SegmentCoverage,
    SettlingTimer,
)
from gp_active_sensing.mission.matching import MapMatcher, Match
from gp_active_sensing.mission.poses import Pose, PoseTrack, mounted
from gp_active_sensing.mission.stream_config import (
    KEPT_SECONDS,
    WAITING_SECONDS,
    PoseConfig,
    ReadingConfig,
    most_per_second,
)
from gp_active_sensing.records.events import Event, ReadingGated, ReadingUsed
from gp_active_sensing.types import Clock, Reading
from gp_active_sensing.util.wording import is_reported, moment

logger = logging.getLogger(__name__)

_NO_POSE = (
    "no pose within pose.max_age of its time; compare the stamps of both topics, and whether poses "
    "come late, or not at all, on a busy machine"
)
_BESIDE = 0.4
"""A warning is logged if the sensor is farther from the pose than this [spacings of places]."""


class ReadingIntake:
    """Receiver of one quantity's readings; it finds their places and counts every loss.

    Args:
        coverage: fraction of a road segment that must be driven for its readings to count.
        clock: monotonic clock for measuring latencies [s]; it never stands still.
        quantity: name of a further quantity; "" = the main quantity.
    """

    def __init__(
        self,
        loop: Receiver,
        matcher: MapMatcher,
        track: PoseTrack,
        *,
        coverage: float,
        reading: ReadingConfig,
        pose: PoseConfig,
        clock: Clock,
        journal: Callable[[Event], None] = lambda event: None,
        quantity: str = "",
    ) -> None:
        self.loop = loop
        self.matcher = matcher
        self.track = track
        self.quantity = quantity
        self._unit = reading.unit
        self._delay = reading.delay
        self.mount: tuple[float, ...] = (0.0, 0.0)
        """Position of the sensor relative to the pose [m]: x ahead, y to the left, z upwards."""
        self.visits = SegmentCoverage(
            coverage, lambda before, after: after in loop.topology.neighbours(before)
        )
        fastest = most_per_second(reading)
        kept = max(KEPT, round(KEPT_SECONDS * fastest))
        gate = OutlierGate(loop, reading.gate, reading.gate_places, kept)
        window = None if reading.window is None else AveragingWindow(reading.window)
        self.nearing = ClosestPoint(matcher.spacing)
        """Queue of the first readings of a point; unused if an averaging window is configured."""
        self.pipeline = ReadingPipeline(
            loop, gate, window, clock=clock, journal=journal, unit=reading.unit
        )
        self.rejected = self.pipeline.rejected
        self.pipeline.stays.near = matcher.near
        self.pipeline.stays.stretch = matcher.stretch
        self.here: Match | None = None
        self.off_map = False
        self.expected: Collection[int] = ()
        self.known = DuplicateFilter()
        """Filter for readings that were used before a restart and are sent again."""
        self.synchronizer = PoseSynchronizer(track, pose.wait, round(WAITING_SECONDS * fastest))
        self._ready: list[PendingReading] = []
        """Readings with a known place that are used at the end of the step."""
        self._set_mount(reading.mount or (0.0, 0.0))
        self.dwelling = SettlingTimer()
        self.lag = DelayMonitor(self._position_at)

    @property
    def delay(self) -> float:
        """Delay of the sensor: time from a measurement to the stamp of its reading [s]."""
        return self._delay

    @delay.setter
    def delay(self, seconds: float) -> None:
        self._delay = seconds
        self.restart_poses()

    @property
    def waiting(self) -> int:
        """Number of readings that wait for a pose."""
        return len(self.synchronizer)

    @property
    def averaging(self) -> int:
        """Number of readings that wait in the averaging window or in the queue `nearing`."""
        return len(self.pipeline.window) + len(self.nearing)

    def process_reading(self, raw: RawReading, received: float) -> None:
        """Process a reading of this intake's quantity."""
        stamp_ns, variance = raw.stamp_ns - round(1e9 * self._delay), raw.noise_variance
        if self.known.discard(stamp_ns, raw.value):
            self.rejected["already_used"] += 1
            return
        reading = Reading(
            *(stamp_ns, None, raw.value, variance, raw.source), quantity=self.quantity
        )
        pending = PendingReading(reading, received, mount=raw.mount)
        if raw.mount is not None:
            self._set_mount(raw.mount)
        bad_variance = variance is not None and not 0.0 < variance < math.inf
        if not math.isfinite(raw.value) or bad_variance:
            self._ready.append(pending)  # the engine rejects the reading with a reason
            return
        self.lag.read(stamp_ns, raw.value)
        if self.synchronizer.has_pose(pending, received):
            self._ready += self._place(pending)
            return
        if (oldest := self.synchronizer.add(pending)) is not None:
            self._reject("no_pose", oldest.reading, "too many readings wait")
        self._ready += self.nearing.release_at_stop(stamp_ns, received)

    def drive(self, pose: Pose, match: Match | None, received: float) -> None:
        """Set the probe's place; `match` None = the probe is off the map."""
        self.off_map = match is None
        if match is None:
            return
        self.here = match
        # The sensor's position decides which road is driven.
        sensor = self._sensor(pose)
        there = match if sensor is pose else self._match(sensor)
        if there is not None and self.matcher.is_line(there.place):
            self._ready += self.visits.drive(there.place, there.fraction, pose.stamp_ns, received)

    def after_pose(self, received: float) -> None:
        """Find the places of the readings that waited for the newest pose."""
        self._ready += self._placed(self.synchronizer.after_pose(received))
        self._ready += self._release_near(received)

    def after_time(self, reached: float) -> None:
        """Find the places of the readings that have waited long enough for a pose."""
        self._ready += self._placed(self.synchronizer.after_time(reached))

    def use(self) -> list[Reading]:
        """Use the readings with a place; return the accepted readings."""
        self._reject_unfinished("partial_visit", "too little of its road was driven")
        ready, self._ready = self._ready, []
        used = self.pipeline.process(ready)
        if (newest := self.track.newest) is not None:
            here = None if self.here is None or self.off_map else self.here.place
            used += self.pipeline.pass_time(newest.stamp_ns, here)
        return used

    def finish(self) -> list[Reading]:
        """Use or reject all waiting readings; return the accepted readings."""
        ready = self._placed(self.synchronizer.pop_all()) + self.nearing.pop_all()
        self.visits.clear()
        self._reject_unfinished("partial_visit", "too little of its road was driven")
        return self.pipeline.process(ready) + self.pipeline.close()

    def forget_times(self) -> None:
        """Reject all waiting readings and end all stays, because the clock went back."""
        reason, why = "clock_backwards", "the clock went back"
        for pending in self.synchronizer.pop_all() + self.nearing.pop_all():
            self._reject(reason, pending.reading, why)
        self.visits.clear()
        self._reject_unfinished(reason, why)
        for pending in self.pipeline.window.close():
            self.rejected[reason] += pending.count
        self.pipeline.stays.clear()
        self.lag.clear()

    def restart_poses(self) -> None:
        """Forget the probe's position after a jump of the stamps or a change of the delay."""
        self.lag.clear()
        self.nearing.restart()

    def restore(self, event: ReadingUsed | ReadingGated) -> None:
        """Restore a journalled reading after a restart."""
        self.pipeline.restore(event)
        self.known.note(event)

    def _reject_unfinished(self, reason: str, why: str) -> None:
        """Reject the readings of visits that ended before enough of the road was driven."""
        for pending in self.visits.left:
            self._reject(reason, pending.reading, why)
        self.visits.left.clear()

    def _release_near(self, received: float) -> list[PendingReading]:
        """Return the readings that need not wait any longer for the probe to come nearer."""
        pose, match = self.track.newest, None if self.off_map else self.here
        if not self.pipeline.by_stay or pose is None:
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
        return mounted(pose, self.mount if mount is None else mount)

    def _apart(self, place: int, pose: Pose) -> float:
        """Return the distance of a pose from the point of a place [m]; 0 if the place is a road."""
        if self.matcher.is_line(place):
            return 0.0
        return self.matcher.apart(place, pose.x, pose.y, pose.z)

    def _match(self, pose: Pose) -> Match | None:
        expected = {*self.expected, *(() if self.here is None else (self.here.place,))}
        return self.matcher.match(pose.x, pose.y, pose.heading, expected, pose.z)

    def _placed(self, waited: Collection[PendingReading]) -> list[PendingReading]:
        return [ready for pending in waited for ready in self._place(pending)]

    def _place(self, pending: PendingReading) -> list[PendingReading]:
        reading = pending.reading
        pose = self.track.at(reading.stamp_ns)
        if pose is None:
            self._reject("no_pose", reading, _NO_POSE)
            return []
        sensor = self._sensor(pose, pending.mount)
        match = self._match(sensor)
        location = None if match is None else match.place
        above = self.matcher.has_heights
        if location is None and above and self.pipeline.open:
            where = f"({sensor.x:.1f}, {sensor.y:.1f}, {sensor.z:.1f})"
            why = f"farther than {self.matcher.snap_distance:g} m from every place"
            self._reject("off_map", reading, f"taken at {where}, {why}")
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
        queued = PendingReading(placed, pending.received)
        if location is not None and self.pipeline.open and self.loop.costs(location):
            if self.matcher.is_line(location):
                return self.visits.add(location, queued)
            if self.pipeline.by_stay:
                return self.nearing.add(location, queued)
        return [queued]

    def _has_settled(self, place: int, pose: Pose, sensor: Pose) -> bool:
        if self.dwelling.seconds > 0.0 and sensor is not pose:
            at = self._match(pose)
            place = place if at is None else at.place
        return self.dwelling.has_settled(place, pose.stamp_ns)

    def _set_mount(self, mount: tuple[float, ...]) -> None:
        """Set the sensor's position on the probe; warn if it may lie in another place's cell."""
        if mount == self.mount:
            return
        self.mount = mount
        beside, above = math.hypot(*mount[:2]), sum(mount[2:])
        layers, spacing = self.matcher.layers, self.matcher.spacing
        sits = []
        if layers is not None and abs(above) > _BESIDE * layers:
            sits.append((abs(above), "above" if above > 0.0 else "below", layers))
        if not self.matcher.has_lines and beside > _BESIDE * spacing:
            sits.append((beside, "off", spacing))
        for metres, where, apart in sits:
            logger.warning(
                "the sensor is %.2f m %s the pose, and places are %.2f m apart: a probe at the "
                "waypoint of a place may read another place. Set a larger map.spacing, or publish "
                "the pose of the sensor",
                *(metres, where, apart),
            )

    def _count(self, reason: str, what: str) -> None:
        self.rejected[reason] += 1
        if is_reported(self.rejected[reason]):
            logger.warning("%s is not used (%s, %d so far)", what, reason, self.rejected[reason])

    def _reject(self, reason: str, reading: Reading, why: str) -> None:
        value = f"{reading.value:g}{f' {self._unit}' if self._unit else ''}"
        of = self.quantity and f" of {self.quantity}"
        self._count(reason, f"reading {value}{of} at {moment(reading.stamp_ns)}: {why}; it")
