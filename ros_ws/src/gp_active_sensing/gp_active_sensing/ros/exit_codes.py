"""Exit codes of nodes, and how launches interpret them.

A code of 0 is an end in order: the mission is over, or somebody asked (Ctrl-C, SIGTERM, a
lifecycle manager). `REFUSED` would be the same the next time; anything else is worth another start.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

__all__ = ["FAILED", "REFUSED", "crashed", "ended_in_order", "said"]

FAILED = 1
"""A defect, or something that broke while working; Python itself ends so."""
REFUSED = 2
"""It cannot work with what it was given: parameters, files, a run directory, the installation."""

_ASKED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def crashed(code: int) -> bool:
    """Return whether a node that ended so (minus n after signal n) is worth starting again."""
    return code not in (0, REFUSED)


def ended_in_order(code: int, *, asked: bool, more: Sequence[int] = ()) -> bool:
    """Return whether an end is none that somebody has to look at.

    Args:
        code: exit code, minus n after signal n.
        asked: the process had been asked to end. It may then die of the signal, where that comes
            before it listens to signals.
        more: codes with which this process ends when asked.
    """
    return code == 0 or (asked and code in {*more, *(c for s in _ASKED for c in (-s, 128 + s))})


def said(code: int) -> str:
    """Name an exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
