"""Self-contained page about a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.report.page import write_report

__all__ = ["write_report"]

__getattr__, __dir__ = lazy_names(__name__, {"page": ("write_report",)})
