"""How the live page is served, and what may be asked on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["COMMANDS", "Command", "CommandAnswer", "WatchOptions"]

COMMANDS = ("pause", "resume", "finish")
"""What may be asked of a mission."""


@dataclass(frozen=True)
class WatchOptions:
    """How the page is served.

    Args:
        host: address to listen on.
        port: 0 = any that is free.
        private: who has not the token may not look either.
        viewers: at the same time, at most.
        names: more host names by which this server may be called.
        token_file: where the token is kept; None = in the user's own folder.
    """

    host: str = "127.0.0.1"
    port: int = 0
    private: bool = False
    viewers: int = 50
    names: tuple[str, ...] = ()
    token_file: Path | None = None


@dataclass(frozen=True)
class CommandAnswer:
    """What became of a command: whether it was done, and what is said of it."""

    done: bool
    text: str


Command = Callable[[str], Awaitable[CommandAnswer]]
"""Carries out one of `COMMANDS`."""
