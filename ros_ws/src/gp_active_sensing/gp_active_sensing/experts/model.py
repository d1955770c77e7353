"""A model or a simulation as an expert, run again for each question."""

from __future__ import annotations

from collections.abc import Sequence

from gp_active_sensing.experts.simulated import Measured, SimulatedExpert

__all__ = ["ModelExpert"]


class ModelExpert(SimulatedExpert):
    """Answers anywhere on the map with what its field says at the time of the question.

    The standard deviation says how far the model is trusted. In a simulation the field is the
    truth, so that the answers are as good as they say.
    """

    def _measure(self, places: Sequence[int], seconds: float) -> list[Measured]:
        return [Measured(seconds, place) for place in places]
