"""Decompress the contents of bags within limits on size and ratio.

A few kilobytes can unpack to gigabytes. A file may unpack to `FLOOR` bytes and `RATIO` times its
own size, and no piece of it (a chunk, a message) to more than `MOST_BYTES`, whatever it says of
itself; and a chunk never to more than it says.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

__all__ = [
    "FLOOR",
    "MOST_BYTES",
    "RATIO",
    "TooMuchError",
    "UnpackingLimit",
    "bound_rosbags",
    "check_chunks",
    "unlz4",
    "unzstd",
]

MOST_BYTES = 128 * 2**20
"""Largest chunk or message that is unpacked [bytes]."""
FLOOR = 64 * 2**20
"""What a file may unpack to however small it is [bytes]."""
RATIO = 500
_WINDOW = 2**27
"""Largest window of zstd [bytes]."""
_STEP = 65_536


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
