"""What readings of the budget are kept for, also where places are visited again."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.engine.reservations import BudgetReservations


def observed(*places: int) -> np.ndarray:
    flags = np.zeros(10, dtype=bool)
    flags[list(places)] = True
    return flags


def test_readings_are_kept_for_what_lies_on_the_way_and_for_visits_to_come() -> None:
    promises = BudgetReservations()
    promises.make("a", (1, 2, 3))
    promises.make("b", (4, 5), again=True)
    assert promises.kept(observed(2, 5), ()) == {1, 3, 4, 5}
    assert promises.kept(observed(2, 5), {1}) == {3, 4, 5}
    assert promises.goals(observed(2, 5), ()) == {3, 5}
    assert promises.goals(observed(3), {5}) == set()
    assert promises.is_due(5)
    assert not promises.is_due(3)


def test_what_is_kept_from_a_probe_is_what_the_others_were_promised() -> None:
    promises = BudgetReservations()
    promises.make("a", (1, 2))
    promises.make("b", (5,), again=True)
    promises.make("c", (7, 8))
    seen = observed(1, 5)
    assert promises.kept_from("a", (5, 8), seen, ()) == 3  # 5 again, 7 and 8
    assert promises.kept_from("a", (5, 8), seen, {7}) == 2
    assert promises.kept_from("b", (2, 8), seen, ()) == 3  # 2, 7 and 8
    assert promises.kept_from("c", (2, 5), seen, ()) == 2  # 2, and 5 again
    assert promises.kept_from("c", (9,), seen, ()) == 1  # of a probe that nothing is known of
    assert promises.kept_from("a", (2, 8), observed(5), ()) == 3  # 2, 7 and 8: not its own 1
