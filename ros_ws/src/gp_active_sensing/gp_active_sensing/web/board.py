"""What all viewers see, in parts; each viewer is sent the parts that have changed for him.

A viewer is behind by some number of changes, which he names. Nothing is queued for him: one who is
slow, or comes back, gets the newest state of each part that he lacks, once.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping
from typing import Any

__all__ = ["Board", "as_text"]


def as_text(value: Any) -> str:
    """Return JSON on one line."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


class Board:
    """Parts of a page by name, each as JSON, and since when each is as it is."""

    def __init__(self) -> None:
        self.version = 0
        """Number of changes so far."""
        self._name = secrets.token_hex(6)
        self._parts: dict[str, str] = {}
        self._since: dict[str, int] = {}
        """Of each part, and of those that are gone, the change that made it so."""
        self._changed = asyncio.Condition()
        self.closed = False
        """Nothing comes any more."""

    async def close(self) -> None:
        """Let nobody wait any longer."""
        self.closed = True
        async with self._changed:
            self._changed.notify_all()

    async def put(self, parts: Mapping[str, str]) -> bool:
        """Replace all parts; say whether anything changed."""
        changed = {k: v for k, v in parts.items() if self._parts.get(k) != v}
        gone = [k for k in self._parts if k not in parts]
        if not changed and not gone:
            return False
        self.version += 1
        self._parts.update(changed)
        for name in gone:
            del self._parts[name]
        self._since.update(dict.fromkeys([*changed, *gone], self.version))
        async with self._changed:
            self._changed.notify_all()
        return True

    async def after(self, version: int, seconds: float) -> bool:
        """Wait until there is a newer version, or so long; say whether there is."""

        def news() -> bool:
            return self.closed or self.version > version

        try:
            async with self._changed:
                await asyncio.wait_for(self._changed.wait_for(news), seconds)
        except asyncio.TimeoutError:
            return False
        return self.version > version

    def since(self, version: int) -> str:
        """Return what changed since a version, as a JSON object; since -1: everything."""
        changed = [k for k, at in self._since.items() if at > version]
        parts = ",".join(f"{as_text(k)}:{self._parts[k]}" for k in changed if k in self._parts)
        gone = [k for k in changed if k not in self._parts] if version >= 0 else []
        whole = "true" if version < 0 else "false"
        return f'{{"whole":{whole},"gone":{as_text(gone)},"parts":{{{parts}}}}}'

    def mark(self) -> str:
        """Return what a viewer names who has seen everything so far."""
        return f"{self._name}-{self.version}"

    def version_of(self, mark: str) -> int:
        """Return the version that a viewer has seen; -1 where it is not one of this board."""
        name, _, number = mark.partition("-")
        seen = int(number) if number.isascii() and number.isdigit() and len(number) < 18 else -1
        return seen if name == self._name and seen <= self.version else -1
