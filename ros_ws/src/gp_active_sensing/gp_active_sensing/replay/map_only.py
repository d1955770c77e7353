"""Records of a replay without decisions: the map after each place."""

from __future__ import annotations

from typing import Any

import numpy as np

from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.belief.promise import to_record
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.records.events import Event, ReadingUsed
from gp_active_sensing.records.metrics import NO_SCORES, Scores
from gp_active_sensing.replay.stages import Show

__all__ = ["MapOnly"]


class MapOnly:
    """Adds a record for each place that is observed for the first time.

    Args:
        parts: the mission and its records.
        show: takes each record.
    """

    def __init__(self, parts: MissionComponents, show: Show = lambda record: None) -> None:
        self._parts = parts
        self._show = show
        self._seen = parts.mission.loop.belief.observed.copy()
        self._values: dict[int, list[float]] = {}
        parts.recorder.listener = self._hear

    def _hear(self, event: Event) -> None:
        if isinstance(event, ReadingUsed) and event.reading.location is not None:
            self._values.setdefault(event.reading.location, []).append(event.reading.value)

    def note(self, seconds: float) -> None:
        """Record the places that are new.

        Args:
            seconds: since the first message.
        """
        if not self._values:
            return
        values, self._values = self._values, {}
        loop, recorder = self._parts.mission.loop, self._parts.recorder
        observed = loop.belief.observed
        kernels = [h.kernel for h in loop.belief.hyperparameters]
        new = [place for place in values if observed[place] and not self._seen[place]]
        if not new:
            return
        self._seen = observed.copy()
        found = loop.belief.mixture()
        errors = self._errors(found)
        promised = to_record(loop.belief.promise(loop.topology.weights, found))
        count = int(observed.sum()) - len(new)
        for place in new:
            count += 1
            record: dict[str, Any] = {
                "stage": count,
                "location": place,
                "name": loop.topology.names[place],
                "position": loop.topology.positions[place].tolist(),
                "value": float(np.mean(values[place])),
                "weights": loop.belief.weights.tolist(),
                "length_scales": [list(h.length_scales) for h in loop.belief.hyperparameters],
                **({"kernels": kernels} if any(kernels) else {}),
                **errors,
                **promised,
                "observed": count,
                "readings": loop.counts["accepted"],
                "driven_metres": self._parts.mission.probe.ingestion.metres,
                "driven_seconds": seconds,
            }
            recorder.stages.add(record)
            self._show(record)

    def _errors(self, found: Mixture) -> Scores:
        """Return how far the map is from the truth, where that is known."""
        scorer = self._parts.recorder.scorer
        if scorer is None:
            return NO_SCORES
        mission = self._parts.mission
        return scorer.of(mission.loop.belief, 1e-9 * mission.until_ns, found)
