"""Missions whose node is killed at random moments: what is lost, doubled, different at the end."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from common import Section

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `tests`

MISSIONS = int(os.environ.get("GPAS_KILL_MISSIONS", "100"))
SCENARIOS = 4
"""Different fields, half of them with dropouts."""


def run() -> Section:
    from gp_active_sensing.ros.launching import node_environment
    from tests.ros.conftest import domain_id
    from tests.ros.killing import (
        Outcome,
        compare,
        random_kills,
        run_mission,
        write_scenario,
    )

    domains = [str(domain_id()) for _ in range(2)]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)

        def environment(number: int) -> dict[str, str]:
            variables = {**os.environ, "ROS_LOG_DIR": str(root / "ros_logs")}
            variables |= node_environment(variables)
            return variables | {"ROS_DOMAIN_ID": domains[number % 2]}

        scenarios = [
            write_scenario(root / f"{i}.yaml", seed=i, dropout=0.2 * (i % 2), budget=12)
            for i in range(SCENARIOS)
        ]
        plain: list[Outcome] = []
        for i, scenario in enumerate(scenarios):
            folder = root / f"plain{i}"
            folder.mkdir()
            plain.append(run_mission(folder, scenario, [], environment=environment(0)))

        def mission(number: int) -> tuple[Outcome, dict[str, float]]:
            rng = np.random.default_rng([11, number])
            folder = root / f"killed{number}"
            folder.mkdir()
            kills = random_kills(rng, int(rng.integers(1, 5)))
            which = number % SCENARIOS
            killed = run_mission(folder, scenarios[which], kills, environment=environment(number))
            return killed, compare(plain[which], killed)

        # Even and odd numbers have a ROS domain each, and run one after the other.
        with ThreadPoolExecutor(2) as pool:
            halves = list(
                pool.map(lambda first: [mission(n) for n in range(first, MISSIONS, 2)], range(2))
            )
    found = [item for half in halves for item in half]
    total = {key: sum(d[key] for _, d in found) for key in ("lost", "doubled", "miscounted")}
    different = sum(d["decisions_differ"] for _, d in found)
    worst = {key: max(d[key] for _, d in found) for key in ("weights", "mean")}
    readings = sum(plain[n % SCENARIOS].readings.total() for n in range(MISSIONS))
    section = Section(
        "Nodes that are killed",
        "python benchmarks/run.py kill",
        f"{MISSIONS} missions of 12 places on a grid of 30 (bal, N'=3, 30 expansions a decision; "
        "the simulator at 40 times real time; half of the fields with 20 % dropouts). The node "
        "`active_sensing` is ended by SIGKILL up to four times a mission: two times of three 0 to "
        "1.5 s after it has begun to write, otherwise 0.3 to 3 s after its start. It is started "
        "again with the same parameters (`run_dir`, `reading.catch_up`, `pose.catch_up`). Compared "
        "with the same missions left alone.",
        ("what", "seen"),
    )
    section.rows += [
        ("kills", sum(outcome.kills for outcome, _ in found)),
        ("of these while the mission was under way", sum(o.resumed for o, _ in found)),
        ("readings accepted", readings),
        ("lost", round(total["lost"])),
        ("doubled", round(total["doubled"])),
        ("counted otherwise than in the journal", round(total["miscounted"])),
        ("missions with another decision", round(different)),
        ("largest difference of a weight of the final belief", f"{worst['weights']:.1e}"),
        ("largest difference of the final field [degC]", f"{worst['mean']:.1e}"),
        ("seconds altogether", f"{time.monotonic() - began:.0f}"),
    ]
    return section
