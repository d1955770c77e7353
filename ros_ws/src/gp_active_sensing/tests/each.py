"""Run a test for several cases as one test, which writes the case that failed to stderr.

For cases that are quick and share what they need. Fixtures are made once for all of them.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["each"]


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[..., Any]:
    """Return a decorator that calls a test once for each case, as ``pytest.mark.parametrize``.

    Args:
        names: of the test's arguments; of several as a tuple, and each case is one too.
        cases: values of them.
    """
    several = (names,) if isinstance(names, str) else tuple(names)
    every = list(cases)

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            for case in every:
                given = (case,) if isinstance(names, str) else case
                arguments = dict(zip(several, given, strict=True))
                try:
                    test(**arguments, **fixtures)
                except BaseException:
                    sys.stderr.write(f"failed for {arguments}\n")
                    raise

        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in several]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate
