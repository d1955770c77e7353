"""A few kilobytes that unpack to gigabytes are refused, or read as far as they may be."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest
from mcap.writer import CompressionType, Writer

from gp_active_sensing.errors import ReplayError
from gp_active_sensing.replay import storage as unpacking
from gp_active_sensing.replay.bag import Bag
from tests.replay.bags import STORAGES, STORE, message, write_bag
from tests.replay.test_salvage import drive

SIZE = 3_000_000
PACKED = {"zstd": CompressionType.ZSTD, "lz4": CompressionType.LZ4}


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds as they are would make of each case half a gigabyte."""
    monkeypatch.setattr(unpacking, "MOST_BYTES", 2 * SIZE)
    monkeypatch.setattr(unpacking, "FLOOR", SIZE + 1000)
    monkeypatch.setattr(unpacking, "RATIO", 1)


def bag(path: Path, packed: str, chunks: int = 1, said: int | None = None) -> Path:
    """Make a bag of chunks of so many zeros each, which says so, or says another size."""
    made = io.BytesIO()
    writer = Writer(made, chunk_size=1000, compression=PACKED[packed], enable_crcs=False)
    writer.start(profile="ros2")
    schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data")
    channel = writer.register_channel("/a", "cdr", schema)
    for number in range(chunks):
        writer.add_message(channel, number, bytes(SIZE), number)
    writer.finish()
    data = made.getvalue()
    if said is not None:
        patched = bytearray(data)
        for size in range(SIZE, SIZE + 300):
            true = struct.pack("<Q", size)
            for at in {data.find(true), data.rfind(true)} - {-1}:  # in the chunk and in the index
                patched[at : at + 8] = struct.pack("<Q", said)
        data = bytes(patched)
    path.write_bytes(data)
    assert len(data) < 100_000
    return path


@pytest.fixture(params=list(PACKED))
def packed(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def unpacked(path: Path, salvage: bool) -> tuple[int, str]:
    """Return the bytes of messages that come out, and the damage."""
    with Bag(path, salvage=salvage) as opened:
        size = sum(len(message.data) for message in opened.messages())
        return size, "; ".join(opened.loss.damage) if opened.loss else ""


def test_as_much_as_the_file_may_stand_for(tmp_path: Path, packed: str) -> None:
    for salvage in (False, True):
        assert unpacked(bag(tmp_path / "a.mcap", packed), salvage) == (SIZE, "")
    path = bag(tmp_path / "b.mcap", packed, chunks=5)
    with pytest.raises(ReplayError, match="unpacks to more than"):
        unpacked(path, salvage=False)
    size, damage = unpacked(path, salvage=True)
    assert size == SIZE
    assert "it unpacks to more than" in damage


def test_a_chunk_that_claims_too_much_or_too_little(
    tmp_path: Path, packed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bag(tmp_path / "a.mcap", packed, said=2**40)
    for salvage in (False, True):
        with pytest.raises(ReplayError, match=f"claims to unpack to {2**40} bytes"):
            unpacked(path, salvage)
    made: list[int] = []
    for name in ("unzstd", "unlz4"):
        real = getattr(unpacking, name)

        def counted(data: bytes, most: int, real: object = real) -> bytes:
            found = real(data, most)  # type: ignore[operator]
            made.append(len(found))
            return found

        monkeypatch.setattr(unpacking, name, counted)
    path = bag(tmp_path / "b.mcap", packed, said=1000)
    for salvage, why in ((False, "Chunk size mismatch"), (True, "a chunk is damaged")):
        with pytest.raises(ReplayError, match=why):
            unpacked(path, salvage)
    assert made
    assert max(made) <= 1001


def test_compressed_messages_and_files(tmp_path: Path) -> None:
    """As rosbag2 compresses by itself; they are read, and not beyond the limits."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode
    from rosbags.rosbag2 import Writer as BagWriter

    kind = "std_msgs/msg/String"
    for mode in (CompressionMode.MESSAGE, CompressionMode.FILE):
        for storage, plugin in STORAGES.items():
            folder = tmp_path / f"{mode.name}-{storage}"
            folder.mkdir()
            for name, size in (("small", 1000), ("large", 3 * SIZE)):
                writer = BagWriter(folder / name, version=9, storage_plugin=plugin)
                writer.set_compression(mode, CompressionFormat.ZSTD)
                with writer:
                    connection = writer.add_connection("/a", kind, typestore=STORE)
                    text = message(kind, data="a" * size)
                    writer.write(connection, 1, STORE.serialize_cdr(text, kind))
            assert unpacked(folder / "small", salvage=False)[0] > 1000, folder
            with pytest.raises(ReplayError, match="unpacks to more than"):
                unpacked(folder / "large", salvage=False)


def test_metadata_are_bounded(tmp_path: Path) -> None:
    path = write_bag(tmp_path / "bag", drive(3))
    with (path / "metadata.yaml").open("a") as stream:
        stream.write("itself: &a [*a]\n")
    with pytest.raises(ReplayError, match="a stands within what it stands for"):
        unpacked(path, salvage=False)
    assert "metadata.yaml is damaged" in unpacked(path, salvage=True)[1]


def test_the_profile_of_many_topics_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rosbags.rosbag2 import metadata

    read: list[str] = []
    parse_qos = metadata.parse_qos
    monkeypatch.setattr(metadata, "parse_qos", lambda text: read.append(text) or parse_qos(text))
    text = message("std_msgs/msg/String", data="a")
    names = tuple(f"/a{i}" for i in range(50))
    path = write_bag(tmp_path / "many", [(name, 1, text) for name in names], latched=names)
    for salvage in (False, True):
        with Bag(path, salvage=salvage) as opened:
            assert [topic.latched for topic in opened.topics] == [True] * 50
            assert opened.count == 50
    assert len(read) <= 3  # once a reader, and once to copy


def test_a_chunk_that_the_index_names_twice(tmp_path: Path) -> None:
    path = bag(tmp_path / "a.mcap", "lz4")
    with Bag(path) as opened:
        (reader,) = opened._readers
        reader.storage.chunks *= 2
        reader.storage.chunks = [c._replace(compression="") for c in reader.storage.chunks]
        with pytest.raises(unpacking.TooMuchError, match="twice"):
            unpacking.check_chunks(reader)
