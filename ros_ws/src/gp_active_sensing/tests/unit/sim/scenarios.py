from __future__ import annotations

import copy
from typing import Any

from gp_active_sensing.sim import Scenario, scenario_from_mapping

LINE: dict[str, Any] = {
    "name": "small",
    "seed": 3,
    "map": {"kind": "line", "count": 12, "moves": "free"},
    "field": {"kind": "gp", "length_scale": 2.0, "signal_std": 5.0, "unit": "K"},
    "sensor": {"noise_std": 0.2},
    "belief": {
        "length_scales": [1, 2, 4],
        "signal_std": [5.0],
        "noise_std": [0.2],
        "mean_std": 0.0,
    },
    "policy": {"name": "bal", "horizon": 2, "samples": 3},
    "budget": {"readings": 6},
    "limit": {"expansions": 5},
}

GRID: dict[str, Any] = {
    **LINE,
    "name": "grid",
    "map": {"kind": "grid", "columns": 4, "rows": 3, "spacing": 10.0},
    "field": {"kind": "gp", "length_scale": 20.0, "signal_std": 5.0, "mean": 33.0},
    "belief": {"length_scales": [10, 20], "signal_std": [5.0], "noise_std": [0.2]},
    "probe": {"start": 0, "speed": 2.0},
}


def mapping(base: dict[str, Any] = LINE, **sections: Any) -> dict[str, Any]:
    """Return a copy with sections updated (mappings) or replaced (the rest)."""
    result = copy.deepcopy(base)
    for key, value in sections.items():
        other_policy = key == "policy" and isinstance(value, dict) and "name" in value
        if isinstance(value, dict) and isinstance(result.get(key), dict) and not other_policy:
            result[key] = {**result[key], **value}
        else:
            result[key] = value
    return result


def scenario(base: dict[str, Any] = LINE, **sections: Any) -> Scenario:
    return scenario_from_mapping(mapping(base, **sections))
