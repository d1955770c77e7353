"""A belief over kernels and its file; what it is learned with is in `learning`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.kernel_model.model import (
        JITTER,
        History,
        KernelFit,
        KernelModel,
        KernelPosterior,
        Scaling,
    )
    from gp_active_sensing.kernel_model.model_file import model_mark, read_model, write_model

__all__ = [
    "JITTER",
    "History",
    "KernelFit",
    "KernelModel",
    "KernelPosterior",
    "Scaling",
    "model_mark",
    "read_model",
    "write_model",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "model": ("JITTER", "History", "KernelFit", "KernelModel", "KernelPosterior", "Scaling"),
        "model_file": ("model_mark", "read_model", "write_model"),
    },
)
