"""The moving picture of the README is small."""

from __future__ import annotations

import pytest

from tests.pages import REPOSITORY

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

IMAGES = REPOSITORY / "docs" / "images"
if not IMAGES.is_dir():
    pytest.skip("the package lies outside its repository", allow_module_level=True)
MOST_BYTES = 3_000_000


def test_the_picture_of_the_readme_is_small() -> None:
    assert "docs/images/mission.gif" in (REPOSITORY / "README.md").read_text("utf-8")
    file = IMAGES / "mission.gif"
    assert file.stat().st_size < MOST_BYTES
    with Image.open(file) as picture:
        assert (picture.width, picture.n_frames > 100) == (800, True)
