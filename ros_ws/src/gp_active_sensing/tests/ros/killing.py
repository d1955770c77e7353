"""Missions whose node is killed at random moments and started again; for a test and a benchmark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.sim import scenario_from_mapping
from gp_active_sensing.sim.world import build_loop, build_world
from gp_active_sensing.types import FloatArray, Reading
from tests.ros.conftest import LOOPBACK
from tests.waiting import LIMIT

SCENARIO = """
name: killed
seed: {seed}
map: {{kind: grid, columns: 6, rows: 5, spacing: 10.0, speed: 5.0}}
field: {{kind: gp, length_scale: 20.0, signal_std: 3.0, mean: 20.0, unit: degC}}
sensor: {{noise_std: 0.3, dropout: {dropout}}}
probe: {{start: 0}}
belief: {{length_scales: [10.0, 20.0, 40.0], signal_std: [3.0], noise_std: [0.3], mean_std: 50.0}}
policy: {{name: bal, horizon: 3}}
budget: {{readings: {budget}}}
limit: {{expansions: 30}}
"""


@dataclass(frozen=True)
class Kill:
    """When the node is killed.

    Args:
        seconds: after it was started, or
        at_work: after it has written its first line to the journal since then.
    """

    seconds: float
    at_work: bool = False


def random_kills(rng: np.random.Generator, count: int) -> list[Kill]:
    """Return kills of which about two thirds meet the mission at work, the others the start."""
    return [
        Kill(float(rng.uniform(0.0, 1.5)), at_work=True)
        if rng.random() < 2 / 3
        else Kill(float(rng.uniform(0.3, 3.0)))
        for _ in range(count)
    ]


@dataclass(frozen=True)
class Outcome:
    """What is left of a mission.

    Args:
        readings: how often each (place, value) is in the journal.
        decisions: places chosen, in order.
        weights: (L,) belief over the candidates.
        mean: (n,) the field believed in.
        kills: how often the node was killed.
        resumed: how often it went on with a mission that had begun.
        accepted: readings used, as the last process counted.
    """

    readings: Counter[tuple[int, float]]
    decisions: list[int]
    weights: FloatArray
    mean: FloatArray
    kills: int
    resumed: int
    accepted: int


def write_scenario(path: Path, *, seed: int, dropout: float = 0.0, budget: int = 12) -> Path:
    """Write the scenario of a mission that is to be killed."""
    text = SCENARIO.format(seed=seed, dropout=dropout, budget=budget)
    path.write_text(text, encoding="utf-8")
    return path


def run_mission(
    folder: Path,
    scenario: Path,
    kills: Sequence[Kill],
    *,
    speed: float = 40.0,
    patience: float = 1.0,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Run simulator and node to the end of the mission.

    Args:
        folder: for records and logs.
        scenario: to play.
        kills: one after the other; a mission that ends before is not killed any more.
        speed: simulated seconds per second.
        patience: how long a reading is waited for before the place is visited again [s, real
            time]: longer than a busy machine may keep the readings of a hasty simulator back.
        environment: of both; None = of this process.
    """
    common = [f"scenario:={scenario}"]
    run_dir = folder / "run"
    simulator = _start(
        "simulator",
        folder / "simulator.log",
        [*common, f"speed_factor:={speed}", "exit_at_end:=false", "keep:=true"],
        environment,
    )
    sensing: subprocess.Popen[bytes] | None = None
    killed = 0
    log = folder / "sensing.log"
    try:
        pending = list(kills)
        end = time.monotonic() + 2 * LIMIT
        while True:
            sensing = _start(
                "active_sensing",
                log,
                [
                    *common,
                    f"run_dir:={run_dir}",
                    "use_sim_time:=true",
                    "mission.exit_at_end:=true",
                    "plan_ahead:=false",
                    f"mission.reading_timeout:={patience * speed}",
                    # A busy machine may keep the probe from moving for minutes of its time.
                    "mission.drive_timeout:=0.0",
                    "reading.variance_field:=variance",
                    "reading.catch_up:=true",
                    "pose.catch_up:=true",
                ],
                environment,
            )
            wait = end - time.monotonic()
            if pending:
                kill = pending.pop(0)
                if kill.at_work:
                    _await_work(sensing, run_dir / "journal.jsonl", end)
                wait = kill.seconds
            try:
                code = sensing.wait(timeout=max(wait, 0.0))
            except subprocess.TimeoutExpired:
                if time.monotonic() >= end:
                    msg = f"the mission does not end:\n{log.read_text()[-3000:]}"
                    raise AssertionError(msg) from None
                sensing.send_signal(signal.SIGKILL)
                sensing.wait()
                killed += 1
                continue
            assert code == 0, log.read_text()[-3000:]
            break
    finally:
        for process in (sensing, simulator):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
    return _outcome(run_dir, killed)


def _await_work(process: subprocess.Popen[bytes], journal: Path, end: float) -> None:
    """Wait until a line more is in the journal, or the process has ended."""

    def size() -> int:
        return journal.stat().st_size if journal.exists() else 0

    before = size()
    while size() == before and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)


def _start(
    name: str, log: Path, parameters: Sequence[str], environment: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    arguments = [word for text in parameters for word in ("-p", text)]
    command = [sys.executable, "-m", f"gp_active_sensing.ros.{name}_node", "--ros-args", *arguments]
    with log.open("ab") as stream:
        return subprocess.Popen(
            command,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**(os.environ if environment is None else environment), **LOOPBACK},
        )


def _outcome(run_dir: Path, kills: int) -> Outcome:
    lines = (run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    import yaml

    config = yaml.safe_load((run_dir / "config.yaml").read_text(encoding="utf-8"))
    scenario = scenario_from_mapping(config)
    loop = build_loop(scenario, build_world(scenario).topology)
    readings = [e for e in events if e["event"] == "reading"]
    for event in readings:
        known = event["noise_variance"]
        loop.tell([Reading(event["stamp_ns"], event["location"], event["value"], known)])
    return Outcome(
        readings=Counter((e["location"], e["value"]) for e in readings),
        decisions=[e["waypoints"][0] for e in events if e["event"] == "decision"],
        weights=loop.belief.weights,
        mean=loop.belief.predict()[0],
        kills=kills,
        resumed=sum(e["event"] == "resumed" for e in events),
        accepted=int(summary["readings"]),
    )


def compare(plain: Outcome, killed: Outcome) -> dict[str, float]:
    """Return readings lost and doubled, and the largest difference of the final beliefs."""
    return {
        "lost": float((plain.readings - killed.readings).total()),
        "doubled": float((killed.readings - plain.readings).total()),
        "miscounted": float(abs(killed.accepted - killed.readings.total())),
        "decisions_differ": float(plain.decisions != killed.decisions),
        "weights": float(np.abs(plain.weights - killed.weights).max()),
        "mean": float(np.abs(plain.mean - killed.mean).max()),
    }
