"""Simulation without ROS: scenarios, their world, and the driver that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.sim.driver import run_scenario as run_scenario
    from gp_active_sensing.sim.fields.config import FieldConfig as FieldConfig
    from gp_active_sensing.sim.fields.truth import build_truth as build_truth
    from gp_active_sensing.sim.probe import SimulatedProbe as SimulatedProbe
    from gp_active_sensing.sim.scenario import Scenario as Scenario
    from gp_active_sensing.sim.scenario import load_scenario as load_scenario
    from gp_active_sensing.sim.scenario import scenario_from_mapping as scenario_from_mapping
    from gp_active_sensing.sim.sensor import SensorConfig as SensorConfig
    from gp_active_sensing.sim.sensor import SimulatedSensor as SimulatedSensor
    from gp_active_sensing.sim.world import World as World
    from gp_active_sensing.sim.world import build_loop as build_loop
    from gp_active_sensing.sim.world import build_world as build_world

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "driver": ("run_scenario",),
        "fields.config": ("FieldConfig",),
        "fields.truth": ("build_truth",),
        "probe": ("SimulatedProbe",),
        "scenario": ("Scenario", "load_scenario", "scenario_from_mapping"),
        "sensor": ("SensorConfig", "SimulatedSensor"),
        "world": ("World", "build_loop", "build_world"),
    },
)
