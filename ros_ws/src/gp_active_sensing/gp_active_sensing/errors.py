"""Errors of the framework: one root, a few children, messages that say what to do.

Every message says what was expected, what came, where, and what to do about it.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Sequence

MOST_SHOWN = 50
"""Problems that an error shows in words; the others are counted."""
_MOST_LETTERS = 2000
"""Largest number of letters of a problem in a message."""


class ActiveSensingError(Exception):
    """Root of every error this framework raises on purpose."""


class ConfigError(ActiveSensingError, ValueError):
    """One or more configuration values are wrong; ``problems`` lists all of them.

    Args:
        problems: one line each, starting with the key's path.
        source: the file or object the values came from.
    """

    def __init__(self, problems: str | Sequence[str], *, source: str = "") -> None:
        self.problems: tuple[str, ...] = (
            (problems,) if isinstance(problems, str) else tuple(problems)
        )
        self.source = source
        head = f"{source}: " if source else ""
        if len(self.problems) == 1:
            text = head + _cut(self.problems[0])
        else:
            lines = "\n".join(f"  - {_cut(problem)}" for problem in self.problems[:MOST_SHOWN])
            if (more := len(self.problems) - MOST_SHOWN) > 0:
                lines += f"\n  … and {more} more"
            text = f"{head}{len(self.problems)} problems in the configuration:\n{lines}"
        super().__init__(text)


class UnknownNameError(ConfigError):
    """A name that is in no registry, with the nearest match."""


class PluginError(ConfigError):
    """A plug-in of another distribution that cannot be used; the message names it and says why."""


class ResourceError(ActiveSensingError, FileNotFoundError):
    """A map, scenario or configuration file that cannot be found."""


class MapError(ActiveSensingError, ValueError):
    """A map that cannot be used; the message carries the file and the feature."""


class ReadingError(ActiveSensingError, ValueError):
    """A reading that cannot be used; ``reason`` is the short word it is counted under."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class BeliefError(ActiveSensingError, ArithmeticError):
    """The belief cannot be computed (a covariance that no jitter makes positive definite)."""


class PlanningError(ActiveSensingError, RuntimeError):
    """A policy was asked for something that it cannot do (never a deadline)."""


class RunError(ActiveSensingError, RuntimeError):
    """A run that cannot start or go on (output directory, resume, scenario)."""


class ReplayError(ActiveSensingError, RuntimeError):
    """A bag that cannot be read (missing, damaged, truncated, of an unknown format)."""


class MissingDependencyError(ActiveSensingError, ImportError):
    """An optional dependency is missing; the message says how to install it."""


class _Brief(reprlib.Repr):
    """Looks at the first entries of a value only, however many it has and however deep they lie."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxother = 3, 60
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 20
        self.maxstring = self.maxlong = 60


def brief_repr(value: object, most: int = 60) -> str:
    """Return the beginning of ``repr(value)``, in a time that does not depend on its size."""
    if isinstance(value, str | bytes):
        value = value[: most + 1]
    text = _Brief().repr(value) if isinstance(value, _NESTED) else repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


_NESTED = (list, tuple, dict, set, frozenset)


def _cut(problem: str) -> str:
    return problem if len(problem) <= _MOST_LETTERS else f"{problem[:_MOST_LETTERS]}…"


def suggest(name: str, known: Iterable[str], alike: float = 0.5) -> str:
    """Return ``" Did you mean 'x'?"`` for the nearest known name, "" when none is so alike."""
    matches = difflib.get_close_matches(str(name), [str(k) for k in known], n=1, cutoff=alike)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names for a message: the first ones, "none" where there are none."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "") or "none"


def one_line(text: str) -> str:
    r"""Return text with every character escaped that is no printable one, such as ``\n``.

    Line breaks (also U+0085, U+2028, U+2029), control and format characters are escaped.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable(text: str) -> str:
    """Return text that a terminal only shows: as `one_line`, but line feeds stay."""
    return "\n".join(map(one_line, text.split("\n")))
