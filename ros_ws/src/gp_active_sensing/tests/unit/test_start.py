"""What a start costs: the modules that an import loads; packages whose names load when used."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import gp_active_sensing
from gp_active_sensing.util.lazy import lazy_names

ROOT = Path(gp_active_sensing.__file__).parent
NAME = "gp_active_sensing"
FACES = sorted(
    path.parent.relative_to(ROOT.parent).as_posix().replace("/", ".")
    for path in ROOT.rglob("__init__.py")
    if "lazy_names(" in path.read_text(encoding="utf-8")
)
SCIPY = {"linalg", "special", "version"}
"""What the core may load of scipy at the start, beside its private modules."""


def loaded(code: str) -> list[str]:
    """Return the modules that a fresh interpreter has loaded after `code`."""
    code += "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    run = [sys.executable, "-c", code]
    result = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    return list(json.loads(result.stdout.splitlines()[-1]))


MOST = {
    "planning.base": 42,
    "belief": 6,
    "topology": 6,
    "report": 6,
    "loop": 54,  # further quantities, and beliefs linked to their maps
    "sim.sensor": 20,
    "sim.driver": 180,  # the mission of the nodes is what it plays
}
"""Module -> largest number of the package's modules that its import may load."""


def test_an_import_loads_what_it_needs() -> None:
    for module, most in MOST.items():
        found = loaded(f"import {NAME}.{module}")
        ours = [name for name in found if name.split(".")[0] == NAME]
        assert len(ours) <= most, f"{module}: {ours}"


def scipy_parts(names: list[str]) -> set[str]:
    """Return the public parts of scipy among modules; old versions load one for another."""
    parts = {name.split(".")[1] for name in names if name.startswith("scipy.")}
    return {part for part in parts if not part.startswith("_")}


def test_the_core_starts_with_numpy_and_two_parts_of_scipy() -> None:
    found = loaded(f"import {NAME}.loop, {NAME}.planning.bal.policy, {NAME}.belief.build")
    assert scipy_parts(found) <= SCIPY | scipy_parts(loaded("import scipy.linalg, scipy.special"))
    others = {name.split(".")[0] for name in found}
    assert not others & {"networkx", "shapely", "click", "rich", "torch", "matplotlib", "rclpy"}


def test_a_policy_loads_itself_and_not_the_others() -> None:
    code = f"from {NAME}.planning import build_policy\nbuild_policy({{'name': 'bal'}})"
    found = loaded(code)
    assert f"{NAME}.planning.bal.policy" in found
    assert f"{NAME}.planning.bandits.dpp_batch" not in found
    assert f"{NAME}.planning.ite" not in found


def test_packages_have_the_names_that_they_list() -> None:
    assert {f"{NAME}.belief", f"{NAME}.sim"} <= set(FACES)
    for face in FACES:
        check_face(face)


def check_face(face: str) -> None:
    package = importlib.import_module(face)
    path = Path(str(package.__file__))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typed = {
        (node.module, alias.name)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed
    for module, name in typed:  # what the type checker sees is what an import gives
        assert getattr(package, name) is getattr(importlib.import_module(str(module)), name)
        assert name in dir(package)
        assert not (path.parent / f"{name}.py").exists(), f"module {name} hides the name"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    load, names = lazy_names(f"{NAME}.belief", {"config": ("BeliefConfig",)})
    assert "BeliefConfig" in names()
    with pytest.raises(
        AttributeError, match=r"module 'gp_active_sensing\.belief' has no .*'Belif'"
    ):
        load("Belif")
