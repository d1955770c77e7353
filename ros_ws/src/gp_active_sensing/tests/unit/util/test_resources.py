from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gp_active_sensing.errors import ActiveSensingError, ResourceError
from gp_active_sensing.util import resources
from gp_active_sensing.util.resources import find_resource, list_resources


def put(prefix: Path, name: str, text: str = "") -> Path:
    path = prefix / "share" / "gp_active_sensing" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def prefixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    """Two colcon prefixes and a pip prefix; neither the real ones nor the source tree."""
    first, second, pip = (tmp_path / name for name in ("first", "second", "pip"))
    elsewhere = tmp_path / "gp_active_sensing" / "gp_active_sensing" / "util" / "resources.py"
    monkeypatch.delenv("GPAS_DATA", raising=False)
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{first}:{second}:")
    monkeypatch.setattr(sys, "prefix", str(pip))
    monkeypatch.setattr(resources, "__file__", str(elsewhere))
    monkeypatch.chdir(tmp_path)
    return first, second, pip


def test_order_of_the_places(prefixes: tuple[Path, Path, Path], tmp_path: Path) -> None:
    source = tmp_path / "gp_active_sensing"
    (source / "maps").mkdir(parents=True)
    (source / "maps" / "town.geojson").touch()
    with pytest.raises(ResourceError):
        find_resource("maps", "town.geojson")
    (source / "package.xml").touch()
    assert find_resource("maps", "town.geojson") == source / "maps" / "town.geojson"
    for prefix in reversed(prefixes):
        path = put(prefix, "maps/town.geojson")
        assert find_resource("maps", "town.geojson") == path
    own = tmp_path / "town.geojson"
    own.touch()
    assert find_resource("maps", "town.geojson") == Path("town.geojson")
    assert find_resource("maps", own) == own


def test_name_without_suffix(prefixes: tuple[Path, Path, Path]) -> None:
    path = put(prefixes[0], "sim/town.yaml")
    assert find_resource("sim", "town") == path
    put(prefixes[0], "sim/town.json")
    fits = "'town' fits town.json and town.yaml"
    for name, problem in (("town", fits), ("towm", r"Did you mean 'town\.(json|yaml)'")):
        with pytest.raises(ResourceError, match=problem):
            find_resource("sim", name)


def test_list_is_the_union_without_hidden_files(prefixes: tuple[Path, Path, Path]) -> None:
    put(prefixes[0], "maps/town.geojson")
    put(prefixes[2], "maps/town.geojson")
    put(prefixes[2], "maps/bay.csv")
    for name in ("README.md", ".hidden", "__pycache__/x.pyc", "make_town.py"):
        put(prefixes[2], f"maps/{name}")
    assert list_resources("maps") == ("bay.csv", "town.geojson")


def test_missing_file_says_what_where_and_what_to_do(prefixes: tuple[Path, Path, Path]) -> None:
    put(prefixes[0], "maps/town.geojson")
    with pytest.raises(FileNotFoundError) as caught:
        find_resource("maps", "towm")
    text = str(caught.value)
    assert isinstance(caught.value, ActiveSensingError)
    assert "no file 'towm'. Did you mean 'town'? Available: town.geojson." in text
    assert all(str(prefix / "share" / "gp_active_sensing" / "maps") in text for prefix in prefixes)


def test_a_folder_of_data_is_searched_in_the_end(
    prefixes: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    (data / "sumo").mkdir(parents=True)
    (data / "sumo" / "town.net.xml.gz").touch()
    with pytest.raises(ResourceError, match="GPAS_DATA is not set; it may name a folder"):
        find_resource("maps", "sumo/town.net.xml.gz")
    monkeypatch.setenv("GPAS_DATA", str(data))
    assert find_resource("maps", "sumo/town.net.xml.gz") == data / "sumo" / "town.net.xml.gz"
    shipped = put(prefixes[0], "maps/sumo/town.net.xml.gz")
    assert find_resource("maps", "sumo/town.net.xml.gz") == shipped
