"""Serve the live page, send its changes as server-sent events, and receive commands."""

from __future__ import annotations

import asyncio
import concurrent.futures
import html
import itertools
import logging
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornado import iostream, web

from gp_active_sensing.errors import ActiveSensingError, RunError
from gp_active_sensing.report.frame import asset, build_page
from gp_active_sensing.report.page import SCRIPTS
from gp_active_sensing.web.access import (
    COMMANDS,
    Access,
    Command,
    CommandAnswer,
    WatchOptions,
    is_loopback,
    origin_of_tiles,
    state_folder,
    token_in,
)
from gp_active_sensing.web.connections import BoundedServer
from gp_active_sensing.web.follow import RunFollower
from gp_active_sensing.web.view import TABLES, Board, LiveView, as_text

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.25
"""Time between two checks for changes [s]."""
SLICE_SECONDS = 1.0
"""Longest time spent on reading a journal between two updates of the page [s]."""
PING_SECONDS = 10.0
"""Largest time between two messages to a viewer [s]; they show that the connection works."""
SLOW_SECONDS = 60.0
"""Longest time that a viewer may take to receive a message or to answer [s]."""
PATIENCE_LOOKS = 8
"""Number of checks without a mission after which the console shows why there is none."""
MORE_CONNECTIONS = 64
"""Largest number of connections in addition to one per viewer."""
NO_CONTROL = "there is no running node here to command: this page follows a run directory"
NO_TOKEN = "you may look and not command: open the address with the token, printed at the start"
PRIVATE = "this page is private: open the address with the token, printed when it was started"


@dataclass
class _Viewer:
    """Connection of a viewer, and the monotonic time of the page's last answer [s]."""

    stream: iostream.IOStream
    answered: float


class WatchServer:
    """Server that follows a run and serves the run's live page.

    Args:
        run_dir: run directory, which may not exist yet; None = `follower.to` sets the directory
            later.
        options: address and access of the page.
        command: function that executes commands; None = the page has no commands.
        report: function that shows a line on the console.

    Raises:
        RunError: the address, the token file or the URL of the map tiles cannot be used.
    """

    def __init__(
        self,
        run_dir: Path | None,
        options: WatchOptions,
        command: Command | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self.options, self.command = options, command
        self._report = report
        self.page, self.policy = _page(options.tiles)
        self.follower = RunFollower(run_dir)
        self.view = LiveView(self.follower)
        self.board = Board()
        self.pool = concurrent.futures.ThreadPoolExecutor(1, "follow")
        """Single thread that reads the run."""
        self.viewers: dict[str, _Viewer] = {}
        """Viewers without the token, by the name of the viewer's event stream."""
        token = ""
        if command is not None or options.private:
            token = token_in(options.token_file or state_folder() / "watch.token")
        self.access = Access.of_host(options.host, token, options.names, private=options.private)
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        try:
            self._socket = socket.create_server((options.host, options.port), family=family)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            msg = (
                f"cannot listen on {options.host}, port {options.port}: {reason}. Take another "
                "port (0 = any that is free), or an address of this machine"
            )
            raise RunError(msg) from error
        self._socket.setblocking(False)
        self.port = int(self._socket.getsockname()[1])

    @property
    def address(self) -> str:
        """URL of the page without a token."""
        host = self.options.host
        if host in ("0.0.0.0", "::", ""):  # listens on all addresses: use the host name
            host = socket.gethostname()
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"

    @property
    def entry(self) -> str:
        """URL of the page, with the token if there is a token."""
        return f"{self.address}#token={self.access.token}" if self.access.token else self.address

    @property
    def lines(self) -> list[str]:
        """Lines to print when the server starts."""
        found = [f"live page: {self.entry}"]
        if self.access.token and not self.options.private:
            found.append(f"to look only: {self.address}")
        if not is_loopback(self.options.host):
            found.append(
                "this page can be reached from other machines, and nothing that is sent is "
                "encrypted: use a network that you trust (docs/viewing.md#live-page)"
            )
        return found

    def full(self) -> str:
        """Make room for another viewer; return "", or the reason if there is no room."""
        self.viewers = {n: v for n, v in self.viewers.items() if not v.stream.closed()}
        if len(self.viewers) < self.options.viewers:
            return ""
        name, viewer = min(self.viewers.items(), key=lambda item: item[1].answered)
        if time.monotonic() - viewer.answered > SLOW_SECONDS:
            del self.viewers[name]
            viewer.stream.close()
            return ""
        return f"{len(self.viewers)} are looking already; try again when one has left"

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set."""
        routes = [
            (r"/", _Page), (r"/events", _Events), (r"/hello", _AccessHandler),
            (r"/seen", _SeenHandler), (rf"/({'|'.join(TABLES)})", _Table),
            (r"/do/([a-z]+)", _CommandHandler), (r".*", _NotFound),
        ]  # fmt: skip
        handlers = [(pattern, handler, {"shared": self}) for pattern, handler in routes]
        application = web.Application(handlers, log_function=_quiet)
        self.server = BoundedServer(application, max_body_size=4096, max_header_size=16384)
        following = asyncio.ensure_future(self._follow())
        most = self.options.viewers + MORE_CONNECTIONS
        accepting = asyncio.ensure_future(self.server.accept(self._socket, most))
        stopping = asyncio.ensure_future(stop.wait())
        tasks = {following, accepting, stopping}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self.board.close()
            for task in tasks:
                task.cancel()
            found = await asyncio.gather(following, accepting, return_exceptions=True)
            self._socket.close()
            await self.server.close_all_connections()
            self.pool.shutdown(wait=False, cancel_futures=True)
        for failed in found:
            if isinstance(failed, Exception):
                raise failed

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        for looks in itertools.count(1):
            began = time.monotonic()
            parts = await loop.run_in_executor(self.pool, self._updated_parts)
            if parts is not None:
                await self.board.put(parts)
            follower = self.follower
            waiting = follower.found is None and follower.problem
            if looks == PATIENCE_LOOKS and self._report and waiting:
                self._report(follower.problem)
            took = time.monotonic() - began
            # Leave the processor to the mission for as long as a slow update took.
            await asyncio.sleep(max(POLL_SECONDS, took))

    def _updated_parts(self) -> dict[str, str] | None:
        """Return the parts of the page; None = unchanged."""
        try:
            news = self.follower.advance(SLICE_SECONDS)
            return self.view.parts() if news or self.view.due else None
        except Exception:  # keep the page; the next check tries again
            logger.exception("the page of %s cannot be brought up to date", self.follower.path)
            return None


def _quiet(handler: web.RequestHandler) -> None:
    """Log no request, because the URL may contain the token."""


def _page(tiles: str) -> tuple[str, str]:
    scripts = (*SCRIPTS, "basemap.js", "live.js")
    text = build_page(
        "run.html", scripts, {"live": True, "tiles": tiles}, connect="'self'",
        images=origin_of_tiles(tiles), styles=("page.css", "live.css"),
        title="Live mission",
        heading='<span id="heading">Live mission</span>',
        description='<span id="description"></span>',
        status='<span id="status"></span>',
        notes=asset("live.html"),
        tiles="",
        stages='<details id="stages" hidden><summary>Stages</summary><div></div></details>',
        facts='<details id="mission" hidden><summary>Mission</summary><div></div></details>',
        config='<span id="config"></span>',
    )  # fmt: skip
    policy = html.unescape(text.partition('http-equiv="Content-Security-Policy" content="')[2])
    policy = policy.partition('"')[0]
    return text, f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class _Handler(web.RequestHandler):
    """Base of all request handlers, with access checks and HTTP headers."""

    entrance = False
    """True for a handler that needs no token even if the page is private."""

    def initialize(self, shared: WatchServer) -> None:
        self.shared = shared

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        for name, value in {
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        """Refuse requests for another host. On a private page refuse requests without the token."""
        if self.may_command() and (stream := self.stream) is not None:
            self.shared.server.keep(stream)
        if problem := self.shared.access.host_problem(self.request.host or ""):
            self.refuse(421, problem)
        elif self.shared.access.private and not (self.entrance or self.may_command()):
            self.refuse(403, PRIVATE)

    def refuse(self, code: int, why: str) -> None:
        """End the request with an HTTP status code and a reason."""
        self.set_status(code)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{why}\n")

    def may_command(self) -> bool:
        """Return True if the request has the token in a header, which browsers never add."""
        kind, _, bearer = self.request.headers.get("Authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.shared.access.accepts(bearer.strip())

    @property
    def stream(self) -> iostream.IOStream | None:
        """Connection of the request; None after the connection ends."""
        return getattr(self.request.connection, "stream", None)

    def hello(self) -> dict[str, Any]:
        """Return what the viewer may do, as plain data."""
        control = self.shared.command is not None
        may = control and self.may_command()
        return {"control": control, "may": may, "why": "" if may or not control else NO_TOKEN}

    def write_error(self, status_code: int, **_: Any) -> None:
        self.refuse(status_code, f"{status_code}: {self._reason}")


class _Page(_Handler):
    entrance = True

    def get(self) -> None:
        self.set_header("Content-Security-Policy", self.shared.policy)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(self.shared.page)


class _AccessHandler(_Handler):
    """Handler that returns the viewer's permissions, or refuses if there are too many viewers."""

    def get(self) -> None:
        if not self.may_command() and (full := self.shared.full()):
            self.refuse(503, full)
            return
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(as_text(self.hello()))


class _SeenHandler(_Handler):
    """Handler to which the page reports that it has received an event."""

    def post(self) -> None:
        viewer = self.shared.viewers.get(self.get_query_argument("stream", ""))
        if viewer is not None:
            viewer.answered = time.monotonic()
        self.set_status(204)
        self.finish()


class _Table(_Handler):
    """Handler of costly tables, which the page requests only while they are open."""

    async def get(self, name: str) -> None:
        shared, loop = self.shared, asyncio.get_running_loop()
        quantity = self.get_query_argument("quantity", "")
        table = await loop.run_in_executor(shared.pool, shared.view.table, name, quantity)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(table)


class _Events(_Handler):
    async def get(self) -> None:
        shared, stream, name = self.shared, self.stream, secrets.token_hex(8)
        if stream is None:
            return
        if not self.may_command():
            if full := shared.full():
                self.refuse(503, full)
                return
            shared.viewers[name] = _Viewer(stream, time.monotonic())
            shared.server.keep(stream)
        try:
            await self._tell(name)
        except (iostream.StreamClosedError, asyncio.TimeoutError):
            shared.server.release(stream)  # the viewer no longer receives messages
        finally:
            shared.viewers.pop(name, None)

    async def _tell(self, name: str) -> None:
        board = self.shared.board
        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        seen = self.request.headers.get("Last-Event-ID") or self.get_query_argument("after", "")
        version = board.version_of(seen)
        hello = as_text({**self.hello(), "stream": name})
        await self._send(f"retry: 1000\nevent: hello\ndata: {hello}\n\n")
        while not board.closed:
            if board.version > version:
                mark, now, text = board.mark(), board.version, board.since(version)
                version = now
                await self._send(f"id: {mark}\nevent: change\ndata: {text}\n\n")
            elif not await board.after(version, PING_SECONDS) and not board.closed:
                await self._send("event: ping\ndata: {}\n\n")

    async def _send(self, text: str) -> None:
        self.write(text)
        await asyncio.wait_for(asyncio.shield(self.flush()), SLOW_SECONDS)


class _CommandHandler(_Handler):
    def check_xsrf_cookie(self) -> None:
        """Do nothing; `post` checks origin and token."""

    async def post(self, name: str) -> None:
        shared = self.shared
        if shared.command is None:
            self.refuse(409, NO_CONTROL)
            return
        if not self.may_command():
            self.refuse(403, NO_TOKEN)
            return
        headers, host = self.request.headers, self.request.host or ""
        if "Origin" in headers or "Cookie" in headers:  # sent by a browser
            if problem := shared.access.origin_problem(headers.get("Origin"), host):
                self.refuse(403, problem)
                return
        if name not in COMMANDS:
            self.refuse(404, f"expected one of {', '.join(COMMANDS)}, got {name[:40]!r}")
            return
        try:
            answer = await shared.command(name)
        except ActiveSensingError as error:
            answer = CommandAnswer(False, str(error))
        logger.info("%s was requested on the page: %s", name, answer.text)
        self.set_status(200 if answer.done else 409)
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(as_text({"done": answer.done, "text": answer.text}))


class _NotFound(_Handler):
    def prepare(self) -> None:
        self.refuse(404, "there is nothing here; the page is at /")
