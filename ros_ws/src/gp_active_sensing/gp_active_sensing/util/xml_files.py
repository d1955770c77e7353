"""Streaming reader for XML files, gzip files and KMZ archives of limited size.

Only files made to exhaust time or memory exceed the limits. XML with a document type declaration is
refused.
"""

from __future__ import annotations

import gzip
import io
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MapError

MOST_BYTES = 2 << 30
"""Largest size of an XML file, decompressed [bytes]."""
MOST_TOKEN = 4 * 2**20
"""Largest size of an XML tag with attributes, or of a text between tags [bytes]."""
MOST_FLOOR = 16 * 2**20
"""Decompressed size that every archive may have, whatever its compressed size [bytes]."""
MOST_RATIO = 30
"""An archive may unpack to at most `MOST_FLOOR` + `MOST_RATIO` × its compressed size [bytes]."""
MOST_TAGS = 100_000
"""Number of tags that every file may have, whatever its size."""
BYTES_PER_TAG = 8
"""A file with more than `MOST_TAGS` tags must have at least this many bytes per tag."""


def elements(
    path: Path, wanted: Collection[str], *, root: str, opened: Collection[str] = ()
) -> Iterator[ET.Element]:
    """Yield XML elements with the given names when their end tags are read.

    The file may be compressed with gzip. An element inside another wanted element is not yielded.

    Args:
        path: the file.
        wanted: names of elements, without namespace.
        root: required name of the outermost element.
        opened: names of elements that are yielded at their start tags, with attributes only.

    Raises:
        MapError: the file cannot be read, is damaged, cut short or too large, is no XML, has
            another root, or declares a document type.
    """
    import defusedxml.ElementTree as safe
    from defusedxml.common import DefusedXmlException

    with _opened(path) as stream:
        try:
            events = safe.iterparse(stream, events=("start", "end"), forbid_dtd=True)
            yield from _wanted(events, wanted, opened, root, path)
        except DefusedXmlException as error:
            raise _fault(
                path,
                f"declares a document type or entities ({type(error).__name__}), which no map "
                "needs and which may expand without end; it is not read",
            ) from error
        except ET.ParseError as error:
            raise _fault(path, f"is not valid XML, perhaps truncated: {error}") from error


def whole_bytes(path: Path) -> bytes:
    """Return the decompressed bytes of an XML file. Raises MapError if a limit is exceeded."""
    with _opened(path) as stream:
        return b"".join(iter(lambda: stream.read(1 << 20), b""))


@contextmanager
def _opened(path: Path) -> Iterator[_LimitedStream]:
    """Open an XML file, or the document of a KMZ archive, decompressed. Raises MapError."""
    name = path.name.lower()
    try:
        file: Any
        if name.endswith(".kmz"):
            file = _document(path)
        else:
            file = gzip.open(path, "rb") if name.endswith(".gz") else path.open("rb")
        with _LimitedStream(path, file, packed=name.endswith((".gz", ".kmz"))) as stream:
            yield stream
    except EOFError as error:
        raise _fault(path, "the gzip file is cut short; copy it again") from error
    except (gzip.BadGzipFile, zlib.error, zipfile.BadZipFile) as error:
        kind = "KMZ" if name.endswith(".kmz") else "gzip"
        raise _fault(path, f"the {kind} file is damaged ({error}); copy it again") from error
    except (OSError, ValueError, LookupError) as error:  # includes an unknown encoding
        if isinstance(error, MapError):
            raise
        raise _fault(path, f"cannot be read: {error}") from error


def tag_of(element: ET.Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def _wanted(
    events: Any, wanted: Collection[str], opened: Collection[str], root: str, path: Path
) -> Iterator[ET.Element]:
    open_elements: list[ET.Element] = []
    inside = 0
    for event, element in events:
        tag = tag_of(element)
        if event == "start":
            if not open_elements and tag != root:
                raise _fault(path, f"expected a file that begins with <{root}>, got <{tag}>")
            open_elements.append(element)
            inside += tag in wanted
            if tag in opened:
                yield element
            continue
        open_elements.pop()
        inside -= tag in wanted
        if inside:
            continue
        if tag in wanted:
            yield element
        if open_elements:  # earlier child elements are already removed
            open_elements[-1].remove(element)


def _document(path: Path) -> Any:
    try:
        archive = zipfile.ZipFile(path)
        names = sorted(n for n in archive.namelist() if n.lower().endswith(".kml"))
        if not names:
            raise _fault(
                path, "holds no .kml file; expected a KMZ archive as Google Earth saves it"
            )
        return archive.open("doc.kml" if "doc.kml" in names else names[0])
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise _fault(path, f"is no KMZ archive, or a damaged one: {error}") from error


class _LimitedStream(io.RawIOBase):
    """Stream of a file that enforces limits on size, tags and texts."""

    def __init__(self, path: Path, file: Any, *, packed: bool) -> None:
        self._path = path
        self._file: Any = file
        self._most = MOST_BYTES
        if packed:
            self._most = min(MOST_BYTES, MOST_FLOOR + MOST_RATIO * path.stat().st_size)
        self._given = self._token = self._tags = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. Raises MapError if a limit is exceeded."""
        data: bytes = self._file.read(size)
        self._given += len(data)
        if self._given > self._most:
            raise _fault(
                self._path,
                f"expands to more than {self._most >> 20} MiB, which is "
                f"{MOST_FLOOR >> 20} MiB and {MOST_RATIO} times its size, or all that is read; "
                "decompress it yourself if it is meant",
            )
        self._tags += data.count(b"<")
        if self._tags > max(MOST_TAGS, self._given // BYTES_PER_TAG):
            raise _fault(
                self._path,
                f"holds {self._tags} tags in {self._given} bytes: no map has more "
                f"than one in {BYTES_PER_TAG} bytes",
            )
        # Parsing a tag in pieces takes quadratic time in the length of the tag.
        last = data.rfind(b">")
        self._token = self._token + len(data) if last < 0 else len(data) - last
        if self._token > MOST_TOKEN:
            raise _fault(self._path, f"holds a tag or a text of more than {MOST_TOKEN >> 20} MiB")
        return data

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _fault(path: Path, what: str) -> MapError:
    return MapError(f"{path}: {what}")
