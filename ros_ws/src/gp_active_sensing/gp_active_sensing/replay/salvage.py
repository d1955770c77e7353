"""Read what is intact of a damaged recording.

A recorder that was killed leaves an MCAP file without an end; a bad disk leaves wrong bytes
anywhere. An MCAP file is read from its beginning: a chunk that cannot be unpacked is passed over,
and the reading ends where the records themselves can no longer be told apart. Of an SQLite file
every row is read that its pages still hold. Nothing is trusted: lengths are bounded by the file and
by `MOST_BYTES`, and what it unpacks to by `UnpackingLimit`.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from gp_active_sensing.errors import ReplayError
from gp_active_sensing.replay.unpacking import MOST_BYTES, UnpackingLimit, unlz4, unzstd

__all__ = ["Part", "ordered", "survey"]

logger = logging.getLogger(__name__)

WINDOW = 5000
"""Messages held back to bring them into the order of their stamps."""
MOST_TOPICS = 10_000
"""Topics of a file; messages of further ones are passed over."""
_ATTEMPTS = 1000
"""How often an SQLite file is entered again behind a damaged page."""
_LIMIT_LENGTH = 0
"""SQLITE_LIMIT_LENGTH."""
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK = 0x03, 0x04, 0x05, 0x06


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
    part.rows = lambda: _of_few_topics(part, reader(part))
    for row in part.rows():
        part.counts[row.topic] += 1
    return part


def _of_few_topics(part: Part, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of the first `MOST_TOPICS` topics, and remember their types."""
    for row in rows:
        if row.topic not in part.types:
            if len(part.types) >= MOST_TOPICS:
                part.note(f"{part.path.name}: more than {MOST_TOPICS} topics; others are left out")
                continue
            part.types[row.topic] = row.type
        yield row


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


# -- MCAP --------------------------------------------------------------------------------------


def _mcap_rows(part: Part) -> Iterator[Row]:
    from mcap.records import Channel, Chunk, Message, Schema, Statistics
    from mcap.stream_reader import StreamReader

    schemas: dict[int, Any] = {}
    channels: dict[int, Any] = {}

    def learn(record: Any) -> None:
        if isinstance(record, Schema):
            schemas[record.id] = record
        elif isinstance(record, Channel):
            channels[record.id] = record

    def row(channel_id: int, stamp_ns: int, data: bytes) -> Row | None:
        channel = channels.get(channel_id)
        schema = None if channel is None else schemas.get(channel.schema_id)
        if channel is None or schema is None:
            part.note("messages of an unknown topic")
            return None
        if schema.encoding == "ros2msg":
            part.definitions.setdefault(schema.name, schema.data.decode("utf-8", "replace"))
        profiles = channel.metadata.get("offered_qos_profiles", "")
        part.profiles.setdefault(channel.topic, profiles)
        return Row(stamp_ns, channel.topic, schema.name, data)

    size = part.path.stat().st_size
    allowance = UnpackingLimit(part.path)
    with part.path.open("rb") as stream:
        reader: Any = StreamReader(stream, emit_chunks=True, record_size_limit=max(size, 1))
        records = iter(reader.records)
        while True:
            begun = stream.tell()
            try:
                record = next(records, None)
            except Exception as error:  # whatever wrong bytes make of a record
                part.note(f"{part.path.name}: unreadable from byte {begun} of {size} on")
                logger.debug("%s: %s", part.path, error)
                record = _cut_chunk(stream, begun)
                reader = None
            if record is None:
                return
            if isinstance(record, Chunk):
                for kind, content in _chunk(part, record, allowance):
                    if kind != _MESSAGE:
                        learn(content)
                    elif (found := row(*content)) is not None:
                        yield found
            elif isinstance(record, Message):
                if (found := row(record.channel_id, record.log_time, record.data)) is not None:
                    yield found
            elif isinstance(record, Statistics):
                part.expected = record.message_count
            else:
                learn(record)
            if reader is None:
                return


def _cut_chunk(stream: IO[bytes], begun: int) -> Any:
    """Return what there is of a chunk that begins there; None when it is something else."""
    from mcap.records import Chunk

    stream.seek(begun)
    head = stream.read(9)
    if len(head) < 9 or head[0] != _CHUNK:
        return None
    body = stream.read(min(MOST_BYTES, int.from_bytes(head[1:], "little")))
    first, last, size = (int.from_bytes(body[i : i + 8], "little") for i in (0, 8, 16))
    word = int.from_bytes(body[28:32], "little")
    if len(body) < 40 or word > 16:
        return None
    compression = body[32 : 32 + word].decode("utf-8", "replace")
    return Chunk(
        compression=compression,
        data=body[40 + word :],
        message_start_time=first,
        message_end_time=last,
        uncompressed_crc=0,
        uncompressed_size=size,
    )


def _chunk(part: Part, chunk: Any, allowance: UnpackingLimit) -> Iterator[tuple[int, Any]]:
    """Yield kind and content of the records of a chunk, up to where it is damaged."""
    from mcap.data_stream import ReadDataStream
    from mcap.records import Channel, Schema

    data = _unpacked(part, chunk, allowance)
    at, size = 0, len(data)
    while at < size:
        kind = data[at]
        length = int.from_bytes(data[at + 1 : at + 9], "little")
        body = data[at + 9 : at + 9 + length]
        if len(body) < length or size - at < 9:
            part.note(f"{part.path.name}: a chunk is damaged")
            return
        at += 9 + length
        try:
            if kind == _MESSAGE:
                if length < 22:
                    part.note(f"{part.path.name}: a chunk is damaged")
                    return
                stamp_ns = int.from_bytes(body[6:14], "little")
                if not chunk.message_start_time <= stamp_ns <= chunk.message_end_time:
                    part.note(f"{part.path.name}: a chunk has messages of another time")
                    continue
                yield kind, (int.from_bytes(body[:2], "little"), stamp_ns, body[22:])
            elif kind in (_SCHEMA, _CHANNEL):
                stream = ReadDataStream(_bytes_io(body))
                yield kind, (Schema if kind == _SCHEMA else Channel).read(stream)
        except Exception as error:
            part.note(f"{part.path.name}: a chunk is damaged ({_said(error)})")
            return


def _unpacked(part: Part, chunk: Any, allowance: UnpackingLimit) -> bytes:
    """Return what a chunk holds, as much of it as can be unpacked."""
    if not chunk.compression:
        data = bytes(chunk.data)
        if len(data) != chunk.uncompressed_size:
            part.note(f"{part.path.name}: a chunk is cut off")
        return data
    most = chunk.uncompressed_size
    try:
        allowance.take(most)
        if chunk.compression == "zstd":
            return unzstd(chunk.data, most)
        if chunk.compression == "lz4":
            return unlz4(chunk.data, most)
        part.note(f"{part.path.name}: a chunk has an unknown compression")
    except Exception as error:
        part.note(f"{part.path.name}: a chunk cannot be unpacked ({_said(error)})")
    return b""


def _bytes_io(data: bytes) -> Any:
    from io import BytesIO

    return BytesIO(data)


# -- SQLite --------------------------------------------------------------------------------------


def _sqlite_rows(part: Part) -> Iterator[Row]:
    address = f"{part.path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(address, uri=True)
    except sqlite3.Error as error:
        raise _nothing_left(part, error) from error
    with closing(connection):
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
