from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief.from_kernel_model import OWN_SHARES
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model_file import model_mark
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import build_parts
from gp_active_sensing.records.run_directory import MODEL
from gp_active_sensing.report import write_report
from gp_active_sensing.report.payload import build_payload
from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import Scenario, run_scenario, scenario_from_mapping
from tests.journals import records_of
from tests.kernel_models import write_three
from tests.unit.sim.scenarios import GRID, mapping

EACH = len(OWN_SHARES)
"""Candidates of a kernel with a length-scale."""
NAMES = ("SE", "LIN", "PER+SE")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_three(tmp_path / "yesterday.npz")


def learned(model: Path | str, **sections: Any) -> Scenario:
    given = mapping(GRID, **sections)
    given["belief"] = {"model": str(model)}
    return scenario_from_mapping(given)


def cut_off(run: Path, out: Path) -> Path:
    shutil.copytree(run, out)
    for name in ("summary.json", "report.html"):
        (out / name).unlink(missing_ok=True)
    journal = (out / "journal.jsonl").read_bytes()
    (out / "journal.jsonl").write_bytes(journal[: len(journal) // 2])
    return out


def plain(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in r.items() if k != "plan_seconds"} for r in records]


def test_the_records_say_the_kernels(model: Path, tmp_path: Path) -> None:
    summary = run_scenario(learned(model), tmp_path / "run").to_mapping()
    records = records_of(tmp_path / "run")
    assert records[0]["kernels"] == ["SE"] * 5 * EACH + ["LIN"] * EACH + ["PER+SE"] * 5 * EACH
    assert len(records[0]["length_scales"]) == len(records[0]["weights"]) == 11 * EACH
    assert {entry["kernel"] for entry in summary["length_scales"]} == set(NAMES)
    assert sum(entry["weight"] for entry in summary["length_scales"]) == pytest.approx(1.0)


@pytest.mark.slow
def test_a_run_goes_on_with_the_model_it_began_with(model: Path, tmp_path: Path) -> None:
    for probes in (1, 2):
        for what in ("gone", "changed", "moved"):
            folder = tmp_path / f"{what}-{probes}"
            folder.mkdir()
            own = Path(shutil.copy(model, folder))
            scenario = learned(own, probes=probes)
            run_scenario(scenario, folder / "whole", clock=lambda: 0.0)
            cut = cut_off(folder / "whole", folder / "cut")
            if what == "gone":
                own.unlink()
            elif what == "changed":
                write_three(own, seed=5)
            else:
                scenario = learned(own.rename(folder / "elsewhere.npz"), probes=probes)
            run_scenario(scenario, cut, resume=True, clock=lambda: 0.0)
            assert plain(records_of(cut)) == plain(records_of(folder / "whole")), (what, probes)


def test_nothing_is_left_when_the_model_cannot_be_used(model: Path, tmp_path: Path) -> None:
    given = mapping()  # of a line, which has no y
    for wrong in ("missing.npz", str(model)):
        scenario = scenario_from_mapping({**given, "belief": {"model": wrong}})
        with pytest.raises(ConfigError, match=r"belief\.model"):
            run_scenario(scenario, tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_the_report_shows_kernels_and_needs_the_copy_only(model: Path, tmp_path: Path) -> None:
    run_scenario(learned(model), tmp_path / "run")
    model.unlink()
    assert write_report(tmp_path / "run").is_file()
    data = load_run(tmp_path / "run")
    done = replay(data)
    payload = build_payload(data, done)
    assert payload["kernels"]["labels"] == list(NAMES)
    assert sum(payload["kernels"]["prior"]) == pytest.approx(1.0, abs=1e-3)
    (tmp_path / "run" / MODEL).unlink()
    with pytest.raises(ConfigError, match=r"belief\.model: no file"):
        write_report(tmp_path / "run")


def node_config(model: Path | str, run_dir: Path | str, **more: Any) -> ActiveSensingConfig:
    given = {
        "map": GRID["map"],
        "belief": {"model": str(model)},
        "policy": {"name": "max_entropy"},
        "run_dir": str(run_dir),
        **more,
    }
    return from_mapping(ActiveSensingConfig, given)


def test_a_mission_keeps_the_model_and_goes_on_without_the_file(
    model: Path, tmp_path: Path
) -> None:
    parts = build_parts(node_config(model, tmp_path / "run"), None)
    first = parts.mission.loop.belief
    mark = model_mark(model)
    assert parts.belief.model_mark == mark
    parts.recorder.close()
    for change in (lambda: write_three(model, seed=5), model.unlink):
        change()
        again = build_parts(node_config(model, tmp_path / "run"), None)
        assert again.belief.model_mark == mark
        assert again.recorder.earlier > 0
        everywhere = np.arange(first.n)
        assert np.array_equal(
            again.mission.loop.belief.covariance.between(everywhere, everywhere),
            first.covariance.between(everywhere, everywhere),
        )
        again.recorder.close()


def test_a_copy_that_was_tampered_with_is_refused(model: Path, tmp_path: Path) -> None:
    build_parts(node_config(model, tmp_path / "run"), None).recorder.close()
    write_three(tmp_path / "run" / MODEL, seed=5)
    build_parts(node_config(model, tmp_path / "run"), None).recorder.close()  # the file will do
    model.unlink()
    with pytest.raises(ConfigError, match="not the model that the run began with"):
        build_parts(node_config(model, tmp_path / "run"), None)
    assert (tmp_path / "run" / "journal.jsonl").is_file()
