from __future__ import annotations

import warnings

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.belief.link import probability_of_link
from gp_active_sensing.engine.limits import LimitsConfig
from gp_active_sensing.errors import ConfigError, ReadingError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.request import QuantityBelief
from gp_active_sensing.topology import make_grid
from gp_active_sensing.types import Budget, PlanLimit, Reading

GRID = make_grid(5, 4, 2.0)
CONFIG = BeliefConfig(length_scales=(1.0, 4.0))


def further(name: str, grid=GRID, **options) -> QuantityBelief:
    return QuantityBelief(name, build_belief(CONFIG, grid.features), **options)


def make(*quantities: str | QuantityBelief, **options) -> SensingLoop:
    options = {"budget": Budget(readings=6), "limit": PlanLimit(expansions=50)} | options
    return SensingLoop(
        GRID,
        build_belief(CONFIG, GRID.features),
        build_policy({"name": "tour"}),
        name="heat",
        quantities=[further(each) if isinstance(each, str) else each for each in quantities],
        **options,
    )


def test_each_reading_goes_to_the_belief_of_its_quantity() -> None:
    loop, alone = make("ph", "depth"), make()
    mine = [Reading(1, 3, 20.0), Reading(3, 4, 21.0, quantity="heat")]
    report = loop.tell([mine[0], Reading(2, 3, 7.1, quantity="ph"), mine[1]])
    report_of_ph = loop.tell([Reading(1, 9, 7.3, quantity="ph"), Reading(4, 9, 7.2, quantity="ph")])
    alone.tell(mine)
    assert (report.accepted, report.new_places, report_of_ph.new_places) == (3, (3, 4), ())
    assert (report_of_ph.late, loop.counts["late"], loop.counts["late_ph"]) == (1, 0, 1)
    assert (loop.counts["accepted"], loop.counts["accepted_ph"], loop.used) == (2, 3, 5)
    assert loop.remaining == alone.remaining == Budget(readings=4)
    assert loop.belief.observed.nonzero()[0].tolist() == [3, 4]
    assert loop.quantities["ph"].belief.observed.nonzero()[0].tolist() == [3, 9]
    assert not loop.quantities["depth"].belief.observed.any()
    np.testing.assert_array_equal(loop.belief.predict(), alone.belief.predict())


def test_an_unknown_quantity_is_rejected_and_counted() -> None:
    loop = make("ph")
    placed = loop.place(Reading(1, 2, 7.0, quantity="ph"))
    report = make().tell([placed, Reading(1, 2, 1.0)])
    assert [r.reason for r in report.rejected] == ["unknown_quantity"]
    assert report.accepted == 1
    assert loop.tell([Reading(0, 3, 1.0, quantity="oxygen")]).rejected
    assert loop.counts["rejected_unknown_quantity"] == 1
    with pytest.raises(ReadingError):
        loop.of("oxygen")


def test_a_further_quantity_costs_nothing_and_is_used_when_the_budget_is_spent() -> None:
    loop = make("ph", budget=Budget(readings=1))
    ph = loop.of("ph")
    goal = loop.ask(0).waypoint
    assert loop.tell([Reading(0, goal, 1.0)]).new_places == (goal,)
    first, second = (loop.place(Reading(t, goal, 7.0 + t, quantity="ph")) for t in (1, 2))
    assert ph.costs(goal)
    assert ph.tell([first]).new_places == (goal,)
    assert not ph.costs(goal)
    assert loop.remaining.readings == 0
    ph.amend(first, second)
    assert loop.belief.readings[goal] == ph.belief.readings[goal] == 1
    assert loop.of() is loop.of("heat") is loop


def test_readings_are_kept_for_a_probe_without_the_main_sensor() -> None:
    """A place that the main sensor has read still counts as unread for a probe without it."""
    loop = make("ph", budget=Budget(readings=22))
    loop.tell([Reading(0, place, 1.0) for place in range(20)])
    goal = loop.ask(0, probe="x", carried=("ph",)).path[-1]
    assert loop.readings_for("a", (goal,)) <= 1
    loop = make("ph", budget=Budget(readings=1))
    loop.tell([Reading(0, place, 7.0, quantity="ph") for place in range(19)])
    loop.ask(0, probe="a", carried=("heat", "ph"))
    with pytest.raises(ReadingError):
        loop.of("ph", leads=True).check_budget(loop.place(Reading(1, 19, 7.0, quantity="ph")))


def test_a_probe_without_the_main_sensor_pays_for_its_visits() -> None:
    loop = make("ph", budget=Budget(readings=3))
    ph = loop.of("ph", leads=True)
    assert ph.tell([Reading(0, 3, 7.0, quantity="ph")]).new_places == (3,)
    assert (ph.costs(3), loop.costs(3), loop.remaining.readings) == (False, True, 2)
    loop.replay_decision(None, (3,), "x", again=True, carried=("ph",))
    assert ph.costs(3)
    again = [Reading(t, 3, 7.0 + t, quantity="ph") for t in (1, 2)]
    assert ph.tell(again).new_places == (3,)
    assert (ph.costs(3), loop.costs(3), loop.remaining.readings) == (False, True, 1)


def test_a_snapshot_takes_nothing_from_the_loop_and_learns_nothing_of_it() -> None:
    loop = make("ph")
    loop.tell([Reading(0, 5, 1.0), Reading(0, 5, 7.0, quantity="ph")])
    copy = loop.snapshot()
    loop.tell([Reading(9, 6, 7.0, quantity="ph")])
    copy.tell([Reading(2, 7, 7.0, quantity="ph")])
    assert copy.quantities["ph"].belief.observed.nonzero()[0].tolist() == [5, 7]
    assert loop.quantities["ph"].belief.observed.nonzero()[0].tolist() == [5, 6]
    assert copy.counts["late_ph"] == loop.counts["late_ph"] == 0


def test_a_map_that_grows_has_room_for_every_quantity() -> None:
    loop = make("ph")
    loop.tell([Reading(0, 5, 1.0), Reading(0, 6, 7.0, quantity="ph")])
    grown = make_grid(5, 5, 2.0)
    fresh = build_belief(CONFIG, grown.features)
    with pytest.raises(ValueError, match="ph"):
        loop.move_to(grown, fresh)
    assert loop.belief.n == GRID.n
    loop.move_to(grown, fresh, further={"ph": further("ph", grown).belief})
    assert loop.belief.n == loop.quantities["ph"].belief.n == grown.n
    assert loop.tell([Reading(1, grown.n - 1, 7.0, quantity="ph")]).accepted == 1
    assert loop.quantities["ph"].belief.observed.nonzero()[0].tolist() == [6, grown.n - 1]


def test_a_quantity_whose_readings_are_all_equal_spoils_no_plan() -> None:
    beliefs = [build_belief(BeliefConfig(), GRID.features) for _ in range(2)]
    policy = build_policy({"name": "tour"})
    loop = SensingLoop(GRID, beliefs[0], policy, quantities=[QuantityBelief("ph", beliefs[1])])
    for place in (0, 1, 7):
        loop.tell([Reading(0, place, 0.1 * place), Reading(0, place, 7.0, quantity="ph")])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert loop.ask(place).waypoint is not None


def test_limits_are_on_the_quantity_that_they_name() -> None:
    limits = LimitsConfig(at_least=1.0, probability=0.6, start_radius=0.1, quantity="depth")
    loop = make("depth", limits=limits)
    loop.tell([Reading(0, p, 0.0) for p in (0, 7)])
    loop.tell([Reading(0, p, 5.0, quantity="depth") for p in (0, 1, 5, 6)])
    loop.tell([Reading(0, 7, 0.2, quantity="depth")])
    loop.keep_limits(0)
    assert {0, 1, 5, 6}.isdisjoint(loop.beyond)
    assert 7 in loop.beyond
    with pytest.raises(ConfigError):
        make("ph", limits=limits)


@pytest.mark.parametrize("name", ["", "heat", "twice"])
def test_names_differ_and_beliefs_are_over_the_places_of_the_map(name: str) -> None:
    with pytest.raises(ValueError, match="names"):
        make("twice", name)
    with pytest.raises(ValueError, match="places"):
        make(further("ph", make_grid(3, 3, 2.0)))


def test_a_linked_quantity_follows_the_map_of_another() -> None:
    def loops(*readings: Reading, link: str | None = "heat") -> SensingLoop:
        found = make(further("ph", link=link), "depth")
        found.tell(readings)
        found.finish_links()
        return found

    heat = [Reading(0, p, float(p % 5)) for p in range(0, 20, 2)]
    ph = [Reading(0, p, 7.0 + 0.1 * (p % 5), quantity="ph") for p in (0, 4, 6, 13)]
    loop, other = loops(*heat, *ph), loops(*ph, *heat)
    found = loop.quantities["ph"].belief
    np.testing.assert_allclose(found.predict(), other.quantities["ph"].belief.predict(), rtol=1e-6)
    assert probability_of_link(found) > 0.6
    assert probability_of_link(loop.quantities["depth"].belief) == 0.0
    for link, expected in (("auto", found), (None, loops(*ph, link=None).quantities["ph"].belief)):
        same = loops(*heat, *ph, link=link).quantities["ph"].belief
        np.testing.assert_array_equal(same.predict(), expected.predict())
    copy = loop.snapshot()
    copy.tell([Reading(1, p, float(p % 5)) for p in range(1, 20, 2)])
    assert copy.quantities["ph"].belief.covariance.link.places > 17
    assert found.covariance.link.places == 10
    grown = make_grid(5, 5, 2.0)
    fresh = {name: further(name, grown).belief for name in ("ph", "depth")}
    loop.move_to(grown, build_belief(CONFIG, grown.features), further=fresh)
    assert found.covariance.n == 25
    assert found.observed.sum() == 4
    for wrong in ("oxygen", "ph"):
        with pytest.raises(ConfigError):
            make(further("ph", link=wrong))
