"""VBKS: a belief over kernels from big logs; needs the extra ``learn``. [Teng2020]."""

from __future__ import annotations

from gp_active_sensing.learning.vbks.config import Progress, VbksConfig
from gp_active_sensing.learning.vbks.select import select_kernels

__all__ = ["Progress", "VbksConfig", "select_kernels"]
