from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.records.run_directory import MODEL, RunDirectory
from gp_active_sensing.replay.run import replay_bag
from tests.kernel_models import write_three
from tests.replay.missions import Recorder


def recorded(model: Path, folder: Path) -> Path:
    config: dict[str, Any] = {"belief": {"model": str(model)}}
    return Recorder(1, config=config, seconds=30.0).run().bag(folder / "bag")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_three(tmp_path / "yesterday.npz")


def test_the_decisions_come_out_again_with_the_same_model_only(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bag = recorded(model, tmp_path)
    first = model.read_bytes()
    done = replay_bag(bag, tmp_path / "again")
    comparison = done.summary["replay"]["comparison"]
    assert comparison["differences"] == []
    assert comparison["decisions"] == comparison["decisions_equal"] > 4
    assert (tmp_path / "again" / MODEL).read_bytes() == first
    record = RunDirectory.open(tmp_path / "again").records()[-1]
    assert set(record["kernels"]) == {"SE", "LIN", "PER+SE"}
    write_three(model, seed=4)
    with pytest.raises(ConfigError, match="is not the model that is meant"):
        replay_bag(bag, tmp_path / "other")
    # The one of then, kept elsewhere under its name.
    model.unlink()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / model.name).write_bytes(first)
    monkeypatch.setenv("GPAS_DATA", str(tmp_path / "kept"))
    done = replay_bag(bag, tmp_path / "other")
    assert done.summary["replay"]["comparison"]["differences"] == []
