"""Fields that change while they are observed: how readings lose their worth with age."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.belief.drift.config import NO_DRIFT, DriftConfig

__all__ = ["NO_DRIFT", "DriftConfig"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "config": (
            "NO_DRIFT",
            "DriftConfig",
        ),
    },
)
