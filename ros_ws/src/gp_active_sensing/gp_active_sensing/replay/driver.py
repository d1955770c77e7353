"""Feed the messages of a bag to a mission in the order of the recording.

The clock is the bag's; a decision is answered before the next message. The probe went where it
went: for each place it observed, the mission says where it would have sent it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.clocks import VirtualClock
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.requests import DecisionRequest
from gp_active_sensing.replay.bag import Bag
from gp_active_sensing.replay.maps import BagMaps
from gp_active_sensing.replay.stages import MapOnly, ReplayStages, Show
from gp_active_sensing.replay.topics import TopicReader
from gp_active_sensing.types import Clock, Cost

__all__ = ["Driver"]

ENDED = "the bag ends here"


class Driver:
    """Plays a bag to a mission.

    Args:
        parts: the mission and its records; made with `clockwork` as its clock.
        feed: reads the messages.
        clockwork: the mission's clock.
        decide: take decisions; otherwise only learn.
        maps: those of a mission whose map comes by a topic; None = it does not.
        show: takes each record.
        clock: real seconds, for limits of decisions.
    """

    def __init__(
        self,
        parts: MissionComponents,
        feed: TopicReader,
        clockwork: VirtualClock,
        *,
        decide: bool,
        maps: BagMaps | None = None,
        show: Show = lambda record: None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.parts = parts
        self.stages = ReplayStages(parts, show)
        self.read = 0
        """Messages."""
        self._feed = feed
        self._maps = maps
        self._clockwork = clockwork
        self._decide = decide
        self._clock = clock
        self._places = None if decide else MapOnly(parts, show)
        self._first_ns: int | None = None
        self._now_ns = 1

    def run(self, bag: Bag, progress: Callable[[int], None] = lambda read: None) -> str:
        """Play a bag to its end; return the status of the mission.

        Args:
            bag: which is open.
            progress: is told how many messages were read.

        Raises:
            ReplayError: it is damaged.
        """
        mission = self.parts.mission
        if self._decide:
            mission.start()
        topics = [*self._feed.topics, *([self._maps.topic] if self._maps else [])]
        for message in bag.messages(topics):
            self.read += 1
            if self._first_ns is None:
                self._first_ns = message.stamp_ns
            self._now_ns = max(self._now_ns, message.stamp_ns)
            self._clockwork.set(1e-9 * (self._now_ns - self._first_ns))
            if self._maps is not None and message.topic == self._maps.topic:
                if mission.map is not None and (found := self._maps.read(message)) is not None:
                    mission.map.take(mission, found)
                self._go_on()
                progress(self.read)
                continue
            for heard in self._feed.read(message, self._now_ns):
                mission.inbox.put(heard.what, self._clockwork(), heard.probe)
            self._go_on()
            progress(self.read)
        self.stages.stop(ENDED, over=True)
        self._note_places()
        return "finished"

    @property
    def driven(self) -> Cost:
        """By all probes, since the first message."""
        mission = self.parts.mission
        metres = sum(probe.ingestion.metres for probe in mission.probes.values())
        return Cost(metres, 1e-9 * (self._now_ns - (self._first_ns or self._now_ns)))

    def outcome(self) -> dict[str, Any]:
        """Return what came of it, for the summary."""
        if not self._decide:
            return {"mode": "belief"}
        return {"mode": "decisions", "information": self.stages.gained.to_mapping()}

    def _go_on(self) -> None:
        """Let the mission use what is in its inbox, and answer what it asks."""
        asked = True
        while asked:
            asked = False
            for step in self.parts.mission.step(self._now_ns):
                if isinstance(step.job, DecisionRequest):
                    asked = self._do(step.job) or asked
        self._note_places()

    def _do(self, job: DecisionRequest) -> bool:
        if not job.decide:
            self.stages.show(job)
            return False
        loop: SensingLoop = job.loop
        loop.clock = self._clock
        plan = job.ask()
        if not self.parts.mission.decided(job, plan):
            return True
        if plan.waypoint is not None:
            self.stages.decided(loop, job.pending)
        self.stages.show(job)
        return True

    def _note_places(self) -> None:
        if self._places is not None:
            self._places.note(1e-9 * (self._now_ns - (self._first_ns or 0)))
