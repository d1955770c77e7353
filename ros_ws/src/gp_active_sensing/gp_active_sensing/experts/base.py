"""The interface of an expert: fresh values of the field at given places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from gp_active_sensing.types import FloatArray, IntArray, Reading

__all__ = ["SOURCE", "Expert", "Field"]

SOURCE = "expert"
"""`Reading.source` of every answer."""

Field: TypeAlias = Callable[[IntArray, float], FloatArray]
"""(k,) values at k places at a time [s]: a model, a simulation, a table, the truth."""


@runtime_checkable
class Expert(Protocol):
    """A costly source of current values at known places: a station, a model, a second probe.

    It is asked before a decision and answers when it can; what has not come when the decision is
    due is left out of it. Times are seconds of the driver's clock. An answer is a `Reading` with
    the source "expert", a noise variance of its own, and the time at which its value was valid as
    its stamp, which may lie between the question and the answer.
    """

    @property
    def places(self) -> IntArray | None:
        """(k,) where it can be asked, sorted; None = anywhere on the map."""
        ...

    def ask(self, places: Sequence[int], seconds: float) -> None:
        """Ask for a value at each of some places; never waits.

        Args:
            places: indices of the map's places.
            seconds: time of the question.
        """
        ...

    def answers(self, seconds: float) -> list[Reading]:
        """Return what has come in by a time and was not returned before, the oldest first."""
        ...
