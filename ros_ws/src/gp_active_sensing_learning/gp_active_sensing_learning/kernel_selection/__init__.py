"""Variational Bayesian kernel selection (VBKS) for large data sets. [Teng2020]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing_learning.kernel_selection.config import TrainingProgress, VbksConfig
    from gp_active_sensing_learning.kernel_selection.select import select_kernels

__all__ = ["TrainingProgress", "VbksConfig", "select_kernels"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {"config": ("TrainingProgress", "VbksConfig"), "select": ("select_kernels",)},
)
