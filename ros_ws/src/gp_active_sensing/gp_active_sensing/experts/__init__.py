"""Experts: costly sources of current values at known places, asked before a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.experts.base import SOURCE, AnswersConfig, Expert, ExpertConfig, Field
    from gp_active_sensing.experts.query_log import QueryLog
    from gp_active_sensing.experts.simulated import (
        RevisitExpert,
        SimulatedExpert,
        build_expert,
        station_places,
    )

__all__ = [
    "SOURCE",
    "AnswersConfig",
    "Expert",
    "ExpertConfig",
    "Field",
    "QueryLog",
    "RevisitExpert",
    "SimulatedExpert",
    "build_expert",
    "station_places",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "base": ("AnswersConfig", "Expert", "ExpertConfig", "Field", "SOURCE"),
        "simulated": (
            "RevisitExpert",
            "SimulatedExpert",
            "build_expert",
            "station_places",
        ),
        "query_log": ("QueryLog",),
    },
)
