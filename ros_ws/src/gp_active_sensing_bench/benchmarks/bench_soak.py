"""Run a long mission with kills of the node, a full disk and clock steps.

GPAS_SOAK_DECISIONS sets the number of decisions. GPAS_SOAK_SECONDS sets the longest time [s].
"""

# ruff: noqa: TID251  uses ROS
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import CORE, Section

sys.path.insert(0, str(CORE))  # for the package `tests`

DECISIONS = int(os.environ.get("GPAS_SOAK_DECISIONS", "2000"))
SECONDS = float(os.environ.get("GPAS_SOAK_SECONDS", "1800"))
QUICK = 60
EVERY = 50
"""Number of decisions between two kills of the node."""
FULL = 20
"""Number of decisions with a full disk."""
DISK_MB = 256
PATIENCE = 60.0
"""Longest wall-clock time without a decision [s]."""
STEP_NS = 86_400_000_000_000
PARAMETERS = (
    "map.kind:=grid", "belief.length_scales:=[20.0]", "belief.signal_std:=[3.0]",
    "belief.noise_std:=[0.3]", "belief.mean_value:=20.0", "policy.name:=variance_only", "seed:=16",
    "reading.variance_field:=variance",
    "reading.window:=0.8", "reading.rate:=1000.0", "pose.rate:=1000.0", "reading.catch_up:=true",
    "pose.catch_up:=true", "mission.reading_timeout:=60.0", "mission.drive_timeout:=0.0",
    "mission.exit_at_end:=true", "use_sim_time:=true", "budget.readings:=1000000",
)  # fmt: skip


@dataclass
class Seen:
    memory: list[float] = field(default_factory=list)
    """Memory of the node after each decision [MB]."""
    lives: list[list[float]] = field(default_factory=list)
    """Memory of each node process after each of its decisions [MB]."""
    cycles: list[float] = field(default_factory=list)
    """Time between consecutive waypoints [s]."""
    restarts: list[float] = field(default_factory=list)
    """Time from the start of a node process to its first waypoint [s]."""
    computing: list[float] = field(default_factory=list)
    """Processor time of a node process until its first waypoint [s]."""
    kills: int = 0
    full: int = 0
    steps: list[int] = field(default_factory=list)
    """Simulated times at which the clock was stepped [ns]."""
    stopped: str = ""


class Disk:
    """Small disk that holds the run directory and can be filled.

    If this process may not mount a disk, the size of the node's files is limited instead.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.path = folder / "disk"
        self.path.mkdir()
        size = f"size={DISK_MB}m"
        mount = ["mount", "-t", "tmpfs", "-o", size, "gpas_soak", str(self.path)]
        able = shutil.which("mount") and subprocess.run(mount, capture_output=True, check=False)
        self.mounted = bool(able) and able.returncode == 0
        if self.mounted:
            stack.callback(subprocess.run, ["umount", str(self.path)], check=False)
        self.how = (
            f"a tmpfs of {DISK_MB} MB, filled to the last byte"
            if self.mounted
            else "a limit on the size of the node's files (RLIMIT_FSIZE), as nothing may be mounted"
        )

    def fill(self, process: subprocess.Popen[bytes]) -> None:
        if not self.mounted:
            self._limit(process, (self.path / "run" / "journal.jsonl").stat().st_size)
            return
        with (self.path / "ballast").open("ab", buffering=0) as stream:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        stream.write(b"\0" * size)
                except OSError:
                    continue

    def free(self, process: subprocess.Popen[bytes]) -> None:
        if self.mounted:
            (self.path / "ballast").unlink()
        else:
            self._limit(process, -1)

    @staticmethod
    def _limit(process: subprocess.Popen[bytes], size: int) -> None:
        import resource

        _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, hard))


class Soak:
    """Mission that successive node processes continue in the same run directory."""

    def __init__(self, folder: Path, disk: Disk, decisions: int) -> None:
        from soak_driver import COLUMNS, ROWS, SPACING, Driver

        self.driver = Driver(decisions)
        self.disk = disk
        self.decisions = decisions
        self.seen = Seen()
        self.log = Path(os.environ.get("GPAS_KEPT", folder)) / "soak.log"
        grid = (f"map.columns:={COLUMNS}", f"map.rows:={ROWS}", f"map.spacing:={SPACING}")
        own = f"run_dir:={disk.path / 'run'}"
        words = [word for text in (*PARAMETERS, *grid, own) for word in ("-p", text)]
        module = "gp_active_sensing.ros.active_sensing_node"
        self._command = [sys.executable, "-m", module, "--ros-args", *words]
        self._rng = np.random.default_rng([16])
        self._begun = time.monotonic()
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a node and wait for its first waypoint."""
        from soak_driver import spent_seconds

        driver, goals = self.driver, self.driver.goals
        with self.log.open("ab") as stream:
            began = time.monotonic()
            process = subprocess.Popen(self._command, stdout=stream, stderr=stream)
        self.process = process
        self.seen.lives.append([])
        for i in range(round(PATIENCE / 0.05)):
            driver.stay(readings=i < 20)
            if driver.goals > goals or process.poll() is not None:
                break
        if driver.goals == goals:
            self.close()
            msg = f"no waypoint from a node that was started:\n{self.log.read_text()[-3000:]}"
            raise AssertionError(msg)
        self.seen.restarts.append(driver.heard_at - began)
        self.seen.computing.append(spent_seconds(process.pid))
        return process

    def run(self) -> None:
        due = self._plan()
        while self.driver.decisions < self.decisions:
            if time.monotonic() - self._begun > SECONDS:
                self.seen.stopped = f", ended after {SECONDS:g} s as it was told to"
                break
            self._decision()
            while due and self.driver.decisions >= due[0][0]:
                due.pop(0)[1]()
        self._finish()

    def _finish(self) -> None:
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < until:
            self.driver.call("finish")
            self.driver.spin(1.0)
        if self.process.poll() != 0:
            msg = f"the node ended with {self.process.poll()}:\n{self.log.read_text()[-3000:]}"
            raise AssertionError(msg)

    def _plan(self) -> list[tuple[int, Callable[[], None]]]:
        """Return all disturbances in order, each as (number of decisions before it, action)."""
        n, every = self.decisions, min(EVERY, self.decisions // 5)
        plan: list[tuple[int, Callable[[], None]]] = [
            (number, self._kill) for number in range(every, n, every)
        ]
        for share in (0.3, 0.7):
            at = every * round(share * n / every) + every // 4
            plan += [(at, self._fill), (at + min(FULL, every // 2), self._free)]
        for share, step in ((0.4, STEP_NS), (0.6, -STEP_NS)):
            at = every * round(share * n / every) + every // 3
            plan.append((at, lambda step=step: self._set_clock(step)))
        return sorted(plan, key=lambda item: item[0])

    def _decision(self) -> None:
        """Drive to a waypoint and measure at the waypoint. Resume a paused node."""
        from soak_driver import resident_mb

        began = time.monotonic()
        until = began + PATIENCE
        while not self.driver.serve(self.process.pid, 2.0):
            self.driver.call("resume")
            if self.process.poll() is not None or time.monotonic() > until:
                msg = f"nothing is chosen any more:\n{self.log.read_text()[-3000:]}"
                raise AssertionError(msg)
        self.seen.cycles.append(time.monotonic() - began)
        memory = resident_mb(self.process.pid)
        self.seen.memory.append(memory)
        self.seen.lives[-1].append(memory)

    def _kill(self) -> None:
        for _ in range(int(self._rng.integers(0, 12))):
            self.driver.batch(*self.driver.goal)
            self.driver.spin(0.01)
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.seen.kills += 1
        self._start()

    def _fill(self) -> None:
        self.disk.fill(self.process)
        self.seen.full += 1

    def _free(self) -> None:
        self.disk.free(self.process)

    def _set_clock(self, step_ns: int) -> None:
        self.seen.steps.append(self.driver.now_ns)
        self.driver.set_clock(step_ns)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.driver.close()


def run(*, quick: bool = False) -> Section:
    from gp_active_sensing.ros.environment import node_environment
    from tests.ros.conftest import LOOPBACK, domain_id

    decisions = QUICK if quick else DECISIONS
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unmount the disk
    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory())
        folder = Path(temporary)
        domain = str(domain_id())  # unused by parallel test runs
        os.environ.update({"ROS_DOMAIN_ID": domain, "ROS_LOG_DIR": temporary, **LOOPBACK})
        os.environ.update(node_environment(dict(os.environ)))
        import rclpy
        from rclpy.signals import SignalHandlerOptions

        disk = Disk(folder, stack)
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        stack.callback(rclpy.try_shutdown)
        began, load = time.monotonic(), [os.getloadavg()[0]]
        soak = Soak(folder, disk, decisions)
        stack.callback(soak.close)
        soak.run()
        load.append(os.getloadavg()[0])
        from gp_active_sensing.records.run_directory import RunDirectory

        found = RunDirectory.open(disk.path / "run")
        section = _section(soak, decisions, load, time.monotonic() - began)
        section.rows += _readings(soak, found.events())
        section.rows += _figures(soak, found)
        if kept := os.environ.get("GPAS_KEPT"):
            shutil.copytree(disk.path / "run", Path(kept) / "soak", dirs_exist_ok=True)
            np.savez(Path(kept) / "soak.npz", stamps=soak.driver.stamps, values=soak.driver.values)
    return section


def _section(soak: Soak, decisions: int, load: Sequence[float], seconds: float) -> Section:
    from soak_driver import DEPTH

    return Section(
        "A node that soaks",
        "python benchmarks/run.py soak",
        f"One mission of {decisions} decisions (variance_only on a grid of 100 places, each "
        "visited again and again; averages of 0.8 s). The time of the probe is its own and goes as "
        f"fast as the node follows; it measures at 300 Hz and keeps {DEPTH} messages for a node "
        "that is away. Strangers send poses and readings from the future, in wrong frames, of "
        "NaN, of bytes that are none. The node is ended by SIGKILL and started again with the same "
        f"parameters; its disk is full twice ({soak.disk.how}); the clock steps a day ahead and "
        "later a day back (simulated time, which may go forward by any step; back it pauses the "
        "mission), and ~/resume is called where it paused. Each reading sent is "
        "looked for in the journal by its stamp, and each average is taken again. "
        f"{seconds:.0f} s altogether, on a machine shared with other work: load {load[0]:.0f} at "
        f"the beginning, {load[-1]:.0f} at the end, on {os.cpu_count()} cores.",
        ("what", "seen"),
    )


def _readings(soak: Soak, events: Sequence[dict[str, Any]]) -> list[Sequence[object]]:
    from soak_account import account

    seen, driver = soak.seen, soak.driver
    found = account(driver.stamps, driver.values, events)
    near = [s for s in found.unused if any(-1e9 < s - t < 1e9 for t in seen.steps)]
    status = [e for e in events if e["event"] == "status"]
    counts: dict[str, int] = status[-1]["probes"][""]["rejected"] if status else {}
    reasons = ", ".join(f"{word} {n}" for word, n in sorted(counts.items()))
    strange = ", ".join(f"{n} {word}" for word, n in sorted(driver.strange.items()))
    lost = len(found.unused) - min(len(near), counts.get("clock_backwards", 0))
    decided = sum(e["event"] == "decision" for e in events)
    ends = [str(e.get("reason")) for e in events if e["event"] == "end"]
    return [
        ("decisions in the journal; how it ended", f"{decided}; {', '.join(ends)}{seen.stopped}"),
        ("kills; full disks; steps of the clock",
         f"{seen.kills}; {seen.full}; {len(seen.steps)}"),
        ("readings sent (and after the end of the mission)", f"{found.sent} ({found.after})"),
        ("used, by the journal", found.used),
        ("not used, within 1 s of a step of the clock, and counted (clock_backwards)", len(near)),
        ("set aside (gated)", found.gated),
        ("lost", lost),
        ("doubled", found.doubled),
        ("averages that are not those of the readings sent in their time", found.wrong),
        ("readings in the journal that the probe did not send", found.foreign),
        ("poses sent", driver.poses),
        ("strangers' messages", f"{sum(driver.strange.values())}: {strange}"),
        ("counted by reason (again after a kill, where a message comes again)", reasons),
        ("events that the journal says are missing (gap)",
         sum(int(e["failures"]) for e in events if e["event"] == "gap")),
    ]  # fmt: skip


def _figures(soak: Soak, found: Any) -> list[Sequence[object]]:
    seen = soak.seen
    ends = [life[-1] for life in seen.lives if life]
    memory = [float(np.mean(part)) for part in np.array_split(np.array(seen.memory), 4)]
    growth = 100.0 * (memory[-1] / memory[0] - 1.0)
    planned = np.array([float(record["plan_seconds"]) for record in found.records()])
    plans = [1e3 * float(np.median(part)) for part in np.array_split(planned, 4)]
    cycles = [float(np.median(part)) for part in np.array_split(np.array(seen.cycles), 4)]
    few = max(1, min(5, (len(seen.restarts) - 1) // 2))
    first, last = seen.restarts[1 : 1 + few], seen.restarts[-few:]
    spent, spent_last = seen.computing[1 : 1 + few], seen.computing[-few:]
    size = (found.path / "journal.jsonl").stat().st_size / 1e6
    return [
        ("memory of the node by quarter, mean [MB]", _words(memory, ".1f")),
        ("growth after the first quarter", f"{growth:+.1f} %"),
        ("memory before each kill, least and most [MB]", _words((min(ends), max(ends)), ".1f")),
        ("computing a decision by quarter, median [ms]", _words(plans, ".2f")),
        ("waypoint to waypoint by quarter, median [s]", _words(cycles, ".2f")),
        ("start to first waypoint with no journal [s] (with its computing)",
         f"{seen.restarts[0]:.2f} ({seen.computing[0]:.2f})"),
        (f"the same of the first {few} restarts, median", _pair(first, spent)),
        (f"the same of the last {few} restarts, median", _pair(last, spent_last)),
        ("ratio of the two", _ratio(last, first, spent_last, spent)),
        ("journal at the end [MB]", f"{size:.1f}"),
    ]  # fmt: skip


def _words(values: Sequence[float], form: str) -> str:
    return ", ".join(format(value, form) for value in values)


def _pair(seconds: Sequence[float], computing: Sequence[float]) -> str:
    return f"{np.median(seconds):.2f} ({np.median(computing):.2f})"


def _ratio(
    last: Sequence[float], first: Sequence[float], more: Sequence[float], before: Sequence[float]
) -> str:
    seconds, computing = np.median(last) / np.median(first), np.median(more) / np.median(before)
    return f"{seconds:.2f} ({computing:.2f})"
