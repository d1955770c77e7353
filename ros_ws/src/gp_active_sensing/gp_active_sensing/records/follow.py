"""Follow a file of JSON lines while another process writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import RunError
from gp_active_sensing.util.files import cannot, open_file

__all__ = ["JsonLinesTail"]


class JsonLinesTail:
    """Reads what was added since the last time; a line that is not complete yet waits.

    Args:
        path: the file, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0

    def read(self) -> list[dict[str, Any]]:
        """Return the objects of the lines that were completed since the last call.

        Raises:
            RunError: it cannot be read, or a complete line is not a JSON object.
        """
        try:
            with open_file(self.path) as stream:
                stream.seek(self._offset)
                data = stream.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise cannot(self.path, "read", error) from error
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        found = []
        for line in complete.splitlines():
            try:
                item = json.loads(line)
            except (ValueError, RecursionError) as error:
                msg = f"{self.path}: expected a JSON object a line, got {line[:60]!r} ({error})"
                raise RunError(msg) from error
            found.append(item)
        return found
