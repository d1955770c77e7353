"""Read storage files of bags within limits, and what is intact of damaged ones.

A few kilobytes can unpack to gigabytes. A file may unpack to `FLOOR` bytes and `RATIO` times its
own size, no piece of it (a chunk, a message) to more than `MOST_BYTES`, and no chunk to more than
it claims.

A recorder that was killed leaves an MCAP file without an end; a bad disk leaves wrong bytes
anywhere. A damaged MCAP file is read from its beginning by mcap's stream reader: a chunk that
cannot be unpacked is left out, and reading ends where the records can no longer be told apart. Of
an SQLite file every row is read that its pages still hold.
"""

from __future__ import annotations

import contextlib
import heapq
import importlib
import io
import itertools
import logging
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NamedTuple

from gp_active_sensing.errors import ReplayError

__all__ = [
    "FLOOR",
    "MOST_BYTES",
    "RATIO",
    "Part",
    "TooMuchError",
    "UnpackingLimit",
    "bound_rosbags",
    "check_chunks",
    "ordered",
    "survey",
    "unlz4",
    "unzstd",
]

logger = logging.getLogger(__name__)

MOST_BYTES = 128 * 2**20
"""Largest chunk or message that is unpacked [bytes]."""
FLOOR = 64 * 2**20
"""Bytes that a file may unpack to however small it is."""
RATIO = 500
"""Bytes that a file may unpack to, for each of its own."""
WINDOW = 5000
"""Messages held back to bring them into the order of their stamps."""
_WINDOW = 2**27
"""Largest window of zstd [bytes]."""
_STEP = 65_536
_ATTEMPTS = 1000
"""Largest number of times that an SQLite file is entered again behind a damaged page."""
_LIMIT_LENGTH = 0
"""SQLITE_LIMIT_LENGTH."""

# -- limits --------------------------------------------------------------------------------------


class TooMuchError(ValueError):
    """A file that unpacks to more than it may."""


class UnpackingLimit:
    """What a file may still unpack to.

    Args:
        path: of the file.
    """

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

    Args:
        reader: its module ``rosbags.rosbag2.reader``.
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

    Args:
        reader: of rosbags, opened.

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


class Row(NamedTuple):
    """A message as it was found."""

    stamp_ns: int
    topic: str
    type: str
    data: bytes


@dataclass
class Part:
    """What a storage file still holds.

    Args:
        path: the file.
        rows: reads its messages, in the order in which they lie in it.
        types: type of each topic.
        counts: messages of each topic that can be read.
        definitions: text of each type's definition, where the file has it.
        profiles: offered quality of service of each topic, as text.
        expected: messages that there were, when the file still says so.
        damage: what is wrong, in words.
    """

    path: Path
    rows: Callable[[], Iterator[Row]]
    types: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    definitions: dict[str, str] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    expected: int | None = None
    damage: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        """Record damage, once in the same words."""
        if what not in self.damage:
            self.damage.append(what)


def survey(path: Path) -> Part:
    """Read a storage file through once, and return what it holds.

    Raises:
        ReplayError: it is neither MCAP nor SQLite, or its beginning is gone.
    """
    if not path.is_file():
        msg = f"bag {path}: not found"
        raise ReplayError(msg)
    part = Part(path, lambda: iter(()))
    reader = _sqlite_rows if path.suffix == ".db3" else _mcap_rows
    part.rows = lambda: reader(part)
    for row in part.rows():
        part.types.setdefault(row.topic, row.type)
        part.counts[row.topic] += 1
    return part


def ordered(rows: Iterable[Row], topics: Collection[str] | None) -> Iterator[Row]:
    """Yield rows of some topics in the order of their stamps, as far as a window reaches."""
    heap: list[tuple[int, int, Row]] = []
    for number, row in enumerate(rows):
        if topics is not None and row.topic not in topics:
            continue
        heapq.heappush(heap, (row.stamp_ns, number, row))
        if len(heap) > WINDOW:
            yield heapq.heappop(heap)[2]
    while heap:
        yield heapq.heappop(heap)[2]


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


def _mcap_rows(part: Part) -> Iterator[Row]:
    from mcap.records import Channel, Chunk, Message, Schema, Statistics

    schemas: dict[int, Any] = {}
    channels: dict[int, Any] = {}
    limit, size = UnpackingLimit(part.path), part.path.stat().st_size
    span = 0, 2**64

    def rows(records: Iterable[Any]) -> Iterator[Row]:
        for record in records:
            if isinstance(record, Schema):
                schemas[record.id] = record
                if record.encoding == "ros2msg":
                    text = record.data.decode("utf-8", "replace")
                    part.definitions.setdefault(record.name, text)
            elif isinstance(record, Channel):
                channels[record.id] = record
                profiles = record.metadata.get("offered_qos_profiles", "")
                part.profiles.setdefault(record.topic, profiles)
            elif isinstance(record, Statistics):
                part.expected = record.message_count
            elif isinstance(record, Message):
                channel = channels.get(record.channel_id)
                schema = None if channel is None else schemas.get(channel.schema_id)
                if channel is None or schema is None:
                    part.note("messages of an unknown topic")
                elif span[0] <= record.log_time <= span[1]:
                    yield Row(record.log_time, channel.topic, schema.name, record.data)
                else:
                    part.note(f"{part.path.name}: a chunk has messages of another time")

    with part.path.open("rb") as stream:
        source = _CutOff(stream)
        where = f"unreadable from byte {{}} of {size} on"
        for record in _records(part, source, size, where):
            if isinstance(record, Chunk):
                span = record.message_start_time, record.message_end_time
                data = _unpacked(part, record, source.missing, limit)
                inside = _records(part, io.BytesIO(data), len(data), "a chunk is damaged")
                yield from rows(inside)
                span = 0, 2**64
            else:
                yield from rows([record])


def _records(part: Part, stream: Any, size: int, damaged: str) -> Iterator[Any]:
    """Yield records until the file or the unpacked chunk ends, or is damaged."""
    from mcap.records import Footer
    from mcap.stream_reader import StreamReader

    chunk = isinstance(stream, io.BytesIO)
    most = max(size, 1 if chunk else MOST_BYTES)  # of a file that was cut off less is left
    reader = StreamReader(stream, skip_magic=chunk, emit_chunks=True, record_size_limit=most)
    at = 0
    records = iter(reader.records)
    while not (chunk and at >= size):
        try:
            record = next(records)
        except StopIteration:
            return
        except Exception as error:  # whatever wrong bytes make of a record
            part.note(f"{part.path.name}: {damaged.format(at)}")
            logger.debug("%s: %s", part.path, error)
            return
        yield record
        at = reader._stream.count
        if isinstance(record, Footer):
            return


def _unpacked(part: Part, chunk: Any, missing: int, limit: UnpackingLimit) -> bytes:
    """Return the content of a chunk, as much of it as can be unpacked."""
    data = bytes(chunk.data[: len(chunk.data) - missing])
    if missing:
        part.note(f"{part.path.name}: a chunk is cut off")
    if not chunk.compression:
        return data
    try:
        limit.take(chunk.uncompressed_size)
        unpack = {"zstd": unzstd, "lz4": unlz4}[chunk.compression]
        return unpack(data, chunk.uncompressed_size)
    except Exception as error:
        part.note(f"{part.path.name}: a chunk cannot be unpacked ({_said(error)})")
    return b""


# -- damaged SQLite ------------------------------------------------------------------------------


def _sqlite_rows(part: Part) -> Iterator[Row]:
    address = f"{part.path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(address, uri=True)
    except sqlite3.Error as error:
        raise _nothing_left(part, error) from error
    with contextlib.closing(connection):
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        if hasattr(connection, "setlimit"):  # Python 3.11
            connection.setlimit(_LIMIT_LENGTH, MOST_BYTES)
        try:
            # Otherwise a file that is shorter than its header says is not read at all.
            connection.execute("PRAGMA writable_schema = ON")
            topics = _sqlite_topics(part, connection)
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise _nothing_left(part, error) from error
        _sqlite_expected(part, connection)
        yield from _sqlite_messages(part, connection, topics)


def _nothing_left(part: Part, error: BaseException) -> ReplayError:
    msg = f"bag {part.path}: nothing can be salvaged: {_said(error)}"
    return ReplayError(msg)


def _sqlite_topics(part: Part, connection: sqlite3.Connection) -> dict[int, tuple[str, str]]:
    topics: dict[int, tuple[str, str]] = {}
    for number, name, kind in connection.execute("SELECT id, name, type FROM topics"):
        if isinstance(number, int) and isinstance(name, str) and isinstance(kind, str):
            topics[number] = (name, kind)
    profiles = "SELECT name, offered_qos_profiles FROM topics"
    definitions = "SELECT topic_type, encoded_message_definition FROM message_definitions"
    definitions += " WHERE encoding = 'ros2msg'"
    for query, found in ((profiles, part.profiles), (definitions, part.definitions)):
        try:
            found.update({str(key): str(text) for key, text in connection.execute(query)})
        except sqlite3.Error as error:  # older bags have no such table
            logger.debug("%s: %s", part.path, error)
    return topics


def _sqlite_expected(part: Part, connection: sqlite3.Connection) -> None:
    try:
        (last,) = connection.execute("SELECT max(id) FROM messages").fetchone()
    except sqlite3.Error:
        return
    part.expected = last if isinstance(last, int) and 0 <= last < 2**40 else None


def _sqlite_messages(
    part: Part, connection: sqlite3.Connection, topics: dict[int, tuple[str, str]]
) -> Iterator[Row]:
    """Yield the rows of the pages that are whole; behind a damaged one it is tried again."""
    query = "SELECT id, topic_id, timestamp, data FROM messages WHERE id > ? ORDER BY id"
    last, step = -1, 1
    for attempt in itertools.count():
        try:
            for number, topic, stamp_ns, data in connection.execute(query, (last,)):
                if number <= last:  # the tree leads back to where we were
                    part.note(f"{part.path.name}: damaged pages (rows out of order)")
                    continue
                last, step = number, 1
                known = topics.get(topic)
                if known is None or not isinstance(stamp_ns, int) or not isinstance(data, bytes):
                    part.note(f"{part.path.name}: rows that are no messages")
                    continue
                yield Row(stamp_ns, *known, data)
            return
        except (sqlite3.Error, OverflowError) as error:
            part.note(f"{part.path.name}: damaged pages ({_said(error)})")
            end = part.expected
            if end is None or last + step >= end or attempt >= _ATTEMPTS:
                return
            last, step = last + step, 2 * step


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
