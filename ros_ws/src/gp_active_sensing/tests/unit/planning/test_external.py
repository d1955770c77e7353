"""The policy `external`: what is said to the program, and whatever it answers a mission goes on."""

from __future__ import annotations

import copy
import gc
import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError, PlanningError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning import external_process as process
from gp_active_sensing.planning.external import _RUNNING, ENOUGH, External, end, running_of
from gp_active_sensing.planning.external_process import PlannerProgram, ProgramError
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.sim.runner import SimulationRunner
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.types import Budget, Plan, PlanLimit, Reading
from tests.cases import for_each
from tests.chooser import CHOOSER
from tests.requesting import asked

GRID = {"kind": "grid", "columns": 5, "rows": 4, "spacing": 2.0, "speed": 0.5}
ECHO = """
import json, sys
from pathlib import Path
for line in sys.stdin:
    with Path(sys.argv[1]).open("a") as told:
        told.write(line)
    task = json.loads(line)
    if task["type"] == "decision":
        print(json.dumps({"place": task["candidates"]["places"][0]}), flush=True)
"""


def world(kind: dict[str, Any] = GRID, **belief: Any) -> tuple[Topology, Belief]:
    topology = build_topology(from_mapping(MapConfig, kind))
    known = {"length_scales": (2.0, 5.0), "signal_std": (7.0,), "noise_std": (1.0,)} | belief
    return topology, belief_on(BeliefConfig(**known), topology)


def chooser(how: str = "", **fields: Any) -> External:
    """The policy with the test's own program; it starts without site packages, so quickly."""
    command = (sys.executable, "-S", str(CHOOSER), *([how] if how else []))
    return External(command=command, **fields)


def ask(policy: External, topology: Topology, belief: Belief, **options: Any) -> Plan:
    return ask_with_state(policy, topology, belief, **options)[0]


def ask_with_state(
    policy: External, topology: Topology, belief: Belief, **options: Any
) -> tuple[Plan, Any]:
    rng = np.random.default_rng(options.pop("seed", 3))
    at, state = options.pop("at", 7), options.pop("state", None)
    return policy.plan(asked(belief, topology, at, rng=rng, **options), state)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pid_of(policy: External) -> int:
    program = running_of(policy).program
    assert program is not None
    return program.pid


@pytest.fixture
def told(tmp_path: Path) -> Iterator[tuple[External, Path]]:
    script, file = tmp_path / "echo.py", tmp_path / "told.jsonl"
    script.write_text(ECHO)
    policy = External(command=(sys.executable, "-S", str(script), str(file)))
    yield policy, file
    end(policy)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_map_comes_first_and_once(told: tuple[External, Path]) -> None:
    policy, file = told
    topology, belief = world()
    for _ in range(2):
        ask(policy, topology, belief)
    first, *rest = lines(file)
    assert [line["type"] for line in (first, *rest)] == ["map", "decision", "decision"]
    assert first["protocol"] == 1
    assert first["names"] == list(topology.names)
    assert first["positions"] == topology.positions.tolist()
    assert first["moves"][0] == topology.neighbours(0).tolist()
    assert first["free"] is False
    assert first["speed"] == pytest.approx(0.5)
    assert len(first["weights"]) == topology.n
    ask(policy, *world(GRID | {"moves": "free"}))
    another = lines(file)[3]
    assert another["type"] == "map", "another map is told, to the same process"
    assert another["free"] is True
    assert another["moves"] is None


def test_a_decision_says_all_that_is_believed(told: tuple[External, Path]) -> None:
    policy, file = told
    topology, belief = world()
    belief.observe(7, 20.0)
    belief.observe(7, 24.0)
    belief.observe(3, 31.0, 0.25)
    plan, state = ask_with_state(
        policy, topology, belief, pending=(6,), remaining=Budget(9, 50.0, None, 2), seed=5
    )
    task = lines(file)[1]
    options = task["candidates"]
    assert 6 not in options["places"]
    assert 6 not in plan.waypoints
    assert plan.waypoint == options["places"][0]
    assert plan.cost.metres == options["metres"][0]
    assert options["seconds"] == pytest.approx([2.0 * m for m in options["metres"]])
    assert task["at"] == 7
    assert task["pending"] == [6]
    assert task["remaining"] == {"readings": 9, "metres": 50.0, "seconds": None, "end": 2}
    assert task["seed"] == int(np.random.default_rng(5).integers(2**31))
    said = task["belief"]
    mean, variance = belief.predict()
    np.testing.assert_allclose(said["mean"], mean)
    np.testing.assert_allclose(said["std"], np.sqrt(variance))
    np.testing.assert_allclose([c["weight"] for c in said["candidates"]], belief.weights)
    assert [c["length_scales"] for c in said["candidates"]] == [[2.0], [5.0]]
    assert {c["signal_std"] for c in said["candidates"]} == {7.0}
    assert said["scale"] == "identity"
    assert said["readings"]["places"] == [3, 7]
    assert said["readings"]["counts"] == [1, 2]
    np.testing.assert_allclose(said["readings"]["values"], [31.0, 22.0])
    np.testing.assert_allclose(said["readings"]["noise_std"], [0.5, np.sqrt(0.5)])
    assert state == {"asked": 1, "failed": 0}
    ask_with_state(policy, topology, belief, state=state)
    assert lines(file)[-1]["decision"] == 1


def test_a_mission_by_a_program_is_the_one_it_plans(caplog: pytest.LogCaptureFixture) -> None:
    topology, belief = world()
    loop = SensingLoop(topology, belief, chooser(), budget=Budget(readings=8))
    at = 0
    while (plan := loop.ask(at)).waypoint is not None:
        std = np.sqrt(loop.belief.predict()[1])
        candidates = topology.candidates(at, loop.belief.observed)
        assert std[plan.waypoint] == pytest.approx(std[candidates].max())
        at = plan.waypoint
        loop.tell([Reading(0, at, float(np.sin(at)))])
    assert loop.belief.observed.sum() == 8
    assert loop.policy_state == {"asked": 8, "failed": 0}
    assert running_of(loop.policy).program is None, "it has ended with the mission"
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_words_that_name_a_file_beside_the_scenario_mean_that_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CHOOSER.read_text())
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(
        "map: {kind: grid, columns: 5, rows: 4, spacing: 2.0, neighbours: 8}\n"
        "field: {kind: gp, length_scale: 3.0, signal_std: 1.0}\n"
        "sensor: {noise_std: 0.1}\n"
        f"policy: {{name: external, command: [{sys.executable}, -S, mine.py]}}\n"
        "budget: {readings: 6}\n"
    )
    read = load_scenario(scenario)
    assert read.policy["command"] == [sys.executable, "-S", str(tmp_path / "mine.py")]
    runner = SimulationRunner(read)
    assert runner.run(600.0)
    loop = runner.mission.loop
    assert loop.belief.observed.sum() == 6
    assert loop.policy_state["failed"] == 0
    assert loop.policy_state["asked"] >= 5


WRONG = {
    "garbage": "no object of JSON",
    "list": "no object of JSON",
    "deep": "no object of JSON",
    "bytes": "no object of JSON",
    "elsewhere": "not on the map",
    "beyond": "not on the map",
    "true": "not on the map",
    "stands": "none of the candidates",
    "nothing": "an answer without a place: 'no idea'",
    "route": "not on the map",
    "number": "no list of places",
    "value": "no finite number",
    "digits": "no finite number",
    "die": r"has ended \(exit code 3\)",
    "huge": "more than 1048576 bytes",
}


@for_each("how", WRONG)
def test_a_wrong_answer_is_said_and_counted(how: str, caplog: pytest.LogCaptureFixture) -> None:
    topology, belief = world()
    for place in (7, 2):
        belief.observe(place, 20.0)
    policy = chooser(f"{how}:2")
    plan, state = ask_with_state(policy, topology, belief)
    assert not plan.reason
    with caplog.at_level(logging.INFO, "gp_active_sensing.planning"):
        plan, state = ask_with_state(policy, topology, belief, state=state)
    std = np.sqrt(belief.predict()[1])
    candidates = topology.candidates(7, belief.observed)
    assert plan.waypoint == candidates[np.argmax(std[candidates])]
    assert state == {"asked": 2, "failed": 1}
    assert "the least certain candidate is taken instead" in plan.reason
    assert re.search(WRONG[how], plan.reason)
    assert plan.reason in caplog.text
    assert "(1 of 2 decisions so far)" in caplog.text
    assert not plan.deadline_hit
    if how == "die":
        assert "this is the end" in caplog.text
        plan, state = ask_with_state(policy, topology, belief, state=state)
        assert not plan.reason, "it was started again, and told the map again"
    end(policy)


def test_a_program_that_hangs_is_left_behind_and_ended_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topology, belief = world()
    policy = chooser("hang:2")
    ask(policy, topology, belief)
    first = pid_of(policy)
    plan = ask(policy, topology, belief, limit=PlanLimit(seconds=0.05))
    assert "did not answer in time" in plan.reason
    assert plan.deadline_hit
    assert alive(first)
    monkeypatch.setattr(process, "PATIENCE", 0.0)
    plan = ask(policy, topology, belief, limit=PlanLimit(seconds=0.05))
    assert "it was ended" in plan.reason
    assert not alive(first)
    monkeypatch.undo()
    assert not ask(policy, topology, belief).reason
    assert pid_of(policy) != first
    end(policy)


def test_an_answer_that_comes_late_is_not_taken_for_the_next(tmp_path: Path) -> None:
    script, go = tmp_path / "slow.py", tmp_path / "go"
    script.write_text(
        "import json, sys, time\nfrom pathlib import Path\n"
        "for number, line in enumerate(sys.stdin):\n"
        "    if number == 1:\n"
        "        while not Path(sys.argv[1]).exists():\n"
        "            time.sleep(0.01)\n"
        "    if number:\n"
        "        places = json.loads(line)['candidates']['places']\n"
        "        print(json.dumps({'place': places[-1], 'value': number}), flush=True)\n"
    )
    policy = External(command=(sys.executable, "-S", str(script), str(go)), start=0.0)
    topology, belief = world()
    plan = ask(policy, topology, belief, limit=PlanLimit(seconds=0.05))
    assert plan.deadline_hit
    go.touch()
    plan = ask(policy, topology, belief)
    assert not plan.reason
    assert plan.lower == 2.0, "the answer to the second question"
    end(policy)


def test_lines_that_nobody_asked_for_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    topology, belief = world()
    policy = chooser("chatty")
    assert not ask(policy, topology, belief).reason
    other = topology.candidates(7, belief.observed)[:-1].tolist()
    plan = ask(policy, topology, belief, pending=tuple(other))
    assert not plan.reason
    assert "which is not used: one more thing" in caplog.text
    end(policy)


def test_its_standard_error_is_in_the_log_cleaned_and_in_bounds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LINES", 3)
    topology, belief = world()
    policy = chooser("loud")
    with caplog.at_level(logging.INFO, "gp_active_sensing.planning"):
        for _ in range(4):
            ask(policy, topology, belief)
        end(policy)
    said = [r.getMessage() for r in caplog.records if "standard error" in r.getMessage()]
    assert len(said) == 1
    heard = [r for r in caplog.records if "thinking" in r.getMessage() or "yyy" in r.getMessage()]
    assert len(heard) == 3
    assert all(r.levelno == logging.INFO and len(r.getMessage()) < 400 for r in heard)
    assert "\x1b" not in caplog.text


def test_a_program_that_reads_nothing_does_not_block() -> None:
    """The question is far longer than what a pipe holds."""
    big = {"kind": "grid", "columns": 60, "rows": 60, "spacing": 1.0, "moves": "free"}
    topology, belief = world(big, length_scales=(2.0,))
    policy = External(command=(sys.executable, "-S", "-c", "import time; time.sleep(600)"), start=0)
    plan = ask(policy, topology, belief, limit=PlanLimit(seconds=0.2))
    assert plan.deadline_hit
    assert plan.waypoint is not None
    end(policy)


def test_a_program_that_never_answers_is_not_started_for_ever() -> None:
    topology, belief = world()
    policy = External(command=(sys.executable, "-S", "-c", ""))
    for _ in range(ENOUGH):
        assert "has ended (exit code 0)" in ask(policy, topology, belief).reason
    assert "is not started again" in ask(policy, topology, belief).reason
    assert running_of(policy).program is None


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    topology, belief = world()
    policy = External(command=(str(tmp_path / "nothing"),))
    with pytest.raises(PlanningError, match=r"there is no program .*nothing"):
        SensingLoop(topology, belief, policy)
    assert "cannot be started" in ask(policy, topology, belief).reason, "and a mission goes on"
    for wrong in ((), ("",), ("a", "b\0")):
        with pytest.raises(ConfigError, match="command"):
            External(command=wrong)
    with pytest.raises(ConfigError, match=r"policy\.command: is required and missing"):
        build_policy({"name": "external"})
    with pytest.raises(ConfigError, match=r"policy\.command: expected a list"):
        build_policy({"name": "external", "command": "rm -rf x; true"})


def test_one_process_for_a_policy_which_ends_with_it() -> None:
    topology, belief = world()
    policy = chooser()
    twin = copy.deepcopy(policy)
    assert policy == twin
    ask(policy, topology, belief)
    ask(twin, topology, belief)
    first, second = pid_of(policy), pid_of(twin)
    assert first != second, "two missions in one process have a program each"
    ask(policy, topology, belief)
    assert pid_of(policy) == first
    key = (os.getpid(), id(policy))
    assert key in _RUNNING
    del policy
    gc.collect()
    assert not alive(first)
    assert alive(second)
    assert key not in _RUNNING
    end(twin)
    assert not alive(second)
    end(twin)


def test_what_a_program_started_ends_with_it(tmp_path: Path) -> None:
    script, note = tmp_path / "parent.py", tmp_path / "pid"
    script.write_text(
        "import subprocess, sys, time\nfrom pathlib import Path\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "Path(sys.argv[1]).write_text(str(child.pid))\n"
        "print('{}', flush=True)\n"
        "time.sleep(600)\n"
    )
    program = PlannerProgram([sys.executable, "-S", str(script), str(note)])
    with pytest.raises(ProgramError):
        program.ask([b"{}\n"], 0.0)
    deadline = time.monotonic() + 30.0
    while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    child = int(note.read_text())
    program.close(0.0)
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(child)
    assert not program.running
    with pytest.raises(ProgramError, match="has ended"):
        program.ask([b"{}\n"], 1.0)


def test_a_process_that_ends_takes_its_program_along() -> None:
    script = f"""
import sys
sys.path.insert(0, {str(CHOOSER.parents[1])!r})
from tests.unit.planning.test_external import ask, chooser, pid_of, world
policy = chooser()
ask(policy, *world())
print(pid_of(policy))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert not alive(int(done.stdout))


def test_a_fork_has_a_program_of_its_own() -> None:
    topology, belief = world()
    policy = chooser()
    ask(policy, topology, belief)
    mine = pid_of(policy)
    child = os.fork()
    if not child:
        code = 1
        try:
            plan = ask(policy, topology, belief)
            code = 0 if not plan.reason and pid_of(policy) != mine else 2
            end(policy)
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert alive(mine)
    assert not ask(policy, topology, belief).reason
    assert pid_of(policy) == mine
    end(policy)
