"""A recorded mission whose belief was over kernels, once more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rosbags", reason="the extra [bag] is not installed")

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model import write_model
from gp_active_sensing.records.run_directory import MODEL, RunDirectory
from gp_active_sensing.replay.run import replay_bag
from tests.kernel_models import make_model, rows
from tests.replay.missions import Recorder


def write(path: Path, seed: int = 0) -> Path:
    X, y = rows(seed)
    bounds = {"SE": 0.0, "LIN": -0.4, "PER+SE": -0.8}
    return write_model(path, make_model(tuple(bounds), 0.4 * X, y - 10.0, bounds=bounds))


def recorded(model: Path, folder: Path) -> Path:
    config: dict[str, Any] = {"belief": {"model": str(model)}}
    return Recorder(1, config=config, seconds=30.0).run().bag(folder / "bag")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "yesterday.npz")


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
    write(model, seed=4)
    with pytest.raises(ConfigError, match="is not the model that is meant"):
        replay_bag(bag, tmp_path / "other")
    # The one of then, kept elsewhere under its name.
    model.unlink()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / model.name).write_bytes(first)
    monkeypatch.setenv("GPAS_DATA", str(tmp_path / "kept"))
    done = replay_bag(bag, tmp_path / "other")
    assert done.summary["replay"]["comparison"]["differences"] == []
