"""Self-contained pages about a run, and about an experiment of many runs."""

from __future__ import annotations

from gp_active_sensing.report.comparison import write_comparison
from gp_active_sensing.report.page import write_report

__all__ = ["write_comparison", "write_report"]
