"""Simulation without ROS: scenarios, their world, and the driver that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.engine.config import BudgetConfig, LimitConfig
    from gp_active_sensing.sim.driver import run_name, run_scenario
    from gp_active_sensing.sim.fields.config import FieldConfig
    from gp_active_sensing.sim.fields.truth import build_truth
    from gp_active_sensing.sim.probe import SimulatedProbe
    from gp_active_sensing.sim.scenario import (
        ProbeConfig,
        Scenario,
        load_scenario,
        scenario_from_mapping,
    )
    from gp_active_sensing.sim.sensor import SensorConfig, SimulatedSensor
    from gp_active_sensing.sim.world import World, build_loop, build_world

__all__ = [
    "BudgetConfig",
    "FieldConfig",
    "LimitConfig",
    "ProbeConfig",
    "Scenario",
    "SensorConfig",
    "SimulatedProbe",
    "SimulatedSensor",
    "World",
    "build_loop",
    "build_truth",
    "build_world",
    "load_scenario",
    "run_name",
    "run_scenario",
    "scenario_from_mapping",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "driver": (
            "run_name",
            "run_scenario",
        ),
        "probe": ("SimulatedProbe",),
        "scenario": (
            "BudgetConfig",
            "FieldConfig",
            "LimitConfig",
            "ProbeConfig",
            "Scenario",
            "SensorConfig",
            "load_scenario",
            "scenario_from_mapping",
        ),
        "sensor": ("SimulatedSensor",),
        "fields.truth": ("build_truth",),
        "world": (
            "World",
            "build_loop",
            "build_world",
        ),
    },
)
