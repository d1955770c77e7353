"""Experts: costly sources of current values at known places, asked before a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.experts.base import SOURCE, Expert, Field
    from gp_active_sensing.experts.build import build_expert, station_places
    from gp_active_sensing.experts.config import AnswersConfig, ExpertConfig
    from gp_active_sensing.experts.query_log import QueryLog
    from gp_active_sensing.experts.second_probe import RevisitExpert
    from gp_active_sensing.experts.simulated import (
        Faults,
        ModelExpert,
        SimulatedExpert,
        StationsExpert,
        of_map,
    )

__all__ = [
    "SOURCE",
    "AnswersConfig",
    "Expert",
    "ExpertConfig",
    "Faults",
    "Field",
    "ModelExpert",
    "QueryLog",
    "RevisitExpert",
    "SimulatedExpert",
    "StationsExpert",
    "build_expert",
    "of_map",
    "station_places",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "base": (
            "SOURCE",
            "Expert",
            "Field",
        ),
        "build": (
            "build_expert",
            "station_places",
        ),
        "config": (
            "AnswersConfig",
            "ExpertConfig",
        ),
        "query_log": ("QueryLog",),
        "second_probe": ("RevisitExpert",),
        "simulated": (
            "Faults",
            "ModelExpert",
            "SimulatedExpert",
            "StationsExpert",
            "of_map",
        ),
    },
)
