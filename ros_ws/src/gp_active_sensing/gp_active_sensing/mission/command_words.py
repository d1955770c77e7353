"""Log messages for commands: their level, and the budget they set."""

from __future__ import annotations

import logging

from gp_active_sensing.types import WORST, Aim, Budget
from gp_active_sensing.util.wording import shown

__all__ = ["DEACTIVATED", "FINISHING", "budget_words", "loudness"]

DEACTIVATED = "the node was deactivated"
FINISHING = "about to finish"
"""Why a mission pauses for a moment, before it ends."""


def loudness(reason: str) -> int:
    """Return the level at which a pause is said: what nobody asked for is a warning."""
    if reason == FINISHING:
        return logging.DEBUG
    asked = reason == DEACTIVATED or reason.startswith("asked")
    return logging.INFO if asked else logging.WARNING


def budget_words(budget: Budget, aim: Aim | None = None) -> str:
    """Return what may be spent, such as "20 readings, 500 m", and until when."""
    limits = ((budget.readings, "readings"), (budget.metres, "m"), (budget.seconds, "s"))
    found = [shown(limit, unit) for limit, unit in limits if limit is not None]
    if aim is not None:
        what = "of the worst place " if aim.of == WORST else ""
        found.append(f"until the promised error {what}is {aim.error:.6g}")
    return ", ".join(found) or "no limit"
