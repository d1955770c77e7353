"""Self-contained pages about a run and a belief over kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.report.kernel_page import write_kernel_page
    from gp_active_sensing.report.page import write_report

__all__ = ["write_kernel_page", "write_report"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kernel_page": ("write_kernel_page",),
        "page": ("write_report",),
    },
)
