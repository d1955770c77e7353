"""Learning of hyper-parameters and kernels from prior readings. It needs torch and GPyTorch.

`fit` learns length-scales by marginal likelihood. `kernel_selection` learns a belief over kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing_learning.data.dataset import Dataset
    from gp_active_sensing_learning.data.readings import (
        PriorReadings,
        read_csv,
        read_run,
        read_scenario,
    )
    from gp_active_sensing_learning.data.request import DataRequest, RowRequest, load_readings
    from gp_active_sensing_learning.fit import (
        HyperParameterEstimate,
        belief_section,
        learn,
        section_text,
    )

__all__ = [
    "DataRequest",
    "Dataset",
    "HyperParameterEstimate",
    "PriorReadings",
    "RowRequest",
    "belief_section",
    "learn",
    "load_readings",
    "read_csv",
    "read_run",
    "read_scenario",
    "section_text",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fit": ("HyperParameterEstimate", "belief_section", "learn", "section_text"),
        "data.request": ("DataRequest", "RowRequest", "load_readings"),
        "data.readings": ("PriorReadings", "read_csv", "read_run", "read_scenario"),
        "data.dataset": ("Dataset",),
    },
)
