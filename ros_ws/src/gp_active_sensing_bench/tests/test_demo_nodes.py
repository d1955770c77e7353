"""The demo from end to end on a small map: nodes in processes of their own, and nobody left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.web.serve import can_serve
from tests.ros.conftest import ros_environment
from tests.waiting import LIMIT

__all__ = ["ros_environment"]

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

pytestmark = pytest.mark.ros
MARK = "GPAS_DEMO_TEST"
SCENARIO = {
    "name": "yard",
    "description": "A small yard.",
    "map": {"kind": "grid", "columns": 6, "rows": 5, "spacing": 10.0},
    "field": {"kind": "gp", "length_scale": 20.0, "signal_std": 3.0, "unit": "degC"},
    "sensor": {"noise_std": 0.5},
    "probe": {"start": 0, "speed": 5.0},
    "belief": {"length_scales": [5.0, 20.0, 60.0], "signal_std": [3.0], "noise_std": [0.5]},
    "policy": {"name": "bal", "horizon": 2, "samples": 3},
    "limit": {"expansions": 5},
    "budget": {"readings": 4},
}


class Demo:
    """A demo in a process of its own; its descendants carry a mark in their environment."""

    def __init__(self, folder: Path, *words: str, **environment: str) -> None:
        self.out = folder / "run"
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        scenario = folder / "yard.yaml"
        scenario.write_text(yaml.safe_dump(SCENARIO))
        command = [sys.executable, "-m", "gp_active_sensing_bench.demo"]
        command += ["--scenario", str(scenario), "--out", str(self.out), "--speed", "20", *words]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={**os.environ, MARK: self.mark, **environment},
        )
        self.said = ""

    def wait(self) -> int:
        rest, _ = self.process.communicate(timeout=LIMIT)
        self.said += rest
        return self.process.returncode

    def read_until(self, word: str) -> None:
        assert self.process.stdout is not None
        while word not in self.said:
            line = self.process.stdout.readline()
            assert line, self.said
            self.said += line

    def descendants(self) -> list[int]:
        """Return the processes that carry the mark and run."""
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                marked = f"{MARK}={self.mark}".encode() in (folder / "environ").read_bytes()
                state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if marked and state != "Z":
                found.append(int(folder.name))
        return found

    def all_gone(self) -> bool:
        return not self.descendants()

    def close(self) -> None:
        for pid in self.descendants():
            os.kill(pid, signal.SIGKILL)
        self.process.wait(LIMIT)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def demos() -> Iterator[list[Demo]]:
    started: list[Demo] = []
    yield started
    for demo in started:
        demo.close()


def start(demos: list[Demo], folder: Path, *words: str, **more: Any) -> Demo:
    demos.append(Demo(folder, *words, **more))
    return demos[-1]


def test_the_demo_runs_to_its_budget_and_leaves_a_run_directory(
    tmp_path: Path, demos: list[Demo]
) -> None:
    demo = start(demos, tmp_path, "--budget", "3")
    assert demo.wait() == 0, demo.said
    assert demo.all_gone()
    records = RunDirectory.open(demo.out).records()
    assert [record["stage"] for record in records] == [1, 2, 3]
    read = [float(value) for value in re.findall(r" read +(-?[\d.]+) degC", demo.said)]
    assert read == pytest.approx([record["value"] for record in records], abs=0.06)
    summary = json.loads((demo.out / "summary.json").read_text())
    assert summary["status"] == "finished"
    assert summary["observed"] == 3
    assert f"{summary['rmspe']:.3g} degC" in demo.said
    page = demo.out / "report.html"
    assert f"report: {page}" in demo.said
    assert bool(re.search(r"^live page: http://", demo.said, re.MULTILINE)) == can_serve()
    assert "<html" in page.read_text(encoding="utf-8")
    assert "the mission is over" in (demo.out / "logs" / "nodes.log").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "yard.yaml"]


@pytest.mark.long
def test_the_nodes_and_the_engine_alone_find_the_same(tmp_path: Path, demos: list[Demo]) -> None:
    found = []
    for name, words in (("nodes", ()), ("alone", ("--no-ros",))):
        folder = tmp_path / name
        folder.mkdir()
        demo = start(demos, folder, *words)
        assert demo.wait() == 0, demo.said
        records = RunDirectory.open(demo.out).records()
        found.append([(r["location"], r["value"], r["weights"]) for r in records])
    nodes, alone = found
    assert [place for place, _, _ in nodes] == [place for place, _, _ in alone]
    for ours, theirs in zip(nodes, alone, strict=True):
        assert ours[1] == pytest.approx(theirs[1], abs=1e-12)
        assert ours[2] == pytest.approx(theirs[2], abs=1e-12)


@pytest.mark.long
def test_a_signal_ends_everything_and_leaves_a_readable_directory(
    tmp_path: Path, demos: list[Demo]
) -> None:
    demo = start(demos, tmp_path, "--budget", "25")
    demo.read_until(" 2/25 places")
    assert len(demo.descendants()) == (4 if can_serve() else 3)
    demo.process.send_signal(signal.SIGTERM)
    assert demo.wait() == 128 + signal.SIGTERM, demo.said
    assert demo.all_gone()
    run = RunDirectory.open(demo.out)
    assert len(run.records()) >= 2
    assert run.summary()["status"] == "interrupted"
    assert (demo.out / "report.html").is_file()
    assert "Traceback" not in demo.said


def test_two_ros_installations_at_once_are_explained_and_the_engine_runs(
    tmp_path: Path, demos: list[Demo]
) -> None:
    from gp_active_sensing.ros.environment import inspect_ros

    if inspect_ros().wheels is None:
        pytest.skip("this ROS does not come from wheels")
    demo = start(demos, tmp_path, AMENT_PREFIX_PATH="/opt/ros/jazzy")
    assert demo.wait() == 0, demo.said
    assert "two ROS installations at once" in demo.said
    assert len(RunDirectory.open(demo.out).records()) == 4
