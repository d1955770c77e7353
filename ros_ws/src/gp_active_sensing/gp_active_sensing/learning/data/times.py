"""Time origin of a model's hours, and a check of time stamps against it."""

from __future__ import annotations

from collections.abc import Mapping

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.kernel_model import KernelModel

__all__ = ["check_stamps", "origins_of"]


def origins_of(model: KernelModel | None) -> dict[str, str]:
    """Return from when a model counts its hours, by input."""
    times = {} if model is None else _times(model) or {}
    return {str(name): str(stamp) for name, stamp in times.items()}


def check_stamps(model: KernelModel, stamps: Mapping[str, str], source: str) -> tuple[str, ...]:
    """Refuse time stamps where a model was learned from numbers: nobody knows when those are 0.

    Counted from the first stamp, every row would be at another time.

    Args:
        model: whose inputs they are.
        stamps: from when hours are counted, by columns that have stamps, of any names.
        source: where they are, for the message.

    Returns:
        What is to be said where the model does not know which of its inputs are times, as one that
        was not learned from files does not.

    Raises:
        ReadingError: naming the column.
    """
    known = origins_of(model)
    strange = [name for name in stamps if name in model.input_names and name not in known]
    if strange and _times(model) is not None:
        name = strange[0]
        msg = (
            f"{source}: {name} is given by time stamps, and the model was learned from {name} as "
            "numbers, which do not say when they are 0; write numbers that are counted as those "
            "were, or learn a model from rows with stamps"
        )
        raise ReadingError("time_stamps", msg)
    return tuple(
        f"{name} is in hours since {stamps[name]}, the first stamp of {source}: the model does not "
        "say since when its own are counted"
        for name in strange
    )


def _times(model: KernelModel) -> Mapping[str, str] | None:
    found: Mapping[str, str] | None = (model.settings.get("recipe") or {}).get("times")
    return found
