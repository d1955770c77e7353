"""Access to the live page: its token, and checks of requests.

A foreign web page can make a browser send requests to this server. Therefore a request must name
this server as its host. A command must come from the server's page or contain the token.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import secrets
import socket
import stat
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gp_active_sensing.errors import RunError
from gp_active_sensing.util.files import cannot

_SHORTEST = 20
"""Smallest length of a token [characters]."""
COMMANDS = ("pause", "resume", "finish")
"""Commands that a mission accepts."""


@dataclass(frozen=True)
class WatchOptions:
    """Options of the live page.

    Args:
        host: address to listen on.
        port: TCP port; 0 = any free port.
        private: True = show nothing without the token.
        viewers: largest number of simultaneous viewers.
        names: further host names of this server.
        tiles: URL of map tiles with {z}, {x} and {y}; "" = no base map.
        token_file: file of the token; None = in the user's state folder.
    """

    host: str = "127.0.0.1"
    port: int = 0
    private: bool = False
    viewers: int = 50
    names: tuple[str, ...] = ()
    tiles: str = ""
    token_file: Path | None = None


@dataclass(frozen=True)
class CommandAnswer:
    """Answer to a command: whether the command was executed, and a message."""

    done: bool
    text: str


Command = Callable[[str], Awaitable[CommandAnswer]]
"""Function that executes one of `COMMANDS`."""


def origin_of_tiles(template: str) -> str:
    """Return the origin of a URL of map tiles; "" for "". Raises RunError for any other text."""
    if not template:
        return ""
    host = re.match(r"(https?://[A-Za-z0-9.-]+(?::[0-9]+)?)/[!#$%&()*+,./:;=?@_~{}\w-]+$", template)
    if host is None or any(template.count(part) != 1 for part in ("{z}", "{x}", "{y}")):
        msg = (
            "tiles: expected an address such as https://tile.example.org/{z}/{x}/{y}.png, "
            f"got {template[:100]!r}"
        )
        raise RunError(msg)
    return host[1]


def state_folder() -> Path:
    """Return the user's folder for data that are kept between program runs."""
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "gp_active_sensing"


def token_in(path: Path) -> str:
    """Return the token in a file; create the file if it is missing.

    Raises:
        RunError: the file cannot be read or written, has no token, or other users can read it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(number, "w", encoding="ascii") as stream:
                stream.write(secrets.token_urlsafe(24) + "\n")
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(number, encoding="ascii", errors="replace") as stream:
            about = os.fstat(stream.fileno())
            token = stream.read(200).strip()
    except OSError as error:
        raise cannot(path, "read or write the token", error) from error
    mode = stat.S_IMODE(about.st_mode)
    if os.name == "posix" and (mode & 0o077 or about.st_uid != os.getuid()):
        msg = (
            f"{path}: expected a file that only you can read (mode 600), got mode {mode:o} of user "
            f"{about.st_uid}: others may know the token in it. Remove the file; another is made"
        )
        raise RunError(msg)
    if len(token) < _SHORTEST or not all(c.isascii() and (c.isalnum() or c in "-_") for c in token):
        msg = f"{path}: expected a token of {_SHORTEST} letters or more; remove the file"
        raise RunError(msg)
    return token


def is_loopback(host: str) -> bool:
    """Return True if a host name or address is reachable only from this computer."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Access:
    """Checks of requests to the server of the live page.

    Args:
        token: token for commands; "" = no commands.
        names: allowed host names of this server; addresses are always allowed.
        private: True = show nothing without the token.
    """

    token: str = ""
    names: frozenset[str] = frozenset({"localhost"})
    private: bool = False

    @classmethod
    def of_host(
        cls, host: str, token: str, names: Iterable[str] = (), *, private: bool = False
    ) -> Access:
        """Return the checks for a server on `host`, whose own names are also allowed."""
        mine = set() if is_loopback(host) else {socket.gethostname(), host}
        mine |= {f"{name}.local" for name in mine if "." not in name and ":" not in name}
        known = {"localhost", *mine, *names}
        return cls(token, frozenset(name.lower() for name in known), private)

    def host_problem(self, host: str) -> str:
        """Return the reason to refuse a request with this ``Host`` header; "" = allowed."""
        name = _name_of(host)
        try:
            ipaddress.ip_address(name)
        except ValueError:
            if name.lower() not in self.names:
                known = ", ".join(sorted(self.names))
                return (
                    f"this server is not called {name[:80]!r}, but {known} or by an address; "
                    "add a name with --allow-host"
                )
        return ""

    @staticmethod
    def origin_problem(origin: str | None, host: str) -> str:
        """Return the reason to refuse a command with this ``Origin`` header; "" = allowed."""
        if origin is None:
            return "a command has to come from this server's own page: no Origin was sent"
        if origin not in (f"http://{host}", f"https://{host}"):
            return f"a command has to come from this server's own page, and came from {origin[:80]}"
        return ""

    def accepts(self, given: str | None) -> bool:
        """Return True if `given` is the token; the comparison takes the same time for all texts."""
        if not self.token or given is None:
            return False
        return hmac.compare_digest(self.token.encode(), given.encode("utf-8", "replace"))


def _name_of(host: str) -> str:
    """Return the host of a ``Host`` header, without its port."""
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        return name if not port or (port[0] == ":" and port[1:].isdecimal()) else host
    return host.rpartition(":")[0] if host.count(":") == 1 else host
