from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import MissingDependencyError, ReplayError
from gp_active_sensing.replay import Bag, BagTopic
from tests.replay.bags import STORE, header, message, write_bag

STRING = "std_msgs/msg/String"
TEMPERATURE = "sensor_msgs/msg/Temperature"


def text(content: str) -> Any:
    return message(STRING, data=content)


def temperature(stamp_ns: int, value: float) -> Any:
    return message(TEMPERATURE, header=header(stamp_ns), temperature=value, variance=0.25)


def drive(path: Path, storage: str = "mcap", count: int = 20) -> Path:
    stamps = [1_700_000_000_000_000_000 + 10**8 * i for i in range(count)]
    messages = [("/reading", s, temperature(s, 0.5 * i)) for i, s in enumerate(stamps)]
    messages += [("/note", s + 1, text(f"note {i}")) for i, s in enumerate(stamps[::4])]
    return write_bag(path, messages, storage=storage, latched=("/note",))


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_what_was_written_is_read_in_stamp_order(tmp_path: Path, storage: str) -> None:
    path = drive(tmp_path / "bag", storage)
    with Bag(path) as bag:
        assert bag.topics == (
            BagTopic("/note", STRING, 5, latched=True),
            BagTopic("/reading", TEMPERATURE, 20, latched=False),
        )
        assert bag.count == 25
        found = list(bag.messages())
        values = [bag.decode(m).temperature for m in found if m.topic == "/reading"]
    stamps = [m.stamp_ns for m in found]
    assert stamps == sorted(stamps)
    assert len(found) == 25
    assert values == [0.5 * i for i in range(20)]
    first = next(m for m in found if m.topic == "/reading")
    expected = STORE.serialize_cdr(temperature(first.stamp_ns, 0.0), TEMPERATURE)
    assert first.data == bytes(expected)


def test_a_split_bag_with_overlapping_files_is_merged_by_stamp(tmp_path: Path) -> None:
    parts = []
    for part, offset in enumerate((0, 5)):
        stamps = [offset + 10 * i + 1 for i in range(10)]
        messages = [("/note", s, text(f"{part}.{i}")) for i, s in enumerate(stamps)]
        parts.append(write_bag(tmp_path / f"part{part}", messages))
    whole = tmp_path / "whole"
    shutil.copytree(parts[0], whole)
    shutil.copy(parts[1] / "part1.mcap", whole / "part1.mcap")
    metadata = whole / "metadata.yaml"
    content = metadata.read_text()
    assert "  - part0.mcap\n" in content
    content = content.replace("  - part0.mcap\n", "  - part0.mcap\n  - part1.mcap\n")
    metadata.write_text(content.replace("message_count: 10", "message_count: 20"))
    with Bag(whole) as bag:
        stamps = [m.stamp_ns for m in bag.messages()]
    assert len(stamps) == 20
    assert stamps == sorted(stamps)


def test_a_payload_of_another_type_is_an_error_with_topic_and_stamp(tmp_path: Path) -> None:
    with Bag(drive(tmp_path / "bag")) as bag:
        good = next(m for m in bag.messages() if m.topic == "/reading")
        with pytest.raises(
            ReplayError, match=r"cannot decode .*Temperature of /reading at \d+\.\d{3} s"
        ):
            bag.decode(good._replace(data=good.data[:10]))
        with pytest.raises(ReplayError, match=r"cannot decode other/msg/Thing"):
            bag.decode(good._replace(type="other/msg/Thing"))


def test_without_rosbags_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("rosbags", "rosbags.rosbag2"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=r"pip install '.*gp_active_sensing\[bag\]'"):
        Bag(tmp_path).__enter__()


def test_a_bag_with_fewer_messages_than_its_index_says(tmp_path: Path) -> None:
    path = drive(tmp_path / "bag")
    metadata = path / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("message_count: 20", "message_count: 30"))
    with Bag(path) as bag, pytest.raises(ReplayError, match="promises 35 messages, 25 could"):
        list(bag.messages())
