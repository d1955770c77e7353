from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_JAZZY)
STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
FOREVER = QosTime(9223372036, 854775807)
LATCHED = Qos(
    QosHistory.KEEP_LAST,
    1,
    QosReliability.RELIABLE,
    QosDurability.TRANSIENT_LOCAL,
    FOREVER,
    FOREVER,
    QosLiveliness.AUTOMATIC,
    FOREVER,
    False,
)


def message(kind: str, **fields: Any) -> Any:
    return STORE.types[kind](**fields)


def header(stamp_ns: int, frame: str = "map") -> Any:
    stamp = message("builtin_interfaces/msg/Time", sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
    return message("std_msgs/msg/Header", stamp=stamp, frame_id=frame)


def write_bag(
    path: Path,
    messages: Iterable[tuple[str, int, Any]],
    *,
    storage: str = "mcap",
    latched: tuple[str, ...] = (),
    extra_types: dict[str, Any] | None = None,
    chunk: int = 0,
    store: Any = None,
) -> Path:
    """Write (topic, stamp in ns, message) to a new bag, in the order given.

    Args:
        storage: mcap or sqlite3.
        latched: topics whose publisher keeps messages for late subscribers.
        chunk: messages in a chunk of MCAP, which are packed with zstd; 0 = large ones, not packed.
        store: message types that the recorder knew; None = those of Jazzy.
    """
    store = get_typestore(Stores.ROS2_JAZZY) if store is None else store
    if extra_types:
        store.register(extra_types)
    writer = Writer(path, version=9, storage_plugin=STORAGES[storage])
    if chunk:
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        connections: dict[str, Any] = {}
        for count, (topic, stamp_ns, content) in enumerate(messages, start=1):
            kind = content.__msgtype__
            if topic not in connections:
                qos = [LATCHED] if topic in latched else []
                connections[topic] = writer.add_connection(
                    topic, kind, typestore=store, offered_qos_profiles=qos
                )
            writer.write(connections[topic], stamp_ns, store.serialize_cdr(content, kind))
            if chunk and count % chunk == 0:
                writer.storage.close_chunk()  # type: ignore[union-attr]
    return path
