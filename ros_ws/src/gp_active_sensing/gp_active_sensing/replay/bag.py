"""Read rosbag2 recordings (MCAP and SQLite) without ROS.

Messages come as raw CDR in the order of their stamps. A damaged bag is an error. With `salvage`,
its intact parts are read.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Collection, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple

from gp_active_sensing.errors import ActiveSensingError, MissingDependencyError, ReplayError
from gp_active_sensing.replay.storage import Salvage, bound_rosbags, check_chunks, defined
from gp_active_sensing.util.lazy import library
from gp_active_sensing.util.resources import resource_folders
from gp_active_sensing.util.wording import moment
from gp_active_sensing.util.yaml_files import load_yaml

logger = logging.getLogger(__name__)

_STORAGE = (".mcap", ".db3")
SALVAGE = "what can be read of a damaged bag is read with --salvage"
DAMAGED = ("cannot be opened", "is damaged")


class BagMessage(NamedTuple):
    """Recorded message as raw CDR; `stamp_ns` is the time of recording."""

    stamp_ns: int
    topic: str
    type: str
    data: bytes


@dataclass(frozen=True)
class BagTopic:
    """Topic of a bag; if `latched`, late subscribers received the last message."""

    name: str
    type: str
    count: int
    latched: bool = False


@dataclass(frozen=True)
class SalvageResult:
    """Result of salvaging a bag.

    Args:
        read: number of messages that could be read.
        lost: number of messages that could not be read; None = not known.
        damage: descriptions of the damage; () for a sound bag.
    """

    read: int
    lost: int | None
    damage: tuple[str, ...] = ()


class Bag:
    """Bag in a folder, an ``.mcap`` or a ``.db3`` file, opened by ``with Bag(path) as bag:``.

    Args:
        salvage: True = read the intact parts of a damaged bag; `loss` then describes the damage.

    Raises:
        ReplayError: the bag is missing, is damaged or has an unknown format. Damage may be found
            only when the messages are read.
        MissingDependencyError: rosbags is not installed.
    """

    def __init__(self, path: Path | str, *, salvage: bool = False) -> None:
        self.path = _shipped(Path(path))
        self.salvage = salvage
        self.loss: SalvageResult | None = None
        """Result of salvaging; None without `salvage`."""
        self._stack = ExitStack()
        self._readers: list[Any] = []
        self._typestores: dict[str, Any] = {}
        """Type store of each topic, or its error."""
        self._foreign: dict[str, Any] = {}
        """Standard type store of each topic on which the bag redefines a standard type."""
        self._cache: dict[str, object] = {}
        """Cache of the message converter in rosbags."""
        self.topics: tuple[BagTopic, ...] = ()
        """Recorded topics, sorted by name."""

    def __enter__(self) -> Bag:
        reader_class = _reader_class()
        if (self.path / "journal.jsonl").is_file() and not (self.path / "metadata.yaml").is_file():
            msg = (
                f"{self.path} is a run directory, not a bag: `gp-active-sensing report` shows it; "
                "`ros2 bag record` makes a bag of a mission"
            )
            raise ReplayError(msg)
        if self.salvage:
            self._salvage(reader_class)
            return self
        with _explained(self.path, "cannot be opened"), ExitStack() as stack:
            if (self.path / "metadata.yaml").is_file():
                load_yaml(self.path / "metadata.yaml")  # rosbags has no limits
            first = stack.enter_context(reader_class(self.path))
            self._readers = [first]
            self.topics = _topics_of(first)
            files = _split_files(self.path)
            if len(files) > 1 and not first.compression_mode:
                # rosbags reads the files of a split bag in turn, although their stamps overlap.
                self._readers = [stack.enter_context(reader_class(file)) for file in files]
            for reader in self._readers:
                check_chunks(reader)
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

    def _salvage(self, reader_class: Any) -> None:
        """Copy the intact messages of the storage files, and open the copy."""
        files = _storage_files(self.path)
        expected, damage = _promised(self.path)
        with ExitStack() as stack:
            copy = Path(stack.enter_context(TemporaryDirectory())) / "salvaged.mcap"
            out = Salvage(copy)
            for file in files:
                try:
                    with _explained(file, "cannot be salvaged"):
                        out.copy(file)
                except ReplayError as error:
                    damage.append(str(error))
            out.finish()
            damage += out.damage
            if not out.read:
                msg = f"bag {self.path}: nothing can be salvaged: {'; '.join(damage)}"
                raise ReplayError(msg)
            with _explained(self.path, "cannot be salvaged"):
                self._readers = [stack.enter_context(reader_class(copy))]
                self.topics = _topics_of(self._readers[0])
            self._stack = stack.pop_all()
        total = out.expected if expected is None else expected
        lost = None if total is None else max(0, total - out.read)
        self.loss = SalvageResult(out.read, lost, tuple(damage))

    @property
    def count(self) -> int:
        """Number of messages of all topics."""
        return sum(topic.count for topic in self.topics)

    @property
    def seconds(self) -> float | None:
        """Time from the first message to the last [s]; None = not known before the bag is read."""
        if not self._readers:
            return None
        first = min(reader.start_time for reader in self._readers)
        last = max(reader.end_time for reader in self._readers)
        return float(1e-9 * max(0, last - first))

    def messages(self, topics: Collection[str] | None = None) -> Iterator[BagMessage]:
        """Yield the messages in the order of their stamps. Raises ReplayError for a damaged bag."""
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
                msg = f"its index promises {expected} messages, {read} could be read"
                raise ValueError(msg)

    def decode(self, message: BagMessage) -> Any:
        """Return a message as an object with the fields of its type.

        Raises:
            ReplayError: the type is unknown, or the payload does not match it.
        """
        where = f"cannot decode {message.type} of {message.topic} at {moment(message.stamp_ns)}"
        store = self.typestore(message.topic)
        with _explained(self.path, where):
            return store.deserialize_cdr(message.data, message.type)

    def typestore(self, topic: str) -> Any:
        """Return the type store of rosbags for a topic.

        A definition in the bag takes precedence over the standard definition.

        Raises:
            ReplayError: the bag's definition of a type cannot be read.
        """
        if topic not in self._typestores:
            try:
                self._typestores[topic] = self._made_typestore(topic)
            except ReplayError as error:
                self._typestores[topic] = error
        if isinstance(found := self._typestores[topic], ReplayError):
            raise found
        return found

    def _made_typestore(self, topic: str) -> Any:
        from rosbags.interfaces import MessageDefinitionFormat
        from rosbags.typesys import Stores, get_typestore

        usual = get_typestore(Stores.ROS2_JAZZY)
        standard, own = usual.fielddefs, dict[str, Any]()
        connections = (c for reader in self._readers for c in reader.connections)
        pairs = ((c.msgtype, c.msgdef) for c in connections if c.topic == topic)
        for kind, given in dict.fromkeys(pairs):
            if given.format == MessageDefinitionFormat.NONE:
                continue
            try:
                with _explained(self.path, f"has a bad definition of {kind}"):
                    own |= defined(kind, given.data, is_idl=given.format.name == "IDL")
            except ReplayError as error:
                if not self.salvage:
                    raise
                logger.warning("%s; the standard one is used, if there is one", error)
        new = {name: found for name, found in own.items() if name not in standard}
        # The standard definition of a message without fields has a hidden field.
        same = {name for name in own.keys() - new.keys() if own[name][1] in ([], standard[name][1])}
        other = {name: own[name] for name in own.keys() - new.keys() - same}
        with _explained(self.path, f"has a bad definition on topic {topic}"):
            if not other:
                usual.register(new)
                return usual
            store = get_typestore(Stores.EMPTY)
            store.register({**standard, **new, **other})
        text = (
            "topic %s: %s has another definition on this machine; the definition in the bag is used"
        )
        logger.warning(text, topic, ", ".join(sorted(other)))
        self._foreign[topic] = usual
        return store

    def standard(self, message: BagMessage) -> bytes:
        """Return a message as CDR of the standard definition of its type.

        Fields that are missing in the bag get their defaults; unknown fields are left out.

        Raises:
            ReplayError: the type is unknown, or the payload does not match it.
        """
        content = self.decode(message)
        if (usual := self._foreign.get(message.topic)) is None:
            return message.data
        from rosbags.convert.converter import migrate_message

        with _explained(self.path, f"cannot convert {message.type} of {message.topic}"):
            own, kind = self._typestores[message.topic], message.type
            moved = migrate_message(own, usual, kind, kind, self._cache, content)
            return bytes(usual.serialize_cdr(moved, kind))


def _reader_class() -> Any:
    found = library("rosbags.rosbag2", "bags are read with rosbags", extra="bag")
    bound_rosbags(found.reader)
    return found.Reader


def _topics_of(reader: Any) -> tuple[BagTopic, ...]:
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
    if not path.is_dir():
        return [path]
    metadata = load_yaml(path / "metadata.yaml")["rosbag2_bagfile_information"]
    return [path / Path(name).name for name in metadata["relative_file_paths"]]


def _shipped(path: Path) -> Path:
    """Return the path, or the folder of a shipped bag if the path does not exist."""
    if path.exists() or len(path.parts) != 1:
        return path
    found = (folder / path for folder in resource_folders("bags"))
    return next((bag for bag in found if (bag / "metadata.yaml").is_file()), path)


def _storage_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in _STORAGE)
    if not files:
        msg = f"bag {path}: nothing can be salvaged: the folder has no {' or '.join(_STORAGE)} file"
        raise ReplayError(msg)
    return files


def _promised(path: Path) -> tuple[int | None, list[str]]:
    """Return the number of messages in a folder's metadata, and the faults of the metadata."""
    file = path / "metadata.yaml"
    if not path.is_dir():
        return None, []
    if not file.is_file():
        return None, ["metadata.yaml is missing"]
    try:
        count = load_yaml(file)["rosbag2_bagfile_information"]["message_count"]
    except (ActiveSensingError, KeyError, TypeError):
        return None, ["metadata.yaml is damaged"]
    if not isinstance(count, int) or not 0 <= count < 2**40:
        return None, ["metadata.yaml is damaged"]
    return count, []


@contextmanager
def _explained(path: Path, what: str) -> Iterator[None]:
    """Convert every error of a reader, whatever its class, to a `ReplayError`."""
    try:
        yield
    except (ReplayError, GeneratorExit, MissingDependencyError):
        raise
    except FileNotFoundError as error:
        msg = (
            f"bag {path}: not found ({error}); expected a rosbag2 folder with metadata.yaml, "
            f"or one {' or '.join(_STORAGE)} file"
        )
        if path.is_dir() and any(file.suffix in _STORAGE for file in path.iterdir()):
            msg += f". A recorder that was killed leaves no metadata.yaml: {SALVAGE}"
        raise ReplayError(msg) from error
    except Exception as error:
        detail = " ".join(str(error).split()) or type(error).__name__
        msg = f"bag {path}: {what}: {detail}"
        if what in DAMAGED and (path.is_dir() or path.suffix in _STORAGE):
            msg += f". {SALVAGE[0].upper()}{SALVAGE[1:]}"
        raise ReplayError(msg) from error
