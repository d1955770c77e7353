"""File of a belief over kernels: arrays and a JSON header in one .npz, without executable content.

Any program can read the file with ``numpy.load(path, allow_pickle=False)``. The entry ``header`` is
text in UTF-8. A reader first checks the format and the version; these two entries stay in all later
versions of the header. Then it checks the sizes before it allocates memory. Finally it checks the
digest, shapes, numbers and settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing._version import __version__
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model import (
    History,
    KernelFit,
    KernelModel,
    KernelPosterior,
    Scaling,
)
from gp_active_sensing.kernel_model.schema import (
    HEADER,
    CorruptModelError,
    HeaderReader,
    check_plain,
    pack,
    read_header,
    unpack,
)
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import MOST, parse
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.files import read_whole, write_whole

TRANSFORMS = ("identity", "log")
"""Possible transforms of the outputs in a file."""
FORMAT = "gp_active_sensing kernel model"
VERSION = 1
"""Version of the format; a reader rejects a newer version."""
_NAME = 8 * MOST
"""Longest name of a kernel [characters]: five characters, a sign and brackets per base kernel."""
_LOG, _DOUBT = 50.0, 10.0
"""Largest absolute value and largest standard deviation that an entry of θ may have."""
_FAR, _LARGE = 1e9, 1e15
"""Largest absolute values of inducing inputs and of inducing variables, in normalised units."""
_FIT = ("theta_mean", "theta_root", "inducing", "mean", "root", "trace")
_BELIEF = ("mean", "root", "probabilities", "errors", "softmax")
_HISTORY = ("rows", "bounds", "probabilities", "softmax")


def write_model(path: Path, model: KernelModel) -> Path:
    """Write a model with the most probable kernel first; replace an old file atomically.

    Raises:
        ValueError: no reader would accept the model, because numbers are not finite, shapes do not
            fit, or settings are not plain data.
        RunError: the file cannot be written.
    """
    try:
        model = model.ordered()
        arrays = _arrays(model)
        header = _header(model)
        header["digest"] = _digest(header, arrays)
        text = json.dumps(header, allow_nan=False)
        made = pack({HEADER: np.frombuffer(text.encode("utf-8"), np.uint8)} | arrays)
        model_from(made)
    except (TypeError, ValueError) as error:
        msg = f"{path}: a model that could not be read again: {error}"
        raise ValueError(msg) from error
    return write_whole(path, made)


def read_model(path: Path) -> KernelModel:
    """Return the model in a file.

    Raises:
        ConfigError: the file does not exist, is not a model, is damaged, or has a newer version.
    """
    try:
        data = read_whole(path)
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror or error}"
        raise ConfigError(msg) from error
    return model_from(data, str(path))


def model_mark(path: Path) -> str:
    """Return the checksum of a file (16 hexadecimal digits). Raises OSError if unreadable."""
    return hashlib.sha256(read_whole(path)).hexdigest()[:16]


def model_from(data: bytes, source: str = "the model") -> KernelModel:
    """Return the model in the bytes of a file; see `read_model`."""
    try:
        _check_version(read_header(data), source)
        arrays = unpack(data)
        header = _parsed(arrays.pop(HEADER, np.empty(0, np.uint8)).tobytes())
        if header.get("digest") != _digest(header, arrays):
            msg = "its digest is not that of its contents"
            raise CorruptModelError(msg)
        check_plain(header, "header")
        return _model(HeaderReader(header, "header"), arrays).ordered()
    except CorruptModelError as error:
        raise damaged(source, error) from error


def _check_version(raw: bytes, source: str) -> None:
    header = _parsed(raw) if raw else {}
    if header.get("format") != FORMAT:
        msg = (
            f"{source}: is no model file (no belief over kernels); expected one that "
            "`gp-active-sensing learn --kernels` wrote"
        )
        raise ConfigError(msg)
    version = header.get("version")
    if version is None or (isinstance(version, int | float) and version < VERSION):
        msg = f"format {version!r}, expected {VERSION}"
        raise CorruptModelError(msg)
    if version != VERSION:
        by = ascii(header.get("written_by"))[:40].strip("'")
        msg = (
            f"{source}: written by a newer gp_active_sensing ({by}, format "
            f"{ascii(version)[:40]}; this is {__version__}, format {VERSION}): update it, or learn "
            "the model again with this one"
        )
        raise ConfigError(msg)


def damaged(source: str, why: Exception) -> ConfigError:
    """Return the error for a file with wrong contents."""
    return ConfigError(
        f"{source}: is damaged or cut short ({why}); copy it again, or learn it again with "
        "`gp-active-sensing learn --kernels`"
    )


def _header(model: KernelModel) -> dict[str, Any]:
    scaling, history = model.scaling, model.history
    return {
        "format": FORMAT,
        "version": VERSION,
        "written_by": __version__,
        "kernels": [
            {
                "name": fit.name,
                "bound": float(fit.bound),
                "whitened": bool(fit.whitened),
                "noise_floor": float(fit.noise_floor),
                "iterations": int(fit.iterations),
                "outcome": fit.outcome,
            }
            for fit in model.fits
        ],
        "prior_std": float(model.belief.prior_std),
        "elbo": float(model.belief.elbo),
        "dropped": [list(pair) for pair in model.dropped],
        "output_shift": float(scaling.output_shift),
        "output_scale": float(scaling.output_scale),
        "input_names": list(model.input_names),
        "output_name": model.output_name,
        "rows": int(model.rows),
        "source": model.source,
        "history_names": list(history.names),
        "settings": model.settings,
    }


def _arrays(model: KernelModel) -> dict[str, FloatArray]:
    found = {
        "input_shift": model.scaling.input_shift,
        "input_scale": model.scaling.input_scale,
        **{f"belief.{key}": getattr(model.belief, key) for key in _BELIEF},
        **{f"history.{key}": getattr(model.history, key) for key in _HISTORY},
    }
    for k, fit in enumerate(model.fits):
        if parse(fit.name) != fit.composite.expression:
            msg = f"kernel {fit.name}: its expression is not in canonical order"
            raise ValueError(msg)
        found |= {f"fit{k}.{key}": getattr(fit, key) for key in _FIT}
    return {key: np.ascontiguousarray(value, dtype="<f8") for key, value in found.items()}


def _digest(header: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> str:
    try:
        rest = {key: value for key, value in header.items() if key != "digest"}
        found = hashlib.sha256(json.dumps(rest, sort_keys=True).encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"settings are no plain data: {error}"
        raise CorruptModelError(msg) from error
    for key in sorted(arrays):
        found.update(f"{key} {arrays[key].shape}".encode())
        found.update(arrays[key].tobytes())
    return found.hexdigest()


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError) as error:
        msg = f"header: {error}"
        raise CorruptModelError(msg) from error
    if not isinstance(header, dict):
        msg = f"header: expected an object, got {type(header).__name__}"
        raise CorruptModelError(msg)
    return header


def _model(header: HeaderReader, arrays: dict[str, FloatArray]) -> KernelModel:
    found = HeaderReader(arrays, "")
    names = tuple(header.texts("input_names", least=1))
    d = len(names)
    fits = tuple(
        _fit(HeaderReader(entry, f"kernels[{k}]"), found, k, d)
        for k, entry in enumerate(header.items("kernels", least=1))
    )
    K = len(fits)
    if len({fit.name for fit in fits}) != K:
        msg = "kernels: one comes twice"
        raise CorruptModelError(msg)
    belief = KernelPosterior(
        mean=found.array("belief.mean", (K,)),
        root=found.array("belief.root", (K, K)),
        prior_std=header.number("prior_std", above=0.0),
        probabilities=found.array("belief.probabilities", (K,), low=0.0, high=1.0),
        errors=found.array("belief.errors", (K,), low=0.0),
        softmax=found.array("belief.softmax", (K,), low=0.0, high=1.0),
        elbo=header.number("elbo"),
    )
    for key in ("probabilities", "softmax"):
        if abs(float(getattr(belief, key).sum()) - 1.0) > 1e-6:
            msg = f"belief.{key}: expected them to sum to 1"
            raise CorruptModelError(msg)
    if not (belief.root.diagonal() > 0.0).all() or np.triu(belief.root, 1).any():
        msg = "belief.root: expected a Cholesky factor"
        raise CorruptModelError(msg)
    took_part = tuple(header.texts("history_names"))
    T = found.length("history.rows")
    shape = (T, len(took_part))
    history = History(
        rows=found.array("history.rows", (T,), low=0.0),
        names=took_part,
        bounds=found.array("history.bounds", shape, missing=True),
        probabilities=found.array("history.probabilities", shape, low=0.0, high=1.0),
        softmax=found.array("history.softmax", shape, low=0.0, high=1.0),
    )
    scaling = Scaling(
        input_shift=found.array("input_shift", (d,)),
        input_scale=found.array("input_scale", (d,), above=0.0),
        output_shift=header.number("output_shift"),
        output_scale=header.number("output_scale", above=0.0),
    )
    found.all_used()
    settings = header.mapping("settings")
    settings_reader = HeaderReader(settings, "settings")
    if settings_reader.has("transform"):
        settings_reader.one_of("transform", *TRANSFORMS)
    return KernelModel(
        fits=fits,
        belief=belief,
        dropped=tuple(header.pairs("dropped")),
        scaling=scaling,
        input_names=names,
        output_name=header.text("output_name"),
        rows=header.whole("rows"),
        source=header.text("source"),
        history=history,
        settings=settings,
    )


def _fit(entry: HeaderReader, found: HeaderReader, k: int, d: int) -> KernelFit:
    try:
        composite = Composite(parse(entry.text("name", most=_NAME)), d)
    except ConfigError as error:
        raise CorruptModelError(str(error)) from error
    P, M = composite.size, found.length(f"fit{k}.mean")
    if not M:
        msg = f"fit{k}: expected at least one inducing variable"
        raise CorruptModelError(msg)
    theta_mean = found.array(f"fit{k}.theta_mean", (P,), low=-_LOG, high=_LOG)
    theta_root = found.triangle(f"fit{k}.theta_root", P, _DOUBT)
    if (theta_root**2).sum(axis=1).max() > _DOUBT**2:
        msg = f"fit{k}.theta_root: expected standard deviations of {_DOUBT:g} at most"
        raise CorruptModelError(msg)
    return KernelFit(
        composite=composite,
        bound=entry.number("bound"),
        theta_mean=theta_mean,
        theta_root=theta_root,
        inducing=found.array(f"fit{k}.inducing", (M, d), low=-_FAR, high=_FAR),
        mean=found.array(f"fit{k}.mean", (M,), low=-_LARGE, high=_LARGE),
        root=found.triangle(f"fit{k}.root", M, _LARGE),
        whitened=entry.flag("whitened"),
        noise_floor=entry.number("noise_floor", low=0.0),
        iterations=entry.whole("iterations"),
        outcome=entry.text("outcome"),
        trace=found.array(f"fit{k}.trace", (found.length(f"fit{k}.trace"), 3)),
    )
