"""Optimise one group of kernels here and now, on the processor or the GPU that is wanted."""

from __future__ import annotations

from collections.abc import Callable

from gp_active_sensing.learning.kernel_selection.config import Progress
from gp_active_sensing.learning.kernel_selection.group import FinishedGroup, KernelGroup

__all__ = ["train_group"]


def train_group(
    group: KernelGroup,
    progress: Callable[[Progress], None] | None = None,
    *,
    threads: int | None = None,
) -> FinishedGroup:
    """Optimise one group, here and now.

    Args:
        group: what.
        progress: told now and then.
        threads: of torch; None = as they are.
    """
    import torch

    from gp_active_sensing.learning.kernel_selection.training import Training

    if threads is not None:
        torch.set_num_threads(threads)
    wanted = group.data.config.device
    there = torch.cuda.is_available() if wanted == "auto" else wanted == "cuda"
    device = torch.device("cuda" if there else "cpu")
    return Training(group, device, progress).run()
