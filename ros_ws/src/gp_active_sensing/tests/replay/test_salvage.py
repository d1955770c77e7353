from __future__ import annotations

import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ActiveSensingError, ReplayError
from gp_active_sensing.replay import Bag
from gp_active_sensing.replay.options import ReplayOptions
from gp_active_sensing.replay.run import replay_bag
from tests.replay.bags import write_bag
from tests.replay.missions import Recorder, odometry, temperature

START = 1_700_000_000_000_000_000
GIVEN = ReplayOptions(
    overrides=(
        "map.kind=grid",
        "map.columns=5",
        "map.rows=1",
        "map.spacing=10",
        "belief.length_scales=[20.0]",
        "belief.signal_std=[1.0]",
        "belief.noise_std=[0.1]",
        "policy.name=max_entropy",
    )
)
MOST_MEMORY = 400e6
"""More memory than this for a bag of some 100 kB is a defect [bytes]."""


def drive(count: int = 250) -> list[tuple[str, int, Any]]:
    found: list[tuple[str, int, Any]] = []
    for i in range(count):
        stamp = START + i * 100_000_000
        found.append(("/pose", stamp, odometry(stamp, 50.0 * i / count, 0.0)))
        if i % 5 == 2:
            found.append(("/reading", stamp + 1, temperature(stamp, 0.1 * i)))
    return found


BAGS: dict[str, Callable[[Path], Path]] = {
    "mcap": lambda path: write_bag(path, drive()),
    "packed": lambda path: write_bag(path, drive(), chunk=20),
    "sqlite3": lambda path: write_bag(path, drive(), storage="sqlite3"),
}


@pytest.fixture(scope="module", params=list(BAGS))
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return BAGS[request.param](tmp_path_factory.mktemp(request.param) / "bag")


def storage_of(bag: Path) -> Path:
    return next(file for file in bag.iterdir() if file.suffix in {".mcap", ".db3"})


def mutated(data: bytes, kind: str, rng: np.random.Generator) -> bytes:
    wrong = bytearray(data)
    at = int(rng.integers(len(data)))
    match kind:
        case "cut":
            return data[:at]
        case "flips":
            for position in rng.integers(len(data), size=6):
                wrong[position] ^= 1 << int(rng.integers(8))
        case "zeros":
            size = int(rng.integers(1, 4096))
            wrong[at : at + size] = bytes(len(wrong[at : at + size]))
        case "length":  # eight bytes that may be one
            wrong[at : at + 8] = rng.bytes(len(wrong[at : at + 8]))
        case "missing":
            del wrong[at : at + int(rng.integers(1, 2000))]
    return bytes(wrong)


def attempt(
    bag: Path, out: Path, *, salvage: bool = False, decide: bool = False
) -> tuple[str, dict[str, Any] | None]:
    """Return what a replay says when it refuses, or its summary; any other error is a failure."""
    try:
        done = replay_bag(bag, out, GIVEN, salvage=salvage, belief_only=not decide)
    except ActiveSensingError as error:
        return str(error), None
    return "", done.summary


KINDS = ("cut", "flips", "zeros", "length", "missing")


@pytest.mark.parametrize("name", ["mcap", "packed"])
def test_a_recorder_that_was_killed_leaves_what_it_had_flushed(tmp_path: Path, name: str) -> None:
    bag = BAGS[name](tmp_path / "bag")
    file = storage_of(bag)
    data = file.read_bytes()
    file.write_bytes(data[: int(0.5 * len(data))])
    (bag / "metadata.yaml").unlink()
    with pytest.raises(ReplayError, match=r"killed leaves no metadata\.yaml: .*--salvage"):
        Bag(bag).__enter__()
    with Bag(bag, salvage=True) as left:
        found = list(left.messages())
        assert left.loss is not None
        assert left.loss.read == left.count == len(found)
        assert left.loss.lost is None, "nobody says how many there were"
        assert "metadata.yaml is missing" in left.loss.damage
        for entry in found:
            left.decode(entry)
    assert 0.25 * len(drive()) < len(found) < 0.75 * len(drive())
    assert [m.stamp_ns for m in found] == sorted(m.stamp_ns for m in found)


def test_what_is_known_to_be_lost_is_counted(tmp_path: Path) -> None:
    bag = BAGS["packed"](tmp_path / "bag")
    file = storage_of(bag)
    data = bytearray(file.read_bytes())
    chunks = [match.end() for match in re.finditer(b"zstd", bytes(data))]
    data[chunks[5] + 30 : chunks[5] + 70] = bytes(40)
    file.write_bytes(bytes(data))
    with pytest.raises(ReplayError, match="--salvage"), Bag(bag) as opened:
        list(opened.messages())
    with Bag(bag, salvage=True) as left:
        count = len(list(left.messages()))
        assert left.loss is not None
        assert left.loss.lost == len(drive()) - count > 0
        assert any("chunk" in text for text in left.loss.damage)
    assert count > 200, "the chunks behind the damage are read"


def test_sqlite_recovers_its_own_files(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", drive(), storage="sqlite3")
    with pytest.raises(ReplayError, match=r"sqlite3 .*\.recover"):
        Bag(bag, salvage=True).__enter__()


def test_a_sound_bag_loses_nothing_by_being_salvaged(sound: Path) -> None:
    if storage_of(sound).suffix == ".db3":
        pytest.skip("SQLite recovers its own files")
    with Bag(sound) as plain, Bag(sound, salvage=True) as left:
        assert list(plain.messages()) == list(left.messages())
        assert plain.topics == left.topics
        assert left.loss is not None
        assert (left.loss.lost, left.loss.damage) == (0, ())


def test_a_cut_off_mission_is_done_again_as_far_as_it_goes(tmp_path: Path) -> None:
    bag = Recorder(3).run().bag(tmp_path / "bag")
    file = storage_of(bag)
    data = file.read_bytes()
    file.write_bytes(data[: int(0.4 * len(data))])
    done = replay_bag(bag, tmp_path / "run", salvage=True)
    found = done.summary["replay"]
    assert found["mode"] == "again"
    assert found["lost"] > 100
    assert 3 < found["comparison"]["decisions"] == found["comparison"]["decisions_equal"]
    assert done.summary["status"] == "interrupted"


@pytest.mark.parametrize("trials", [1, pytest.param(6, marks=pytest.mark.long)])
def test_mutations_are_refused_or_salvaged(sound: Path, tmp_path: Path, trials: int) -> None:
    total, refused, salvaged = len(drive()), 0, 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for kind in KINDS:
        rng = np.random.default_rng([KINDS.index(kind), len(sound.parent.name)])
        for trial in range(trials):
            bag = tmp_path / f"{kind}{trial}"
            shutil.copytree(sound, bag)
            file = bag / "metadata.yaml" if trial == 5 else storage_of(bag)
            file.write_bytes(mutated(file.read_bytes(), kind, rng))
            plain, _ = attempt(bag, bag / "plain")
            refused += bool(plain)
            assert not plain or str(bag) in plain, "it says which bag"
            said, done = attempt(bag, bag / "out", salvage=True, decide=trial % 2 == 0)
            if done is None:
                assert "salvaged" in said or "has no topic" in said, said
                continue
            salvaged += 1
            found = done["replay"]
            assert found["messages"] + (found["lost"] or 0) <= total + 1, kind
    assert refused > 0
    assert salvaged > 0 or storage_of(sound).suffix == ".db3"  # which sqlite3 recovers
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < MOST_MEMORY
