"""Hot-spot searches for several probes at once: one kind of policy a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.planning.batches.base import Batch

__all__ = ["Batch"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "base": ("Batch",),
    },
)
