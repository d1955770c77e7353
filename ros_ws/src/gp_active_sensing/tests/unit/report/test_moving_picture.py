"""The moving picture of the README is what its script draws."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.pages import REPOSITORY

pytest.importorskip("matplotlib", reason="the extra [experiments] is not installed")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

IMAGES = REPOSITORY / "docs" / "images"
if not IMAGES.is_dir():
    pytest.skip("the package lies outside its repository", allow_module_level=True)
MOST_BYTES = 3_000_000


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_mission", IMAGES / "make_mission.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_mission"] = module
    spec.loader.exec_module(module)
    return module


def drawn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder.mkdir()
    monkeypatch.setattr(sys, "argv", ["make_mission.py", "--readings", "4", "--out", str(folder)])
    script().main()
    return folder / "mission.gif"


@pytest.mark.long
def test_the_script_draws_a_few_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = drawn(tmp_path / "once", monkeypatch)
    frames = []
    with Image.open(file) as picture:
        assert picture.info["loop"] == 0
        for number in range(picture.n_frames):
            picture.seek(number)
            frames.append(picture.convert("RGB"))
    assert len(frames) == 5, "one for each reading, and one with the truth"
    assert len({frame.tobytes() for frame in frames}) == 5
    assert len(frames[-1].getcolors(maxcolors=1000)) > 30, "the maps have colours"
    assert drawn(tmp_path / "again", monkeypatch).read_bytes() == file.read_bytes()


def test_the_picture_of_the_readme_is_small() -> None:
    assert "docs/images/mission.gif" in (REPOSITORY / "README.md").read_text("utf-8")
    file = IMAGES / "mission.gif"
    assert file.stat().st_size < MOST_BYTES
    with Image.open(file) as picture:
        assert (picture.width, picture.n_frames > 100) == (800, True)
