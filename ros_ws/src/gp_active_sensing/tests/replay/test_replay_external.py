"""A bag of a mission by another program: what it names is not run, only what the user names."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.replay.options import ReplayOptions
from gp_active_sensing.replay.run import replay_bag
from tests.chooser import CHOOSER
from tests.replay.missions import Recorder

PROGRAM = """
import runpy, sys
from pathlib import Path
Path(sys.argv[2]).touch()
sys.argv[1:] = sys.argv[3:]
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


@pytest.fixture
def bag(tmp_path: Path) -> tuple[Path, Path]:
    """A bag, and the file that shows that its program was run."""
    script, shows = tmp_path / "chooser.py", tmp_path / "it was run"
    script.write_text(PROGRAM)
    command = [sys.executable, "-S", str(script), "--", str(shows), str(CHOOSER)]
    policy = {"name": "external", "command": command}
    played = Recorder(1, config={"policy": policy}, seconds=20.0).run()
    assert shows.exists()
    shows.unlink()
    return played.bag(tmp_path / "bag"), shows


def replayed(bag: Path, out: Path, **given: Any) -> Any:
    return replay_bag(bag, out, given=ReplayOptions(**given)).summary


@pytest.mark.parametrize(
    "given",
    [{}, {"policy": "external"}, {"overrides": ("policy.timeout=2.0",)}],
    ids=["again", "policy", "overrides"],
)
def test_what_a_bag_names_is_not_run(
    bag: tuple[Path, Path], tmp_path: Path, given: dict[str, Any]
) -> None:
    path, shows = bag
    with pytest.raises(ConfigError, match=r"policy\.command: the bag says .* it is not run"):
        replayed(path, tmp_path / "out", **given)
    assert not shows.exists()
    assert not (tmp_path / "out").exists()


def test_without_decisions_or_with_another_policy_it_is_replayed(
    bag: tuple[Path, Path], tmp_path: Path
) -> None:
    path, shows = bag
    assert replayed(path, tmp_path / "ie", policy="ie")["stages"]
    replay_bag(path, tmp_path / "belief", belief_only=True)
    assert not shows.exists()


def test_who_replays_may_name_a_program(bag: tuple[Path, Path], tmp_path: Path) -> None:
    path, shows = bag
    mine = json.dumps([sys.executable, "-S", str(CHOOSER)])
    replayed(path, tmp_path / "mine", overrides=(f"policy.command={mine}",))
    assert not shows.exists()
