"""Registries that map names to factories. Other distributions add entries as entry points."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from typing import Any, Generic, TypeVar, cast

from gp_active_sensing.errors import ActiveSensingError, PluginError, UnknownNameError, suggest

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Registry(Generic[T]):
    """Registry of factories by name.

    Built-in entries are added explicitly. Plug-ins are entry points of installed distributions, and
    never replace a built-in entry. Every entry is imported at its first use.

    Args:
        kind: noun for an entry in messages, such as "policy".
        group: entry-point group of the plug-ins; "" = no plug-ins.
        check: function that returns what is wrong with a plug-in's object; "" = nothing.
    """

    def __init__(
        self, kind: str, *, group: str = "", check: Callable[[Any], str] | None = None
    ) -> None:
        self.kind = kind
        self.group = group
        self._check = check
        self._factories: dict[str, Callable[..., T] | str] = {}
        self._offers: dict[str, list[metadata.EntryPoint]] | None = None
        self._loaded: dict[str, Callable[..., T]] = {}

    def add(self, name: str, factory: Callable[..., T] | str) -> None:
        """Register a factory, or its location ``"package.module:name"``, under a name.

        Raises:
            ActiveSensingError: the name is already registered.
        """
        if name in self._factories:
            msg = f"{self.kind} {name!r} is already registered; choose another name"
            raise ActiveSensingError(msg)
        self._factories[name] = factory

    def factory(self, name: str) -> Callable[..., T]:
        """Return the factory of a name.

        Raises:
            UnknownNameError: the name is unknown; the message has the nearest match and all names.
            PluginError: the plug-in cannot be used; the message names its distribution.
        """
        if isinstance(name, str) and name in self._factories:
            return self._built_in(name)
        if name in self:
            return self._plugin(name)
        hint = suggest(str(name), self.names())
        msg = f"unknown {self.kind} {name!r}.{hint} Registered: {', '.join(self.names())}"
        raise UnknownNameError(msg)

    def names(self) -> list[str]:
        """Return the registered names, sorted, without importing plug-ins."""
        return sorted({*self._factories, *self._plugins()})

    def plugins(self) -> dict[str, str]:
        """Return the name of the distribution of each plug-in; the key is the plug-in's name."""
        return {name: _origin(offers) for name, offers in sorted(self._plugins().items())}

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._factories or name in self._plugins())

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _built_in(self, name: str) -> Callable[..., T]:
        factory = self._factories[name]
        if isinstance(factory, str):
            module, _, attribute = factory.partition(":")
            factory = self._factories[name] = getattr(import_module(module), attribute)
        return cast("Callable[..., T]", factory)

    def _plugins(self) -> dict[str, list[metadata.EntryPoint]]:
        """Return the entry points of plug-ins by name, except those named like a built-in entry."""
        if self._offers is None:
            self._offers = {}
            for entry in _entry_points(self.group) if self.group else ():
                if entry.name in self._factories:
                    logger.warning(
                        "%s %r of %s is not used: the name is built in",
                        self.kind,
                        entry.name,
                        _origin([entry]),
                    )
                else:
                    self._offers.setdefault(entry.name, []).append(entry)
        return self._offers

    def _plugin(self, name: str) -> Callable[..., T]:
        if name in self._loaded:
            return self._loaded[name]
        offers = self._plugins()[name]
        head = f"{self.kind} {name!r} of {_origin(offers)}"
        if len(offers) > 1:
            msg = f"{head}: more than one distribution offers this name; uninstall all but one"
            raise PluginError(msg)
        (entry,) = offers
        head = f"{head} ({entry.value}) cannot be used"
        try:
            loaded: Any = entry.load()
            problem = "expected something to call" if not callable(loaded) else ""
            if not problem and self._check is not None:
                problem = self._check(loaded)
        except Exception as error:  # any error while another package is imported
            msg = f"{head}: {type(error).__name__}: {error}; fix it or uninstall it"
            raise PluginError(msg) from error
        if problem:
            msg = f"{head}: {problem}, got {loaded!r}"
            raise PluginError(msg)
        self._loaded[name] = loaded
        return self._loaded[name]


def _entry_points(group: str) -> list[metadata.EntryPoint]:
    try:
        return list(metadata.entry_points(group=group))
    except Exception as error:
        logger.debug("entry points cannot be read at once: %r", error)
    found: dict[str, list[metadata.EntryPoint]] = {}
    for distribution in metadata.distributions():
        try:
            name = distribution.metadata["Name"] or "?"
            if name not in found:  # Python imports the first distribution on the path
                found[name] = list(distribution.entry_points.select(group=group))
        except Exception as error:
            where = getattr(distribution, "_path", distribution)
            logger.warning("the entry points of %s cannot be read: %r", where, error)
    return [entry for entries in found.values() for entry in entries]


def _origin(offers: list[metadata.EntryPoint]) -> str:
    names = []
    for entry in offers:
        # Metadata may be missing or damaged.
        known: Any = {} if entry.dist is None else entry.dist.metadata
        words = [str(known[key]) for key in ("Name", "Version") if key in known]
        names.append(" ".join(["distribution", *(words or ["without a name"])]))
    return " and ".join(names)
