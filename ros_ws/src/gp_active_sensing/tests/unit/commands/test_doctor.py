from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing._version import __version__
from gp_active_sensing.commands.doctor import (
    EXTRAS,
    Check,
    core_works,
    examine,
    requirements,
    version_of,
)
from gp_active_sensing.ros import environment
from gp_active_sensing.util import lazy
from gp_active_sensing.util.lazy import install_command


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def without(name: str) -> list[Check]:
    return examine(version=lambda wanted: "" if wanted == name else version_of(wanted) or "1")


def test_a_missing_core_package_says_how_to_install_it() -> None:
    checks = without("scipy")
    assert not core_works(checks)
    check = by_name(checks)["scipy"]
    assert check.status == "missing"
    assert "pip install" in check.remedy


def test_a_missing_extra_does_not_stop_the_core() -> None:
    asked = [(name, extra) for name, extra in requirements() if extra in EXTRAS]
    assert {extra for _, extra in asked} == set(EXTRAS)
    for name, extra in asked:
        checks = without(name)
        assert core_works(checks)
        check = by_name(checks)[name]
        assert check.status == "missing"
        assert f"gp_active_sensing[{extra}]" in check.remedy
        assert ("make heavy" in check.remedy) is (extra == "sumo")


def test_ros_wheels_and_a_sourced_ros_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "share" / "rclpy").mkdir(parents=True)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    real = environment.inspect_ros
    wheels = {"can_import": lambda name: True, "wheel_version": lambda: "7.1.6"}
    monkeypatch.setattr(environment, "inspect_ros", lambda: real(**wheels))
    check = by_name(examine())["ROS 2"]
    assert check.status == "error"
    assert str(tmp_path) in check.remedy
    assert "must not be mixed" in check.remedy
    assert core_works(examine())


def test_the_install_command_names_what_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, _, folder = install_command("maps").partition("'")
    assert Path(folder.split("[")[0], "pyproject.toml").is_file()
    monkeypatch.setattr(lazy, "__file__", str(tmp_path / "a" / "b" / "c" / "lazy.py"))
    assert f"gp_active_sensing-{__version__}-py3-none-any.whl[maps]" in install_command("maps")
