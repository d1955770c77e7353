"""Read storage files of bags within limits, and what is intact of damaged ones.

A few kilobytes can unpack to gigabytes. A file may unpack to `FLOOR` bytes and `RATIO` times its
own size, no piece of it (a chunk, a message) to more than `MOST_BYTES`, and no chunk to more than
it claims.

A recorder that was killed leaves an MCAP file without an end; a bad disk leaves wrong bytes
anywhere. A damaged MCAP file is read from its beginning by mcap's stream reader: a chunk that
cannot be unpacked is left out, and reading ends where the records can no longer be separated. The
messages are copied to a sound file. SQLite itself recovers a damaged .db3 file.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from gp_active_sensing.errors import ReplayError

logger = logging.getLogger(__name__)

MOST_BYTES = 128 * 2**20
"""Largest chunk or message that is unpacked [bytes]."""
FLOOR = 64 * 2**20
"""Bytes that a file may unpack to however small it is."""
RATIO = 500
"""Bytes that a file may unpack to, for each of its own."""
MOST_DEFINITION = 256 * 2**10
"""Characters of a message definition, with those of the types inside it."""
MOST_FIELDS = 2000
"""Fields of a type, of its arrays of messages and texts those of every entry."""
_WINDOW = 2**27
"""Largest window of zstd [bytes]."""
_STEP = 65_536
# -- limits --------------------------------------------------------------------------------------


class TooMuchError(ValueError):
    """A file that unpacks to more than it may."""


class UnpackingLimit:
    """Limit of the bytes that a file may still unpack to."""

    def __init__(self, path: Path) -> None:
        self._most = self._left = FLOOR + RATIO * path.stat().st_size

    def take(self, size: int) -> None:
        """Record that so many bytes are unpacked. Raises TooMuchError for one too many."""
        if not 0 <= size <= MOST_BYTES:
            msg = (
                f"a chunk claims to unpack to {size} bytes, expected at most {MOST_BYTES}; "
                "write the bag again in smaller chunks if it is meant"
            )
            raise TooMuchError(msg)
        self._left -= size
        if self._left < 0:
            msg = (
                f"it unpacks to more than {self._most} bytes, {RATIO} times its own size and "
                f"{FLOOR >> 20} MiB; write it again without compression if it is meant"
            )
            raise TooMuchError(msg)


def unzstd(data: bytes, most: int) -> bytes:
    """Unpack up to so many bytes or up to the damage; the size that the data claim is not believed.

    Raises:
        zstandard.ZstdError: nothing can be unpacked.
    """
    import zstandard

    pieces: list[bytes] = []
    found = 0
    with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(data) as stream:
        while found < most:
            try:
                piece = stream.read(min(_STEP, most - found))
            except zstandard.ZstdError:
                if not pieces:
                    raise
                break
            if not piece:
                break
            pieces.append(piece)
            found += len(piece)
    return b"".join(pieces)


def unlz4(data: bytes, most: int) -> bytes:
    """Unpack up to so many bytes. Raises RuntimeError when nothing can be unpacked."""
    frame: Any = importlib.import_module("lz4.frame")
    return bytes(frame.LZ4FrameDecompressor().decompress(data, max_length=most))


def bound_rosbags(reader: Any) -> None:
    """Have the reader of rosbags, which unpacks whatever comes, unpack within these bounds.

    And read each profile of topics once.
    """
    storage: Any = importlib.import_module("rosbags.rosbag2.storage_mcap")
    # One byte more than a chunk says, so that rosbags sees that it says too little.
    storage.DECOMPRESSORS.update(
        zstd=lambda data, size: unzstd(data, min(size, MOST_BYTES) + 1),
        lz4=lambda data, size: unlz4(data, min(size, MOST_BYTES) + 1),
    )
    reader.zstd = SimpleNamespace(decompress=_message, open=_file)
    metadata: Any = importlib.import_module("rosbags.rosbag2.metadata")
    # Reading a profile takes YAML, which is slow; many topics have the same.
    storage.parse_qos = lru_cache(maxsize=1000)(metadata.parse_qos)


def check_chunks(reader: Any) -> None:
    """Refuse files whose chunks, as their index has them, unpack to more than they may, or twice.

    That a chunk unpacks to no more than its index says is seen when it is unpacked.

    Raises:
        TooMuchError: such a file.
    """
    for storage in getattr(reader.storage, "storages", None) or [reader.storage]:
        allowance, offsets = UnpackingLimit(Path(storage.path)), set()
        for chunk in getattr(storage, "chunks", ()):
            if chunk.compression:
                allowance.take(chunk.uncompressed_size)
            if chunk.chunk_start_offset in offsets:
                msg = f"its index names the chunk at byte {chunk.chunk_start_offset} twice"
                raise TooMuchError(msg)
            offsets.add(chunk.chunk_start_offset)


def _message(data: bytes) -> bytes:
    found = unzstd(bytes(data), MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        msg = f"a message unpacks to more than {MOST_BYTES} bytes"
        raise TooMuchError(msg)
    return found


def defined(kind: str, text: str, *, is_idl: bool) -> dict[str, Any]:
    """Return the definitions of a type and of those inside it, by name.

    rosbags makes code of them, a line for each field and for each entry of an array of messages.

    Raises:
        TooMuchError: a text or a type that is too large.
        TypesysError: no definition.
    """
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    if len(text) > MOST_DEFINITION:
        msg = f"it has {len(text)} characters, expected at most {MOST_DEFINITION}"
        raise TooMuchError(msg)
    if is_idl:
        rule = "=" * 80 + "\n"  # before each part, then a line with its name
        parts = [part.partition("\n")[2] for part in text.split(rule)[1:]] or [text]
        found = {name: known for part in parts for name, known in get_types_from_idl(part).items()}
    else:
        found = dict(get_types_from_msg(text, kind))
    for name, (_, fields) in found.items():
        entries = len(fields)
        for inner, length in (detail for _, (sort, detail) in fields if sort.name == "ARRAY"):
            if inner[0].name == "BASE" and inner[1][0] != "string":
                continue  # an array of numbers is one line
            # Entries without fields take no bytes, so that nothing would limit them.
            empty = inner[0].name == "NAME" and found.get(inner[1], (0, [0]))[1] == []
            entries += MOST_FIELDS if empty else length
        if entries > MOST_FIELDS:
            msg = f"{name} has {entries} fields, with those of its arrays; at most {MOST_FIELDS}"
            raise TooMuchError(msg)
    return found


@contextlib.contextmanager
def _file(stream: IO[bytes], mode: str) -> Iterator[Any]:
    """Open a compressed file for reading, as ``zstd.open`` does."""
    import zstandard

    allowed = UnpackingLimit(Path(stream.name))
    with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
        stream, read_across_frames=True
    ) as unpacked:

        def read(size: int = -1) -> bytes:
            piece = bytes(unpacked.read(_STEP))
            allowed.take(len(piece))
            return piece

        yield SimpleNamespace(read=read)


# -- damaged files --------------------------------------------------------------------------------


class Salvage:
    """Copies what is intact of damaged storage files to a sound MCAP file."""

    def __init__(self, target: Path) -> None:
        from mcap.writer import Writer

        self.read = 0
        """Messages that could be read."""
        self.expected: int | None = 0
        """Messages that there were; None = a file does not say so any more."""
        self.damage: list[str] = []
        """Description of each damage."""
        self._channels: dict[tuple[str, str], int] = {}
        self._writer: Any = Writer(str(target))
        self._writer.start(profile="ros2")

    def take(self, path: Path) -> None:
        """Copy the messages of a file.

        Raises:
            ReplayError: it is no MCAP file, or its beginning is gone.
        """
        if not path.is_file():
            msg = f"bag {path}: not found"
            raise ReplayError(msg)
        if path.suffix == ".db3":
            msg = (
                f"bag {path}: SQLite recovers it: sqlite3 {path.name} .recover | sqlite3 "
                "recovered.db3; then replay the recovered file"
            )
            raise ReplayError(msg)
        expected = _read_mcap(path, self)
        known = self.expected is not None and expected is not None
        self.expected = (self.expected or 0) + (expected or 0) if known else None

    def add(
        self, topic: str, kind: str, stamp_ns: int, data: bytes, definition: str, profiles: str
    ) -> None:
        """Add a message; definition of its type and profiles of its topic as in the file."""
        key = topic, kind
        if key not in self._channels:
            encoding = "ros2msg" if definition else ""
            schema = self._writer.register_schema(kind, encoding, definition.encode())
            more = {"offered_qos_profiles": profiles} if _is_profile(profiles) else {}
            self._channels[key] = self._writer.register_channel(topic, "cdr", schema, more)
        self._writer.add_message(self._channels[key], stamp_ns, data, stamp_ns)
        self.read += 1

    def note(self, what: str) -> None:
        """Record damage, once in the same words."""
        if what not in self.damage:
            self.damage.append(what)

    def finish(self) -> None:
        """Finish the copy."""
        self._writer.finish()


@lru_cache(maxsize=1000)
def _is_profile(text: str) -> bool:
    from rosbags.rosbag2.metadata import parse_qos

    try:
        parse_qos(text or "[]")
    except Exception:  # whatever wrong bytes make of it
        return False
    return bool(text)


# -- damaged MCAP --------------------------------------------------------------------------------


class _CutOff:
    """A file that ends with zeros, so that a record that is cut off is read as far as it goes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.missing = 0
        """Zeros that were added to the last record."""

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.missing = (size - len(data)) if data else 0
        return data + bytes(self.missing)


def _read_mcap(path: Path, out: Salvage) -> int | None:
    """Copy an MCAP file; return the number of messages by its statistics."""
    from mcap.records import Channel, Chunk, Message, Schema, Statistics

    schemas: dict[int, Any] = {}
    channels: dict[int, Any] = {}
    limit, size = UnpackingLimit(path), path.stat().st_size
    expected: int | None = None

    def copy(record: Any, first: int = 0, last: int = 2**64) -> None:
        if isinstance(record, Schema):
            schemas[record.id] = record
        elif isinstance(record, Channel):
            channels[record.id] = record
        elif isinstance(record, Message):
            channel = channels.get(record.channel_id)
            schema = None if channel is None else schemas.get(channel.schema_id)
            if channel is None or schema is None:
                out.note(f"{path.name}: messages of an unknown topic")
            elif not first <= record.log_time <= last:
                out.note(f"{path.name}: a chunk has messages of another time")
            else:
                text = (
                    schema.data.decode("utf-8", "replace") if schema.encoding == "ros2msg" else ""
                )
                profiles = channel.metadata.get("offered_qos_profiles", "")
                out.add(channel.topic, schema.name, record.log_time, record.data, text, profiles)

    def damaged(at: int) -> None:
        out.note(f"{path.name}: unreadable from byte {at} of {size} on")

    def chunk_damaged(at: int) -> None:
        out.note(f"{path.name}: a chunk is damaged")

    with path.open("rb") as stream:
        source = _CutOff(stream)
        for record in _records(source, size, damaged):
            if isinstance(record, Chunk):
                data = _unpacked(record, source.missing, limit, path.name, out)
                times = record.message_start_time, record.message_end_time
                for inner in _records(io.BytesIO(data), len(data), chunk_damaged):
                    copy(inner, *times)
            elif isinstance(record, Statistics):
                expected = record.message_count
            else:
                copy(record)
    return expected


def _records(stream: Any, size: int, damaged: Callable[[int], None]) -> Iterator[Any]:
    """Yield records until the file or the unpacked chunk ends, or is damaged."""
    from mcap.records import Footer
    from mcap.stream_reader import StreamReader

    chunk = isinstance(stream, io.BytesIO)
    most = max(size, 1 if chunk else MOST_BYTES)  # of a file that was cut off less is left
    reader = StreamReader(stream, skip_magic=chunk, emit_chunks=True, record_size_limit=most)
    records, at = iter(reader.records), 0
    while not (chunk and at >= size):
        try:
            record = next(records)
        except Exception as error:  # whatever wrong bytes make of a record
            damaged(at)
            logger.debug("%s", error)
            return
        yield record
        if isinstance(record, Footer):
            return
        at = reader._stream.count


def _unpacked(chunk: Any, missing: int, limit: UnpackingLimit, name: str, out: Salvage) -> bytes:
    """Return the content of a chunk, as much of it as can be unpacked."""
    data = bytes(chunk.data[: len(chunk.data) - missing])
    if missing:
        out.note(f"{name}: a chunk is cut off")
    if not chunk.compression:
        return data
    try:
        limit.take(chunk.uncompressed_size)
        unpack = {"zstd": unzstd, "lz4": unlz4}[chunk.compression]
        return unpack(data, chunk.uncompressed_size)
    except Exception as error:
        out.note(f"{name}: a chunk cannot be unpacked ({_described(error)})")
    return b""


def _described(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
