"""Writing rosbag2 recordings (MCAP) without ROS: raw messages, and what their types look like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from gp_active_sensing.errors import MissingDependencyError, ReplayError

__all__ = ["BagWriter", "definition_of"]

Fields = Callable[[str], Mapping[str, str]]
_WORDS = {"double": "float64", "float": "float32", "boolean": "bool", "octet": "byte"}
_ARRAY = re.compile(r"^(.+)\[(\d+)\]$")
_SEQUENCE = re.compile(r"^sequence<(.+?)(?:, *(\d+))?>$")


class BagWriter:
    """A new rosbag2 folder with one MCAP file.

    What was flushed is on its way to the disk: a process that is killed loses what came after,
    and leaves a file that can be salvaged.

    Args:
        path: the folder, which must not exist.
        fields: returns the fields of a message type, of those that rosbags does not know.
        compress: pack chunks with zstd.

    Raises:
        ReplayError: the folder is there already, or cannot be made.
        MissingDependencyError: rosbags is not installed.
    """

    def __init__(self, path: Path | str, *, fields: Fields, compress: bool = True) -> None:
        try:
            from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
            from rosbags.rosbag2.errors import WriterError
            from rosbags.typesys import Stores, get_typestore
        except ImportError as error:
            msg = "writing bags needs rosbags: pip install 'gp_active_sensing[bag]'"
            raise MissingDependencyError(msg) from error
        self.path = Path(path)
        self.written: Counter[str] = Counter()
        """Messages by topic."""
        self._fields = fields
        self._store = get_typestore(Stores.ROS2_JAZZY)
        self._connections: dict[str, Any] = {}
        try:
            self._writer = Writer(self.path, version=9, storage_plugin=StoragePlugin.MCAP)
            if compress:
                self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
            self._writer.open()
        except (OSError, WriterError) as error:
            msg = f"bag {self.path}: cannot be made: {error}"
            raise ReplayError(msg) from error

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def add(self, topic: str, kind: str, *, latched: bool = False, reliable: bool = True) -> None:
        """Add a topic.

        Args:
            topic: its name.
            kind: message type, package/msg/Name.
            latched: its publisher keeps messages for late subscribers.
            reliable: its publisher delivers every message.

        Raises:
            ConfigError, MissingDependencyError: a type that `field_path` does not know.
        """
        if kind not in self._store.fielddefs:
            from rosbags.typesys import get_types_from_msg

            text = definition_of(kind, self._fields, known=self._store.fielddefs)
            found = get_types_from_msg(text, kind)
            self._store.register({k: v for k, v in found.items() if k not in self._store.fielddefs})
        self._connections[topic] = self._writer.add_connection(
            topic,
            kind,
            typestore=self._store,
            offered_qos_profiles=[_profile(latched=latched, reliable=reliable)],
        )

    def write(self, topic: str, stamp_ns: int, data: bytes) -> None:
        """Add a message (raw CDR) of a topic that was added.

        Raises:
            ReplayError: it cannot be written.
        """
        try:
            self._writer.write(self._connections[topic], stamp_ns, data)
        except OSError as error:
            raise self._cannot(error) from error
        self.written[topic] += 1

    def flush(self) -> None:
        """Hand what was written to the operating system. Raises ReplayError."""
        storage: Any = self._writer.storage
        if storage is None:
            return
        try:
            if storage.chunk.msgs:  # rosbags keeps a megabyte back
                storage.close_chunk()
            storage.bio.flush()
        except OSError as error:
            raise self._cannot(error) from error

    def close(self) -> None:
        """Write index and metadata. Raises ReplayError."""
        if self._writer.storage is None:
            return
        try:
            self._writer.close()
        except OSError as error:
            self._writer.abort()
            raise self._cannot(error) from error

    def _cannot(self, error: OSError) -> ReplayError:
        return ReplayError(f"bag {self.path}: cannot be written: {error.strerror or error}")


def definition_of(kind: str, fields: Fields, *, known: Mapping[str, Any]) -> str:
    """Return the definition of a message type, with those inside it, as a ``.msg`` file.

    Args:
        kind: package/msg/Name.
        fields: returns the fields of a type, in the words of rosidl.
        known: types that need no definition.
    """
    texts: dict[str, str] = {}

    def describe(name: str) -> None:
        inner: list[str] = []
        lines = []
        for field, rosidl in fields(name).items():
            word, nested = _written(rosidl)
            lines.append(f"{word} {field}")
            if nested and nested not in texts and nested not in known:
                inner.append(nested)
        texts[name] = "\n".join(lines) + "\n"
        for other in inner:
            if other not in texts:
                describe(other)

    describe(kind)
    first = texts.pop(kind)
    line = "=" * 80
    return first + "".join(f"{line}\nMSG: {_short(name)}\n{text}" for name, text in texts.items())


def _short(name: str) -> str:
    package, _, short = name.partition("/msg/")
    return f"{package}/{short}"


def _written(rosidl: str) -> tuple[str, str]:
    """Return a field's type as in a ``.msg`` file, and the message type in it ("" = none)."""
    if array := _ARRAY.match(rosidl):
        word, nested = _written(array[1])
        return f"{word}[{array[2]}]", nested
    if sequence := _SEQUENCE.match(rosidl):
        word, nested = _written(sequence[1])
        return (f"{word}[<={sequence[2]}]" if sequence[2] else f"{word}[]"), nested
    if "/" in rosidl:
        package, short = rosidl.replace("/msg/", "/").split("/")
        return f"{package}/{short}", f"{package}/msg/{short}"
    if bounded := re.match(r"^w?string<(\d+)>$", rosidl):
        return f"{rosidl.partition('<')[0]}<={bounded[1]}", ""
    return _WORDS.get(rosidl, rosidl), ""


def _profile(*, latched: bool, reliable: bool) -> Any:
    from rosbags.interfaces import (
        Qos,
        QosDurability,
        QosHistory,
        QosLiveliness,
        QosReliability,
        QosTime,
    )

    forever = QosTime(9223372036, 854775807)
    return Qos(
        QosHistory.KEEP_LAST,
        1,
        QosReliability.RELIABLE if reliable else QosReliability.BEST_EFFORT,
        QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE,
        forever,
        forever,
        QosLiveliness.AUTOMATIC,
        forever,
        False,
    )
