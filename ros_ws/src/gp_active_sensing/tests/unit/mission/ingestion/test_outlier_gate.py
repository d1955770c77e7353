from __future__ import annotations

import logging
import math

import numpy as np
import pytest
from scipy.stats import norm

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.belief.drift import NO_DRIFT, DriftConfig
from gp_active_sensing.belief.prior import Log
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.ingestion.outlier_gate import OutlierGate
from gp_active_sensing.planning import build_policy
from gp_active_sensing.records.event_lines import parse_event
from gp_active_sensing.types import Budget, Reading
from tests.cases import for_each
from tests.unit.mission.worlds import SECOND, Rig, grid


def engine(
    count: int = 6, transform: str = "identity", drift: DriftConfig = NO_DRIFT
) -> SensingLoop:
    topology = grid(count)
    belief = BeliefConfig(
        length_scales=(20.0, 60.0),
        signal_std=(1.0,),
        noise_std=(0.1,),
        mean_std=10.0,
        transform=transform,
        drift=drift,
    )
    return SensingLoop(
        topology, build_belief(belief, topology.features), build_policy({"name": "ie"})
    )


def known(count: int = 3, transform: str = "identity", value: float = 20.0) -> SensingLoop:
    loop = engine(transform=transform)
    loop.tell([Reading(i, i, value + 0.1 * i) for i in range(count)])
    return loop


def of(t: float, value: float, place: int = 4, variance: float | None = None) -> Reading:
    return Reading(round(t * SECOND), place, value, variance)


def test_how_far_off_is_the_tail_of_the_mixture_in_standard_deviations() -> None:
    loop = known()
    mean, variance = loop.belief.marginals(np.array([4]))
    std = np.sqrt(variance[:, 0] + loop.belief.noise_variance)
    for value in (25.0, 12.0, 60.0):
        z = abs(value - mean[:, 0]) / std
        expected = norm.isf(float(loop.belief.weights @ norm.sf(z)))
        found = OutlierGate(loop, 1.0, 1).off(of(1.0, value))
        if math.isfinite(expected):
            assert found == pytest.approx(expected, rel=1e-6)
        else:  # beyond what a probability can be written as
            assert found is not None
            assert found > 30.0


def test_where_the_field_changes_old_readings_gate_less_and_less() -> None:
    """The same reading, a minute later, of a field that changes by 0.1 a second."""
    loop = engine(drift=DriftConfig(kind="injection", rate=0.1))
    loop.tell([Reading(i, i, 20.0 + 0.1 * i) for i in range(3)])
    gate = OutlierGate(loop, 6.0, 3)
    assert gate.off(of(0.1, 23.5, place=1)) is not None
    loop.advance(60 * SECOND)
    assert gate.off(of(60.0, 23.5, place=1)) is None
    standing = known()
    gate = OutlierGate(standing, 6.0, 3)
    standing.advance(60 * SECOND)
    assert gate.off(of(60.0, 23.5, place=1)) is not None


def test_nothing_is_judged_before_enough_places_are_observed() -> None:
    loop = known(2)
    gate = OutlierGate(loop, 6.0, 3)
    assert gate.off(of(1.0, 1e6)) is None
    loop.tell([Reading(9, 2, 20.0)])
    assert gate.off(of(1.0, 1e6)) is not None


def test_a_reading_that_says_itself_how_uncertain_it_is_is_judged_by_that() -> None:
    gate = OutlierGate(known(), 6.0, 3)
    assert gate.off(of(1.0, 40.0)) is not None
    assert gate.off(of(1.0, 40.0, variance=100.0)) is None


def test_a_new_place_makes_it_look_at_the_belief_again() -> None:
    loop = known()
    gate = OutlierGate(loop, 6.0, 3)
    far = gate.off(of(1.0, 30.0))
    loop.tell([Reading(5, 5, 30.0)])
    near = gate.off(of(1.0, 30.0, place=5))
    assert far is not None
    assert near is None


@for_each("value", [1e99, -1e99, 1e-300, 0.0])
@for_each("variance", [None, 1e-99, 1e99])
def test_absurd_numbers_are_judged_without_an_error(value: float, variance: float | None) -> None:
    off = OutlierGate(known(), 6.0, 3).off(of(1.0, value, variance=variance))
    assert off is None or off > 6.0


def test_three_that_agree_for_a_second_were_the_field() -> None:
    gate = OutlierGate(known(), 6.0, 3)
    first, second, third = of(1.0, 30.0), of(1.5, 30.1), of(2.0, 29.9)
    for reading in (first, second, third):
        assert gate.off(reading) is not None
    assert gate.keep(first) == []
    assert gate.keep(second) == []
    assert gate.keep(third) == [first, second, third]
    assert len(gate) == 0


@for_each(
    ("between", "variance", "agree"),
    [(0.84, None, True), (0.86, None, False), (16.9, 4.0, True), (17.1, 4.0, False)],
)
def test_readings_agree_within_the_limit_for_a_difference_of_two(
    between: float, variance: float | None, agree: bool
) -> None:
    """6 √2 standard deviations: of the belief's noise (0.1), or of the reading's own."""
    gate = OutlierGate(known(), 6.0, 3)
    gate.off(of(0.0, 30.0))
    for t, value in ((1.0, 40.0 + between), (1.5, 40.0), (2.0, 40.0)):
        taken = gate.keep(of(t, value, variance=variance))
    assert len(taken) == (3 if agree else 0)


def test_a_short_glitch_is_not_the_field_however_many_readings_it_has() -> None:
    gate = OutlierGate(known(), 6.0, 3)
    assert not any(gate.keep(of(1.0 + 0.001 * i, 30.0)) for i in range(900))
    assert len(gate) == 900


def test_the_oldest_are_forgotten_when_there_is_no_room() -> None:
    gate = OutlierGate(known(), 6.0, 3, capacity=5)
    for i in range(8):
        gate.keep(of(float(i), 10.0**i))
    assert (len(gate), gate.forgotten) == (5, 3)
    assert [r.value for r in gate.pop_all()] == [10.0**i for i in range(3, 8)]


def mission(**taking: float) -> Rig:
    """A line of which the first three places are observed, all about 20."""
    rig = Rig(grid(6), taking={"gate": 6.0, "gate_places": 3} | taking)
    for i in range(3):
        rig.pose(1.0 + i, 10.0 * i)
        rig.reading(1.0 + i, 20.0 + 0.1 * i)
    rig.step(3.0)
    assert rig.accepted == 3
    return rig


def test_an_outlier_is_set_aside_said_counted_and_in_the_journal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = mission(unit="degC")
    caplog.set_level(logging.WARNING)
    rig.read(5.0, 30.0, value=65535.0)
    assert rig.accepted == 3
    assert rig.ingestion.rejected == {"gated": 1}
    event = rig.events[-1]
    assert (event["event"], event["value"], event["location"]) == ("gated", 65535.0, 3)
    assert event["off"] > 6.0
    assert "reading 65535 degC at c3r0 is" in caplog.text
    rig.reading(5.1, 20.3)
    rig.pose(5.2, 30.0)
    rig.step(5.2)
    assert (rig.accepted, rig.observed[-1]) == (4, "c3r0")


@for_each(("window", "told"), [(0.0, 3), (10.0, 1)])
def test_a_field_that_surprises_is_believed_at_the_third_reading(window: float, told: int) -> None:
    rig = mission()
    rig.ingestion.pipeline.window.length_ns = round(window * SECOND)
    for t in (5.0, 5.6, 6.2):
        rig.read(t, 30.0, value=40.0)
    rig.pose(20.0, 40.0)
    rig.step(20.0)
    assert rig.ingestion.rejected == {}
    assert rig.ingestion.pipeline.used == 6
    back = [e for e in rig.events if e.get("taken_back")]
    assert [e["taken_back"] for e in back] == ["agreed"] * told
    assert sum(e.get("count", 1) for e in back) == 3
    assert int(rig.loop.belief.readings[3]) == told


def test_a_reading_that_passes_between_them_ends_what_surprises_had_in_common() -> None:
    rig = mission()
    for t, value in ((5.0, 40.0), (5.6, 40.0), (6.2, 20.3), (6.8, 40.0), (7.4, 20.3)):
        rig.read(t, 30.0, value=value)
    assert rig.ingestion.rejected == {"gated": 3}
    assert rig.ingestion.pipeline.used == 5


def test_an_operator_takes_back_what_was_set_aside() -> None:
    rig = mission()
    rig.read(5.0, 30.0, value=40.0)
    assert rig.mission.accept_gated() == 1
    assert rig.observed[-1] == "c3r0"
    assert rig.events[-1]["taken_back"] == "asked"
    assert rig.mission.accept_gated() == 0
    assert rig.mission.rejected == {}


def test_what_is_taken_back_costs_the_budget_as_it_is_then() -> None:
    rig = mission()
    rig.read(5.0, 30.0, value=40.0)
    rig.loop.decisions, rig.loop.remaining = 1, Budget(readings=0)
    rig.mission.accept_gated()
    assert rig.ingestion.rejected == {"budget_spent": 1}
    assert not [event for event in rig.events if event.get("taken_back")], "nor in the journal"


def test_the_journal_brings_back_what_was_kept() -> None:
    rig = mission()
    for t, value in ((5.0, 40.0), (5.5, 70.0), (6.0, 40.1)):
        rig.read(t, 30.0, value=value)
    rig.mission.accept_gated()
    rig.read(8.0, 40.0, value=-50.0)
    again = mission()
    for event in rig.events:
        if event["event"] in ("reading", "gated"):
            again.ingestion.restore(parse_event(event))
    assert again.ingestion.rejected == rig.ingestion.rejected == {"gated": 1}
    assert [r.value for r in again.ingestion.pipeline.gate.pop_all()] == [-50.0]


@for_each("noise", [0.0, 0.5])
def test_a_value_without_the_logarithm_that_the_readings_chose_is_an_outlier(noise: float) -> None:
    """And once the logarithm is dropped nothing is compared with what it predicted."""
    topology = grid(40)
    loop = SensingLoop(
        topology, build_belief(BeliefConfig(), topology.features), build_policy({"name": "ie"})
    )
    rng = np.random.default_rng(3)
    values = np.exp(2.0 + np.cumsum(rng.standard_normal(40)) * 0.5).tolist()
    loop.tell([Reading(i, i, values[i]) for i in range(0, 40, 2)])
    assert isinstance(loop.belief.transform, Log)
    gate = OutlierGate(loop, 6.0, 3)
    gate.noise = lambda: noise
    assert gate.off(of(1.0, -9999.0, place=4)) is not None
    assert gate.off(of(1.0, values[4], place=4)) is None
    loop.belief.observe(6, -1.0)
    assert gate.off(of(2.0, values[4], place=4)) is None
