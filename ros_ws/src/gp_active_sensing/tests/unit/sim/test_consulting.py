from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import Scenario, run_scenario
from tests.journals import write_events
from tests.unit.sim.scenarios import GRID, scenario
from tests.unit.sim.test_resume import cut, killed_and_resumed

pytestmark = pytest.mark.usefixtures("asking")
MODEL = {"kind": "model", "noise_std": 0.1}


def asking(base: dict[str, Any] = GRID, **sections: Any) -> Scenario:
    return scenario(base, **{"policy": {"name": "asking"}, "expert": MODEL, **sections})


def run(what: Scenario, out: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return run_scenario(what, out).to_mapping(), RunDirectory.open(out).events()


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == kind]


def waits(events: list[dict[str, Any]]) -> list[float]:
    """Seconds from each question to its decision."""
    asked = 0
    found = []
    for event in events:
        if event["event"] == "query":
            asked = event["stamp_ns"]
        elif event["event"] == "decision":
            found.append(1e-9 * (event["stamp_ns"] - asked))
    return found


def test_waiting_takes_time(tmp_path: Path) -> None:
    quick, _ = run(asking(), tmp_path / "quick")
    slow, events = run(asking(expert={**MODEL, "delay": 3.0}), tmp_path / "slow")
    assert waits(events) == pytest.approx([3.0] * 6)
    # Driving begins with the first decision: what was waited before it is not counted.
    assert slow["seconds"] == pytest.approx(quick["seconds"] + 15.0)
    assert slow["expert"]["waited_seconds"] == pytest.approx(18.0)


def test_a_silent_expert_is_waited_for_until_the_time_out(tmp_path: Path) -> None:
    silent = {**MODEL, "faults": 1.0, "timeout": 2.0}
    summary, events = run(asking(expert=silent), tmp_path / "run")
    assert summary["status"] == "finished"
    assert summary["observed"] == 6
    assert waits(events) == pytest.approx([2.0] * 6)
    assert summary["expert"]["unanswered"] == 18


def test_a_second_probe_answers_after_its_way(tmp_path: Path) -> None:
    probe = {"kind": "probe", "start": "0", "speed": 2.0, "timeout": 100.0, "noise_std": 0.1}
    summary, events = run(asking(expert=probe), tmp_path / "run")
    assert summary["expert"]["answered"] == 18
    # Its way over three cells of 10 m, in steps of 5 s.
    assert all(wait / 5.0 == pytest.approx(round(wait / 5.0), abs=1e-6) for wait in waits(events))
    assert max(waits(events)) > 0.0


def test_the_way_home_is_not_waited_away(tmp_path: Path) -> None:
    silent = {**MODEL, "faults": 1.0, "timeout": 500.0}
    what = asking(expert=silent, probe={"end": "start"}, budget={"readings": 6, "seconds": 60.0})
    summary, events = run(what, tmp_path / "run")
    assert summary["seconds"] <= 60.0 + 1e-6
    # Time counts from the first decision on.
    assert waits(events)[0] == pytest.approx(500.0)
    assert sum(waits(events)[1:]) <= 60.0 + 1e-6
    assert summary["status"] == "finished"


FAULTY = {**MODEL, "delay": 6.0, "timeout": 2.0, "faults": 0.2}
PROBE = {"kind": "probe", "start": "3", "speed": 1.0, "timeout": 12.0, "noise_std": 0.1}


SPARQ = {"name": "sparq_gp_ucb", "step": 10.0}


@pytest.mark.parametrize("kills", [3, pytest.param(None, marks=pytest.mark.long)])
def test_killed_anywhere_it_comes_to_the_same_end(tmp_path: Path, kills: int | None) -> None:
    for number, (expert, policy) in enumerate(
        ((FAULTY, {"name": "asking"}), (PROBE, {"name": "asking"}), (PROBE, SPARQ))
    ):
        what = asking(expert=expert, policy=policy)
        summary = run_scenario(what, tmp_path / str(number)).to_mapping()
        assert summary["expert"]["late"] > 0
        killed_and_resumed(what, tmp_path / str(number), summary, kills)


def test_a_journal_whose_question_asks_elsewhere(tmp_path: Path) -> None:
    """Places of a question are compared; only those of the start are told by their mark."""
    what = asking(expert=MODEL)
    run_scenario(what, tmp_path / "run")
    events = RunDirectory.open(tmp_path / "run").events()
    number, question = next((i, e) for i, e in enumerate(events) if e["event"] == "query")
    target = tmp_path / "damaged"
    cut(tmp_path / "run", target, 0)
    other = {**question, "places": [place + 1 for place in question["places"]]}
    write_events(target / "journal.jsonl", [*events[:number], other])
    with pytest.raises(RunError, match="does not follow"):
        run_scenario(what, target, resume=True)
