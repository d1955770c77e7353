"""Several blocks of readings, one delay: how far they agree."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.mission.ingestion import delay_agreement as agreement
from gp_active_sensing.mission.ingestion.delay_agreement import (
    CANDIDATES,
    NONE,
    common_delay,
    said_by,
)
from gp_active_sensing.mission.ingestion.delay_estimate import (
    ERRORS,
    EVIDENCE,
    FULL,
    KEPT,
    DelayEvidence,
)
from gp_active_sensing.types import FloatArray


def peak(at: float, width: float = 0.1) -> FloatArray:
    return np.asarray(-0.5 * ((CANDIDATES - at) / width) ** 2)


def told(*delays: float, width: float = 0.1) -> tuple[float, float, float]:
    return common_delay([said_by(peak(delay, width)) for delay in delays])


def test_the_delay_of_blocks_that_agree_is_theirs() -> None:
    for delay in (-0.6, 0.4, 1.5, 3.17):
        seconds, error, evidence = told(delay, delay, delay, delay)
        assert seconds == pytest.approx(delay, abs=0.02)
        assert error < 0.1
        assert evidence > 5.0


@pytest.mark.parametrize("width", [0.5, 0.1, 0.02])
def test_one_block_is_not_enough_however_sure_it_is(width: float) -> None:
    _, _, evidence = told(1.5, width=width)
    assert evidence < EVIDENCE


def test_each_block_that_agrees_makes_it_surer_and_one_that_does_not_less_sure() -> None:
    evidences = [told(*[1.5] * count)[2] for count in (1, 2, 3, 4)]
    assert evidences == sorted(evidences)
    assert told(1.5, 1.5, 1.5, -0.5)[2] < evidences[2]


def test_blocks_that_are_sure_and_differ_tell_no_delay() -> None:
    seconds, error, evidence = told(0.9, -0.6, 0.4, -0.5, 0.6, width=0.02)
    assert evidence < EVIDENCE
    assert abs(seconds) < ERRORS * error


def test_the_error_is_that_of_how_they_differ() -> None:
    rng = np.random.default_rng(3)
    delays = 2.0 + 0.3 * rng.standard_normal(12)
    seconds, error, _ = told(*delays.tolist(), width=0.01)
    assert seconds == pytest.approx(delays.mean(), abs=0.06)
    assert error == pytest.approx(delays.std(ddof=1) / math.sqrt(12), rel=0.5)


def test_a_block_that_tells_nothing_changes_nothing() -> None:
    flat = said_by(np.zeros(len(CANDIDATES)))
    blocks = [said_by(peak(1.5)), said_by(peak(1.6))]
    with_it, without = common_delay([*blocks, flat]), common_delay(blocks)
    assert with_it[0] == pytest.approx(without[0], abs=0.05)
    assert with_it[2] == pytest.approx(without[2], abs=1.0)


def test_a_delay_beyond_those_compared_is_not_told_from_the_last_of_them() -> None:
    seconds, error, _ = told(9.0, 9.0, 9.0, width=1.0)
    assert seconds < CANDIDATES[-1] <= seconds + 2.0 * error
    seconds, error, _ = told(-4.0, -4.0, -4.0, width=1.0)
    assert seconds - 2.0 * error <= CANDIDATES[0] < seconds


def test_what_blocks_say_is_the_double_integral(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of blocks that are normal, whose integrals are known."""
    monkeypatch.setattr(agreement, "SCATTERS", (0.3, 0.6))
    width, delays = 0.4, (1.2, 2.1)

    def exact(tau: float) -> float:
        spread = [math.hypot(width, s) for s in (0.3, 0.6)]
        return sum(
            math.prod(math.exp(-0.5 * ((d - tau) / w) ** 2) / w for d in delays) for w in spread
        )

    evidence = told(*delays, width=width)[2]
    best = max(exact(tau) for tau in np.arange(1.0, 2.5, 0.05).tolist())
    assert evidence == pytest.approx(math.log(best / exact(0.0)), abs=1e-3)


def test_a_delay_that_begins_late_is_found_and_what_was_before_forgotten() -> None:
    evidence = DelayEvidence()

    def look(delay: float) -> None:
        evidence._said.append(said_by(peak(delay)))
        evidence.samples += FULL

    for _ in range(3 * KEPT):
        look(0.0)
    assert evidence.estimate() is None
    for _ in range(KEPT):
        look(1.5)
    found = evidence.estimate()
    assert found is not None
    assert found.seconds == pytest.approx(1.5, abs=0.05)
    assert found.samples == KEPT * FULL


def test_no_delay_is_one_of_those_compared() -> None:
    assert CANDIDATES[NONE] == 0.0
