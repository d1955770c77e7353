"""One tree serves colcon and pip; nothing but these tests would notice when the two drift apart."""

from __future__ import annotations

import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import gp_active_sensing

NAME = "gp_active_sensing"


def test_versions_agree(package_root: Path) -> None:
    package = ET.parse(package_root / "package.xml").getroot()
    assert package.findtext("name") == NAME
    assert package.findtext("version") == gp_active_sensing.__version__
    assert package.findtext("license") == "Apache-2.0"
    assert metadata.version(NAME) == gp_active_sensing.__version__
    for other in package_root.parent.glob(f"{NAME}_*/package.xml"):
        root = ET.parse(other).getroot()
        assert root.findtext("name") == other.parent.name
        assert root.findtext("version") == gp_active_sensing.__version__
    citation = package_root.parents[2] / "CITATION.cff"
    if citation.is_file():
        assert (
            yaml.safe_load(citation.read_text("utf-8"))["version"] == gp_active_sensing.__version__
        )


def test_colcon_finds_the_tests() -> None:
    # Without this extra `colcon test` runs nothing and succeeds.
    extras = metadata.metadata(NAME).get_all("Provides-Extra") or []
    assert "test" in extras
    assert any(r.startswith("pytest") and "test" in r for r in metadata.requires(NAME) or [])


def test_installing_the_package_needs_no_heavy_dependency() -> None:
    required = [r for r in metadata.requires(NAME) or [] if "extra ==" not in r]
    names = {r.split(">")[0].split(";")[0].strip() for r in required}
    light = {"numpy", "scipy", "shapely", "pyyaml", "defusedxml", "click", "rich"}
    assert names == light


def test_on_arm64_no_extra_brings_ros_wheels() -> None:
    """There are none: the ROS of the distribution is used, as docs/install.md says."""
    machine = {"platform_system": "Linux", "platform_machine": "aarch64"}
    for extra in ("ros", "bag", "maps", "web"):
        found = [
            requirement.name
            for requirement in map(Requirement, metadata.requires(NAME) or [])
            if requirement.marker is None or requirement.marker.evaluate(machine | {"extra": extra})
        ]
        assert "numpy" in found
        assert not [name for name in found if name.startswith("ros-")], extra


def test_every_command_is_there() -> None:
    root = Path(gp_active_sensing.__file__).parents[1]
    commands = [
        e for e in metadata.entry_points(group="console_scripts") if e.module.split(".")[0] == NAME
    ]
    assert {e.name for e in commands} >= {"gp-active-sensing", "active_sensing", "simulator"}
    for command in commands:
        module = root.joinpath(*command.module.split(".")).with_suffix(".py")
        assert module.is_file(), f"{command.name} starts {command.module}, which does not exist"


def copied(package_root: Path, target: Path) -> Path:
    keep_out = shutil.ignore_patterns("build", "dist", "*.egg-info", "__pycache__", ".*")
    shutil.copytree(package_root, target, ignore=keep_out)
    return target


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [pytest.param((), marks=pytest.mark.long), pytest.param(("--symlink-install",))],
    ids=["copies", "links"],
)
def test_a_sourced_workspace_has_the_command(
    package_root: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """As the README says: ``colcon build && . install/setup.bash``."""
    for module in ("colcon_core", "colcon_ros", "colcon_bash"):
        pytest.importorskip(module, reason=f"{module} is not installed (make env)")
    copied(package_root, tmp_path / "src" / NAME)
    clean = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    build = [sys.executable, "-m", "colcon", "--log-base", "log", "build", *options]
    subprocess.run(build, cwd=tmp_path, env=clean, check=True, timeout=300, capture_output=True)
    assert (tmp_path / "install" / "setup.zsh").is_file()
    words = ". install/setup.bash && command -v gp-active-sensing && gp-active-sensing doctor"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", words],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    command, *report = done.stdout.splitlines()
    assert command == str(tmp_path / "install" / NAME / "bin" / "gp-active-sensing")
    assert any(NAME in line for line in report)
    scripts = tmp_path / "install" / NAME / "lib" / NAME
    assert {"active_sensing", "simulator", "gp-active-sensing"} <= {
        path.name for path in scripts.iterdir()
    }, "where ros2 run looks"


@pytest.mark.slow
def test_wheel_holds_the_shared_files(package_root: Path, tmp_path: Path) -> None:
    source = copied(package_root, tmp_path / "source")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    subprocess.run([*command, "-w", str(tmp_path), str(source)], check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    share = f"{NAME}-{gp_active_sensing.__version__}.data/data/share"
    assert f"{NAME}/py.typed" in names
    assert f"{share}/ament_index/resource_index/packages/{NAME}" in names
    assert f"{share}/{NAME}/package.xml" in names
    for folder in ("launch", "maps", "sim", "config", "rviz", "foxglove", "bags"):
        for path in (source / folder).rglob("*"):
            if path.is_file():
                assert f"{share}/{NAME}/{path.relative_to(source).as_posix()}" in names
    for template in [*source.glob(f"{NAME}/**/*.xml"), *source.glob(f"{NAME}/**/*.html")]:
        assert template.relative_to(source).as_posix() in names
    assert not [n for n in names if n.startswith(("tests/", "sim/", "launch/"))]
    assert not [n for n in names if "/bin/" in n or "/scripts/" in n], "pip makes its own"
