"""Track which probes take part in a mission."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from gp_active_sensing.errors import suggest
from gp_active_sensing.mission.checkers import MUTE
from gp_active_sensing.mission.config import MissionConfig
from gp_active_sensing.mission.probe import NO_POSE, ProbeState
from gp_active_sensing.mission.sorties import CHANGING
from gp_active_sensing.records.events import Event, RosterChanged

logger = logging.getLogger(__name__)

LEFT = "left: "
"""Prefix of `ProbeState.gone` for a probe that left. Such a probe rejoins only on request."""
OFF_LIST = "taken off the list"
"""Reason of a probe's leave: its name was removed from the parameter `probes`."""
ALARM_SECONDS = 10.0
"""Time without a pose after which an alarm begins [s]."""
SILENT = "silent for"
"""Prefix of `ProbeState.gone` for a silent probe. Such a probe rejoins with its next pose."""


def resting_reason(probes: Iterable[ProbeState]) -> str:
    """Return why the probes rest; if the reasons differ, each has the name of its probe."""
    why = {probe.name: probe.resting for probe in probes}
    if len(set(why.values())) == 1:
        return next(iter(why.values()))
    return "; ".join(f"{name}: {reason}" for name, reason in why.items())


class Fleet:
    """Probes of a mission; used under the mission's lock.

    A single probe always takes part. In a fleet, each probe joins with its first pose. A probe
    without a pose for `mission.lost_after` seconds is dropped, and other probes may be sent to its
    waypoint. The dropped probe rejoins with its next pose.
    """

    def __init__(
        self, probes: Sequence[ProbeState], config: MissionConfig, journal: Callable[[Event], None]
    ) -> None:
        self.probes = {probe.name: probe for probe in probes}
        self.config = config
        self._journal = journal
        self._asked_ns: int | None = None
        """Time of the first call of `awaited` with a probe that takes part [ns]; None = no call."""
        self._last_ns: dict[str, int] = {}
        """Time of the last pose of each probe [ns], keyed by name."""
        self._gap_ns: dict[str, int] = {}
        """Time between the last two poses of each probe [ns], keyed by name."""
        self._gone_ns: dict[str, int] = {}

    @property
    def present(self) -> list[ProbeState]:
        """Probes that take part now."""
        return [probe for probe in self.probes.values() if not probe.gone]

    @property
    def waiting(self) -> list[ProbeState]:
        """Probes that wait for a decision, in order of their waiting time, longest first."""
        found = [
            probe
            for probe in self.present
            if probe.plan is None and probe.stages.home is None and not probe.resting
        ]
        return sorted(found, key=lambda probe: probe.since)

    def awaited(self, now_ns: int) -> bool:
        """Return whether the first joint decision waits for missing probes.

        It waits at most `mission.lost_after` from the first call while a probe takes part.
        """
        if self._asked_ns is None and self.present:
            self._asked_ns = now_ns
        missing = any(
            probe.gone == NO_POSE or (not probe.gone and probe.needs_reading)
            for probe in self.probes.values()
        )
        waited_ns = 0 if self._asked_ns is None else now_ns - self._asked_ns
        return missing and waited_ns <= 1e9 * self.config.lost_after

    def away(self, now_ns: int) -> list[str]:
        """Return the names of the absent probes for which the mission waits."""
        limit_ns = 1e9 * self.config.wait_for_absent
        found = []
        for name, probe in self.probes.items():
            in_time = now_ns - self._gone_ns.get(name, now_ns) < limit_ns
            if not in_time or not probe.gone.startswith((SILENT, MUTE, CHANGING)):
                continue
            left = probe.remaining_in_all
            readings = probe.loop.readings_for(name, self.pending(probe))
            spent = 0.0 in (left.metres, left.seconds) or (readings is not None and readings <= 0)
            if probe.unread.any() and not spent:
                found.append(name)
        return found

    def silent(self, now_ns: int) -> dict[str, float]:
        """Return the time since the last pose of each silent probe [s], keyed by name.

        A probe is not silent while it stands, if its localisation sends poses only in motion.
        """
        found = {}
        for name, probe in self.probes.items():
            silence_ns = now_ns - self._last_ns.get(name, now_ns)
            long = silence_ns > max(1e9 * ALARM_SECONDS, 3 * self._gap_ns.get(name, 0))
            expected = not probe.gone or probe.gone.startswith(SILENT)
            if long and expected and not probe.is_still and not probe.ingestion.catch_up.waiting:
                found[name] = 1e-9 * silence_ns
        return found

    @property
    def under_way(self) -> bool:
        """True while a probe carries out a decision."""
        return any(probe.plan is not None for probe in self.present)

    def pending(self, probe: ProbeState) -> tuple[int, ...]:
        """Return the waypoints of the other probes, and the places in `passed`."""
        others = [other for other in self.present if other is not probe]
        found = {o.plan.waypoints[0] for o in others if o.plan is not None}
        return tuple(sorted(found.union(self.passed())))

    def passed(self) -> tuple[int, ...]:
        """Return the places that probes have passed and whose readings have not come yet."""
        return tuple(sorted(set().union(*(p.passed.pending() for p in self.probes.values()))))

    def add(self, probe: ProbeState) -> None:
        """Add a probe that takes part from its first pose on."""
        # The dictionary is replaced, since other threads may iterate over the old one.
        self.probes = {**self.probes, probe.name: probe}

    def record_pose(self, probe: ProbeState, stamp_ns: int, now_ns: int) -> None:
        """Record a pose of a probe. The probe takes part from its first usable pose on."""
        newest = probe.ingestion.track.newest
        if newest is None or newest.stamp_ns < stamp_ns:
            return  # the pose was not usable
        self._gap_ns[probe.name] = now_ns - self._last_ns.get(probe.name, now_ns)
        self._last_ns[probe.name] = now_ns
        if probe.gone and not probe.gone.startswith((LEFT, MUTE, CHANGING)):
            self._join(probe, now_ns)

    def put_in(self, probe: ProbeState, now_ns: int) -> None:
        """Let a probe without a position take part; its first waypoint may be any place."""
        probe.anywhere = True
        if probe.gone:
            self._join(probe, now_ns)

    def record_reading(self, probe: ProbeState, now_ns: int) -> None:
        """Record a reading of a probe. The probe rejoins if it left because of a silent sensor."""
        if probe.ingestion.poses_only_in_motion and probe.name in self._last_ns:
            self._last_ns[probe.name] = now_ns  # a standing probe sends no poses
        if probe.gone.startswith(MUTE):
            self._join(probe, now_ns)

    def join(self, name: str, now_ns: int) -> str:
        """Let a probe rejoin the mission; return an error text, or "" on success."""
        probe = self.probes.get(name)
        if probe is None:
            return self._unknown(name)
        if not probe.gone:
            return f"{name} takes part already"
        if probe.ingestion.track.newest is None:
            self._note(probe, NO_POSE, now_ns)
        else:
            self._join(probe, now_ns)
        return ""

    def leave(self, name: str, why: str, now_ns: int) -> str:
        """Remove a probe from the mission; return an error text, or "" on success."""
        probe = self.probes.get(name)
        if probe is None:
            return self._unknown(name)
        if probe.gone.startswith(LEFT):
            return f"{name} has left already"
        self.exclude(probe, f"{LEFT}{why}", now_ns)
        return ""

    def drop_silent(self, now_ns: int) -> list[ProbeState]:
        """Drop and return the probes that were silent for `mission.lost_after`."""
        if len(self.probes) == 1:
            return []
        for probe in self.present:
            nowhere = probe.anywhere and probe.ingestion.track.newest is None
            if probe.ingestion.catch_up.waiting or nowhere:
                self._last_ns[probe.name] = now_ns  # no pose of the probe is used yet
        limit = 1e9 * self.config.lost_after
        lost = [p for p in self.present if now_ns - self.last_pose_ns(p, now_ns) > limit]
        for probe in lost:
            self.exclude(probe, f"{SILENT} {self.config.lost_after:g} s", now_ns)
        return lost

    def last_pose_ns(self, probe: ProbeState, now_ns: int) -> int:
        """Return the time of a probe's last pose on the node's clock [ns].

        After a restart, or after the clock went back, the present time is returned.
        """
        then = min(self._last_ns.get(probe.name, now_ns), now_ns)
        self._last_ns[probe.name] = then
        return then

    def skip(self, step_ns: int) -> None:
        """Exclude a jump of the node's clock [ns] from the times without a pose."""
        self._last_ns = {name: then + step_ns for name, then in self._last_ns.items()}
        if self._asked_ns is not None:
            self._asked_ns += step_ns

    def replay(self, probe: ProbeState, why: str, now_ns: int) -> None:
        """Restore the reason why a probe takes no part (`why`); "" = the probe takes part."""
        if not why:
            self._reset(probe, now_ns)
        probe.gone, self._gone_ns[probe.name] = why, now_ns

    def _join(self, probe: ProbeState, now_ns: int) -> None:
        self._reset(probe, now_ns)
        probe.since = probe.last_message
        self._last_ns[probe.name] = now_ns
        self._note(probe, "", now_ns)
        logger.info("%s joins the mission", probe.name)

    def _reset(self, probe: ProbeState, now_ns: int) -> None:
        """Forget the probe's position. Metres driven after the probe left are not charged."""
        probe.at = None
        probe.sensor.forget()
        if probe.gone.startswith((LEFT, CHANGING)):
            probe.home = False
            probe.stages.skip_drive(now_ns, probe.ingestion.metres)
        if not probe.home:
            probe.resting = ""

    def exclude(self, probe: ProbeState, why: str, now_ns: int) -> None:
        """Drop a probe's decision; it takes no part until the reason `why` is over."""
        probe.drop_decision(now_ns)
        self._note(probe, why, now_ns)
        logger.warning("%s leaves the mission (%s)", probe.name, why)

    def _note(self, probe: ProbeState, why: str, now_ns: int) -> None:
        probe.gone, self._gone_ns[probe.name] = why, now_ns
        self._journal(
            RosterChanged(why=why, where=probe.whereabouts(), stamp_ns=now_ns, probe=probe.name)
        )

    def _unknown(self, name: str) -> str:
        return f"no probe {name!r} in this mission.{suggest(name, self.probes)}"
