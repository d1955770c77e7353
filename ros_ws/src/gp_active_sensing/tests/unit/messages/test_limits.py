"""How many messages of a stream are used."""

from __future__ import annotations

import itertools

import pytest

from gp_active_sensing.messages.rate_limit import RateLimit


class Hands:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("sent", [50, 99, 100])
def test_what_keeps_the_rate_passes(sent: int) -> None:
    clock = Hands()
    limit = RateLimit(100.0, clock)
    for _ in range(20 * sent):
        clock.now += 1.0 / sent
        assert limit.allows()


def test_what_is_faster_is_thinned_out_evenly() -> None:
    clock = Hands()
    limit = RateLimit(100.0, clock)
    passed = []
    for _ in range(20_000):  # 1000 a second, for 20 s
        clock.now += 0.001
        passed.append(limit.allows())
    assert sum(passed[10_000:]) == pytest.approx(1000, abs=2)
    gaps = [i for i, ok in enumerate(passed[10_000:]) if ok]
    assert max(b - a for a, b in itertools.pairwise(gaps)) <= 11


def test_a_queue_that_filled_up_while_the_node_was_busy_is_used() -> None:
    clock = Hands()
    limit = RateLimit(100.0, clock)
    clock.now += 3600.0
    assert sum(limit.allows() for _ in range(500)) == 100
