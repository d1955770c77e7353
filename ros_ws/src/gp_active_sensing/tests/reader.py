"""A reader who does what a page says, block by block, in an empty folder."""

from __future__ import annotations

import configparser
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.heavy import EXTRAS, why_not
from tests.page_checks import GIVEN, check_arguments, check_parameters, overlaid
from tests.pages import PACKAGE, REPOSITORY, Step, sources, steps
from tests.ros.conftest import LOOPBACK, domain_id
from tests.ros.launched import REASON

COMMAND_LIMIT = 500.0
"""Longest time of a command [s]."""
AT_WORK = r"the mission begins|continuing at stage|active; the mission is|stage \d+:"
"""What a node says that has started."""


@dataclass
class Reader:
    """Plays the steps of one page, each once, in an empty folder of its own."""

    page: Path
    folder: Path
    output: str = ""
    path: list[Path] = field(default_factory=list)
    _done: dict[Step, BaseException | None] = field(default_factory=dict)

    def play(self, step: Step) -> None:
        """Do a step, after those before it on the page; nodes only for what needs their files."""
        needed = self._needed(step)
        for earlier in steps(self.page):
            if earlier == step:
                break
            if earlier in needed or not earlier.starts_nodes:
                self._once(earlier)
        error = self._once(step)
        if error is not None:
            raise error

    def _needed(self, step: Step) -> set[Step]:
        """Return the steps whose files or output a step needs, and what those need."""
        direct = sources(step)
        return set(direct).union(*map(self._needed, direct))

    def _once(self, step: Step) -> BaseException | None:
        if step not in self._done:
            try:
                self._do(step)
                self._done[step] = None
            except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                self._done[step] = error
        return self._done[step]

    def _do(self, step: Step) -> None:
        for source in sources(step):
            if isinstance(reason := self._done.get(source), pytest.skip.Exception):
                pytest.skip(f"{source.where}, which it needs, was skipped: {reason}")
        for module in step.own_modules:
            _demand(module)
        if name := step.option("file"):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, encoding="utf-8")
        getattr(self, f"_do_{step.language}")(step)

    # -- by language -----------------------------------------------------------------------------

    def _do_text(self, step: Step) -> None:
        if "output" not in step.tags:
            return
        for line in filter(None, map(str.strip, step.text.splitlines())):
            pattern = ".*".join(re.escape(part) for part in line.split("…"))
            assert re.search(pattern, self.output), (
                f"{step.where}: {line!r} is not in\n{self.output}"
            )

    def _do_csv(self, step: Step) -> None:
        assert step.option("file"), f"{step.where}: a table that no block can find; add file=NAME"

    def _do_ini(self, step: Step) -> None:
        """Read a unit of systemd; what is in it is looked at where its codes are tested."""
        unit = configparser.ConfigParser(interpolation=None, strict=True)
        unit.read_string(step.text)
        assert unit.sections() == ["Unit", "Service", "Install"], step.where

    def _do_toml(self, step: Step) -> None:
        assert step.option("file") == "pyproject.toml", f"{step.where}: expected a pyproject.toml"
        project = _toml(step.text)["project"]
        info = self.folder / f"{project['name']}-{project['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        groups = [
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
            for group, entries in project["entry-points"].items()
        ]
        (info / "entry_points.txt").write_text("\n".join(groups))
        self.path = [self.folder]

    def _do_python(self, step: Step) -> None:
        if step.option("file"):
            compile(step.text, step.where, "exec")
            self.path = [self.folder]  # a module of the reader's own, beside what imports it
            return
        self._run(step, [sys.executable, "-c", step.text])
        assert self.output.strip(), f"{step.where}: prints nothing"

    def _do_json(self, step: Step) -> None:
        from gp_active_sensing.topology import MapConfig, build_topology

        path = self.folder / (step.option("file") or f"line{step.line}.geojson")
        path.write_text(step.text, encoding="utf-8")
        roads = build_topology(MapConfig(kind="roads", file=str(path)))
        assert roads.n >= len(json.loads(step.text)["features"])

    def _do_yaml(self, step: Step) -> None:
        kind = step.tags[0] if step.tags else ""
        match kind:
            case "scenario":
                self._check_scenario(step)
            case "parameters":
                check_parameters(step.text, self.folder)
            case "experiment":
                self._check_experiment(step)
            case _:
                pytest.fail(f"{step.where}: say what it is: scenario, parameters or experiment")

    def _check_scenario(self, step: Step) -> None:
        from gp_active_sensing.util.resources import find_resource

        path = self.folder / (step.option("file") or f"line{step.line}.yaml")
        if base := step.option("over"):
            assert not step.option("file"), f"{step.where}: a part of a scenario is no file"
            whole = yaml.safe_load(find_resource("sim", base).read_text("utf-8"))
            path.write_text(yaml.safe_dump(overlaid(whole, yaml.safe_load(step.text))))
        else:
            path.write_text(step.text, encoding="utf-8")
        code = (
            "import sys; from gp_active_sensing.sim import build_world, load_scenario; "
            "print(build_world(load_scenario(sys.argv[1])).topology.n, 'places')"
        )
        self._run(step, [sys.executable, "-c", code, str(path)])

    def _check_experiment(self, step: Step) -> None:
        from gp_active_sensing_bench import load_experiment

        path = self.folder / (step.option("file") or f"line{step.line}.yaml")
        path.write_text(step.text, encoding="utf-8")
        load_experiment(path)

    def _do_sh(self, step: Step) -> None:
        if step.excuse:
            return
        match step.words:
            case ["make", *rest]:
                done = subprocess.run(
                    ["make", "-n", *rest],
                    cwd=REPOSITORY,
                    capture_output=True,
                    text=True,
                    timeout=COMMAND_LIMIT,
                    check=False,
                )
                assert done.returncode == 0, f"{step.where}: {done.stderr}"
            case ["gp-active-sensing", *rest]:
                self._our_command(step, rest)
            case ["python", "-m", "gp_active_sensing.ros.runner", use, *arguments]:
                command = [sys.executable, "-m", "gp_active_sensing.ros.runner", use, *arguments]
                pytest.importorskip("rclpy", reason="ROS 2 is not installed")
                self._nodes(step, use, arguments, command)
            case ["ros2", "launch", "gp_active_sensing", file, *arguments]:
                assert (PACKAGE / "launch" / file).exists(), f"{step.where}: no launch file {file}"
                use = file.removesuffix(".launch.py")
                check_arguments(use, arguments)
                if REASON:
                    pytest.skip("no ros2 launch that knows the package; the arguments are right")
                self._nodes(step, use, arguments, step.words)
            case _:
                pytest.fail(
                    f"{step.where}: nobody executes {step.text!r}; teach tests/pages.py to, or "
                    "give the reason in its NOT_EXECUTED"
                )

    # -- commands --------------------------------------------------------------------------------

    def _our_command(self, step: Step, words: list[str]) -> None:
        program = Path(sys.executable).with_name("gp-active-sensing")
        command = (
            [str(program)] if program.exists() else [sys.executable, "-m", "gp_active_sensing.cli"]
        )
        self._run(step, [*command, *words])

    def _run(self, step: Step, command: list[str]) -> None:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_LIMIT,
            check=False,
        )
        self.output = done.stdout
        allowed = {1, 2} if "fails" in step.tags else {0}
        said = f"{step.where}: {step.text.strip()}\nexit code {done.returncode}\n{done.stdout}"
        assert done.returncode in allowed, said
        assert "fails" not in step.tags or "Traceback" not in done.stdout, said

    def _environment(self) -> dict[str, str]:
        path = [*map(str, self.path), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        alone = {"ROS_DOMAIN_ID": str(domain_id("pages")), **LOOPBACK}
        return {**os.environ, **alone, "PYTHONPATH": os.pathsep.join(path), "COLUMNS": "120"}

    def _nodes(self, step: Step, use: str, arguments: list[str], command: list[str]) -> None:
        """Start the nodes of a launch; those that wait for a probe are interrupted in the end."""
        check_arguments(use, arguments)
        given = dict(word.split(":=", 1) for word in arguments)
        for name, make in GIVEN.items():
            if name in given.values() and not (self.folder / name).exists():
                make(self.folder / name)
        log = self.folder / f"line{step.line}.log"
        environment = {**self._environment(), "ROS_LOG_DIR": str(self.folder / "ros_logs")}
        waits = use == "probe" or (use == "traffic_sim" and given.get("exit_at_end") != "true")
        with log.open("w") as stream:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                if waits:
                    _wait_for(lambda: re.search(AT_WORK, log.read_text()), process, log, step)
                    process.send_signal(signal.SIGINT)
                process.wait(COMMAND_LIMIT)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        self.output = log.read_text()
        expected = {0, 130} if waits else {0}
        assert process.returncode in expected, f"{step.where}: {self.output}"
        assert "Traceback" not in self.output, f"{step.where}: {self.output}"


def _wait_for(
    condition: Callable[[], object], process: subprocess.Popen[bytes], log: Path, step: Step
) -> None:
    end = time.monotonic() + COMMAND_LIMIT
    while not condition():
        gone = process.poll() is not None
        if gone or time.monotonic() > end:
            why = "it ended" if gone else "nothing came of it"
            pytest.fail(f"{step.where}: {why}\n{log.read_text()}")
        time.sleep(0.05)


def _demand(module: str) -> None:
    """Skip where a library is missing; where it must be there, the marker ``heavy`` fails."""
    extra = next((extra for extra, modules in EXTRAS.items() if module in modules), "")
    if not extra:
        pytest.importorskip(module, reason=f"{module} is not installed")
    elif reason := why_not(extra):
        pytest.skip(reason)


def _toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # pytest brings it where Python has none
    return tomllib.loads(text)
