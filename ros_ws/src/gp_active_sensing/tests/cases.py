"""Several cases in one test: a failure names its case."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any


@contextlib.contextmanager
def case(*values: object) -> Iterator[None]:
    """Name the case in the error of what fails within."""
    try:
        yield
    except Exception as error:
        msg = f"case {', '.join(map(repr, values))}: {error}"
        raise AssertionError(msg) from error


def for_each(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that runs a test once for each case, as `parametrize` does by instances.

    Every case has a folder `tmp_path` of its own, and `caplog` and `monkeypatch` start afresh.
    """
    keys = [key.strip() for key in names.split(",")] if isinstance(names, str) else list(names)
    listed = [tuple(each) if len(keys) > 1 else (each,) for each in cases]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def every(**fixtures: Any) -> None:
            for number, values in enumerate(listed):
                given = dict(fixtures)
                if "tmp_path" in given:
                    given["tmp_path"] = given["tmp_path"] / f"case{number}"
                    given["tmp_path"].mkdir()
                if "caplog" in given:
                    given["caplog"].clear()
                try:
                    test(**dict(zip(keys, values, strict=True)), **given)
                except BaseException as error:
                    if hasattr(error, "add_note"):  # from Python 3.11 on
                        error.add_note(f"in case {number}: {values!r:.300}")
                    raise
                finally:
                    if "monkeypatch" in given:
                        given["monkeypatch"].undo()

        rest = [p for name, p in signature.parameters.items() if name not in keys]
        every.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return every

    return decorate
