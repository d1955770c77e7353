"""A live page served in a thread, and a viewer without a browser."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gp_active_sensing.web.access import CommandAnswer, WatchOptions
from gp_active_sensing.web.serve import make_server, served
from tests.waiting import LIMIT

if TYPE_CHECKING:
    from gp_active_sensing.web.server import WatchServer


class Commands:
    """Stands for a node: notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, name: str) -> CommandAnswer:
        self.asked.append(name)
        if name == "resume":
            return CommandAnswer(False, "the mission is running")
        return CommandAnswer(True, f"{name} done")


@contextlib.contextmanager
def serving(
    run_dir: Path, command: Commands | None = None, **options: Any
) -> Iterator[WatchServer]:
    """Serve a page until the end of the block; what fails in the server fails there."""
    server = make_server(run_dir, WatchOptions(**options), command)
    with served(server):
        yield server


def ask(
    server: WatchServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


class Viewer:
    """Listens to the events as a page does; keeps the parts that it was sent."""

    def __init__(self, server: WatchServer, mark: str = "", **headers: str) -> None:
        self.parts: dict[str, Any] = {}
        self.hello: dict[str, Any] = {}
        self.mark = mark
        self.changes: list[dict[str, Any]] = []
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
        if mark:
            headers["Last-Event-ID"] = mark
        self._connection.request("GET", "/events", headers=headers)
        self.answer = self._connection.getresponse()

    def next(self) -> str:
        """Take in the next event; return its kind, "" at the end."""
        found: dict[str, str] = {}
        while line := self.answer.readline().decode():
            if line == "\n":
                break
            key, _, value = line.rstrip("\n").partition(": ")
            found[key] = value
        kind = found.get("event", "")
        if kind == "hello":
            self.hello = json.loads(found["data"])
        elif kind == "change":
            change = json.loads(found["data"])
            self.changes.append(change)
            if change["whole"]:
                self.parts.clear()
            for name in change["gone"]:
                del self.parts[name]
            self.parts.update(change["parts"])
            self.mark = found["id"]
        return kind

    def until(self, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        while not condition(self.parts):
            assert self.next(), f"the stream ended; {sorted(self.parts)}"
        return self.parts

    def close(self) -> None:
        self.answer.close()
        self._connection.close()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
