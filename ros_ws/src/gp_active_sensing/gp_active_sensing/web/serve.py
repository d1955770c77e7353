"""Serve the live page until a signal arrives or a ``with`` block ends."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.util.lazy import install_command
from gp_active_sensing.web.access import Command, WatchOptions

if TYPE_CHECKING:
    from gp_active_sensing.web.server import WatchServer

MISSING = (
    f"the live page needs tornado, which is not installed: {install_command('web')} "
    "(or sudo apt install python3-tornado)"
)


def can_serve() -> bool:
    """Return whether tornado is installed."""
    return importlib.util.find_spec("tornado") is not None


def make_server(
    run_dir: Path | None,
    options: WatchOptions,
    command: Command | None = None,
    report: Callable[[str], None] | None = None,
) -> WatchServer:
    """Return a listening server of the live page; see `WatchServer` for the arguments.

    Raises:
        MissingDependencyError: tornado is not installed.
        RunError: the address or the token file cannot be used.
    """
    if not can_serve():
        raise MissingDependencyError(MISSING)
    from gp_active_sensing.web.server import WatchServer

    return WatchServer(run_dir, options, command, report)


@contextlib.contextmanager
def served(server: WatchServer) -> Iterator[None]:
    """Serve the page from a thread during a ``with`` block. Raise errors of the thread."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            loop.run_until_complete(server.run(stop))
        except BaseException as error:
            failed.append(error)
        finally:
            loop.close()

    thread = threading.Thread(target=work, name="live_page", daemon=True)
    thread.start()
    try:
        yield
    finally:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(stop.set)
        thread.join()
    if failed:
        raise failed[0]


def serve(run_dir: Path, options: WatchOptions, report: Callable[[str], None]) -> None:
    """Serve the page of a run until Ctrl-C or SIGTERM.

    The run directory may not exist yet. `report` shows a line on the console.

    Raises:
        MissingDependencyError: tornado is not installed.
        RunError: the address or the token file cannot be used.
    """
    server = make_server(run_dir, options, report=report)

    async def run() -> None:
        stop = asyncio.Event()
        with _ending(stop):
            for line in server.lines:
                report(line)
            await server.run(stop)

    asyncio.run(run())


@contextlib.contextmanager
def _ending(stop: asyncio.Event) -> Iterator[None]:
    """Set `stop` at SIGINT or SIGTERM; a second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def end() -> None:
        stop.set()
        for number in signals:
            loop.remove_signal_handler(number)
            signal.signal(number, lambda which, _: os._exit(128 + which))

    with contextlib.suppress(NotImplementedError):  # without signal handlers Ctrl-C raises
        for number in signals:
            loop.add_signal_handler(number, end)
    yield
