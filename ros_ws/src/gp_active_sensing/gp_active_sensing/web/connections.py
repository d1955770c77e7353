"""Bounded connections of a web server: an idle one gives way to a new one."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

from tornado import httpserver, iostream

logger = logging.getLogger(__name__)

BACK_OFF_SECONDS = 0.1
"""Pause after a connection that could not be accepted [s]."""
SPARE = 8
"""File descriptors that are left to the rest of the process where they run out."""
IDLE_SECONDS = 20.0
"""Longest time without a request before a connection is closed [s]."""
MOST_BYTES = 1 << 16
"""Largest request in memory."""


class BoundedServer(httpserver.HTTPServer):
    """HTTP server with a bounded number of connections.

    Where none is left, the oldest connection that is not `keep` is closed before the next one is
    accepted. So connections without a request never keep others out.
    """

    def initialize(self, *args: Any, **options: Any) -> None:
        """Prepare the server; tornado calls this in place of ``__init__``."""
        super().initialize(*args, **{"idle_connection_timeout": IDLE_SECONDS, **options})
        self._open: dict[iostream.IOStream, None] = {}
        """Connections, the oldest first."""
        self._kept: set[iostream.IOStream] = set()

    def keep(self, stream: iostream.IOStream) -> None:
        """Do not close a connection for another one."""
        self._kept.add(stream)

    def release(self, stream: iostream.IOStream) -> None:
        """Close a connection, whether it is kept or not."""
        self._kept.discard(stream)
        self._open.pop(stream, None)
        stream.close()

    async def accept(self, listening: socket.socket, most: int) -> None:
        """Accept connections on a socket that does not block, `most` at once, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._make_room(most)
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:  # such as no file descriptor left
                fewer = max(1, min(most, len(self._open)) - SPARE)
                if fewer < most:
                    most = fewer
                    logger.warning("%s: from now on at most %d connections", error, fewer)
                await asyncio.sleep(BACK_OFF_SECONDS)
                continue
            stream = iostream.IOStream(connection, max_buffer_size=MOST_BYTES)
            self._open[stream] = None
            self.handle_stream(stream, address)

    async def _make_room(self, most: int) -> None:
        """Wait until fewer connections than `most` are open; close what is not kept."""
        while True:
            self._open = {stream: None for stream in self._open if not stream.closed()}
            self._kept &= self._open.keys()
            if len(self._open) < most:
                return
            oldest = next((stream for stream in self._open if stream not in self._kept), None)
            if oldest is None:
                await asyncio.sleep(BACK_OFF_SECONDS)
            else:
                self.release(oldest)
