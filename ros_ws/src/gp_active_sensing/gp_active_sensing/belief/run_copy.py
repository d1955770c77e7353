"""Find the kernel model of a run: the configured file, or the copy in the run directory.

A run directory contains a copy of the model; the run's configuration contains its checksum. A run
can thus be continued and shown after the model file was moved or rewritten.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gp_active_sensing.belief.config import BeliefConfig
from gp_active_sensing.errors import ConfigError, ResourceError
from gp_active_sensing.util.files import read_whole, write_whole
from gp_active_sensing.util.resources import find_resource

MODEL = "model.npz"
"""Name of the model's copy in a run directory."""


def model_path(config: BeliefConfig, run_dir: Path | None = None) -> Path:
    """Return the path of a belief's model: the copy in a run directory, else the configured file.

    A copy is ignored if its checksum differs from `config.model_mark`.

    Raises:
        ConfigError: there is no copy to use, and the configured file does not exist.
    """
    copy = None if run_dir is None else run_dir / MODEL
    own = copy is not None and copy.is_file()
    if copy is not None and own and config.model_mark in (None, _mark_of(copy)):
        return copy
    named = config.model or ""
    try:
        return find_resource("maps", named)
    except ResourceError as error:
        with contextlib.suppress(ResourceError):  # a path of another machine
            return find_resource("maps", Path(named).name)
        # Leave the list of installed maps out of the message.
        searched = str(error).partition("Searched:")[2]
        msg = f"belief.model: no file {named!r}. Searched:{searched.rpartition(chr(10))[0]}"
        if own:
            msg += f"\n  {copy}, which is not the model that the run began with"
        raise ConfigError(msg) from error


def with_mark(config: BeliefConfig, run_dir: Path | None = None) -> BeliefConfig:
    """Return the configuration with the checksum of its model file, if it has a model.

    Raises:
        ConfigError: there is no model file, or its checksum differs from `config.model_mark`.
    """
    if config.model is None:
        return config
    path = model_path(config, run_dir)
    mark = _mark_of(path)
    if config.model_mark not in (None, mark):
        msg = (
            f"belief.model_mark: {path} is not the model that is meant: its mark is {mark}, "
            f"expected {config.model_mark}; give the file of then (a run keeps a copy of its own, "
            f"{MODEL}), or leave the mark out to take the one that is there"
        )
        raise ConfigError(msg)
    return dataclasses.replace(config, model_mark=mark)


def as_begun(config: BeliefConfig, stored: Mapping[str, Any], run_dir: Path) -> BeliefConfig:
    """Return the configuration for continuing a run with its original model.

    If the file was moved or rewritten, the copy of the model in `run_dir` is used. A file with
    another name and another content counts as a changed configuration. `stored` is the section
    `belief` of the run's configuration.

    Raises:
        ConfigError: neither the file nor a copy exists.
    """
    mark = stored.get("model_mark")
    if config.model is None or config.model_mark is not None or not isinstance(mark, str):
        return config
    begun = dataclasses.replace(config, model=str(stored.get("model")), model_mark=mark)
    if not (run_dir / MODEL).is_file():
        return with_mark(config)
    try:
        same = _mark_of(model_path(config)) == mark
    except ConfigError:
        same = True  # the file was moved
    return begun if same or config.model == begun.model else with_mark(config)


def keep_model(config: BeliefConfig, run_dir: Path) -> None:
    """Copy the model to a run directory; keep an existing copy of the same model.

    Raises:
        ConfigError: the configured file does not exist or cannot be read.
        RunError: the copy cannot be written.
    """
    if config.model is None:
        return
    copy = run_dir / MODEL
    if copy.is_file() and _mark_of(copy) == config.model_mark:
        return
    path = model_path(config)
    try:
        data = read_whole(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    write_whole(copy, data)


def _mark_of(path: Path) -> str:
    # Only a belief with a model needs this module.
    from gp_active_sensing.kernel_model.model_file import model_mark

    try:
        return model_mark(path)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"belief.model: {path}: cannot be read: {error.strerror or error}")
