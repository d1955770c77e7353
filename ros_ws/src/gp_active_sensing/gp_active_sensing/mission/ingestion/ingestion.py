"""Receive the poses and readings of a probe; each quantity has its own `ReadingIntake`."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from gp_active_sensing.loop import Receiver
from gp_active_sensing.mission.clocks import elapsed
from gp_active_sensing.mission.inbox import BATCH, Envelope, RawReading
from gp_active_sensing.mission.ingestion.backlog import Backlog
from gp_active_sensing.mission.ingestion.intake import ReadingIntake
from gp_active_sensing.mission.ingestion.odometer import Odometer
from gp_active_sensing.mission.ingestion.pose_sync import PoseFilter
from gp_active_sensing.mission.matching import MapMatcher
from gp_active_sensing.mission.poses import Headings, Pose, PoseTrack
from gp_active_sensing.mission.stream_config import PoseConfig, ReadingConfig
from gp_active_sensing.records.events import Event
from gp_active_sensing.types import Clock, Reading
from gp_active_sensing.util.wording import moment

logger = logging.getLogger(__name__)

_NOISE, _ROAD = 0.2, 10.0
"""Largest noise of a pose [spacings of places], and the spacing that is assumed on roads [m]."""


class Ingestion(ReadingIntake):
    """Receiver of the poses of a probe and of the readings of its main quantity.

    Args:
        clock: monotonic clock that may stand still during a step [s].
        running: monotonic clock for measuring latencies [s]; it never stands still.
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
        running: Clock,
        journal: Callable[[Event], None],
        name: str = "",
    ) -> None:
        self._shared: dict[str, Any] = {
            "coverage": coverage,
            "pose": pose,
            "clock": running,
            "journal": journal,
        }
        super().__init__(*(loop, matcher, track), reading=reading, **self._shared)
        self.further: dict[str, ReadingIntake] = {}
        """Intakes of the further quantities, keyed by name."""
        self.measured = {""}
        """Names of the quantities whose readings are used."""
        self.odometer = Odometer(
            _NOISE * (_ROAD if matcher.has_lines else matcher.spacing),
            matcher.driven,
            twists=bool(pose.twist_topic),
        )
        self.poses = 0
        self.checks = PoseFilter(track, pose.max_ahead, matcher.snap_distance, name)
        self.catch_up = Backlog(clock, wanted=reading.catch_up or pose.catch_up)
        self._holds = pose.max_age if pose.latched else None
        """Waiting time after which a reading uses the newest pose [s]; None = it never does."""
        self._late = 0.0
        """Time between the arrival and the use of the newest pose [s]."""
        self._headings = Headings()
        self._clock = clock

    def add(self, receiver: Receiver, reading: ReadingConfig, quantity: str) -> None:
        """Receive the readings of a further quantity of the same probe."""
        where = receiver, self.matcher, self.track
        intake = ReadingIntake(*where, reading=reading, quantity=quantity, **self._shared)
        intake.dwelling = self.dwelling
        self.further[quantity] = intake
        self.measured.add(quantity)
        self.catch_up.active |= reading.catch_up

    @property
    def intakes(self) -> tuple[ReadingIntake, ...]:
        """Intakes of all quantities, the main quantity first."""
        return (self, *self.further.values())

    def of(self, quantity: str) -> ReadingIntake:
        """Return the intake of a quantity ("" = the main quantity); raise KeyError if unknown."""
        return self.further[quantity] if quantity else self

    @property
    def counts(self) -> Counter[str]:
        """Number of rejected messages, keyed by reason; for further quantities, ``name.reason``."""
        found = Counter(dict(self.rejected))  # another thread may change the counts
        for name, intake in self.further.items():
            found += Counter({f"{name}.{why}": n for why, n in dict(intake.rejected).items()})
        return found

    def recall(self, counts: Mapping[str, int]) -> None:
        """Restore `counts` after a restart."""
        for intake in self.intakes:
            intake.rejected.clear()
        for key, count in counts.items():
            name, _, why = key.rpartition(".")
            self.further.get(name, self).rejected[why] += count

    def set_open(self, *, yes: bool) -> None:
        """Set whether readings are used or only counted."""
        for intake in self.intakes:
            intake.pipeline.open = yes

    @property
    def metres(self) -> float:
        """Metres driven since the start of the mission."""
        return self.odometer.metres

    @property
    def counted(self) -> Pose | None:
        """Pose up to which `metres` are counted; None = no pose has arrived."""
        return self.odometer.counted

    @property
    def heading(self) -> float | None:
        """Heading of the newest pose [rad]; None = unknown."""
        newest = self.track.newest
        return newest.heading if newest is not None and math.isfinite(newest.heading) else None

    def set_out(self, path: Collection[int]) -> None:
        """Set the planned way, whose places are preferred when poses are matched."""
        for intake in self.intakes:
            intake.expected = frozenset(path)
            intake.pipeline.newest_place = None

    def process(self, arrivals: Collection[Envelope], most: int = BATCH) -> list[Reading]:
        """Process messages; return the accepted readings."""
        intakes, reached = self.intakes, None
        for what, received, _ in self.catch_up.pass_on(arrivals, self.loop.clock_ns, most):
            reached = received - self._late
            try:
                if isinstance(what, Pose):
                    self._late, reached = self._lateness(received), received
                    self._process_pose(what, received)
                    for intake in intakes:
                        intake.after_pose(received)
                elif isinstance(what, RawReading):
                    self._process_raw(what, received)
            except Exception:  # keep the other messages after an error in one
                self._count("error", f"{what} (see below)")
                logger.exception("cannot use %s", what)
        if reached is None:
            reached = self._clock() - self._late
        for intake in intakes:
            intake.after_time(reached)
        for intake in intakes:
            self._use_newest_pose(intake, reached)
        return [reading for intake in intakes for reading in intake.use()]

    def _process_raw(self, raw: RawReading, received: float) -> None:
        if raw.quantity not in self.measured:
            what = repr(raw.quantity) if raw.quantity else "the main quantity"
            self._count("unknown_quantity", f"reading of {what}")
        else:
            self.of(raw.quantity).process_reading(raw, received)

    def stop_waiting(self) -> list[Reading]:
        """Use or reject all waiting readings; return the accepted readings."""
        released = self.process(self.catch_up.release()) if self.catch_up.active else []
        return released + [reading for intake in self.intakes for reading in intake.finish()]

    def restart_clock(self) -> None:
        """Drop all data whose stamps are from before the clock went back."""
        for intake in self.intakes:
            intake.forget_times()
        self.track.clear()
        self.checks.restart()
        self._headings.clear()
        self.dwelling.clear()
        self.odometer.restart()

    def accept_gated(self) -> tuple[int, list[Reading]]:
        """Use all gated readings; return how many were gated, and the accepted readings."""
        found = [intake.pipeline.accept_gated() for intake in self.intakes]
        return sum(n for n, _ in found), [reading for _, used in found for reading in used]

    def _process_pose(self, pose: Pose, received: float) -> None:
        topology = self.loop.topology
        heights = topology.heights is not None
        why = self.checks.unusable(pose, topology.frame, self.loop.clock_ns, heights=heights)
        if why is not None:
            self._count(*why)
            return
        before = self.track.newest
        pose = self.checks.sure(pose, self.matcher.extent, self.matcher.rise)
        judgement = self.checks.judge(pose, self.odometer.sigma)
        if judgement == "jumped":
            self.rejected["pose_jumped"] += 1
            return
        pose = self._headings.filled(pose, before)
        added = self.track.add(pose, self.loop.clock_ns)
        if added is None:
            self._count(
                "pose_too_old", f"pose at {moment(pose.stamp_ns)}, long before the newest one: it"
            )
            return
        self.poses += 1
        self.checks.note(pose)
        if added == "restarted":
            logger.warning(
                "poses continue at %s, long before the stamp of an earlier pose: that stamp was "
                "wrong, or the clock was set back; the earlier poses are dropped",
                moment(pose.stamp_ns),
            )  # fmt: skip
            self._headings.clear()
            self.dwelling.clear()
            for intake in self.intakes:
                intake.restart_poses()
            self.odometer.restart()
        elif added == "late":
            return
        elif judgement == "relocated":
            self.odometer.restart()
            self.track.cut()
        self.odometer.add(pose)
        for intake in self.intakes:
            intake.lag.moved(pose.stamp_ns)
        match = self._match(pose)
        if match is None:
            up = f", {pose.z:.1f}" if self.matcher.has_heights else ""
            self._count("pose_off_map", f"pose at ({pose.x:.1f}, {pose.y:.1f}{up})")
            self.dwelling.drive(None, 0.0, pose.stamp_ns)
        else:
            self.dwelling.drive(match.place, self._apart(match.place, pose), pose.stamp_ns)
        for intake in self.intakes:
            intake.drive(pose, match, received)

    def _use_newest_pose(self, intake: ReadingIntake, now: float) -> None:
        pose = self.track.newest
        if self._holds is None or pose is None:
            return
        stamp_ns = intake.synchronizer.newest_without(now, self._holds)
        if stamp_ns is None or stamp_ns <= pose.stamp_ns:
            return
        self._process_pose(replace(pose, stamp_ns=stamp_ns), now)
        for each in self.intakes:
            each.after_pose(now)

    @property
    def poses_only_in_motion(self) -> bool:
        """True if the localisation sends poses only while the probe moves."""
        return self._holds is not None

    def _lateness(self, received: float) -> float:
        """Return the time that has passed since a pose arrived, rounded down to 0.01 s [s].

        Newer poses may still be in the inbox, so readings wait longer by this time. The time is
        rounded, so that a replay with a slightly different clock has the same result.
        """
        return math.floor(100.0 * max(0.0, elapsed(received, self._clock()))) / 100.0
