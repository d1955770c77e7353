"""Read and write model files, and check the settings that were used for learning."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.kernel_model.model_file import TRANSFORMS, damaged
from gp_active_sensing.kernel_model.model_file import read_model as read_any
from gp_active_sensing.kernel_model.model_file import write_model as write_any
from gp_active_sensing.kernel_model.schema import CorruptModelError, HeaderReader


def read_model(path: Path) -> KernelModel:
    """Read a model and check its settings.

    Raises:
        ConfigError: the file is not a valid model, or the settings are invalid.
    """
    model = read_any(path)
    try:
        _check(HeaderReader(model.settings, "settings"))
    except CorruptModelError as error:
        raise damaged(str(path), error) from error
    return model


def write_model(path: Path, model: KernelModel) -> Path:
    """Write a model that `read_model` can read again.

    Raises:
        ValueError: `read_model` would reject the model.
        RunError: the file cannot be written.
    """
    _check(HeaderReader(model.settings, "settings"))
    return write_any(path, model)


def _check(settings: HeaderReader) -> None:
    if settings.has("recipe"):
        recipe = settings.inside("recipe")
        _check_recipe(recipe)
        transforms = {s.text("transform") for s in (settings, recipe) if s.has("transform")}
        if len(transforms) > 1:
            msg = f"settings: expected one transform, got {' and '.join(sorted(transforms))}"
            raise CorruptModelError(msg)
    if settings.has("vbks"):
        _check_vbks(settings.inside("vbks"))
    if settings.has("screening"):
        _check_screening(settings.inside("screening"))
    for key in ("notes", "expressions"):
        if settings.has(key):
            settings.words(key)
    if settings.has("rows_digest"):
        settings.text("rows_digest", 64)
    if settings.has("seconds"):
        settings.number("seconds", low=0.0)
    if settings.has("versions"):
        versions = settings.inside("versions")
        for key in settings.mapping("versions"):
            versions.text(key)


def _check_recipe(recipe: HeaderReader) -> None:
    for key in ("kind", "map", "scenario"):
        if recipe.has(key):
            recipe.text(key)
    if recipe.has("transform"):
        recipe.one_of("transform", *TRANSFORMS)
    if recipe.has("scale") and recipe.number("scale") == 0.0:
        msg = "settings.recipe.scale: expected a number other than 0"
        raise CorruptModelError(msg)
    if not recipe.has("times"):
        return
    times = recipe.inside("times")
    for name in recipe.mapping("times"):
        stamp = times.text(name)
        try:
            datetime.fromisoformat(stamp[:-1] + "+00:00" if stamp[-1:] in "zZ" else stamp)
        except ValueError as error:
            msg = (
                f"settings.recipe.times.{name}: expected a time such as 2024-03-01T06:30:00+00:00, "
                f"got {stamp[:40]!r}"
            )
            raise CorruptModelError(msg) from error


def _check_vbks(vbks: HeaderReader) -> None:
    for key, low in (("inducing", 1), ("batch", 1), ("iterations", 1), ("samples", 2), ("seed", 0)):
        if vbks.has(key):
            vbks.whole(key, low)
    for key in ("noise_floor", "prior_std"):
        if vbks.has(key):
            vbks.number(key, above=0.0)
    for key in ("whitened", "centre"):
        if vbks.has(key):
            vbks.flag(key)
    if vbks.has("hyperparameters"):
        vbks.one_of("hyperparameters", "full", "point")


def _check_screening(screening: HeaderReader) -> None:
    screening.whole("inducing", 1)
    count = len(screening.texts("kernels", least=1))
    for key in ("bounds", "probabilities", "softmax"):
        if not screening.has(key):
            continue
        if len(screening.numbers(key)) != count:
            msg = f"settings.screening.{key}: expected {count} numbers, one a kernel"
            raise CorruptModelError(msg)
