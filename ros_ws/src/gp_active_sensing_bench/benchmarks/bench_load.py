"""Measure the node under load: readings at 1 kHz, flooding publishers, a mission of two hours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import CORE, Section

sys.path.insert(0, str(CORE))  # for the package `tests`

HERE = Path(__file__).resolve().parent
SECONDS = float(os.environ.get("GPAS_LOAD_SECONDS", "60"))
RATE = float(os.environ.get("GPAS_LOAD_RATE", "1000"))
SLOW = 10.0
"""Lower rate of readings [1/s]. The node's memory at this rate is compared with that at `RATE`."""
FLOOD_SECONDS = min(10.0, SECONDS)
PARTS = os.environ.get("GPAS_LOAD_PARTS", "fast floods hours").split()
HOURS = float(os.environ.get("GPAS_LOAD_HOURS", "2"))
SPEED_FACTOR = 60.0
GRID = (
    "map.kind:=grid", "map.columns:=16", "map.rows:=12", "map.spacing:=10.0",
    "belief.length_scales:=[10.0, 20.0, 40.0, 80.0, 160.0]", "belief.signal_std:=[3.0]",
    "belief.noise_std:=[0.3]", "belief.mean_std:=50.0", "policy.name:=bal", "policy.horizon:=5",
    "policy.alpha:=0.0", "limit.seconds:=0.2", "budget.readings:=1000",
)  # fmt: skip
"""Parameters of a node on a small grid."""


class Bench:
    """Starter of processes in a ROS domain of their own."""

    def __init__(self, folder: Path, domain: int) -> None:
        from gp_active_sensing.ros.environment import node_environment

        self.folder = folder
        variables = {**os.environ, "ROS_LOG_DIR": str(folder), "ROS_DOMAIN_ID": str(domain)}
        self.environment = variables | node_environment(variables)
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, name: str, *command: str) -> subprocess.Popen[str]:
        log = (self.folder / f"{name}.log").open("w", encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, *command], cwd=HERE, env=self.environment, text=True,
            stdout=subprocess.PIPE if name.startswith("publisher") else log, stderr=log,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def node(self, *parameters: str) -> tuple[subprocess.Popen[str], Path]:
        out = self.folder / f"node{len(self.processes)}.json"
        arguments = [word for text in parameters for word in ("-p", text)]
        return self.start(out.stem, "watched_node.py", str(out), "--ros-args", *arguments), out

    def publisher(self, *arguments: object) -> subprocess.Popen[str]:
        name = f"publisher{len(self.processes)}"
        return self.start(name, "load_publisher.py", *map(str, arguments))

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def run() -> Section:
    section = Section(
        "The node under load",
        "python benchmarks/run.py load",
        "Real processes: the node `active_sensing` (looked at from inside every second) and its "
        "publishers, on one machine. The node plans all the time (bal, N'=5, alpha 0, 0.2 s a "
        "decision) for a probe that reaches a new place every half second. Times "
        "of callbacks are from a reading's stamp to the node's callback, by one clock.",
        ("part", "what", "seen"),
    )
    from tests.ros.conftest import domain_id

    with tempfile.TemporaryDirectory() as temporary:
        parts = {"fast": _fast_sensor, "floods": _floods, "hours": _two_hours}
        for number, part in enumerate(parts[name] for name in PARTS):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            bench = Bench(folder, domain_id())
            try:
                section.rows += part(bench)
            finally:
                bench.close()
    return section


def _fast_sensor(bench: Bench) -> list[Sequence[object]]:
    sent, found = _drive(bench, RATE, "reading.reliable:=true")
    sent_plain, plain = _drive(bench, RATE)
    _, slow = _drive(bench, SLOW)
    samples = found["samples"][2:]  # leave out the start
    quarters = np.array_split(np.array(samples), 4)
    lost = sent["readings"] - found["received"]["readings"]
    dropped, rejected = sum(found["dropped"].values()), sum(found["rejected"].values())
    uncounted = found["received"]["readings"] - found["used"] - rejected - found["waiting"]
    lost_plain = sent_plain["readings"] - plain["received"]["readings"]
    part = f"{RATE:g} readings a second for {SECONDS:g} s, reliable"
    slowest = [s["callback_p99_ms"] for s in samples]
    usual = [s["callback_p50_ms"] for s in samples]
    rows: list[Sequence[object]] = [
        (part, "sent / lost on the way / dropped / rejected / not accounted for",
         " / ".join(map(str, (sent["readings"], lost, dropped, rejected, uncounted)))),
        (part, "the same drive, best effort: sent / lost on the way",
         f"{sent_plain['readings']} / {lost_plain}"),
        (part, "decisions; places observed", f"{found['stages']}; {samples[-1]['observed']:.0f}"),
        (part, "memory, mean of the first and of the last quarter", _memory(found)),
        (part, f"the same drive with {SLOW:g} readings a second", _memory(slow)),
        (part, "computing a reading (callback and mission thread), first and last quarter",
         f"{_per_reading(quarters[0]):.3f} and {_per_reading(quarters[-1]):.3f} ms"),
        (part, "callback: median of the seconds' medians and of their p99, worst p99",
         f"{np.median(usual):.2f}, {np.median(slowest):.2f}, {max(slowest):.2f} ms"),
    ]  # fmt: skip
    return rows + _latencies(part, found)


def _drive(bench: Bench, rate: float, *parameters: str) -> tuple[dict[str, Any], dict[str, Any]]:
    node, out = bench.node(*GRID, f"reading.rate:={rate}", *parameters)
    publisher = bench.publisher("drive", SECONDS, rate, 20)
    sent = json.loads(publisher.communicate(timeout=SECONDS + 60)[0])
    return sent, _finish(node, out)


def _memory(found: dict[str, Any]) -> str:
    quarters = np.array_split(np.array(found["samples"][2:]), 4)
    return f"{_mean(quarters[0], 'rss_mb'):.1f} and {_mean(quarters[-1], 'rss_mb'):.1f} MB"


def _floods(bench: Bench) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = []
    cases = (
        ("none", None),
        ("small readings", ("reading", 3)),
        ("small poses in a wrong frame", ("pose", 3)),
        ("readings of 10 MB", ("reading", 10_000_000)),
        ("poses of 10 MB", ("pose", 10_000_000)),
    )
    for name, case in cases:
        part = f"flood: {name}"
        node, out = bench.node(*GRID)
        driver = bench.publisher("drive", FLOOD_SECONDS + 6.0, 10, 20)
        time.sleep(3.0)
        flooder = None if case is None else bench.publisher("flood", FLOOD_SECONDS, *case)
        asker = bench.publisher("ask", FLOOD_SECONDS - 2.0)
        took = json.loads(asker.communicate(timeout=60)[0])
        sent = 0 if flooder is None else json.loads(flooder.communicate(timeout=60)[0])["sent"]
        driver.communicate(timeout=60)
        found = _finish(node, out)
        refused = {k: v for k, v in found["rejected"].items() if k != "gated"}
        counts = ", ".join(f"{n} {word}" for word, n in sorted(refused.items())) or "none"
        rows += [
            (part, "sent by the flooder; refused by the node", f"{sent}; {counts}"),
            (part, "decisions; largest memory",
             f"{found['stages']}; {max(s['rss_mb'] for s in found['samples']):.0f} MB"),
            (part, "a service answers: median, p99, worst",
             f"{np.median(took):.1f}, {np.percentile(took, 99):.1f}, {max(took):.1f} ms"),
        ]  # fmt: skip
    return rows


def _two_hours(bench: Bench) -> list[Sequence[object]]:
    simulated = 3600.0 * HOURS
    scenario = _slow_town(bench.folder)
    node, out = bench.node(
        f"scenario:={scenario}", "use_sim_time:=true", f"budget.seconds:={simulated}",
        "reading.rate:=100.0", "pose.rate:=600.0", "mission.drive_timeout:=0.0",
    )  # fmt: skip
    words = (f"scenario:={scenario}", f"speed_factor:={SPEED_FACTOR}", "exit_at_end:=false")
    arguments = [word for text in words for word in ("-p", text)]
    bench.start("simulator", "-m", "gp_active_sensing.ros.simulator_node", "--ros-args", *arguments)
    time.sleep(simulated / SPEED_FACTOR)
    found = _finish(node, out)
    periods = np.array_split(np.array(found["samples"][5:]), 12)
    means = [_mean(period, "rss_mb") for period in periods]
    least, middle, most = min(means[3:]), float(np.mean(means[3:])), max(means[3:])
    part = f"{HOURS:g} h simulated at {SPEED_FACTOR:g} times real time"
    return [
        (part, "decisions; poses used; readings used",
         f"{found['stages']}; {found['poses_used']}; {found['used']}"),
        (part, "memory, mean of each twelfth [MB]", ", ".join(f"{m:.0f}" for m in means)),
        (part, "memory after the first quarter, least and most of these against their mean",
         f"{100 * (least / middle - 1):+.1f} % and {100 * (most / middle - 1):+.1f} %"),
        *_latencies(part, found),
    ]  # fmt: skip


def _slow_town(folder: Path) -> Path:
    """Write a scenario of the town in which a hundred places take hours."""
    import yaml

    from gp_active_sensing.sim import load_scenario

    overrides = ["probe.speed=1.0", "budget.readings=1000"]
    mapping = load_scenario("town", overrides=overrides).to_mapping()
    path = folder / "town_slow.yaml"
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return path


def _finish(node: subprocess.Popen[str], out: Path) -> dict[str, Any]:
    node.send_signal(signal.SIGINT)
    node.wait(timeout=60)
    return dict(json.loads(out.read_text(encoding="utf-8")))


def _mean(samples: Sequence[dict[str, float]], key: str) -> float:
    return float(np.mean([s[key] for s in samples]))


def _per_reading(samples: Sequence[dict[str, float]]) -> float:
    """Return the mean computing time that a reading takes in the node's threads [ms]."""
    first, last = samples[0], samples[-1]
    spent = sum(last[key] - first[key] for key in ("cpu_main", "cpu_mission"))
    return 1e3 * spent / max(1.0, last["received"] - first["received"])


def _latencies(part: str, found: dict[str, Any]) -> list[Sequence[object]]:
    names = {
        "reading_to_belief": "reading in → in the belief (waiting for its pose included)",
        "arrival_to_waypoint": "arrival → next waypoint out",
    }
    rows: list[Sequence[object]] = []
    for key, name in names.items():
        took = found["latency"][key]
        if took["count"]:
            shown = f"{took['median_ms']:.1f}, {took['p99_ms']:.1f} ms ({took['count']})"
            rows.append((part, f"{name}: median, p99", shown))
    return rows
