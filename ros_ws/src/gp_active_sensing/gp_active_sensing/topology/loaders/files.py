"""Read map files within limits: text, JSON, XML element by element, and values for messages.

The limits are far beyond every map of roads; they are there for files that were made to use up time
or memory. Nothing of an XML file is expanded, and a document type declaration is refused whole: no
map format has one, and entities that expand to gigabytes are declared in it. What a gzip file
expands to is limited as well.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MapError
from gp_active_sensing.util.files import open_file

MOST_TEXT = 256 * 2**20
"""Bytes of a file of GeoJSON or of a table."""
MOST_TOKEN = 4 * 2**20
"""Bytes of a tag of XML with its attributes, or of a text between two."""
MOST_FLOOR = 16 * 2**20
MOST_RATIO = 30
"""A gzip file may expand to `MOST_FLOOR` bytes and so many times its own size."""
MOST_TAGS = 100_000
BYTES_PER_TAG = 8
"""A file of XML with more tags than that has so many bytes for each; `<nd ref="1"/>` has 13."""


def check_file(path: Path, most: int = sys.maxsize) -> None:
    """Refuse what is not a file, or has too many bytes.

    Raises:
        MapError: naming the file.
    """
    try:
        with open_file(path) as stream:
            size = os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise fault(path, f"cannot be read: {error.strerror or error}") from error
    if size > most:
        raise fault(path, f"is too large: expected at most {most >> 20} MiB")


def read_text(path: Path) -> str:
    """Return the text of a map, without a byte order mark.

    Raises:
        MapError: no file, no text in UTF-8, or too large.
    """
    check_file(path, MOST_TEXT)
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise fault(path, f"cannot be read as text in UTF-8: {error}") from error


def read_json(path: Path) -> Any:
    """Return the data of a JSON file. Raises MapError where it is none."""
    text = read_text(path)
    if not text.strip():
        raise fault(path, "is empty")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5000 digits
        raise fault(path, f"is not valid JSON, perhaps truncated: {error}") from error


MOST_BYTES = 2 << 30
"""Largest size of a file once decompressed."""


def elements(
    path: Path, wanted: Collection[str], *, root: str, opened: Collection[str] = ()
) -> Iterator[ET.Element]:
    """Yield the elements of some names, whole, each when it ends; everything else is forgotten.

    The file is XML, or XML compressed with gzip. Names are without their namespace; of those that
    lie within another only the outer one is given. Those in `opened` are given when they begin,
    with their attributes only; `root` is the name that the outermost element must have.

    Raises:
        MapError: the file cannot be read, is damaged, cut short or too large, is no XML or another
            kind of it, or declares a document type.
    """
    import defusedxml.ElementTree as safe
    from defusedxml.common import DefusedXmlException

    with _opened(path) as stream:
        try:
            events = safe.iterparse(stream, events=("start", "end"), forbid_dtd=True)
            yield from _wanted(events, wanted, opened, root, path)
        except DefusedXmlException as error:
            raise fault(
                path,
                f"declares a document type or entities ({type(error).__name__}), which no map "
                "needs and which may expand without end; it is not read",
            ) from error
        except ET.ParseError as error:
            raise fault(path, f"is not valid XML, perhaps truncated: {error}") from error


def whole_bytes(path: Path) -> bytes:
    """Return the bytes of a file of XML, unpacked, within the limits. Raises MapError beyond."""
    with _opened(path) as stream:
        return b"".join(iter(lambda: stream.read(1 << 20), b""))


@contextmanager
def _opened(path: Path) -> Iterator[_Limited]:
    """Open a file of XML, unpacked: as it is, of gzip, or the document of a KMZ archive.

    Raises:
        MapError: it cannot be read, is damaged, cut short or too large.
    """
    name = path.name.lower()
    try:
        file: Any
        if name.endswith(".kmz"):
            file = _document(path)
        else:
            file = gzip.open(path, "rb") if name.endswith(".gz") else path.open("rb")
        with _Limited(path, file, packed=name.endswith((".gz", ".kmz"))) as stream:
            yield stream
    except EOFError as error:
        raise fault(path, "the gzip file is cut short; copy it again") from error
    except (gzip.BadGzipFile, zlib.error, zipfile.BadZipFile) as error:
        kind = "KMZ" if name.endswith(".kmz") else "gzip"
        raise fault(path, f"the {kind} file is damaged ({error}); copy it again") from error
    except (OSError, ValueError, LookupError) as error:  # also an unknown encoding
        if isinstance(error, MapError):
            raise
        raise fault(path, f"cannot be read: {error}") from error


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
                raise fault(path, f"expected a file that begins with <{root}>, got <{tag}>")
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
        if open_elements:  # it is the only child, since those before it are gone
            open_elements[-1].remove(element)


def _document(path: Path) -> Any:
    """Open the document of a KMZ archive."""
    try:
        archive = zipfile.ZipFile(path)
        names = sorted(n for n in archive.namelist() if n.lower().endswith(".kml"))
        if not names:
            raise fault(path, "holds no .kml file; expected a KMZ archive as Google Earth saves it")
        return archive.open("doc.kml" if "doc.kml" in names else names[0])
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise fault(path, f"is no KMZ archive, or a damaged one: {error}") from error


class _Limited(io.RawIOBase):
    """A file that gives no more than it may, and no tag or text without end."""

    def __init__(self, path: Path, file: Any, *, packed: bool) -> None:
        self._path = path
        self._file: Any = file
        self._most = MOST_BYTES
        if packed:
            self._most = min(MOST_BYTES, MOST_FLOOR + MOST_RATIO * path.stat().st_size)
        self._given = self._token = self._tags = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes.

        Raises:
            MapError: there are more than the limits.
        """
        data: bytes = self._file.read(size)
        self._given += len(data)
        if self._given > self._most:
            raise fault(
                self._path,
                f"expands to more than {self._most >> 20} MiB, which is "
                f"{MOST_FLOOR >> 20} MiB and {MOST_RATIO} times its size, or all that is read; "
                "decompress it yourself if it is meant",
            )
        self._tags += data.count(b"<")
        if self._tags > max(MOST_TAGS, self._given // BYTES_PER_TAG):
            raise fault(
                self._path,
                f"holds {self._tags} tags in {self._given} bytes: no map has more "
                f"than one in {BYTES_PER_TAG} bytes",
            )
        # Parsing a tag piece by piece takes the square of its length.
        last = data.rfind(b">")
        self._token = self._token + len(data) if last < 0 else len(data) - last
        if self._token > MOST_TOKEN:
            raise fault(self._path, f"holds a tag or a text of more than {MOST_TOKEN >> 20} MiB")
        return data

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()


# -- checked values --------------------------------------------------------------------------------

SHOWN_PROBLEMS = 10
"""The others are counted."""


def fail(path: Path | str, problems: Sequence[str]) -> None:
    """Raise an error with the problems, if there are any."""
    if not problems:
        return
    if len(problems) == 1:
        msg = f"{path}: {problems[0]}"
    else:
        lines = [f"  - {problem}" for problem in problems[:SHOWN_PROBLEMS]]
        rest = len(problems) - SHOWN_PROBLEMS
        if rest > 0:
            lines.append(f"  … and {rest} more")
        msg = f"{path}: {len(problems)} problems in the map:\n" + "\n".join(lines)
    raise MapError(msg)


def fault(where: Path | str, what: str) -> MapError:
    """Return the error of a map file: where in it, what is wrong, what to do."""
    return MapError(f"{where}: {what}")


def expected(path: Path | str, where: str, what: str, got: Any) -> MapError:
    """Return the error of a value of a file that is not what it has to be."""
    return MapError(f"{path}: {where}{': ' if where else ''}expected {what}, got {shown(got)}")


def is_number(value: Any) -> bool:
    """Return whether a value is a number that float can hold (NaN is one)."""
    if isinstance(value, int) and abs(value) > 1 << 1000:
        return False
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_of(value: Any) -> float | None:
    """Return a number (NaN is one), also of a text; None where it is none."""
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def shown(value: Any) -> str:
    """Return a value for a message, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def is_text(value: str) -> bool:
    """Return whether a text can be written: JSON may name half a character (a lone surrogate)."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
