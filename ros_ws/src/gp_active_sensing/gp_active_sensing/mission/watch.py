"""Checks that a mission makes by itself: silent sensors, and where the probes are."""

from __future__ import annotations

from dataclasses import replace

from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.timed import Timed
from gp_active_sensing.records.events import StatusNoted

__all__ = ["MissionWatch"]

STATUS_SECONDS = 1.0
"""Least real time between two events that say where the probes are."""


class MissionWatch(Timed):
    """Looked after at every step, under the mission's lock."""

    def _send_no_further(self, probe: ProbeState) -> None:
        """Stop sending a probe around whose sensor says nothing."""
        why = probe.sensor.complaint(self.loop.topology.names, self._now_ns)
        if len(self.probes) == 1:
            self.pause(f"{why}, then call ~/resume")
            return
        self.fleet.mute(probe, f"{why}; its next reading brings it back", self._now_ns)
        self.decisions.forget(probe)
        self._rest_no_more()

    def _note_status(self) -> None:
        """Keep in the journal, once a second, what no other event says."""
        now = self._clock()
        if now - self._noted_at < STATUS_SECONDS or self.state == "ended":
            return
        self._noted_at = now
        status = StatusNoted(
            probes={name: probe.status() for name, probe in self.probes.items()},
            expert=None if self.consulting is None else self.consulting.rejected,
        )
        if status != self._noted:
            self._noted = status
            self._journal(replace(status, stamp_ns=self._now_ns))
