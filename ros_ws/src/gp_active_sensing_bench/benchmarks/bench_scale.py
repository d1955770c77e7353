"""Large road networks: loading, embedding, planning a stage, predicting the whole map, memory.

``python bench_scale.py FILE FEATURES KERNEL`` measures one line, in a process of its own so that
peak memory is its own; `run` starts these with an empty cache and then again with a full one.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gp_active_sensing.util.process import one_blas_thread

one_blas_thread()

import numpy as np  # noqa: E402
from common import Section, cholesky_seconds  # noqa: E402

from gp_active_sensing.sim import build_loop, build_world  # noqa: E402
from gp_active_sensing.sim.scenario import scenario_from_mapping  # noqa: E402
from gp_active_sensing.topology import build_topology  # noqa: E402

STAGES, SIZE = 120, 20_000
COVARIANCES = (("[x, y]", "matern32"), ("[relational]", "se"), ("[x, y]", "graph_matern32"))
SCALES = {
    "[x, y]": (100, 200, 400, 800, 1600, 3200, 6400),
    "[relational]": (0.5, 1, 2, 4, 8, 16, 32),
}


def scenario_of(file: str, features: str, kernel: str) -> dict[str, Any]:
    """A drawn field on the map; the draw itself is on plain coordinates and not measured."""
    return {
        "map": {
            "kind": "roads", "file": file, "largest_component": True,
            "features": features.strip("[]").split(", "),
        },
        "field": {
            "kind": "gp", "kernel": "graph_matern32", "length_scale": 400.0, "signal_std": 10.0,
        },
        "sensor": {"noise_std": 2.0},
        "probe": {"start": "random"},
        "belief": {
            "kernel": kernel, "length_scales": list(SCALES[features]), "signal_std": [10.0],
            "noise_std": [2.0], "mean_std": 100.0,
        },
        "policy": {"name": "bal", "horizon": 4, "samples": 5, "alpha": 0.05},
        "budget": {"readings": STAGES},
        "limit": {"expansions": 2000},
    }  # fmt: skip


def measure(file: str, features: str, kernel: str) -> dict[str, float]:
    """Build everything, drive a mission, predict; seconds of one core and MB."""
    yardstick = cholesky_seconds()
    scenario = scenario_from_mapping(scenario_of(file, features, kernel))
    started = time.process_time()
    build_topology(scenario.map)
    loaded = time.process_time() - started
    started = time.process_time()
    world = build_world(scenario)
    loop = build_loop(scenario, world.topology)
    built = time.process_time() - started
    at, stages, predicted = world.start, [], []
    for stage in range(STAGES):
        before = time.process_time()
        plan = loop.ask(at)
        stages.append(time.process_time() - before)
        if plan.waypoint is None:
            break
        at = plan.waypoint
        reading = world.sensor.read(at, 0, stage)
        if reading is not None:
            loop.tell([reading])
        if stage % 10 == 9:
            before = time.process_time()
            loop.belief.predict()
            predicted.append(time.process_time() - before)
    return {
        "places": world.topology.n,
        "loaded": loaded,
        "built": built,
        "stage": float(np.median(stages)),
        "worst": float(np.max(stages)),
        "predict": float(np.max(predicted)),
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
        "cholesky": yardstick,
    }


def child(file: Path, features: str, kernel: str, cache: str) -> dict[str, float]:
    """Measure in a fresh process."""
    command = [sys.executable, str(Path(__file__).resolve()), str(file), features, kernel]
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        done.check_returncode()
    return dict(json.loads(done.stdout.splitlines()[-1]))


def shown(found: dict[str, float], key: str) -> str:
    """Seconds, and how many Cholesky factorisations that is."""
    return f"{found[key]:.3g} ({found[key] / found['cholesky']:.3g} ×)"


def run() -> Section:
    from make_city import make_city

    from gp_active_sensing.topology.loaders import map_text

    section = Section(
        "Large road networks",
        "GPAS_DATA=… python benchmarks/run.py scale",
        "`map`: load the map and embed it; `all`: load it once more (from the cache), draw a "
        "field on the graph, build the belief (7 length-scales). Both with an empty cache, "
        "`first`, and with what that left, `again`. `stage`: planning with N' = 4, S = 5, "
        f"α = 0.05 nat, median and worst of {STAGES} stages. `predict`: mean and variance of every "
        f"place, the slowest of {STAGES // 10}, each after ten more readings. Seconds of processor "
        "time, one BLAS thread; in brackets over a 1000 × 1000 Cholesky of the same process. "
        "`memory`: peak of the whole process, second run.",
        ("map", "places", "features", "kernel", "map first s", "all first s", "map again s",
         "all again s", "stage s", "worst s", "predict s", "memory MB"),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        city = Path(folder) / "city.geojson"
        city.write_text(map_text(make_city(SIZE), "roads")[0], encoding="utf-8")
        maps = [("city", city)]
        data = os.environ.get("GPAS_DATA")
        if data:
            maps.insert(0, ("Monaco", Path(data) / "sumo" / "monaco.net.xml.gz"))
        for name, file in maps:
            for features, kernel in COVARIANCES:
                with tempfile.TemporaryDirectory() as cache:
                    first = child(file, features, kernel, cache)
                    again = child(file, features, kernel, cache)
                section.rows.append(
                    (
                        name,
                        int(again["places"]),
                        features,
                        kernel,
                        *(shown(first, key) for key in ("loaded", "built")),
                        *(
                            shown(again, key)
                            for key in ("loaded", "built", "stage", "worst", "predict")
                        ),
                        f"{again['mb']:.0f}",
                    )
                )
    return section


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(*sys.argv[1:4])) + "\n")
