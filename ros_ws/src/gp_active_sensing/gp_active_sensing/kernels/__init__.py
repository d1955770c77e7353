"""Covariance functions, one family a file; the table below is all that is built in."""

from __future__ import annotations

from typing import Any

from gp_active_sensing.kernels.base import Kernel, Stationary
from gp_active_sensing.kernels.matern import Matern12, Matern32, Matern52
from gp_active_sensing.kernels.squared_exponential import SquaredExponential
from gp_active_sensing.registry import Registry

__all__ = [
    "Kernel",
    "Matern12",
    "Matern32",
    "Matern52",
    "SquaredExponential",
    "Stationary",
    "build_kernel",
    "kernels",
]


def _kernel_problem(plugin: Any) -> str:
    """Return what is wrong with a plug-in's object, "" when it makes kernels."""
    return "" if isinstance(plugin(), Kernel) else "expected a class with the methods of a Kernel"


kernels: Registry[Kernel] = Registry(
    "kernel", group="gp_active_sensing.kernels", check=_kernel_problem
)
kernels.add("se", SquaredExponential)
kernels.add("matern12", Matern12)
kernels.add("matern32", Matern32)
kernels.add("matern52", Matern52)


def build_kernel(name: str) -> Kernel:
    """Return the kernel registered under `name`.

    Raises:
        UnknownNameError: no such kernel; the message has the nearest match.
    """
    return kernels.factory(name)()
