"""Exceptions of the framework, and helpers for error messages.

A message states the expected value, the actual value, the location, and a remedy.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Sequence

MOST_SHOWN = 50
"""Largest number of problems listed in a message; further problems are only counted."""
_MOST_LETTERS = 2000
"""Largest length of a problem in a message [characters]."""


class ActiveSensingError(Exception):
    """Base class of all errors that the framework raises on purpose."""


class ConfigError(ActiveSensingError, ValueError):
    """Error for one or more invalid configuration values.

    Args:
        problems: one line for each problem, beginning with the key's path.
        source: file or object with the values.
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
    """Error for a name that is in no registry."""


class PluginError(ConfigError):
    """Error for an unusable plug-in of another distribution."""


class ResourceError(ActiveSensingError, FileNotFoundError):
    """Error for a missing map, scenario or configuration file."""


class MapError(ActiveSensingError, ValueError):
    """Error for an unusable map; the message names the file and the faulty part."""


class ReadingError(ActiveSensingError, ValueError):
    """Error for an unusable reading; rejected readings are counted by ``reason``."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class BeliefError(ActiveSensingError, ArithmeticError):
    """Error for a covariance that is not positive definite even with the largest jitter."""


class PlanningError(ActiveSensingError, RuntimeError):
    """Error for a request that a policy cannot fulfil; reaching a time limit is no error."""


class RunError(ActiveSensingError, RuntimeError):
    """Error for a run that cannot start or continue."""


class ReplayError(ActiveSensingError, RuntimeError):
    """Error for a bag that is missing, damaged, truncated or of an unknown format."""


class MissingDependencyError(ActiveSensingError, ImportError):
    """Error for a missing optional dependency; the message has the command to install it."""


class _Brief(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxother = 3, 60
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 20
        self.maxstring = self.maxlong = 60


def brief_repr(value: object) -> str:
    """Return up to 60 characters of ``repr(value)``; the cost does not depend on the size."""
    if isinstance(value, str | bytes):
        value = value[:61]
    text = _Brief().repr(value) if isinstance(value, _NESTED) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_NESTED = (list, tuple, dict, set, frozenset)


def _cut(problem: str) -> str:
    return problem if len(problem) <= _MOST_LETTERS else f"{problem[:_MOST_LETTERS]}…"


def suggest(name: str, known: Iterable[str], alike: float = 0.5) -> str:
    """Return ``" Did you mean 'x'?"`` for the most similar known name; "" = no similar name.

    `alike` is the smallest accepted similarity (0 … 1).
    """
    matches = difflib.get_close_matches(str(name), [str(k) for k in known], n=1, cutoff=alike)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def listed(names: Sequence[str], most: int = 12) -> str:
    """Join the first `most` names for a message; "none" if there are no names."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "") or "none"


def one_line(text: str) -> str:
    r"""Return text with all unprintable characters escaped, such as ``\n`` and U+2028."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable(text: str) -> str:
    """Return text for a terminal: escape unprintable characters except line feeds."""
    return "\n".join(map(one_line, text.split("\n")))
