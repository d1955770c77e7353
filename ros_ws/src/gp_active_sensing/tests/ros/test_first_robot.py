"""docs/first_robot.md, its commands typed as they stand there, in an empty folder."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gp_active_sensing.records.run_directory import RunDirectory
from tests.pages import REPOSITORY, Step, blocks
from tests.reader import Reader
from tests.ros.launched import runner
from tests.waiting import LIMIT, wait_until

PAGE = REPOSITORY / "docs" / "first_robot.md"
if not PAGE.exists():
    pytest.skip("the package lies outside its repository", allow_module_level=True)

STANDIN = Path(__file__).parent / "standin"
"""A folder with a tf2_ros."""

pytestmark = [pytest.mark.ros, pytest.mark.slow]


class Newcomer(Reader):
    def __init__(self, folder: Path) -> None:
        super().__init__(PAGE, folder)
        self.robots: list[tuple[subprocess.Popen[bytes], Path]] = []
        self.number = 0

    def do(self, block: Step) -> None:
        if name := block.option("file"):
            (self.folder / name).write_text(block.text, encoding="utf-8")
        elif block.language == "text":
            if "robot" in block.tags:
                self.output = "".join(path.read_text() for _, path in self.robots)
            self._do_text(dataclasses.replace(block, tags=("output",)))
        elif "robot" in block.tags:
            self.end_robots()
            for line in block.text.splitlines():
                self.start_robot(line)
        elif block.language == "sh":
            for line in block.text.splitlines():
                self._run(dataclasses.replace(block, text=line), command_of(line))

    def start_robot(self, line: str) -> None:
        program, *words = shlex.split(line)
        assert program == "python"
        self.number += 1
        log = self.folder / f"robot_{self.number}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=self.folder, env=self._environment(), stdout=stream, stderr=stream,
            )  # fmt: skip
        self.robots.append((process, log))

        def there() -> bool:
            assert process.poll() is None, log.read_text()
            return "the robot is at" in log.read_text()

        wait_until(there, f"the robot; see {log}")

    def end_robots(self) -> None:
        for process, log in self.robots:
            assert "Traceback" not in log.read_text(), log.read_text()
            process.send_signal(signal.SIGINT)  # Ctrl-C: a callback may find its context ended
        for process, log in self.robots:
            try:
                assert process.wait(LIMIT) in (0, -signal.SIGINT, 1), log.read_text()
            except subprocess.TimeoutExpired:  # rclpy's own handler hangs once in fifty times
                process.kill()
                process.wait()
        self.robots.clear()


def command_of(line: str) -> list[str]:
    """Return what a line of the page starts; as the page says, our runner where ROS has none."""
    words = shlex.split(line)
    if words[0] == "gp-active-sensing":
        return [sys.executable, "-m", "gp_active_sensing.cli", *words[1:]]
    if words[:3] == ["ros2", "launch", "gp_active_sensing"] and shutil.which("ros2") is None:
        return runner(words[3].removesuffix(".launch.py"), *words[4:])
    return words


@pytest.fixture
def newcomer(tmp_path: Path, ros_environment: None) -> Iterator[Newcomer]:
    found = Newcomer(tmp_path)
    yield found
    for process, _ in found.robots:
        with contextlib.suppress(OSError):
            process.kill()
        process.wait(LIMIT)


def test_the_page_to_the_map_of_the_first_mission(newcomer: Newcomer) -> None:
    """The sections before the second robot, with a smaller budget."""
    steps = blocks(PAGE)
    starts = [i for i, step in enumerate(steps) if "robot" in step.tags and step.language == "sh"]
    for step in steps[: starts[1]]:
        newcomer.do(dataclasses.replace(step, text=step.text.replace("200 m", "60 m")))
    newcomer.end_robots()
    assert (newcomer.folder / "runs" / "first" / "report.html").is_file()
    rows = (newcomer.folder / "first.csv").read_text().splitlines()
    assert len([row for row in rows if row and not row.startswith("#")]) == 1 + 117


@pytest.mark.long
def test_the_page_from_an_empty_folder_to_two_boats(newcomer: Newcomer) -> None:
    for block in blocks(PAGE):
        if not block.option("needs"):
            newcomer.do(block)
    newcomer.end_robots()
    runs = newcomer.folder / "runs"
    assert {path.name for path in runs.iterdir()} == {"first", "lag", "nav2", "two"}
    assert all((run / "report.html").is_file() for run in runs.iterdir())
    journal = (runs / "two" / "journal.jsonl").read_text()
    assert '"boat_1"' in journal
    assert '"boat_2"' in journal


@pytest.mark.long
@pytest.mark.parametrize(("needs", "run"), [("pyproj", "lake"), ("tf2_ros", "house")])
def test_a_section_that_needs_a_library(
    newcomer: Newcomer, monkeypatch: pytest.MonkeyPatch, needs: str, run: str
) -> None:
    if needs == "tf2_ros" and importlib.util.find_spec("tf2_ros") is None:  # it has no wheel
        path = os.pathsep.join(filter(None, (str(STANDIN), os.environ.get("PYTHONPATH"))))
        monkeypatch.setenv("PYTHONPATH", path)
    else:
        pytest.importorskip(needs)
    for block in blocks(PAGE):
        if block.option("needs") == needs or block.option("file") == "robot.py":
            newcomer.do(block)
    newcomer.end_robots()
    summary = RunDirectory.open(newcomer.folder / "runs" / run).summary()
    assert summary["status"] == "finished"
    assert summary["observed"] >= 8
