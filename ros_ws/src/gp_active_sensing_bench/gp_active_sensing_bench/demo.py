"""Demonstrate a mission: ``make demo``, or ``python -m gp_active_sensing_bench.demo``.

The demo starts the nodes ``simulator`` and ``active_sensing`` as processes. The demo prints a line
for each stage, and writes a report. Without ROS, the demo runs the same engine in this process.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from gp_active_sensing.commands.console import stage_line, summary_lines
from gp_active_sensing.errors import ActiveSensingError, RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import Scenario, load_scenario, run_scenario
from gp_active_sensing.util.files import open_to_append
from gp_active_sensing.web.access import WatchOptions
from gp_active_sensing.web.follow import LineTail
from gp_active_sensing.web.serve import MISSING, can_serve, make_server, served


def _new_records(tail: LineTail) -> Iterator[dict[str, Any]]:
    """Yield the records that were written since the last call. Raises RunError on failure."""
    for _, lines in tail.blocks():
        for line in lines:
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                msg = f"{tail.path}: expected a JSON object a line, got {line[:60]!r} ({error})"
                raise RunError(msg) from error


Show = Callable[[str], None]

SPEED = 10.0
"""Default number of simulated seconds per second."""
LOGS = "logs"
"""Name of the folder with the logs of the nodes, in the run directory."""


@dataclass
class _DemoDisplay:
    scenario: Scenario
    say: Show
    stages: int = 0

    def stage(self, record: Mapping[str, Any]) -> None:
        self.stages += 1
        self.say(stage_line(record, self.scenario))


@dataclass
class _NodeOutput:
    """Writer of the nodes' output to a file. Warnings and errors are also printed."""

    file: Path
    say: Show
    last: deque[str] = field(default_factory=lambda: deque(maxlen=15))

    def __call__(self, name: str, line: str) -> None:
        if name == "live_page" and line.startswith(("live page: ", "to look only: ")):
            self.say(line)  # never in the file: the address may contain the token
            return
        text = f"[{name}] {line}"
        self.last.append(text)
        with open_to_append(self.file) as stream:
            stream.write(f"{text}\n".encode())
        if any(f"[{level}]" in line for level in ("WARN", "ERROR", "FATAL")):
            self.say(text)


def run_with_ros(
    scenario: Scenario,
    name_or_path: str,
    run_dir: Path,
    *,
    speed_factor: float,
    timeout: float,
    say: Show,
) -> int:
    """Run the nodes ``simulator`` and ``active_sensing`` until the mission is over.

    Args:
        scenario: the scenario.
        name_or_path: name or path of the scenario, as a parameter of the nodes.
        run_dir: new directory for the records.
        speed_factor: simulated seconds per second.
        timeout: longest duration [s].
        say: function that prints a line.

    Returns:
        0 = finished, 1 = failed or took too long, 128 + n = ended by signal n.
    """
    from gp_active_sensing.ros.runner import make_group

    logs = run_dir.with_name(f"{run_dir.name}.{LOGS}")  # wait until the run directory is complete
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{logs}: cannot make the directory: {error.strerror}; give another one with --out"
        raise RunError(msg) from error
    given = {
        "scenario": name_or_path,
        "run_dir": str(run_dir),
        "speed_factor": str(speed_factor),
        "exit_at_end": "true",
        "web": "true" if can_serve() else "false",
    }
    if scenario.budget.readings is not None:
        given["budget"] = str(scenario.budget.readings)
    output = _NodeOutput(logs / "nodes.log", say)
    group = make_group(
        "traffic_sim",
        given,
        environment=_environment(os.environ, logs),
        on_line=output,
    )
    shown = _DemoDisplay(scenario, say)
    tail = LineTail(run_dir / "records.jsonl")
    deadline = time.monotonic() + timeout
    late = False

    def tick() -> bool:
        nonlocal late
        for record in _new_records(tail):
            shown.stage(record)
        late = time.monotonic() > deadline
        return late

    try:
        code = group.run(tick)
        for record in _new_records(tail):
            shown.stage(record)
    finally:
        if run_dir.is_dir():
            shutil.move(str(logs), str(run_dir / LOGS))
    if late:
        say(f"The demo took longer than {timeout:g} s and was ended (see --timeout and --speed).")
        return 1
    if code == 1:
        say("A node failed. The last it said:")
        for line in output.last:
            say(f"  {line}")
    return code


def run_without_ros(scenario: Scenario, run_dir: Path, say: Show) -> int:
    """Run the engine in this process."""
    shown = _DemoDisplay(scenario, say)
    with _live_page(run_dir, say):
        run_scenario(scenario, run_dir, on_stage=shown.stage)
    return 0


@contextlib.contextmanager
def _live_page(run_dir: Path, say: Show) -> Iterator[None]:
    """Serve the live page within the context, if possible."""
    if not can_serve():
        yield
        return
    server = make_server(run_dir, WatchOptions())
    for line in server.lines:
        say(line)
    with served(server):
        yield


def _environment(environment: Mapping[str, str], logs: Path) -> dict[str, str]:
    """Return environment variables that isolate the nodes from other ROS systems."""
    ours = {
        # A ROS domain whose ports are free on Linux. No test uses this domain.
        "ROS_DOMAIN_ID": str(215 + os.getpid() % 17),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOG_DIR": str(logs),
    }
    return {**ours, **environment}


def _why_no_ros() -> str:
    """Return the reason why ROS nodes cannot run here; "" = they can run."""
    from gp_active_sensing.ros.environment import require_ros

    try:
        require_ros()
    except ActiveSensingError as error:
        return str(error)
    return ""


def _new_directory(parent: Path, scenario: Scenario) -> Path:
    """Return the first unused path of the form demo-<scenario>-<number>."""
    number = 1
    while (path := parent / f"demo-{scenario.name}-{number:03d}").exists():
        number += 1
    return path


def _report(run_dir: Path, say: Show) -> None:
    from gp_active_sensing.report import write_report

    try:
        page = write_report(run_dir)
    except ActiveSensingError as error:
        say(f"no report page: {error}")
    else:
        say(f"report: {page}")
    say(f"records: {run_dir}")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--scenario", default="town", help="Scenario: a name, or a path.", show_default=True)
@click.option("--budget", type=click.IntRange(min=1), help="Places to observe.")
@click.option("--out", type=click.Path(path_type=Path), help="Run directory; must be new.")
@click.option(
    "--speed",
    type=float,
    default=SPEED,
    help="Simulated seconds per real second.",
    show_default=True,
)
@click.option("--no-ros", is_flag=True, help="Simulate without ROS nodes.")
@click.option(
    "--timeout", type=float, default=600.0, help="Longest time in seconds.", show_default=True
)
def _command(
    scenario: str,
    budget: int | None,
    out: Path | None,
    speed: float,
    no_ros: bool,
    timeout: float,
) -> int:
    """Watch a simulated probe choose where to measure next."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    overrides = [] if budget is None else [f"budget.readings={budget}"]
    loaded = load_scenario(scenario, overrides=overrides)
    run_dir = (out or _new_directory(Path("runs"), loaded)).absolute()
    if run_dir.exists() and not (run_dir.is_dir() and not any(run_dir.iterdir())):
        msg = f"{run_dir} is not an empty directory; give another one with --out"
        raise RunError(msg)
    why_not = "--no-ros was given" if no_ros else _why_no_ros()
    click.echo(f"{loaded.name}: {loaded.description}")
    if not can_serve():
        click.echo(f"Without a live page: {MISSING}")
    if why_not:
        click.echo(f"Without ROS nodes: {why_not}")
        code = run_without_ros(loaded, run_dir, click.echo)
    else:
        click.echo(
            "ROS 2 nodes simulator and active_sensing, in processes of their own, "
            f"{speed:g} times real time:"
        )
        code = run_with_ros(
            loaded, scenario, run_dir, speed_factor=speed, timeout=timeout, say=click.echo
        )
    click.echo("")
    if not run_dir.is_dir():
        return code or 1
    for line in summary_lines(RunDirectory.open(run_dir).summary()):
        click.echo(line)
    _report(run_dir, click.echo)
    return code


def main() -> int:
    """Run the demo and return the exit code."""
    try:
        return int(_command.main(prog_name="demo", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except ActiveSensingError as error:
        click.echo(f"Error: {error}", err=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
