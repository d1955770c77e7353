"""Explicit name -> factory tables; the names are the words of YAML, launch files and the CLI."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from gp_active_sensing.errors import ActiveSensingError, UnknownNameError, suggest

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of factories by name.

    Entries are added explicitly, in one place per kind of thing, so that reading that place
    shows everything there is and a type checker sees a factory of the wrong signature.

    Args:
        kind: what is registered, in the singular ("policy"); used in messages.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._factories: dict[str, Callable[..., T]] = {}

    def add(self, name: str, factory: Callable[..., T]) -> None:
        """Register ``factory`` under ``name``.

        Raises:
            ActiveSensingError: the name is taken.
        """
        if name in self._factories:
            msg = f"{self.kind} {name!r} is already registered; choose another name"
            raise ActiveSensingError(msg)
        self._factories[name] = factory

    def factory(self, name: str) -> Callable[..., T]:
        """Return the factory registered under ``name``.

        Raises:
            UnknownNameError: no such name; the message has the nearest match and the whole list.
        """
        try:
            return self._factories[name]
        except (KeyError, TypeError):
            hint = suggest(str(name), self._factories)
            msg = f"unknown {self.kind} {name!r}.{hint} Registered: {', '.join(self.names())}"
            raise UnknownNameError(msg) from None

    def names(self) -> list[str]:
        """Return the registered names, sorted."""
        return sorted(self._factories)

    def __contains__(self, name: object) -> bool:
        return name in self._factories

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._factories)
