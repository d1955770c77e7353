"""Read storage files of bags within limits, and the intact parts of damaged files.

A file may unpack to `FLOOR` bytes plus `RATIO` times its size. A chunk or message may unpack to
`MOST_BYTES`. A chunk must not exceed its stated size.

A damaged MCAP file is read from its beginning by mcap's stream reader. A damaged chunk is left out.
Reading ends where records can no longer be separated. The intact messages are copied to a new file.
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
"""Largest size of an unpacked chunk or message [bytes]."""
FLOOR = 64 * 2**20
"""Unpacked size that every file may have, however small it is [bytes]."""
RATIO = 500
"""A file may unpack to at most `FLOOR` + `RATIO` × its size [bytes]."""
MOST_DEFINITION = 256 * 2**10
"""Largest number of characters in a message definition, including nested types."""
MOST_FIELDS = 2000
"""Largest number of fields of a type; each entry of an array of messages or texts counts."""
_WINDOW = 2**27
"""Largest window of zstd [bytes]."""
_STEP = 65_536


class TooMuchError(ValueError):
    """Error: a file unpacks to more than its limit."""


class UnpackingLimit:
    """Limit on the unpacked size of a file."""

    def __init__(self, path: Path) -> None:
        self._most = self._left = FLOOR + RATIO * path.stat().st_size

    def count(self, size: int) -> None:
        """Count unpacked bytes. Raises TooMuchError above the limit."""
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
    """Unpack zstd data up to `most` bytes or until damage; ignore the size in the data's header.

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
    """Unpack lz4 data up to `most` bytes. Raises RuntimeError if nothing can be unpacked."""
    frame: Any = importlib.import_module("lz4.frame")
    return bytes(frame.LZ4FrameDecompressor().decompress(data, max_length=most))


def bound_rosbags(reader: Any) -> None:
    """Make the reader of rosbags respect the limits of this module."""
    storage: Any = importlib.import_module("rosbags.rosbag2.storage_mcap")
    # Allow a byte more than the stated size, so that rosbags notices a wrong size.
    storage.DECOMPRESSORS.update(
        zstd=lambda data, size: unzstd(data, min(size, MOST_BYTES) + 1),
        lz4=lambda data, size: unlz4(data, min(size, MOST_BYTES) + 1),
    )
    reader.zstd = SimpleNamespace(decompress=_message, open=_file)
    metadata: Any = importlib.import_module("rosbags.rosbag2.metadata")
    # Parse each profile once: parsing YAML is slow, and many topics have the same profile.
    storage.parse_qos = lru_cache(maxsize=1000)(metadata.parse_qos)


def check_chunks(reader: Any) -> None:
    """Raise TooMuchError if the index of a bag names a chunk twice or a chunk that is too large."""
    for storage in getattr(reader.storage, "storages", None) or [reader.storage]:
        allowance, offsets = UnpackingLimit(Path(storage.path)), set()
        for chunk in getattr(storage, "chunks", ()):
            if chunk.compression:
                allowance.count(chunk.uncompressed_size)
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
    """Return the definitions of a type and of its nested types, by name.

    rosbags generates a line of code for each field and for each entry of an array of messages.
    The number of these lines is limited.

    Raises:
        TooMuchError: a text or a type is too large.
        TypesysError: the text is not a definition.
    """
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    if len(text) > MOST_DEFINITION:
        msg = f"it has {len(text)} characters, expected at most {MOST_DEFINITION}"
        raise TooMuchError(msg)
    if is_idl:
        rule = "=" * 80 + "\n"  # before each type, then a line with its name
        parts = [part.partition("\n")[2] for part in text.split(rule)[1:]] or [text]
        found = {name: known for part in parts for name, known in get_types_from_idl(part).items()}
    else:
        found = dict(get_types_from_msg(text, kind))
    for name, (_, fields) in found.items():
        entries = len(fields)
        for inner, length in (detail for _, (sort, detail) in fields if sort.name == "ARRAY"):
            if inner[0].name == "BASE" and inner[1][0] != "string":
                continue  # an array of numbers takes one line
            # Entries without fields take no bytes, so the size of a file does not limit them.
            empty = inner[0].name == "NAME" and found.get(inner[1], (0, [0]))[1] == []
            entries += MOST_FIELDS if empty else length
        if entries > MOST_FIELDS:
            msg = f"{name} has {entries} fields, with those of its arrays; at most {MOST_FIELDS}"
            raise TooMuchError(msg)
    return found


@contextlib.contextmanager
def _file(stream: IO[bytes], mode: str) -> Iterator[Any]:
    import zstandard

    allowed = UnpackingLimit(Path(stream.name))
    with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
        stream, read_across_frames=True
    ) as unpacked:

        def read(size: int = -1) -> bytes:
            piece = bytes(unpacked.read(_STEP))
            allowed.count(len(piece))
            return piece

        yield SimpleNamespace(read=read)


class Salvage:
    """Copy of the intact messages of damaged storage files, as a sound MCAP file."""

    def __init__(self, target: Path) -> None:
        from mcap.writer import Writer

        self.read = 0
        """Number of messages that could be read."""
        self.expected: int | None = 0
        """Number of messages in the originals; None = not known."""
        self.damage: list[str] = []
        self._channels: dict[tuple[str, str], int] = {}
        self._writer: Any = Writer(str(target))
        self._writer.start(profile="ros2")

    def copy(self, path: Path) -> None:
        """Copy the messages of a file.

        Raises:
            ReplayError: the file is not MCAP, or its beginning is missing.
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
        """Add a message, with the definition of its type and the QoS profiles of its topic."""
        key = topic, kind
        if key not in self._channels:
            encoding = "ros2msg" if definition else ""
            schema = self._writer.register_schema(kind, encoding, definition.encode())
            more = {"offered_qos_profiles": profiles} if _is_profile(profiles) else {}
            self._channels[key] = self._writer.register_channel(topic, "cdr", schema, more)
        self._writer.add_message(self._channels[key], stamp_ns, data, stamp_ns)
        self.read += 1

    def note(self, what: str) -> None:
        """Record a description of damage, unless it is recorded already."""
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
    except Exception:  # of any kind, from damaged bytes
        return False
    return bool(text)


class _CutOff:
    """File whose truncated last record is filled up with zeros."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.missing = 0
        """Number of zeros that were appended to the last record."""

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.missing = (size - len(data)) if data else 0
        return data + bytes(self.missing)


def _read_mcap(path: Path, out: Salvage) -> int | None:
    """Copy an MCAP file; return the number of messages that its statistics state."""
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
    """Yield records until the end of the file or of the unpacked chunk, or until damage."""
    from mcap.records import Footer
    from mcap.stream_reader import StreamReader

    chunk = isinstance(stream, io.BytesIO)
    most = max(size, 1 if chunk else MOST_BYTES)  # a truncated file is smaller than its records
    reader = StreamReader(stream, skip_magic=chunk, emit_chunks=True, record_size_limit=most)
    records, at = iter(reader.records), 0
    while not (chunk and at >= size):
        try:
            record = next(records)
        except Exception as error:  # of any kind, from damaged bytes
            damaged(at)
            logger.debug("%s", error)
            return
        yield record
        if isinstance(record, Footer):
            return
        at = reader._stream.count


def _unpacked(chunk: Any, missing: int, limit: UnpackingLimit, name: str, out: Salvage) -> bytes:
    """Return the part of a chunk's content that can be unpacked."""
    data = bytes(chunk.data[: len(chunk.data) - missing])
    if missing:
        out.note(f"{name}: a chunk is cut off")
    if not chunk.compression:
        return data
    try:
        limit.count(chunk.uncompressed_size)
        unpack = {"zstd": unzstd, "lz4": unlz4}[chunk.compression]
        return unpack(data, chunk.uncompressed_size)
    except Exception as error:
        out.note(f"{name}: a chunk cannot be unpacked ({_described(error)})")
    return b""


def _described(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
