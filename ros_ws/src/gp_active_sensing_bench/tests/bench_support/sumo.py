"""A small world for tests with SUMO.

``traffic/ring.net.xml`` is a block of one-lane roads with a spur of two lanes to a dead
end, both ways, limits 10 and 20 m/s::

    D --cd-- C
    |        |
    da      bc
    |        |
    A --ab-- B ==be== E        A (0, 0)  B (300, 0)  C (300, 200)  D (0, 200)  E (450, 0)

``netconvert --node-files … --edge-files … --no-turnarounds.except-deadend`` made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gp_active_sensing.sim import Scenario, scenario_from_mapping

RING = Path(__file__).parents[1] / "traffic" / "ring.net.xml"


def write_cars(path: Path, *cars: str) -> str:
    """Write a file of routes; each car as the inside of ``<routes>``."""
    path.write_text(f"<routes>{''.join(cars)}</routes>", encoding="utf-8")
    return str(path)


def flow(route: str, *, name: str = "f", period: float = 8.0) -> str:
    return (
        f'<flow id="{name}" begin="0" end="3600" period="{period:g}" departSpeed="max">'
        f'<route edges="{route}"/></flow>'
    )


def parked_at(edge: str) -> str:
    """A car that stops in the middle of an edge's lane and stays."""
    return (
        f'<vehicle id="parked" depart="0"><route edges="{edge}"/>'
        f'<stop lane="{edge}_0" endPos="100" duration="100000"/></vehicle>'
    )


def ring(
    *, routes: Sequence[str] = (), readings: int = 6, start: str | None = "da", **traffic: Any
) -> Scenario:
    return scenario_from_mapping(
        {
            "name": "ring",
            "seed": 5,
            "map": {"kind": "roads", "file": str(RING)},
            "field": {"kind": "sumo", "quantity": "speed", "unit": "km/h", "scale": 3.6},
            "traffic": {"net": str(RING), "routes": list(routes), **traffic},
            "sensor": {"noise_std": 0.0},
            "probe": {"start": start},
            "belief": {"length_scales": [100, 300], "signal_std": [10.0], "noise_std": [3.0]},
            "policy": {"name": "ie"},
            "budget": {"readings": readings},
            "limit": {"expansions": 20},
        }
    )
