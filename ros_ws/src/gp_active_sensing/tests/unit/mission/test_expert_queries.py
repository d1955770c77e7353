from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.experts.simulated import SimulatedExpert
from gp_active_sensing.mission.inbox import RawAnswer, raw_answer
from gp_active_sensing.mission.requests import ExpertRequest, MissionOutput
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim.runner import SimulationRunner
from gp_active_sensing.types import FloatArray, IntArray
from tests.journals import events_of
from tests.unit.mission.missions import Drive, same
from tests.unit.sim.scenarios import GRID, scenario

pytestmark = pytest.mark.usefixtures("asking")
ASKING = {"name": "asking"}
MODEL = {"kind": "model", "noise_std": 0.1, "timeout": 3.0}


def runner(run_dir: Path | None = None, **sections: Any) -> SimulationRunner:
    what = scenario(GRID, **{"policy": ASKING, "expert": MODEL, **sections})
    parameters = {"run_dir": "" if run_dir is None else str(run_dir)}
    return SimulationRunner(what, period=0.5, parameters=parameters)


def played(run_dir: Path, **sections: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Play a mission to its end; return its events and what its summary says of the expert."""
    one = runner(run_dir, **sections)
    assert one.run(3600.0)
    summary = one.parts.recorder.summary(one.mission, "finished")
    one.close()
    return RunDirectory.open(run_dir).events(), summary["expert"]


def of(events: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] in kinds]


def test_it_asks_before_each_decision_and_decides_when_all_have_answered(tmp_path: Path) -> None:
    events, expert = played(tmp_path / "run")
    kinds = [e["event"] for e in of(events, "query", "answer", "asked", "decision")]
    stage = ["query", "answer", "answer", "answer", "asked", "decision"]
    assert kinds == [*stage * 6, "asked"]  # the last time there is nothing left to decide
    assert (expert["questions"], expert["late"], expert["rejected"]) == (6, 0, {})
    assert expert["asked"] == expert["answered"] == expert["used"] == 18
    # They cost nothing of the budget.
    assert len(of(events, "decision")) == 6
    for event in of(events, "answer"):
        assert event["source"] == "expert"
        assert event["late"] is False


def test_other_policies_and_no_expert(tmp_path: Path) -> None:
    for number, sections in enumerate(({"policy": {"name": "ie"}}, {"expert": {"kind": "none"}})):
        events, expert = played(tmp_path / str(number), **sections)
        assert expert == {}
        assert not of(events, "query")


def test_pausing_drops_the_question_and_it_is_asked_anew() -> None:
    one = runner(expert={**MODEL, "timeout": 60.0})
    one.expert = None  # the answers are those of the test
    mission, queries = one.mission, []

    def go(steps: int) -> None:
        for _ in range(steps):
            queries.extend(step.query for step in one.step() if step.query)

    def answer(*places: int) -> None:
        for place in places:
            x, y = mission.loop.topology.positions[place].tolist()
            mission.inbox.put(RawAnswer(one.now_ns, "map", x, y, 33.0, 0.01), one.clock())

    while not queries:
        go(1)
    mission.pause()
    answer(queries[0][0])
    go(4)
    assert mission.consulting.books.counts["late"] == 1  # used all the same
    mission.resume()
    go(2)
    assert len(queries) == 2
    assert queries[0] == queries[1]  # the same decision, the same draws
    assert mission.decisions.stage == 0
    answer(*queries[0])
    go(1)
    assert mission.decisions.stage == 1


def slope(places: IntArray, seconds: float) -> FloatArray:
    del seconds
    return np.asarray(10.0 + 0.1 * places)


class AskedDrive(Drive):
    """A drive with an expert whose answers come one by one, and are lost while the node is dead."""

    def __init__(self, run_dir: Path | None, **config: Any) -> None:
        super().__init__(run_dir, **{"policy": ASKING, **config})
        self.expert = SimulatedExpert(slope, 30, noise_std=1e-12, delay=0.25)
        self.questions: list[tuple[int, ...]] = []
        self._later: list[tuple[int, ...]] = []

    def step(self) -> None:
        mission = self.built.mission
        for reading in self.expert.answers(1e-9 * self.now_ns):
            # The same whenever it is asked for, so that asking again makes no difference.
            plain = replace(reading, value=round(reading.value, 6), noise_variance=0.04)
            mission.inbox.put(raw_answer(plain, mission.loop.topology), 0.0)
        if self._later:  # one place a step, so that a kill comes in between
            place, *rest = self._later.pop(0)
            self.expert.ask([place], 1e-9 * self.now_ns)
            if rest:
                self._later.insert(0, tuple(rest))
        super().step()

    def _do(self, step: MissionOutput) -> None:
        if step.query:
            self.questions.append(step.query)
            self._later.append(step.query)
        if isinstance(step.job, ExpertRequest):
            self.built.mission.queried(step.job, step.job.ask())
        super()._do(step)

    def kill(self) -> None:
        self._later.clear()
        self.expert.answers(math.inf)
        super().kill()


@pytest.mark.slow
@pytest.mark.seeds(0.3)
def test_killed_at_any_moment_it_takes_the_same_decisions(tmp_path: Path, seed: int) -> None:
    plain = AskedDrive(tmp_path / "straight").start()
    plain.run()
    rng = np.random.default_rng([3, seed])
    drive = AskedDrive(tmp_path / "killed").start()
    kills = 0
    for _ in range(6):
        for _ in range(int(rng.integers(1, 25))):
            if drive.built.mission.state != "ended":
                drive.step()
        if drive.built.mission.state == "ended":
            break
        drive.start_again()
        kills += 1
    assert kills > 2
    drive.run()
    same(plain, drive)
    events = RunDirectory.open(tmp_path / "killed").events()
    questions = [e["places"] for e in of(events, "query")]
    assert questions == [list(q) for q in plain.questions]
    books = drive.built.mission.consulting.books.to_mapping()
    assert (books["questions"], books["late"], books["rejected"]) == (12, 0, {})
    assert books["asked"] == books["answered"] == books["used"] == 36


def test_only_what_is_missing_is_asked_again(tmp_path: Path) -> None:
    drive = AskedDrive(tmp_path / "run").start()
    while not events_of(tmp_path / "run", "answer"):
        drive.step()
    drive.start_again()
    drive.step()
    first, again = drive.questions
    assert again == first[1:]
