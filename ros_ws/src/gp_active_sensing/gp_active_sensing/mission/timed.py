"""Handle changes of the node's clock: pause the mission, and charge nothing for the jump."""

from __future__ import annotations

import logging

from gp_active_sensing.mission.commanded import Commanded
from gp_active_sensing.records.events import ClockStepped

__all__ = ["Timed"]

logger = logging.getLogger(__name__)


class Timed(Commanded):
    """A mission that is told what time it is."""

    def clock_stepped(self, step_ns: int, now_ns: int) -> None:
        """Record that the clock went forward by more than the time that passed.

        Args:
            step_ns: by how much more [ns]; not charged.
            now_ns: time of the node's clock after it.
        """
        with self.lock:
            if step_ns <= 1e9 * self.config.clock_tolerance:
                return
            said = f"the clock went forward by {1e-9 * step_ns:.3f} s at once"
            logger.error(
                "%s: that is not charged to the budget, and the mission pauses. Resume it when the "
                "clock is right",
                said,
            )
            self._now_ns = now_ns
            self._journal(ClockStepped(step_ns=step_ns, stamp_ns=now_ns))
            self.skip(step_ns)
            for probe in self.probes.values():
                probe.arrival.forget()
                probe.progress.forget()
            self.pause(said)

    def skip(self, step_ns: int) -> None:
        """Charge nothing for a time that did not pass [ns], and let no probe be lost for it."""
        self.fleet.skip(step_ns)
        for probe in self.probes.values():
            probe.stages.skip(step_ns)

    def _watch_clock(self, now_ns: int) -> None:
        back = 1e-9 * (self._now_ns - now_ns)
        self._now_ns = now_ns
        if back <= self.config.clock_tolerance:
            return
        logger.error(
            "the clock went back by %.3f s: the mission pauses. Resume it when that is right; of a "
            "simulation that was started again begin a new mission in another run_dir",
            back,
        )
        for probe in self.probes.values():
            probe.ingestion.restart_clock()
            probe.arrival.forget()
            probe.progress.forget()
        self.pause(f"the clock went back by {back:.3f} s")
