"""Hot-spot searches for several probes at once: one policy a file."""

from __future__ import annotations

from gp_active_sensing.planning.batches.base import Batch

__all__ = ["Batch"]
