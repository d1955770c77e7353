"""Kernels that are optimised together, their results, and their checkpoint file."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model import KernelFit
from gp_active_sensing.kernels.base import BaseKernel, Expression, Sum
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.files import write_whole
from gp_active_sensing_learning.kernel_selection.data import Data


@dataclass(frozen=True, eq=False)
class KernelGroup:
    """Kernels that are optimised together.

    Args:
        checkpoint: file of the checkpoint; None = no checkpoint.
        resume: True to continue from the checkpoint, if it exists.
    """

    names: tuple[str, ...]
    data: Data
    checkpoint: Path | None = None
    resume: bool = False


@dataclass
class FinishedGroup:
    """Result of optimising a group of kernels.

    Args:
        fits: fit of each kernel, by name.
        dropped: reason for dropping a kernel, by name.
        bounds: (stages,) local ELBOs of each kernel, by name; NaN for a dropped kernel.
    """

    fits: dict[str, KernelFit] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    bounds: dict[str, list[float]] = field(default_factory=dict)


def memory_of(composites: Sequence[Composite], inducing: int, batch: int) -> float:
    """Return the approximate memory for optimising kernels together [bytes]."""
    leaves = sum(len(c.leaves) for c in composites)
    blocks = inducing**2 + inducing * min(batch, 100_000)
    return 8.0 * (8.0 * leaves + 14.0 * len(composites)) * blocks


def shape_of(expression: Expression) -> str:
    """Return the sums and products of an expression, without the names of base kernels."""
    if isinstance(expression, BaseKernel):
        return "k"
    inside = [shape_of(part) for part in expression.parts]
    if isinstance(expression, Sum):
        return "+".join(inside)
    return "".join(f"({s})" if "+" in s else s for s in inside)


def order_by_shape(composites: Sequence[Composite]) -> list[int]:
    """Return indices of the kernels, with kernels of equal `shape_of` next to each other."""
    return sorted(range(len(composites)), key=lambda k: shape_of(composites[k].expression))


_VERSION = 1
_ARRAYS = ("theta_mean", "theta_root", "inducing", "mean", "root", "trace")


def write_checkpoint(
    path: Path, facts: Mapping[str, Any], arrays: Mapping[str, FloatArray], finished: FinishedGroup
) -> None:
    """Write a checkpoint file. If this fails, an existing file stays unchanged.

    Raises:
        RunError: the file cannot be written.
    """
    head = {
        "version": _VERSION,
        "facts": dict(facts),
        "dropped": finished.dropped,
        "bounds": finished.bounds,
        "fits": {
            name: {
                "dimensions": fit.composite.dimensions,
                "bound": fit.bound,
                "whitened": fit.whitened,
                "noise_floor": fit.noise_floor,
                "iterations": fit.iterations,
                "outcome": fit.outcome,
            }
            for name, fit in finished.fits.items()
        },
    }
    kept = dict(arrays)
    for name, fit in finished.fits.items():
        kept |= {f"fit.{name}.{part}": getattr(fit, part) for part in _ARRAYS}
    # Missing bounds are NaN or infinite, which Python's JSON reader accepts.
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    whole = io.BytesIO()
    np.savez(whole, head=text, **kept)  # type: ignore[arg-type]
    write_whole(path, whole.getvalue())


def read_checkpoint(
    path: Path, names: Sequence[str]
) -> tuple[dict[str, Any], dict[str, FloatArray], FinishedGroup]:
    """Return the facts, arrays and result that `write_checkpoint` stored.

    Raises:
        ConfigError: the file is not a checkpoint, or its kernels are not `names`.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        head = json.loads(arrays.pop("head").tobytes().decode())
        facts = dict(head["facts"])
        if head["version"] != _VERSION or facts["names"] != list(names):
            msg = "it is of other kernels or another version"
            raise ValueError(msg)
        fits = {}
        for name, head_of_fit in head["fits"].items():
            parts = {part: arrays.pop(f"fit.{name}.{part}") for part in _ARRAYS}
            composite = Composite(parse(name), head_of_fit.pop("dimensions"))
            fits[name] = KernelFit(composite=composite, **head_of_fit, **parts)
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise no_checkpoint(path, error) from error
    return facts, arrays, FinishedGroup(fits, dict(head["dropped"]), dict(head["bounds"]))


def no_checkpoint(path: Path, error: Exception) -> ConfigError:
    """Return the error for an invalid checkpoint file."""
    return ConfigError(
        f"{path}: is no checkpoint that can be resumed ({error}); remove it to begin again"
    )
