from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.experts.base import ExpertConfig, Field
from gp_active_sensing.experts.simulated import RevisitExpert, SimulatedExpert, build_expert
from gp_active_sensing.topology import FreeTopology, make_line
from gp_active_sensing.types import FloatArray, IntArray
from tests.cases import for_each

N = 20
LINE = make_line(N, 1.0, moves="adjacent")


def of_map(values: FloatArray) -> Field:
    """A field that stands still, with (n,) values at all places of a map."""
    return lambda places, seconds: values[places]


def rising(places: IntArray, seconds: float) -> FloatArray:
    """10 a place and 1 a second."""
    return np.asarray(10.0 * places + seconds)


def model(**more: object) -> SimulatedExpert:
    return SimulatedExpert(rising, N, noise_std=1e-9, **more)  # type: ignore[arg-type]


def probe(**more: object) -> RevisitExpert:
    return RevisitExpert(rising, LINE, noise_std=1e-9, **more)  # type: ignore[arg-type]


ALL: list[SimulatedExpert] = [
    model(),
    SimulatedExpert(rising, N, [3, 7], noise_std=1e-9),
    probe(start=0),
]


@for_each("expert", ALL)
def test_every_kind_is_an_expert(expert: SimulatedExpert) -> None:
    expert.ask([3, 7], 100.0)
    answers = expert.answers(1e6)
    assert {a.location for a in answers} == {3, 7}
    for answer in answers:
        assert answer.source == "expert"
        assert answer.noise_variance == pytest.approx(1e-18)
        assert answer.location is not None
        # The value is that of its stamp.
        truth = rising(np.array([answer.location]), 1e-9 * answer.stamp_ns)[0]
        assert answer.value == pytest.approx(truth, abs=1e-6)
    assert expert.answers(1e6) == []
    assert expert.due is None


def test_an_answer_comes_after_its_delay_with_the_value_of_the_question() -> None:
    expert = model(delay=4.0)
    expert.ask([2], 10.0)
    assert expert.due == 14.0
    assert expert.answers(13.9) == []
    (answer,) = expert.answers(14.0)
    assert answer.stamp_ns == 10_000_000_000
    assert answer.value == pytest.approx(30.0)


def test_noise_has_the_stated_variance() -> None:
    expert = SimulatedExpert(of_map(np.zeros(N)), N, noise_std=2.0, seed=5)
    for _ in range(100):
        expert.ask(range(N), 0.0)
    values = np.array([a.value for a in expert.answers(0.0)])
    assert values.size == 2000
    assert abs(values.mean()) < 4 * 2.0 / math.sqrt(2000)
    # The standard error of a variance is sigma² sqrt(2/n).
    assert abs(values.var() - 4.0) < 4 * 4.0 * math.sqrt(2 / 2000)


def test_an_answer_depends_neither_on_order_nor_on_other_questions() -> None:
    def said(questions: list[list[int]]) -> dict[int, float]:
        expert = SimulatedExpert(of_map(np.zeros(N)), N, noise_std=1.0, seed=3)
        for places in questions:
            expert.ask(places, 0.0)
        return {a.location: a.value for a in expert.answers(0.0) if a.location is not None}

    assert said([[1, 2, 3]])[2] == said([[3, 2]])[2] == said([[9], [2]])[2]


def rates(faults: float = 0.0) -> tuple[float, float, float]:
    """Return how many of 4000 answers are silent, not a number, and for another place."""
    expert = SimulatedExpert(
        of_map(np.arange(N, dtype=float)), N, noise_std=1e-6, seed=1, faults=faults
    )
    for _ in range(200):
        expert.ask(range(N), 0.0)
    answers = expert.answers(0.0)
    wrong = sum(a.location != round(a.value) for a in answers if math.isfinite(a.value)) / max(
        1, sum(math.isfinite(a.value) for a in answers)
    )
    broken = sum(math.isnan(a.value) for a in answers) / max(1, len(answers))
    return 1 - len(answers) / 4000, broken, wrong


def test_faults_come_as_often_as_they_are_said_to() -> None:
    assert rates() == (0.0, 0.0, 0.0)
    tolerance = 4 * math.sqrt(0.3 * 0.7 / 4000)
    assert rates(0.3) == pytest.approx((0.3, 0.3, 0.3), abs=1.2 * tolerance)
    assert rates(1.0)[0] == 1.0


def test_a_probe_needs_the_time_of_its_way() -> None:
    expert = probe(start=0)  # 1 m between places, 1 m/s
    expert.ask([9, 2, 5], 100.0)
    answers = expert.answers(1e6)
    assert [a.location for a in answers] == [2, 5, 9]
    assert [a.stamp_ns for a in answers] == [102e9, 105e9, 109e9]


def test_a_new_question_calls_off_what_it_has_not_begun_to_drive_to() -> None:
    expert = probe(start=0)
    expert.ask([2, 10, 15], 0.0)
    assert [a.location for a in expert.answers(3.0)] == [2]
    expert.ask([4], 3.0)  # on its way to 10, where it arrives at 10 s; from there 6 s back
    assert [(a.location, 1e-9 * a.stamp_ns) for a in expert.answers(1e6)] == [(10, 10), (4, 16)]


def test_a_place_without_a_way_gets_no_answer() -> None:
    class Cut(FreeTopology):
        def ways_from(self, at, by="seconds"):  # type: ignore[no-untyped-def]
            ways = super().ways_from(at, by)
            ways.seconds[2] = np.inf
            return ways

    points = np.column_stack([np.arange(3.0), np.zeros(3)])
    expert = RevisitExpert(
        rising, Cut("cut", "map", ["a", "b", "c"], points), start=0, noise_std=0.1
    )
    expert.ask([2, 1], 0.0)
    assert [a.location for a in expert.answers(1e6)] == [1]


def build(**section: object) -> SimulatedExpert | None:
    return build_expert(ExpertConfig(**section), LINE, rising, 0)  # type: ignore[arg-type]


def test_all_wrong_stations_are_said_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        build(kind="stations", stations=("99", "nowhere", "2", "2"))
    assert len(caught.value.problems) == 3
    assert "expert.stations[0]: map" in str(caught.value)
    assert "expert.stations[1]: no place 'nowhere'" in str(caught.value)
    assert "more than once" in str(caught.value)
