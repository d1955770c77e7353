"""Record the stages of a replay, and sum the information at planned and visited places."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.requests import DecisionRequest, Stage
from gp_active_sensing.planning.beliefs import marginals_given_pending
from gp_active_sensing.planning.entropy import mixture_entropy, noise_entropy


def information(
    belief: Belief, places: Sequence[int], pending: Collection[int] = ()
) -> list[float]:
    """Return the information of one reading at each place [nat].

    The information ``H[Z_x] - Σ_λ b(λ) ½ log(2πe σ_n²(λ))`` of a reading Z_x is the planners'
    reward. It is not negative and does not depend on the unit. Values can therefore be added.
    """
    if not places:
        return []
    mean, variance = marginals_given_pending(belief, np.array(places, dtype=np.int64), pending)
    weights, noise = belief.weights, belief.noise_variance
    entropy = mixture_entropy(weights, mean.T, variance.T + noise)
    nats = entropy - float(weights @ noise_entropy(noise))
    return [max(0.0, float(value)) for value in nats]


Show = Callable[[Mapping[str, Any]], None]


@dataclass
class StageInformation:
    """Information at the planned and the visited places, over stages with a reading [nat].

    Args:
        planned: information, summed over the planned places.
        went: information, summed over the visited places.
        stages: number of stages.
        agreed: number of stages whose planned and visited places are equal.
    """

    planned: float = 0.0
    went: float = 0.0
    stages: int = 0
    agreed: int = 0


class ReplayStages:
    """Recorder of the completed stages of a replay."""

    def __init__(self, parts: MissionComponents, show: Show) -> None:
        self._parts = parts
        self._show = show
        self._asked: dict[int, tuple[SensingLoop, tuple[int, ...]]] = {}
        """Engine and pending places at each decision whose stage is not complete."""
        self.gained = StageInformation()

    def decided(self, loop: SensingLoop, pending: tuple[int, ...]) -> None:
        """Store the belief and the pending places of the newest decision."""
        self._asked[self._parts.mission.decisions.stage] = loop, pending

    def show(self, job: DecisionRequest) -> None:
        """Record the stage that ended before this request, if any."""
        self._parts.mission.showing = False
        if job.finished is not None:
            self._record(job.finished, job.loop)

    def stop(self, reason: str, *, over: bool) -> None:
        """End the mission at the end of the bag."""
        mission = self._parts.mission
        for stage in mission.stop(reason, over=over):
            self._record(stage, mission.loop)

    def _record(self, stage: Stage, loop: SensingLoop) -> None:
        if not self._parts.mission.claim(stage):
            return
        found = loop.belief.mixture()
        self._parts.recorder.stage(stage, loop, found, **self._compared(stage))
        self._show(self._parts.recorder.stages.newest)

    def _compared(self, stage: Stage) -> dict[str, Any]:
        known = self._asked.pop(stage.number, None)
        went = stage.went
        if went is None and stage.value is not None:
            went = stage.plan.waypoints[0]
        names = self._parts.mission.loop.topology.names
        found: dict[str, Any] = {} if went is None else {"went": went, "went_name": names[went]}
        if known is None:
            return found
        loop, pending = known
        places = [stage.plan.waypoints[0], *([] if went is None else [went])]
        nats = information(loop.belief, places, pending)
        found["information"] = {"planned": nats[0], "went": None if went is None else nats[1]}
        if went is not None:
            gained = self.gained
            gained.planned += nats[0]
            gained.went += nats[1]
            gained.stages += 1
            gained.agreed += went == places[0]
        return found
