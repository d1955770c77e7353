"""The folders show which way data flows; these tests keep it so (the linter bans single names)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

import gp_active_sensing
from tests.cases import for_each

ROOT = Path(gp_active_sensing.__file__).parent
NAME = "gp_active_sensing"

# A folder imports from its own line and the lines above it; folders on one line are apart.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "_version"),
    ("types",),
    ("util",),
    ("config", "registry"),
    ("topology", "kernels"),
    ("kernel_model",),
    ("belief",),
    ("planning",),
    ("engine",),
    ("loop",),
    ("records", "experts"),
    ("export",),
    ("mission",),
    ("messages",),
    ("sim",),
    ("replay",),
    ("report",),
    ("web",),
    ("ros",),
    ("commands",),
    ("cli",),
)
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
MOST_ROOT_MODULES = 8

ROS = re.compile(
    r"(rclpy|launch|launch_ros|launch_testing\w*|rosbag2_py|tf2_\w+|ament_\w+|rosidl_\w+|rcl_\w+"
    r"|\w+_(msgs|srvs|interfaces))(\.|$)"
)
HEAVY = ("rclpy", "torch", "gpytorch", "matplotlib", "plotly", "rosbags", "mcap", "osmium")
HEAVY += ("PIL", "pyproj", "rasterio", "shapely", "networkx", "libsumo", "traci", "tornado")


TORNADO = {ROOT / "web" / name for name in ("connections.py", "server.py")}
"""Modules that import tornado at once; they are imported inside a function."""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imports(tree: ast.AST, path: Path) -> Iterator[tuple[int, str]]:
    package = [NAME, *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"


def violations(path: Path, source: str) -> list[str]:
    own = part_of(path)
    found = []
    for line, name in imports(ast.parse(source), path):
        where = f"{path.relative_to(ROOT)}:{line}"
        if ROS.match(name) and own != "ros":
            found.append(f"{where} imports {name}; only {NAME}/ros/ may import ROS")
        if name.startswith(f"{NAME}.") and own != "__init__":
            other = name.split(".")[1]
            if other == own:
                continue
            if missing := [part for part in (own, other) if part not in LEVEL]:
                found.append(f"{where}: {', '.join(missing)} has no line in LAYERS of this test")
            elif LEVEL[other] >= LEVEL[own]:
                found.append(
                    f"{where} imports {name}: {own} is in layer {LEVEL[own]}, {other} in layer "
                    f"{LEVEL[other]}; move the code, or correct LAYERS in this test"
                )
    return found


def test_the_root_holds_few_modules() -> None:
    found = sorted(path.name for path in ROOT.glob("*.py"))
    assert len(found) <= MOST_ROOT_MODULES, found


def test_imports_go_one_way() -> None:
    assert len(modules()) > 200, "the sources are not where this test looks for them"
    found = [v for path in modules() for v in violations(path, path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


HINTS_ONLY: set[str] = set()
"""Modules of topology in a circle of type hints: one configuration has all maps."""


def module_imports(tree: ast.AST, *, hints: bool) -> Iterator[ast.ImportFrom]:
    """Yield the imports of a module, those inside functions and for type hints too."""
    for node in ast.iter_child_nodes(tree):
        if not hints and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.ImportFrom):
            yield node
        yield from module_imports(node, hints=hints)


@for_each("hints", [False, True])
def test_no_modules_import_each_other_in_a_circle(hints: bool) -> None:
    names = {
        ".".join([NAME, *path.relative_to(ROOT).with_suffix("").parts]): path for path in modules()
    }
    graph = nx.DiGraph()
    for name, path in names.items():
        for node in module_imports(ast.parse(path.read_text(encoding="utf-8")), hints=hints):
            for alias in node.names:
                found = {f"{node.module}.{alias.name}", node.module} & names.keys()
                graph.add_edges_from((name, other) for other in found - {name})
    circles = [set(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    known = {f"{NAME}.topology.{name}" for name in HINTS_ONLY} if hints else set()
    assert graph.number_of_edges() > 1000
    assert [sorted(circle) for circle in circles if circle != known] == []


def test_no_two_classes_have_one_name() -> None:
    found: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(found) > 300
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


@for_each(
    ("file", "line", "allowed"),
    [
        ("belief/x.py", "from gp_active_sensing.planning import bal", False),
        ("belief/x.py", "from gp_active_sensing import planning", False),
        ("belief/x.py", "from ..planning.bal import Bal", False),
        ("belief/x.py", "def f():\n    import gp_active_sensing.planning", False),
        ("belief/x.py", "from ..kernels import matern", True),
        ("belief/x.py", "from . import posterior", True),
        ("topology/loaders/x.py", "from ...belief import b", False),
        ("topology/loaders/x.py", "from ...errors import MapError", True),
        ("planning/x.py", "import gp_active_sensing.loop", False),
        ("errors.py", "from gp_active_sensing.topology import base", False),
        ("sim/x.py", "from gp_active_sensing.ros import conversions", False),
        ("mission/x.py", "from gp_active_sensing.loop import SensingLoop", True),
        ("mission/x.py", "from gp_active_sensing.sim import world", False),
        ("kernels/x.py", "from gp_active_sensing.topology import base", False),
        ("new.py", "from gp_active_sensing.loop import SensingLoop", False),
        ("sim/x.py", "from sensor_msgs.msg import Temperature", False),
        ("sim/x.py", "import rosbags", True),
        ("ros/x.py", "from std_srvs.srv import Trigger", True),
        ("cli.py", "import rclpy", False),
    ],
)
def test_the_rules_themselves(file: str, line: str, allowed: bool) -> None:
    assert (violations(ROOT / file, line) == []) is allowed


def loaded_after(*names: str) -> set[str]:
    """Import modules in a fresh interpreter; return which heavy packages that loaded."""
    code = f"import sys, {', '.join(names)}\nprint(*(h for h in {HEAVY!r} if h in sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


def test_importing_the_core_loads_nothing_heavy() -> None:
    names = [
        ".".join([NAME, *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")
        for path in modules()
        if part_of(path) != "ros" and path not in TORNADO and path.stem != "__main__"
    ]
    assert loaded_after(*names) == set()
