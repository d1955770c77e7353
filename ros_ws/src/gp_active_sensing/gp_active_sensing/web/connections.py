"""Web server with a bounded number of connections."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

from tornado import httpserver, iostream

logger = logging.getLogger(__name__)

BACK_OFF_SECONDS = 0.1
"""Pause after a failure to accept a connection [s]."""
SPARE = 8
"""Number of file descriptors reserved for other parts of the process."""
IDLE_SECONDS = 20.0
"""Time without a request after which a connection is closed [s]."""
MOST_BYTES = 1 << 16
"""Largest size of a buffered request [bytes]."""


class BoundedServer(httpserver.HTTPServer):
    """HTTP server that closes the oldest connection when a new connection exceeds the limit.

    Idle connections therefore never block new viewers. Connections marked by `keep` stay open.
    """

    def initialize(self, *args: Any, **options: Any) -> None:
        """Prepare the server; tornado calls this in place of ``__init__``."""
        super().initialize(*args, **{"idle_connection_timeout": IDLE_SECONDS, **options})
        self._open: dict[iostream.IOStream, None] = {}
        """Open connections, oldest first."""
        self._kept: set[iostream.IOStream] = set()

    def keep(self, stream: iostream.IOStream) -> None:
        """Keep a connection open when new connections exceed the limit."""
        self._kept.add(stream)

    def release(self, stream: iostream.IOStream) -> None:
        """Close a connection, even if it is marked by `keep`."""
        self._kept.discard(stream)
        self._open.pop(stream, None)
        stream.close()

    async def accept(self, listening: socket.socket, most: int) -> None:
        """Accept up to `most` simultaneous connections on a non-blocking socket until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._make_room(most)
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:  # such as too many open files
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
        """Close old connections not marked by `keep`, until fewer than `most` are open."""
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
