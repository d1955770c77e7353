"""Poses and raw readings -> readings with a place, told to the loop or counted as rejected."""

from __future__ import annotations

import logging
import math
from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from gp_active_sensing.errors import ActiveSensingError, ReadingError
from gp_active_sensing.events import reading_event
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.inbox import Arrival, RawReading
from gp_active_sensing.mission.latency import Latency
from gp_active_sensing.mission.matching import MapMatcher, Match
from gp_active_sensing.mission.poses import Pose, PoseTrack, heading_between
from gp_active_sensing.mission.visits import Held, Visits
from gp_active_sensing.types import Clock, Reading

__all__ = ["Intake"]

logger = logging.getLogger(__name__)

WAITING = 1000
"""Most readings that wait for their pose."""


class Intake:
    """Finds the place of each reading and tells it to the loop; nothing is lost uncounted.

    Args:
        loop: the engine.
        matcher: finds places.
        track: looks up poses.
        coverage: part of a road segment that must be driven for its readings to count.
        pose_wait: how long a reading waits for a pose that is not older than itself [s, real time].
        clock: monotonic seconds.
        journal: takes an event for each accepted reading.
    """

    def __init__(
        self,
        loop: SensingLoop,
        matcher: MapMatcher,
        track: PoseTrack,
        *,
        coverage: float,
        pose_wait: float = 0.0,
        clock: Clock,
        journal: Callable[[dict[str, Any]], None] = lambda event: None,
    ) -> None:
        self.loop = loop
        self.matcher = matcher
        self.track = track
        self.visits = Visits(coverage, self._follows)
        self.latency = Latency()
        self.rejected: Counter[str] = Counter()
        self.here: Match | None = None
        self.off_map = False
        self.expected: Collection[int] = ()
        self.metres = 0.0
        """Driven since the mission began."""
        self.newest_place: int | None = None
        """Observed for the first time since the probe set out; the latest such place."""
        self.open = True
        """False once the mission is over: readings are then counted, not used."""
        self.known: set[tuple[int, float]] = set()
        """Stamp [ns] and value of readings used before a restart, which may be sent again."""
        self._pose_wait = pose_wait
        self._waiting: deque[Held] = deque()
        self._moved_from: Pose | None = None
        self.counted: Pose | None = None
        """Up to where `metres` are counted."""
        self._clock = clock
        self._journal = journal

    @property
    def waiting(self) -> int:
        """Readings that wait for a pose."""
        return len(self._waiting)

    def set_out(self, path: Collection[int]) -> None:
        """Expect the probe on a way from here on."""
        self.expected = frozenset(path)
        self.newest_place = None

    def take(self, arrivals: Collection[Arrival]) -> list[Reading]:
        """Use what came; return the readings that were accepted."""
        ready: list[Held] = []
        for what, received, _ in arrivals:
            try:
                if isinstance(what, Pose):
                    ready += self._take_pose(what, received)
                else:
                    ready += self._take_reading(what, received)
            except Exception:  # one message must not take the others along
                self._count("error", f"{what} (see below)")
                logger.exception("cannot use %s", what)
        waiting, self._waiting = self._waiting, deque()
        for held in waiting:
            if self._has_its_pose(held):
                ready += self._place(held)
            else:
                self._waiting.append(held)
        self._reject_left("partial_visit", "too little of its road was driven")
        return self._tell(ready)

    def stop_waiting(self) -> list[Reading]:
        """Use or reject the readings that wait for more poses; return those accepted."""
        waiting, self._waiting = self._waiting, deque()
        ready = [held for raw in waiting for held in self._place(raw)]
        self.visits.clear()
        self._reject_left("partial_visit", "too little of its road was driven")
        return self._tell(ready)

    def restart_clock(self) -> None:
        """Forget what belongs to a time before the clock went back."""
        reason, why = "clock_backwards", "the clock went back"
        for held in self._waiting:
            self._reject(reason, held.reading, why)
        self._waiting.clear()
        self.visits.clear()
        self._reject_left(reason, why)
        self.track.clear()
        self._moved_from = self.counted = None

    def _reject_left(self, reason: str, why: str) -> None:
        for held in self.visits.left:
            self._reject(reason, held.reading, why)
        self.visits.left.clear()

    # -- poses ---------------------------------------------------------------------------------

    def _take_pose(self, pose: Pose, received: float) -> list[Held]:
        frame = self.loop.topology.frame
        if pose.frame.lstrip("/") != frame:
            self._count(
                "wrong_frame",
                f"pose in frame {pose.frame!r}, the map is in {frame!r} (publish the pose in "
                "that frame, or set map.frame if the map is drawn in the pose's): it",
            )
            return []
        if not (math.isfinite(pose.x) and math.isfinite(pose.y)):
            self._count("pose_not_finite", f"pose at ({pose.x}, {pose.y})")
            return []
        before = self.track.newest
        pose = self._with_heading(pose, before)
        if not self.track.add(pose):
            return []
        self._count_metres(pose)
        match = self._match(pose)
        self.off_map = match is None
        if match is None:
            self._count("pose_off_map", f"pose at ({pose.x:.1f}, {pose.y:.1f})")
            return []
        self.here = match
        if not self.matcher.is_line(match.place):
            return []
        return self.visits.drive(match.place, match.fraction, pose.stamp_ns, received)

    def _count_metres(self, pose: Pose) -> None:
        counted = self.counted
        if counted is not None:
            if pose.stamp_ns <= counted.stamp_ns:
                return  # sent again to a node that was started again
            self.metres += math.hypot(pose.x - counted.x, pose.y - counted.y)
        self.counted = pose

    def _with_heading(self, pose: Pose, before: Pose | None) -> Pose:
        """Fill in a heading that is not known from the movement."""
        if math.isfinite(pose.heading):
            return pose
        heading = heading_between(self._moved_from, pose)
        if math.isfinite(heading) or self._moved_from is None:
            self._moved_from = pose
        elif before is not None:
            heading = before.heading
        return Pose(pose.stamp_ns, pose.frame, pose.x, pose.y, heading)

    def _match(self, pose: Pose) -> Match | None:
        expected = {*self.expected, *(() if self.here is None else (self.here.place,))}
        return self.matcher.match(pose.x, pose.y, pose.heading, expected)

    def _follows(self, before: int, after: int) -> bool:
        return after in self.loop.topology.neighbours(before)

    # -- readings ------------------------------------------------------------------------------

    def _take_reading(self, raw: RawReading, received: float) -> list[Held]:
        if (raw.stamp_ns, raw.value) in self.known:
            self.rejected["already_used"] += 1
            return []
        reading = Reading(raw.stamp_ns, None, raw.value, raw.noise_variance, raw.source)
        held = Held(reading, received)
        bad_variance = raw.noise_variance is not None and not (
            math.isfinite(raw.noise_variance) and raw.noise_variance > 0
        )
        if not math.isfinite(raw.value) or bad_variance:
            return [held]  # the loop rejects it with the right word, wherever it was taken
        if not self._has_its_pose(held):
            if len(self._waiting) >= WAITING:
                self._reject("no_pose", self._waiting.popleft().reading, "too many readings wait")
            self._waiting.append(held)
            return []
        return self._place(held)

    def _has_its_pose(self, held: Held) -> bool:
        """Say whether no better pose is worth waiting for."""
        stamp_ns = held.reading.stamp_ns
        if not self.track.may_come(stamp_ns):
            return True
        waited = self._clock() - held.received
        return self.track.at(stamp_ns) is not None and waited >= self._pose_wait

    def _place(self, held: Held) -> list[Held]:
        reading = held.reading
        pose = self.track.at(reading.stamp_ns)
        if pose is None:
            self._reject(
                "no_pose", reading, "no pose at its time; compare the stamps of both topics"
            )
            return []
        match = self._match(pose)
        position = (pose.x, pose.y)
        location = None if match is None else match.place
        placed = Reading(
            reading.stamp_ns,
            location,
            reading.value,
            reading.noise_variance,
            reading.source,
            position,
        )
        if (
            location is not None
            and self.open
            and self.matcher.is_line(location)
            and not self.loop.belief.observed[location]
        ):
            return self.visits.hold(location, placed, held.received)
        return [Held(placed, held.received)]

    def _tell(self, ready: list[Held]) -> list[Reading]:
        """Tell the loop; what is used is in the journal before it counts."""
        if ready and not self.open:
            self.rejected["mission_over"] += len(ready)
            return []
        used = [held for held in ready if self._use(held.reading)]
        now = self._clock()
        for held in used:
            self.latency.add(now - held.received)
        return [held.reading for held in used]

    def _use(self, reading: Reading) -> bool:
        try:
            place = self.loop.check(reading)
        except ReadingError:
            pass  # `tell` says and counts why it cannot be used
        else:
            self._journal(reading_event(replace(reading, location=place)))
        return self.tell(reading)

    def tell(self, reading: Reading) -> bool:
        """Tell the loop a reading that is in the journal; say whether it is used."""
        report = self.loop.tell([reading])
        for rejection in report.rejected:
            self.rejected[rejection.reason] += 1
        if report.new_places:
            self.newest_place = report.new_places[-1]
        if report.accepted:
            self._follow_up()  # one by one, so that the journal gives back the same digits
        return bool(report.accepted)

    def _follow_up(self) -> None:
        """Bring the belief up to date now, in small steps, rather than later in one large one."""
        try:
            self.loop.belief.weights  # noqa: B018  computed on being asked
        except ActiveSensingError as error:
            self.rejected["belief_error"] += 1
            logger.error("the belief cannot be computed: %s", error)

    def _count(self, reason: str, what: str) -> None:
        self.rejected[reason] += 1
        if self.rejected[reason] in (1, 10, 100) or self.rejected[reason] % 1000 == 0:
            logger.warning("%s is not used (%s, %d so far)", what, reason, self.rejected[reason])

    def _reject(self, reason: str, reading: Reading, why: str) -> None:
        self._count(reason, f"reading {reading.value:g} at {reading.stamp_ns} ns: {why}; it")
