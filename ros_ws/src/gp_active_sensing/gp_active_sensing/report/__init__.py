"""One self-contained page about a run."""

from __future__ import annotations

from gp_active_sensing.report.page import write_report

__all__ = ["write_report"]
