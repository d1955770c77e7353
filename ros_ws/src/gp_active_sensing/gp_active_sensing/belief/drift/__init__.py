"""Fields that change while they are observed: how readings lose their worth with age."""

from __future__ import annotations

from gp_active_sensing.belief.drift.config import NO_DRIFT, DriftConfig

__all__ = ["NO_DRIFT", "DriftConfig"]
