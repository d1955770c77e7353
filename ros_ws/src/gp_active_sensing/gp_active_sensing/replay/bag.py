"""Reading rosbag2 recordings (MCAP and SQLite) without ROS.

Messages come out as they were recorded, in the order of their stamps: raw CDR, which a ROS
publisher sends on unchanged, whatever its type. `Bag.decode` is for those who have no ROS.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Collection, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from gp_active_sensing.errors import MissingDependencyError, ReplayError
from gp_active_sensing.yaml_files import load_yaml

__all__ = ["Bag", "BagMessage", "BagTopic"]

logger = logging.getLogger(__name__)

_STORAGE = (".mcap", ".db3")


class BagMessage(NamedTuple):
    """One recorded message.

    Args:
        stamp_ns: when the recorder received it [ns].
        topic: the topic it was recorded from.
        type: its ROS type, as in ``sensor_msgs/msg/Temperature``.
        data: the message as raw CDR.
    """

    stamp_ns: int
    topic: str
    type: str
    data: bytes


@dataclass(frozen=True)
class BagTopic:
    """What a bag holds of one topic.

    Args:
        name: the topic.
        type: its ROS type.
        count: number of messages.
        latched: the recorded publisher kept its last message for late subscribers.
    """

    name: str
    type: str
    count: int
    latched: bool = False


class Bag:
    """A recording, opened by ``with Bag(path) as bag:``.

    Args:
        path: a rosbag2 folder, or one ``.mcap`` or ``.db3`` file.

    Raises:
        ReplayError: the bag is missing, damaged or of an unknown format; also while iterating.
        MissingDependencyError: rosbags is not installed.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._stack = ExitStack()
        self._readers: list[Any] = []
        self._typestore: Any = None
        self._topics: tuple[BagTopic, ...] = ()

    def __enter__(self) -> Bag:
        reader_class = _reader_class()
        with _explained(self.path, "cannot be opened"), ExitStack() as stack:
            first = stack.enter_context(reader_class(self.path))
            self._readers = [first]
            self._topics = _topics_of(first)
            files = _split_files(self.path)
            if len(files) > 1 and not first.compression_mode:
                # rosbags reads the files of a split bag one after the other; their stamps overlap.
                self._readers = [stack.enter_context(reader_class(file)) for file in files]
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._readers = []
        self._stack.close()

    @property
    def topics(self) -> tuple[BagTopic, ...]:
        """What was recorded, sorted by topic."""
        return self._topics

    @property
    def count(self) -> int:
        """Number of messages of all topics."""
        return sum(topic.count for topic in self._topics)

    def messages(self, topics: Collection[str] | None = None) -> Iterator[BagMessage]:
        """Yield the messages in the order of their stamps.

        Args:
            topics: only these; None = all.

        Raises:
            ReplayError: the bag is not open, or damaged from here on.
        """
        if not self._readers:
            msg = f"bag {self.path}: is not open; use it in a with statement"
            raise ReplayError(msg)
        streams = [self._stream(reader, topics) for reader in self._readers]
        return heapq.merge(*streams, key=attrgetter("stamp_ns"))

    def _stream(
        self, reader: Any, topics: Collection[str] | None
    ) -> Generator[BagMessage, None, None]:
        wanted = [c for c in reader.connections if topics is None or c.topic in topics]
        if not wanted:
            return
        read = 0
        with _explained(self.path, "is damaged"):
            for connection, stamp_ns, data in reader.messages(connections=wanted):
                read += 1
                yield BagMessage(int(stamp_ns), connection.topic, connection.msgtype, bytes(data))
        expected = sum(connection.msgcount for connection in wanted)
        if expected and read < expected:
            msg = (
                f"bag {self.path}: is damaged: its index promises {expected} messages, "
                f"{read} could be read"
            )
            raise ReplayError(msg)

    def decode(self, message: BagMessage) -> Any:
        """Return a message as an object with the fields of its type.

        Raises:
            ReplayError: the type is unknown, or the payload is not of that type.
        """
        if self._typestore is None:
            self._typestore = self._make_typestore()
        where = f"cannot decode {message.type} of {message.topic} at {message.stamp_ns} ns"
        with _explained(self.path, where):
            return self._typestore.deserialize_cdr(message.data, message.type)

    def _make_typestore(self) -> Any:
        """Know the standard messages, and the bag's own where it carries their definitions."""
        from rosbags.interfaces import MessageDefinitionFormat
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore

        store = get_typestore(Stores.ROS2_JAZZY)
        for reader in self._readers:
            for connection in reader.connections:
                if connection.msgdef.format != MessageDefinitionFormat.MSG:
                    continue
                if connection.msgtype not in store.fielddefs:
                    with _explained(self.path, f"has a bad definition of {connection.msgtype}"):
                        found = get_types_from_msg(connection.msgdef.data, connection.msgtype)
                        store.register({k: v for k, v in found.items() if k not in store.fielddefs})
        return store


def _reader_class() -> Any:
    try:
        from rosbags.rosbag2 import Reader
    except ImportError as error:
        msg = (
            "reading bags needs rosbags, which is not installed: "
            "pip install 'gp_active_sensing[bag]'"
        )
        raise MissingDependencyError(msg) from error
    return Reader


def _topics_of(reader: Any) -> tuple[BagTopic, ...]:
    """Sum the connections of a bag by topic and type."""
    found: dict[tuple[str, str], BagTopic] = {}
    for connection in reader.connections:
        key = (connection.topic, connection.msgtype)
        before = found.get(key, BagTopic(*key, count=0))
        profiles = connection.ext.offered_qos_profiles
        latched = any(qos.durability.name == "TRANSIENT_LOCAL" for qos in profiles)
        found[key] = BagTopic(
            *key, count=before.count + connection.msgcount, latched=before.latched or latched
        )
    return tuple(found[key] for key in sorted(found))


def _split_files(path: Path) -> list[Path]:
    """List the storage files of a bag that rosbags has opened, so that its metadata is sound."""
    if not path.is_dir():
        return [path]
    metadata = load_yaml(path / "metadata.yaml")["rosbag2_bagfile_information"]
    return [path / Path(name).name for name in metadata["relative_file_paths"]]


@contextmanager
def _explained(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a broken bag makes the reader raise into a `ReplayError`.

    A damaged file reaches the reader as wrong lengths, offsets, texts and archives, and surfaces
    as many exceptions (struct, zlib, Unicode, SQLite, …); to a caller they are one thing.
    """
    try:
        yield
    except (ReplayError, GeneratorExit, MissingDependencyError):
        raise
    except FileNotFoundError as error:
        msg = (
            f"bag {path}: not found ({error}); expected a rosbag2 folder with metadata.yaml, "
            f"or one {' or '.join(_STORAGE)} file"
        )
        raise ReplayError(msg) from error
    except Exception as error:
        detail = " ".join(str(error).split()) or type(error).__name__
        msg = f"bag {path}: {what}: {detail}"
        raise ReplayError(msg) from error
