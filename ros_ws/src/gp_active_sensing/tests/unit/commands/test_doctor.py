from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from gp_active_sensing.commands.doctor import OPTIONAL, Check, examine
from gp_active_sensing.ros import environment


def by_name(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_a_missing_core_package_says_how_to_install_it() -> None:
    diagnosis = examine(can_import=lambda module: module != "scipy")
    assert not diagnosis.core_works
    check = by_name(diagnosis.checks)["scipy"]
    assert check.status == "missing"
    assert "pip install" in check.remedy


def test_every_extra_is_looked_at() -> None:
    found = re.findall(
        r"^([\w-]+).*extra == .(bag|maps|web|sumo|plot)\b",
        "\n".join(metadata.requires("gp_active_sensing") or []),
        re.MULTILINE,
    )
    assert len({extra for _, extra in found}) == 5
    assert set(found) == {(name, extra) for name, (_, extra, _) in OPTIONAL.items()}


def test_a_missing_extra_does_not_stop_the_core() -> None:
    for name in OPTIONAL:
        module, extra, _ = OPTIONAL[name]
        diagnosis = examine(can_import=lambda wanted, module=module: wanted != module)
        assert diagnosis.core_works
        check = by_name(diagnosis.checks)[name]
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
    check = by_name(examine().checks)["ROS 2"]
    assert check.status == "error"
    assert str(tmp_path) in check.remedy
    assert "must not be mixed" in check.remedy
    assert examine().core_works
