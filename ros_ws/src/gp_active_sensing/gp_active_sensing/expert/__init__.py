"""Experts: costly sources of current values at known places, asked before a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.expert.base import SOURCE, Expert, Field
    from gp_active_sensing.expert.build import build_expert, station_places
    from gp_active_sensing.expert.config import AnswersConfig, ExpertConfig
    from gp_active_sensing.expert.consultation import Consultation
    from gp_active_sensing.expert.model import ModelExpert
    from gp_active_sensing.expert.revisit import RevisitExpert
    from gp_active_sensing.expert.simulated import Faults, SimulatedExpert, of_map
    from gp_active_sensing.expert.stations import StationsExpert

__all__ = [
    "SOURCE",
    "AnswersConfig",
    "Consultation",
    "Expert",
    "ExpertConfig",
    "Faults",
    "Field",
    "ModelExpert",
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
        "consultation": ("Consultation",),
        "model": ("ModelExpert",),
        "revisit": ("RevisitExpert",),
        "simulated": (
            "Faults",
            "SimulatedExpert",
            "of_map",
        ),
        "stations": ("StationsExpert",),
    },
)
