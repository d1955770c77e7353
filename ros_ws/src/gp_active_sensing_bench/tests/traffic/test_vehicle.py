"""The probe as a car: what it measures, and what may happen to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench_support.sumo import flow, parked_at, ring, write_cars
from gp_active_sensing.sim import build_world
from gp_active_sensing.topology.base import Topology
from gp_active_sensing_bench.traffic.live import LiveTraffic
from gp_active_sensing_bench.traffic.vehicle import ProbeVehicle, Visit

pytestmark = pytest.mark.usefixtures("sumo")

ROUND = ("ab", "bc", "cd", "da")


def traffic_of(**more: object) -> LiveTraffic:
    traffic = build_world(ring(**more)).traffic  # type: ignore[arg-type]
    assert traffic is not None
    traffic.start()
    return traffic


def places(topology: Topology, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(topology.names.index(name) for name in names)


@dataclass(frozen=True)
class Trip:
    seconds: float
    visits: tuple[tuple[int, int, float | None], ...]
    notes: tuple[str, ...]


def drive(traffic: LiveTraffic, path: Sequence[str], then: Sequence[str] = ()) -> Trip:
    vehicle, begun = traffic.vehicle, traffic.seconds
    vehicle.notes.clear()
    steps = places(traffic.topology, path)
    traffic.go(steps, places(traffic.topology, then))
    visits: list[tuple[int, int, float | None]] = []
    while not vehicle.done:
        visits += [traffic.visit(steps, visit) for visit in traffic.step()]
        if traffic.seconds - begun > traffic.traffic.patience and not vehicle.done:
            visits += [traffic.visit(steps, visit) for visit in traffic.give_up()]
    return Trip(traffic.seconds - begun, tuple(visits), tuple(vehicle.notes))


def until_done(vehicle: ProbeVehicle, most: int = 500) -> list[Visit]:
    visits: list[Visit] = []
    while not vehicle.done and most > 0:
        visits += vehicle.step()
        most -= 1
    assert vehicle.done
    return visits


def test_a_steady_car_measures_its_speed() -> None:
    """It enters at the beginning at full speed; what comes before the junction slows it down."""
    for step in (1.0, 0.5, 0.1):
        traffic = traffic_of(options=["--step-length", str(step)])
        trip = drive(traffic, ["eb"], ["ba"])
        ((place, stamp, value),) = trip.visits
        assert traffic.topology.names[place] == "eb"
        assert value is not None
        # 142.8 m at about 20 m/s, without a driver who is perfect.
        assert 60.0 < value < 72.5
        assert trip.seconds == pytest.approx(1e-9 * stamp, abs=step)
        assert trip.notes == ()


def test_it_drives_on_without_a_stop_where_it_was_expected_to() -> None:
    traffic = traffic_of()
    drive(traffic, ["ab"], ["bc"])
    name = traffic.vehicle._name
    assert name is not None
    trip = drive(traffic, ["bc"], ["cd"])
    assert traffic.vehicle._name == name, "the same car"
    straight = trip.seconds
    drive(traffic, ["cd", "da", "ab"], ["be"])
    trip = drive(traffic, ["bc"], ["cd"])
    assert traffic.vehicle._name != name, "it was queueing for the other road"
    assert trip.seconds == pytest.approx(straight, abs=8.0)
    assert trip.visits[0][2] is not None


def test_it_waits_for_a_gap() -> None:
    """A column of cars passes where it enters."""
    traffic = traffic_of(begin=60.0)
    cars = traffic._running().api
    for k in range(6):
        cars.route.add(f"r{k}", ["ab", "bc"])
        cars.vehicle.add(f"c{k}", f"r{k}", depart="now", departPos="base")
    trip = drive(traffic, ["ab"], ["bc"])
    assert trip.seconds > 289.6 / 10.0 + 5.0
    assert trip.visits[0][2] is not None
    assert trip.notes == ()


def test_a_jam_is_teleported_over(tmp_path: Path) -> None:
    """A car stands in the way for ever; SUMO moves the probe on to a later edge."""
    routes = [write_cars(tmp_path / "r.xml", parked_at("bc"))]
    traffic = traffic_of(routes=routes, begin=60.0, options=["--time-to-teleport", "30"])
    trip = drive(traffic, ROUND, ["ab"])
    values = {traffic.topology.names[p]: v for p, _, v in trip.visits}
    assert list(values) == list(ROUND)
    assert values["ab"] is not None
    assert values["bc"] is None, "it did not drive bc to its end"
    assert values["da"] is not None
    assert any("stood on bc and was teleported on" in note for note in trip.notes)


def test_patience_ends(tmp_path: Path) -> None:
    routes = [write_cars(tmp_path / "r.xml", parked_at("bc"))]
    traffic = traffic_of(routes=routes, begin=60.0, patience=120.0)
    trip = drive(traffic, ["ab", "bc", "cd"], ["da"])
    assert [v is None for _, _, v in trip.visits] == [False, True, True]
    assert 120.0 < trip.seconds <= 122.0
    assert "took longer than 120 s" in trip.notes[-1]
    after = drive(traffic, ["da"], ["ab"])
    assert after.visits[0][2] is not None, "the mission goes on from the waypoint"


def test_a_car_that_is_taken_away_enters_again() -> None:
    traffic = traffic_of()
    vehicle = traffic.vehicle
    vehicle.drive(["ab", "bc", "cd"], ["da"])
    visits: list[Visit] = []
    while vehicle.progress < 1.3:
        visits += vehicle.step()
    traffic._running().api.vehicle.remove(vehicle._name)
    visits += until_done(vehicle)
    assert [visit.index for visit in visits] == [0, 1, 2]
    assert [visit.speed is None for visit in visits] == [False, True, False]
    assert any("was taken off the road at bc" in note for note in vehicle.notes)


def test_parked_it_is_in_nobodys_way(tmp_path: Path) -> None:
    routes = [write_cars(tmp_path / "r.xml", flow("ab bc cd da", period=20.0))]
    traffic = traffic_of(routes=routes)
    drive(traffic, ["ab"], ["bc"])
    assert traffic.step() == ()
    api = traffic._running().api
    assert not [name for name in api.vehicle.getIDList() if "probe" in name]
