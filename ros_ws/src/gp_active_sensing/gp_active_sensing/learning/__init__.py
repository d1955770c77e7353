"""What prior readings say of hyper-parameters and kernels; needs the extra ``learn``.

Length-scales by marginal likelihood are here; a belief over kernels is in `vbks`.
"""

from __future__ import annotations

from gp_active_sensing.learning.fit import Estimate, learn
from gp_active_sensing.learning.job import Job, gather
from gp_active_sensing.learning.read_table import read_table
from gp_active_sensing.learning.readings import (
    PriorReadings,
    read_csv,
    read_run,
    read_scenario,
)
from gp_active_sensing.learning.rows import Rows
from gp_active_sensing.learning.section import belief_section, section_text

__all__ = [
    "Estimate",
    "Job",
    "PriorReadings",
    "Rows",
    "belief_section",
    "gather",
    "learn",
    "read_csv",
    "read_run",
    "read_scenario",
    "read_table",
    "section_text",
]
