"""A belief over kernels, its predictor and its file; what it is learned with is in `learning`."""

from __future__ import annotations

from gp_active_sensing.selection.kernel_belief import kernel_belief
from gp_active_sensing.selection.model import (
    JITTER,
    History,
    KernelBelief,
    KernelFit,
    KernelModel,
    Scaling,
)
from gp_active_sensing.selection.model_file import model_mark, read_model, write_model

__all__ = [
    "JITTER",
    "History",
    "KernelBelief",
    "KernelFit",
    "KernelModel",
    "Scaling",
    "kernel_belief",
    "model_mark",
    "read_model",
    "write_model",
]
