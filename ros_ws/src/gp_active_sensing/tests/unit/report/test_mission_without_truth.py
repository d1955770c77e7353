from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.export import FieldMap
from gp_active_sensing.records import events as of
from gp_active_sensing.records.event_lines import parse_events, to_line
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report.facts import RunTotals, facts_of
from gp_active_sensing.report.map_frame import POWERS, georeference
from gp_active_sensing.report.page import write_report
from gp_active_sensing.report.quality import Calibration, calibration_of
from gp_active_sensing.report.source import load_run
from gp_active_sensing.report.track import GrowingTracks, Track
from gp_active_sensing.topology.grids import make_grid
from gp_active_sensing.types import Reading
from tests.unit.report.runs import HOSTILE, data_of, plan, record
from tests.unit.sim.scenarios import GRID

NOON = 1_795_435_200 * 10**9  # 2026-11-23 12:00 UTC


def status(seconds: float, x: float, y: float, probe: str = "") -> of.StatusNoted:
    stamp = NOON + int(1e9 * seconds)
    where = of.ProbePosition(0.0, (stamp, x, y))
    return of.StatusNoted(stamp_ns=stamp, probes={probe: of.ProbeStatus(where, {})})


def mission(path: Path, *more: of.Event, **config: Any) -> Path:
    """A mission of a robot: two decisions, poses on the way, one reading that was gated."""
    given = {
        "map": GRID["map"],
        "belief": GRID["belief"],
        "name": "pond",
        "reading": {
            "topic": "/water/oxygen", "type": "sensor_msgs/msg/FluidPressure",
            "field": "fluid_pressure", "unit": "mg/L",
        },
        "pose": {"topic": "/odom", "type": "nav_msgs/msg/Odometry"},
        **config,
    }  # fmt: skip
    events: list[of.Event] = [
        of.MissionStarted(details={"driver": "ros", "versions": {}}),
        status(0.0, 0.0, 0.0),
        of.DecisionTaken(stage=1, plan=plan(0, 1), stamp_ns=NOON),
        status(1.0, 3.0, 0.5),
        of.ReadingUsed(reading=Reading(NOON + 2 * 10**9, 0, 30.0, position=(0.0, 0.0))),
        of.ReadingGated(reading=Reading(NOON + 3 * 10**9, 0, 99.0), off=8.25),
        of.DecisionTaken(stage=2, plan=plan(1), stamp_ns=NOON + 4 * 10**9),
        status(60.0, 6.0, -1.5),
        of.ReadingUsed(reading=Reading(NOON + 125 * 10**9, 1, 32.0, position=(10.0, 0.0))),
        *more,
    ]
    with RunDirectory.create(path, given) as run:
        for event in events:
            run.append_event(to_line(event))
        run.append_record(record(1, plan(0, 1), 30.0))
        run.append_record(record(2, plan(1), 32.0))
    return path


def test_the_calibration_is_that_of_leaving_each_place_out() -> None:
    """By conditioning again without each place, which takes other ways through the code."""
    grid = make_grid(6, 5, 10.0)
    config = BeliefConfig(
        length_scales=(20.0, 60.0), mean=10.0, signal_std=(3.0,), noise_std=(0.5,)
    )
    rng = np.random.default_rng(4)
    places = rng.choice(grid.n, 12, replace=False)
    values = 10.0 + 3.0 * np.sin(grid.positions[places, 0] / 15.0) + 0.5 * rng.standard_normal(12)
    belief = belief_on(config, grid)
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        belief.observe(place, value)
    found = calibration_of(belief)
    assert found is not None
    assert found.places.tolist() == places.tolist()
    errors = []
    for i in range(12):
        others = belief_on(config, grid)
        for place, value in zip(
            np.delete(places, i).tolist(), np.delete(values, i).tolist(), strict=True
        ):
            others.observe(place, value)
        mixture = others.mixture(places[i : i + 1])
        below = mixture.noisier(others.noise_of()).below(values[i : i + 1])[0]
        assert found.below[i] == pytest.approx(below, abs=1e-6)
        errors.append(values[i] - mixture.moments()[0][0])
    assert found.error == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-6)


def test_intervals_are_found_to_hold_or_to_be_too_narrow() -> None:
    """Intervals that are wide beside read places are no fault: far from them nobody can look."""
    even = (np.arange(100) + 0.5) / 100
    for below, verdict in (
        (even, "are right"),
        (np.where(even < 0.5, 0.001, 0.999), "too narrow"),
        (0.45 + 0.1 * even, "are right"),
    ):
        assert verdict in Calibration(np.arange(100), below, 1.0).verdict
    assert "too few" in Calibration(np.arange(4), np.full(4, 0.5), 0.0).verdict


def tracks_of(
    events: Sequence[of.Event], extent: float, ends: Sequence[int], *, by_stage: bool = True
) -> list[Track]:
    growing = GrowingTracks(extent)
    for event in events:
        growing.add(event)
    return growing.tracks(ends, by_stage=by_stage)


def test_the_track_is_that_of_the_poses() -> None:
    events = [
        status(0.0, 0.0, 0.0),
        of.DecisionTaken(stage=1, plan=plan(0), stamp_ns=NOON),
        status(1.0, 3.0, 0.5),
        status(1.5, 3.0, 0.5),  # it stands
        status(0.5, 90.0, 90.0),  # late: what came before stays
        of.ReadingUsed(reading=Reading(NOON + 2 * 10**9, 0, 1.0, position=(4.0, 0.0))),
        of.DecisionTaken(stage=2, plan=plan(1), stamp_ns=NOON + 3 * 10**9),
        status(4.0, float("nan"), 0.0),
        status(5.0, 9.0, 9.0),
    ]
    [track] = tracks_of(events, 100.0, [0, 1, 2])
    assert track.points == [(0.0, 0.0), (3.0, 0.5), (4.0, 0.0), (9.0, 9.0)]
    assert track.upto == [1, 3, 4]  # at the ends of the steps 0, 1 and 2
    two = [status(0.0, 0.0, 0.0, "a"), status(1.0, 5.0, 0.0, "b"), status(2.0, 1.0, 0.0, "a"),
           status(3.0, 5.0, 4.0, "b")]  # fmt: skip
    assert [t.probe for t in tracks_of(two, 10.0, [0])] == ["a", "b"]


def test_without_decisions_steps_end_with_their_readings() -> None:
    events: list[of.Event] = []
    for i in range(6):
        events.append(status(2 * i, float(i), 0.0))
        position = (i + 0.5, 0.0)
        events.append(
            of.ReadingUsed(reading=Reading(NOON + (2 * i + 1) * 10**9, 0, 1.0, position=position))
        )
    [track] = tracks_of(events, 10.0, [0, 2, 4, 6], by_stage=False)
    assert track.upto == [0, 4, 8, 12]


def test_date_duration_sensor_and_what_was_set_aside(tmp_path: Path) -> None:
    data = load_run(mission(tmp_path / "run"))
    tally = RunTotals.of(parse_events(data.events))
    known = dict(facts_of(data, tally))
    assert known["date"] == "2026-11-23 12:00 to 12:02 UTC"
    assert known["duration"] == "2 min"
    assert known["readings used"] == "2"
    assert known["readings set aside"] == "1; the farthest off was 99, 8.2 standard deviations off"


def test_a_reading_that_was_taken_back_is_not_set_aside() -> None:
    reading = Reading(NOON, 0, 99.0)
    back = of.ReadingUsed(reading=reading, taken_back="agrees with others")
    gated = of.ReadingGated(reading=reading, off=7.0)
    assert RunTotals.of([gated]).outliers(9) == [gated]
    assert RunTotals.of([gated, back]).outliers(9) == []
    assert RunTotals.of([gated, back]).set_aside == 0


def test_the_page_has_all_of_it(tmp_path: Path) -> None:
    page = write_report(mission(tmp_path / "run", name=HOSTILE))
    text = page.read_text(encoding="utf-8")
    assert HOSTILE not in text
    assert "<td>99</td>" in text
    data = data_of(page)
    [track] = data["tracks"]
    assert track["x"]["rows"] == 5
    assert track["upto"] == [1, 3, 5]
    assert data["places"]["north"] is False
    assert data["places"]["georeference"] is None


def test_the_page_knows_its_degrees() -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    grid = make_grid(40, 30, 100.0, origin=(-1500.0, 800.0))
    assert georeference(grid) is None
    grid.datum = (-122.3, 61.2)
    fit = georeference(grid)
    assert fit is not None
    n = np.zeros(grid.n)
    exact = FieldMap(grid, n, n, n.astype(np.int64), n).geographic(grid.positions)
    u, v = ((grid.positions - fit["middle"]) / fit["half"]).T
    terms = np.column_stack([u**i * v**j for i, j in POWERS])
    for k, name in enumerate(("longitude", "latitude")):
        assert np.abs(terms @ np.array(fit[name]) - exact[:, k]).max() < 1e-8
