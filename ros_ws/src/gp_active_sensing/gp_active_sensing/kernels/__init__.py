"""Covariance functions and their registries."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from gp_active_sensing.errors import suggest
from gp_active_sensing.kernels.base import (
    GraphKernel,
    GraphMatern,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    SquaredExponential,
)
from gp_active_sensing.registry import Registry

NONE = "none"
"""Name of the kernel without spatial correlation."""


def _problem(plugin: Any, kind: type, what: str) -> str:
    return "" if isinstance(plugin(), kind) else f"expected a class with {what}"


kernels: Registry[Kernel] = Registry(
    "kernel",
    group="gp_active_sensing.kernels",
    check=lambda plugin: _problem(plugin, Kernel, "the methods of a Kernel"),
)
for _kernel in (SquaredExponential, Matern12, Matern32, Matern52):
    kernels.add(_kernel.name, _kernel)


graph_kernels: Registry[GraphKernel] = Registry(
    "graph kernel",
    group="gp_active_sensing.graph_kernels",
    check=lambda plugin: _problem(plugin, GraphKernel, "the method density"),
)
"""Registry of kernels on the graph of places and links."""
graph_kernels.add("graph_matern12", partial(GraphMatern, 0.5))
graph_kernels.add("graph_matern32", partial(GraphMatern, 1.5))
graph_kernels.add("graph_matern52", partial(GraphMatern, 2.5))


def kernel_problems(name: str) -> list[str]:
    """Return why `name` is no valid kernel of a configuration; [] = it is valid."""
    if name in kernels or name in graph_kernels:
        return []
    known = [*kernels.names(), *graph_kernels.names()]
    hint = suggest("graph_matern32" if name == "graph_matern" else name, known)
    return [f"kernel: unknown kernel {name!r}.{hint} Registered: {', '.join(sorted(known))}"]


def build_graph_kernel(name: str) -> GraphKernel:
    """Return the graph kernel registered under `name`.

    Raises:
        UnknownNameError: no kernel has this name; the message names the nearest match.
    """
    return graph_kernels.factory(name)()


def build_kernel(name: str) -> Kernel:
    """Return the kernel registered under `name`.

    Raises:
        UnknownNameError: no kernel has this name; the message names the nearest match.
    """
    return kernels.factory(name)()


def scale_unit(features: Iterable[str], names: Iterable[str]) -> str:
    """Return the unit of length-scales: "m" for coordinates and along roads, otherwise ""."""
    met = [name for name in names if name and name != NONE]
    along = bool(met) and all(name in graph_kernels for name in met)
    return "m" if along or set(features) <= {"x", "y", "z"} else ""
