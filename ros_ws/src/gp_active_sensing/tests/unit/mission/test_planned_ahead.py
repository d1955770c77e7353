"""Planning while the probe drives: when it is used, when it is given up; no threads in here."""

from __future__ import annotations

from gp_active_sensing.mission.requests import PlanAheadRequest
from tests.cases import for_each
from tests.unit.mission.worlds import Rig, grid

SAMPLES = 3


def under_way(*, columns: int = 5, cells: int | None = SAMPLES, **options: object) -> Rig:
    """Return a mission on its second leg, with so many cells foreseen."""
    rig = Rig(grid(columns), ahead=SAMPLES, **options)  # type: ignore[arg-type]
    rig.mission.start()
    rig.pose(1.0, 0.0)
    rig.step(1.0)
    arrive(rig, 2.0, 5.0)
    rig.step(2.1)
    if cells is not None:
        rig.foresee(cells)
    return rig


def arrive(rig: Rig, t: float, value: float, *, plan: bool = True) -> None:
    """Read a value at the place being driven to."""
    x, y = rig.topology.positions[rig.mission.plan.waypoints[0]]
    rig.pose(t, float(x), float(y))
    rig.reading(t, value)
    rig.step(t, plan=plan)


def median(rig: Rig, cell: int = 1) -> float:
    contingent = rig.mission.probe.ahead.contingent
    return contingent.medians[cell]


def decisions(rig: Rig) -> list[dict]:
    return [event for event in rig.events if event["event"] == "decision"]


def test_what_is_taken_is_what_asking_would_have_given() -> None:
    ahead, asked = under_way(), Rig(grid(5))
    asked.mission.start()
    asked.pose(1.0, 0.0)
    asked.step(1.0)
    arrive(asked, 2.0, 5.0)
    value = median(ahead)
    for rig in (ahead, asked):
        arrive(rig, 3.0, value)
    assert ahead.sent == asked.sent
    ours, theirs = (dict(decisions(rig)[-1]) for rig in (ahead, asked))
    assert (ours.pop("foreseen"), ours.pop("foreseen_for")) == (True, value)
    assert (theirs.pop("foreseen"), theirs.pop("foreseen_for")) == (False, None)
    assert ours.pop("plan_seconds") > 0.0
    assert theirs.pop("plan_seconds") > 0.0
    assert ours == theirs, "whole enough to be taken again: candidates, expansions, policy state"
    assert ours["candidates"]
    loops = ahead.loop, asked.loop
    assert loops[0].decisions == loops[1].decisions
    assert loops[0].policy_state == loops[1].policy_state
    assert loops[0].remaining == loops[1].remaining


@for_each("cell", range(SAMPLES))
def test_what_has_been_foreseen_so_far_is_used(cell: int) -> None:
    rig = under_way(cells=2)
    arrive(rig, 3.0, median(rig, cell), plan=False)
    assert (rig.asked is None) == (cell < 2)


def asked_for(rig: Rig) -> PlanAheadRequest:
    job = rig.asked_ahead
    assert not job.cancelled()
    return job


@for_each("how", ["pause", "stop", "clock"])
def test_it_is_cancelled_when_the_mission_does_not_go_on(how: str) -> None:
    rig = under_way(cells=None)
    job = asked_for(rig)
    if how == "pause":
        rig.mission.pause()
    elif how == "stop":
        rig.mission.stop("asked to finish")
    else:
        rig.step(0.5)
    assert job.cancelled()
    rig.foresee()
    assert rig.mission.probe.ahead.contingent is None, "an answer that comes late is not used"
    assert rig.mission.probe.ahead.progress == ""


def test_a_place_read_on_the_way_makes_it_begin_anew() -> None:
    rig = under_way(cells=None)
    job = asked_for(rig)
    other = next(
        place
        for place in range(5)
        if not rig.loop.belief.observed[place] and place != rig.mission.plan.waypoints[0]
    )
    x, y = rig.topology.positions[other]
    rig.pose(2.5, float(x), float(y))
    rig.reading(2.5, 5.0)
    rig.step(2.5)
    assert job.cancelled()
    assert asked_for(rig) is not job
    assert bool(asked_for(rig).loop.belief.observed[other])
