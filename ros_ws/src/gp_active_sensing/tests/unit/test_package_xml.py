"""package.xml says what the package needs, in keys that rosdep knows."""

from __future__ import annotations

import ast
import re
import xml.etree.ElementTree as ET
from importlib import metadata
from pathlib import Path

import pytest

NAME = "gp_active_sensing"

ROSDISTRO = "8468e88ccd, 22 August 2026"
"""The commit of github.com/ros/rosdistro in which the keys below were looked up."""
SYSTEM_KEYS = frozenset(
    {"click", "defusedxml", "hypothesis", "joblib", "matplotlib", "networkx", "numpy", "pil"}
    | {"pyproj", "pytest", "pytest-timeout", "pytest-xdist", "rasterio", "rich", "rosbags-pip"}
    | {"scipy", "shapely", "tornado", "yaml"}
)
"""In rosdep/python.yaml, each after ``python3-``; there is none for mcap, gpytorch."""
ONLY_PIP = frozenset({"mcap", "osmium", "pyogrio"})
"""What the Dockerfile gets by pip: rosdep has no pyogrio, and on Ubuntu 24.04 an older osmium."""
JAZZY = frozenset(
    {"action_msgs", "builtin_interfaces", "diagnostic_msgs", "geometry_msgs", "launch"}
    | {"launch_ros", "lifecycle_msgs", "nav_msgs", "rcl_interfaces", "rclpy", "ros2launch"}
    | {"rosgraph_msgs", "sensor_msgs", "std_msgs", "std_srvs", "tf2_ros_py", "visualization_msgs"}
)
"""Packages released in jazzy/distribution.yaml."""
OPTIONAL = frozenset({"nav2_msgs"})
"""Imported where a parameter asks for them, with an error that names them."""
OTHER_PACKAGES = {"tf2_ros": "tf2_ros_py"}
"""Modules that are in a package of another name."""
OTHER_NAMES = {"pillow": "pil", "pyyaml": "yaml", "rosbags": "rosbags-pip"}
"""Packages that PyPI and rosdep call differently."""


@pytest.fixture(scope="module")
def package(package_root: Path) -> ET.Element:
    return ET.parse(package_root / "package.xml").getroot()


def needed(package: ET.Element, *kinds: str) -> set[str]:
    return {str(element.text) for kind in kinds for element in package.findall(f"{kind}_depend")}


def test_rosdep_knows_every_key(package: ET.Element) -> None:
    """One unknown key stops ``rosdep install`` for the whole workspace."""
    known = {f"python3-{name}" for name in SYSTEM_KEYS} | JAZZY
    kinds = {element.tag for element in package if element.tag.endswith("depend")}
    assert kinds == {"exec_depend", "test_depend"}
    keys = [element.text for element in package if element.tag.endswith("depend")]
    assert len(keys) == len(set(keys))
    assert set(keys) <= known, f"look these up in rosdistro (last time: {ROSDISTRO})"
    assert known <= set(keys), "what is not used any more"


def test_every_ros_package_that_is_imported_is_a_dependency(
    package: ET.Element, package_root: Path
) -> None:
    pattern = re.compile(r"rclpy|launch|launch_ros|tf2_\w+|\w+_(msgs|srvs|interfaces)")
    imported: set[str] = set()
    for folder in (NAME, "launch"):
        for path in (package_root / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names: list[str] = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names = [node.module]
                imported |= {name.split(".")[0] for name in names}
    of_ros = {name for name in imported if pattern.fullmatch(name)}
    assert len(of_ros) > 10
    packages = {OTHER_PACKAGES.get(name, name) for name in of_ros}
    assert packages - OPTIONAL <= needed(package, "exec")


def test_what_pip_installs_rosdep_does_too(package: ET.Element) -> None:
    required = metadata.requires(NAME) or []
    names = {str(re.match(r"[\w-]+", r)[0]) for r in required if "extra ==" not in r}  # type: ignore[index]
    assert len(names) > 5
    keys = {f"python3-{OTHER_NAMES.get(name, name)}" for name in names}
    assert keys <= needed(package, "exec")


@pytest.mark.parametrize("extra", ["bag", "maps", "web"])
def test_what_the_pages_promise_on_ros_rosdep_installs(package: ET.Element, extra: str) -> None:
    """``web:=true``, maps in degrees, PNG and GeoTIFF maps, and bags work in a workspace."""
    required = [r for r in metadata.requires(NAME) or [] if f'extra == "{extra}"' in r]
    names = {str(re.match(r"[\w-]+", r)[0]) for r in required}  # type: ignore[index]
    assert names
    keys = {f"python3-{OTHER_NAMES.get(name, name)}" for name in names - ONLY_PIP}
    assert keys <= needed(package, "exec")
