from __future__ import annotations

from typing import Any, cast

import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.sim import Scenario, World, build_world, scenario_from_mapping
from gp_active_sensing.sim.robot import SimulatedRobot
from gp_active_sensing.sim.runner import build_players

TINY: dict[str, Any] = {
    "name": "tiny",
    "seed": 3,
    "map": {"kind": "grid", "columns": 5, "rows": 2, "spacing": 10.0, "speed": 5.0},
    "field": {"kind": "gp", "length_scale": 20.0, "signal_std": 3.0},
    "sensor": {"noise_std": 0.5},
    "probe": {"start": 4},
    "belief": {"length_scales": [20.0], "signal_std": [3.0], "noise_std": [0.5]},
    "budget": {"readings": 6},
}


def tiny(**parts: Any) -> tuple[Scenario, World]:
    scenario = scenario_from_mapping({**TINY, **parts})
    return scenario, build_world(scenario)


def players(
    names: tuple[str, ...], starts: tuple[str, ...] = (), **parts: Any
) -> list[SimulatedRobot]:
    found = build_players(*tiny(**parts), names, starts)
    assert tuple(found) == (names or ("",))
    return [cast("SimulatedRobot", player) for player in found.values()]


def test_the_first_begins_there_and_the_others_where_the_seed_says() -> None:
    names = tuple("abcd")
    begun = [player.at for player in players(names)]
    assert begun[0] == 4
    assert len(set(begun)) == 4
    assert begun == [player.at for player in players(names)]
    assert begun[:3] == [player.at for player in players(names[:3])], "one more moves nobody"
    assert begun != [player.at for player in players(names, seed=4)]


def test_no_two_begin_at_one_place_while_there_are_others() -> None:
    names = tuple(f"p{k}" for k in range(10))
    for seed in range(3):
        for starts in ((), ("random",) * 10):
            begun = [player.at for player in players(names, starts, seed=seed)]
            assert sorted(map(int, begun)) == list(range(10)), (seed, starts)  # type: ignore[arg-type]


def test_wrong_names_and_starts_are_refused() -> None:
    for names, starts, text in (
        (("a", "a"), (), "probes: 'a' comes more than once"),
        (("1",), (), "cannot be a namespace"),
        (("a",), ("0", "1"), "starts: expected at most one a probe, 1, got 2"),
        (("a",), ("nowhere",), "nowhere"),
    ):
        with pytest.raises(ConfigError, match=text):
            players(names, starts)


def test_they_share_the_field_and_the_noise_of_a_place_and_visit() -> None:
    """Who reads a place does not matter, only how often it was read before."""
    scenario, world = tiny()
    a, b = players(("a", "b"), ("0", "0"))
    for visit, player in enumerate((a, b, b, a)):
        player.go_to(0)
        (reading,) = player.step(0.5).readings
        expected = world.sensor.read(0, visit, reading.stamp_ns)
        assert expected is not None
        assert reading.value == expected.value
    assert scenario.sensor.noise_std > 0.0


def test_one_takes_the_way_through_places_that_others_have_passed() -> None:
    """As the planner does, which knows them as observed."""
    first, second = players(("a", "b"), ("5", "0"))
    while first.at != 9:
        first.go_to(9)
        first.step(1.0)
    second.go_to(4)
    passed = [second.step(1.0).pose[:2] for _ in range(12)]
    assert passed[-1] == (40.0, 0.0)
    assert any(y == 10.0 for _, y in passed), "along the second row, where the other one drove"
