from __future__ import annotations

import re

import pytest

from gp_active_sensing.report.frame import DOUBT, VALUES, colour_table, luminance


@pytest.mark.parametrize("table", [VALUES, DOUBT])
def test_brightness_rises_all_the_way(table: tuple[str, ...]) -> None:
    light = [luminance(colour) for colour in table]
    assert light == sorted(light)
    # Neither end vanishes: contrast with a white and with a nearly black page.
    assert 1.05 / (light[-1] + 0.05) > 1.25
    assert (light[0] + 0.05) / (luminance("#181e27") + 0.05) > 1.25


def test_tables() -> None:
    assert len(VALUES) == len(DOUBT) == 64
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in (*VALUES, *DOUBT))
    assert colour_table(("#000000", "#ffffff"), 3) == ("#000000", "#808080", "#ffffff")
    assert luminance("#ffffff") == pytest.approx(1.0)
