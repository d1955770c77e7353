"""Hyper-parameters from prior readings, by marginal likelihood; needs the extra ``learn``."""

from __future__ import annotations

from gp_active_sensing.learning.fit import Estimate, learn
from gp_active_sensing.learning.job import Job, gather
from gp_active_sensing.learning.readings import (
    PriorReadings,
    read_csv,
    read_run,
    read_scenario,
)
from gp_active_sensing.learning.section import belief_section, section_text

__all__ = [
    "Estimate",
    "Job",
    "PriorReadings",
    "belief_section",
    "gather",
    "learn",
    "read_csv",
    "read_run",
    "read_scenario",
    "section_text",
]
