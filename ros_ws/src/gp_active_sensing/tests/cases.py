"""Several cases in one test: say which one failed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["case"]


@contextlib.contextmanager
def case(*values: object) -> Iterator[None]:
    """Name the case in the error of what fails within."""
    try:
        yield
    except Exception as error:
        msg = f"case {', '.join(map(repr, values))}: {error}"
        raise AssertionError(msg) from error
