"""The generator of the shipped raster makes the shipped raster."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from gp_active_sensing.topology.loaders.ascii_grid import read_ascii_grid
from gp_active_sensing.util.resources import find_resource


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    path = find_resource("maps", "make_terrain.py")
    spec = importlib.util.spec_from_file_location("make_terrain", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_makes_what_is_shipped(generator: ModuleType, tmp_path: Path) -> None:
    assert generator.main(["--out", str(tmp_path / "again.asc")]) == 0
    shipped, *place = read_ascii_grid(find_resource("maps", "terrain.asc"))
    again, *again_place = read_ascii_grid(tmp_path / "again.asc")
    assert again_place == place == [(0, 0), (10, 10)]
    # Another library of Fourier transforms may round a height the other way.
    np.testing.assert_allclose(again, shipped, atol=0.1001)
