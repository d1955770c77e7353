from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.ros.environment import REQUIRED, RosEnvironment, inspect_ros, require_ros
from tests.cases import case
from tests.commanding import ran


def look(
    environ: dict[str, str] | None = None,
    *,
    installed: tuple[str, ...] = REQUIRED,
    wheels: str | None = None,
    system: tuple[str, str] = ("Linux", "x86_64"),
) -> RosEnvironment:
    return inspect_ros(
        environ or {},
        can_import=lambda name: name in installed,
        wheel_version=lambda: wheels,
        system=system,
    )


def test_wheels_beside_a_sourced_ros_are_refused() -> None:
    for environ in [
        {"AMENT_PREFIX_PATH": "/home/x/ws/install:/opt/ros/jazzy"},
        {"PYTHONPATH": "/opt/ros/jazzy/lib/python3.12/site-packages"},
        {"LD_LIBRARY_PATH": "/opt/ros/jazzy/lib:/usr/lib"},
    ]:
        with case(environ):
            found = look(environ, wheels="7.1.6")
            assert found.mixed
            assert not found.usable
            with pytest.raises(
                MissingDependencyError, match=r"two ROS .*7\.1\.6.*/opt/ros/jazzy.*Use one"
            ):
                require_ros(found)


def test_the_wheels_own_prefix_is_not_a_second_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`AMENT_PREFIX_PATH=$VIRTUAL_ENV`, so that tools find what pip put into share/."""
    (tmp_path / "venv" / "share" / "rclpy").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "venv")
    (tmp_path / "overlay" / "share" / "gp_active_sensing").mkdir(parents=True)
    (tmp_path / "source" / "share" / "rclpy").mkdir(parents=True)
    assert look({"AMENT_PREFIX_PATH": str(tmp_path / "source")}, wheels="7.1.6").mixed
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    for prefix in ("venv", "link", "overlay"):
        assert look({"AMENT_PREFIX_PATH": str(tmp_path / prefix)}, wheels="7.1.6").usable


def test_what_is_missing_is_said_and_pip_only_advised_where_there_are_wheels() -> None:
    some = tuple(name for name in REQUIRED if name != "visualization_msgs")
    for found, part in (
        (look(installed=()), "pip install"),
        (look({"AMENT_PREFIX_PATH": "/opt/ros/jazzy"}, installed=some), "visualization-msgs"),
    ):
        with pytest.raises(MissingDependencyError, match=part):
            require_ros(found)
    for system in [("Linux", "aarch64"), ("Darwin", "arm64")]:
        assert "pip install" not in look(installed=(), system=system).advice


def test_the_check_itself_imports_no_ros() -> None:
    code = (
        "import sys; from gp_active_sensing.ros.environment import inspect_ros; inspect_ros();"
        "sys.exit('rclpy' in sys.modules)"
    )
    assert ran(sys.executable, "-c", code).returncode == 0


NODES = ("active_sensing", "simulator", "bag_player", "live_page")
WITHOUT_ROS = f"""
import runpy, sys
sys.modules["rclpy"] = None
for name in {NODES}:
    for script, run_name in ((f"/bin/{{name}}", "imported"), ("", "__main__")):
        sys.modules["__main__"].__file__ = script
        try:
            runpy.run_module(f"gp_active_sensing.ros.{{name}}_node", run_name=run_name)
        except SystemExit as error:
            assert error.code == 2, (name, error.code)
"""


def test_a_node_without_ros_ends_with_one_line() -> None:
    """As a console script and as a module, where rclpy cannot be imported."""
    done = ran(sys.executable, "-c", WITHOUT_ROS)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) == 2 * len(NODES)
    assert all(line.startswith("error: ROS 2 is ") and "rclpy" in line for line in lines)


def test_a_program_interrupted_while_it_imports_ends_without_a_traceback(tmp_path: Path) -> None:
    script = tmp_path / "active_sensing"
    script.write_text(
        "import os, signal\n"
        "from gp_active_sensing.ros.environment import require_ros_in\n"
        "require_ros_in('gp_active_sensing.ros.active_sensing_node')\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "raise SystemExit('still alive')\n"
    )
    done = ran(sys.executable, str(script))
    assert (done.returncode, done.stdout) == (-signal.SIGINT, "")
