"""SUMO simulation inside this process, with libsumo.

libsumo allows one simulation per process. Starting a second simulation ends the first one.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from gp_active_sensing.errors import MissingDependencyError, RunError
from gp_active_sensing.util.lazy import install_command

logger = logging.getLogger(__name__)

_HOW = f"{install_command('sumo')}  (in a checkout: make heavy)"
_PROJ = ("PROJ_LIB", "PROJ_DATA")
_running: Session | None = None


def has_sumo() -> bool:
    """Return whether libsumo can be imported."""
    try:
        return importlib.util.find_spec("libsumo") is not None
    except (ImportError, ValueError):
        return False


def require_sumo() -> None:
    """Raise MissingDependencyError if libsumo is not installed."""
    if not has_sumo():
        msg = f"a field of kind sumo needs SUMO, which is not installed: {_HOW}"
        raise MissingDependencyError(msg)


class Session:
    """Running SUMO simulation. The attribute `api` is the module libsumo.

    Args:
        arguments: arguments of the command ``sumo``.

    Raises:
        MissingDependencyError: libsumo is missing or cannot be loaded.
        RunError: SUMO rejects its files or options.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        global _running  # noqa: PLW0603  libsumo is a global itself
        require_sumo()
        libsumo = _load()
        if _running is not None:
            _running.close()
        self.api = libsumo
        self._open = True
        with _captured_stderr() as messages:
            try:
                libsumo.start(["sumo", *arguments])
            except libsumo.TraCIException as error:
                failure: Exception | None = error
            else:
                failure = None
        if failure is not None:
            with contextlib.suppress(libsumo.TraCIException, libsumo.FatalTraCIError):
                libsumo.close()
            self._open = False
            msg = f"SUMO does not start: {_sentence(messages, failure)}"
            raise RunError(msg)
        _running = self
        self.dt = float(libsumo.simulation.getDeltaT())
        """Length of a step [s]."""

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        self._check()
        return float(self.api.simulation.getTime())

    def step(self) -> None:
        """Simulate one step.

        Raises:
            RunError: SUMO stops with an error, or another simulation was started.
        """
        self._check()
        try:
            self.api.simulationStep()
        except (self.api.TraCIException, self.api.FatalTraCIError) as error:
            msg = f"SUMO stopped at {self.time:g} s: {error}"
            raise RunError(msg) from error

    def close(self) -> None:
        """End the simulation, if it is running."""
        global _running  # noqa: PLW0603  see above
        if not self._open:
            return
        self._open = False
        _running = None
        with contextlib.suppress(self.api.TraCIException, self.api.FatalTraCIError):
            self.api.close()

    def _check(self) -> None:
        if not self._open:
            msg = (
                "this SUMO simulation was ended by another one: there is one in a process at a "
                "time; run the missions one after the other, or in processes of their own"
            )
            raise RunError(msg)


def _load() -> Any:
    """Import libsumo. Undo the changes that the import makes to PROJ's environment variables."""
    before = {name: os.environ.get(name) for name in _PROJ}
    try:
        return importlib.import_module("libsumo")
    except (ImportError, OSError) as error:
        msg = f"libsumo is installed but cannot be loaded ({error}): {_HOW}"
        raise MissingDependencyError(msg) from error
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)


@contextlib.contextmanager
def _captured_stderr() -> Iterator[list[str]]:
    """Capture what C++ code writes to stderr within the context, as lines."""
    messages: list[str] = []
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # the process has no stderr
        yield messages
        return
    try:
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 2)
            try:
                yield messages
            finally:
                sys.stderr.flush()
                os.dup2(kept, 2)
                file.seek(0)
                messages += file.read().decode("utf-8", "replace").splitlines()
    finally:
        os.close(kept)


def _sentence(messages: Sequence[str], error: Exception) -> str:
    """Return SUMO's messages on one line, or the message of `error` if there are none."""
    words = " ".join(" ".join(line.split()) for line in messages if line.strip())
    return words.removeprefix("Error: ") or " ".join(str(error).split())
