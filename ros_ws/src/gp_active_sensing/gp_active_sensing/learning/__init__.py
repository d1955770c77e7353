"""What prior readings say of hyper-parameters and kernels; needs the extra ``learn``.

Length-scales by marginal likelihood are here; a belief over kernels is in `vbks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.learning.fit import Estimate, learn
    from gp_active_sensing.learning.job import Job, gather
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
    "section_text",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fit": (
            "Estimate",
            "learn",
        ),
        "job": (
            "Job",
            "gather",
        ),
        "readings": (
            "PriorReadings",
            "read_csv",
            "read_run",
            "read_scenario",
        ),
        "rows": ("Rows",),
        "section": (
            "belief_section",
            "section_text",
        ),
    },
)
