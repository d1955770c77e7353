"""The shipped bag on other processors: the same places, numbers to 1e-9."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processors import on_two_processors

SCRIPT = """
from pathlib import Path
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.replay.run import replay_bag

out = Path(sys.argv[1], sys.argv[2])
comparison = replay_bag("town_sample", out).summary["replay"]["comparison"]
events = RunDirectory.open(out).events()
said = [comparison, [event for event in events if event["event"] == "decision"]]
"""


@pytest.mark.long
def test_the_shipped_bag_on_two_processors(tmp_path: Path) -> None:
    runs = on_two_processors(SCRIPT, str(tmp_path))
    for comparison, _ in runs:
        assert comparison["differences"] == []
        assert comparison["decisions"] == comparison["decisions_equal"] == 12
        assert comparison["readings"] == comparison["readings_equal"] == 12
    (_, one), (_, other) = runs
    for a, b in zip(one, other, strict=True):
        assert (a["waypoints"], a["path"]) == (b["waypoints"], b["path"])
        for (x, *bounds), (y, *others) in zip(a["candidates"], b["candidates"], strict=True):
            assert x == y
            assert bounds == pytest.approx(others, rel=1e-9)
