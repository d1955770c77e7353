"""Many kernels with few inducing points, then the best of them with more."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model import KernelModel
from gp_active_sensing.kernels.grammar import Expression
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.learning.kernel_selection.config import TrainingProgress, VbksConfig

__all__ = ["REFITTED", "TwoStageSettings", "learn_model"]

REFITTED = 10
"""Kernels that are fitted again, unless told otherwise."""


@dataclass(frozen=True)
class TwoStageSettings:
    """How kernels are learned, besides `VbksConfig`.

    Args:
        top: kernels that the model keeps; None = all, or `REFITTED` where they are fitted again.
        refit: inducing points with which those are fitted again; None = they are not.
        jobs: processes.
        cluster: address of a dask scheduler.
        checkpoint: folder.
        resume: go on with what it holds.
    """

    top: int | None = None
    refit: int | None = None
    jobs: int = 1
    cluster: str | None = None
    checkpoint: Path | None = None
    resume: bool = False


def learn_model(
    rows: Dataset,
    expressions: Sequence[Expression],
    config: VbksConfig,
    way: TwoStageSettings,
    *,
    progress: Callable[[str, TrainingProgress], None] = lambda part, now: None,
    earlier: KernelModel | None = None,
) -> KernelModel:
    """Return the belief over kernels, screened and fitted again where that is asked for.

    The model of a refit keeps the history of the screening, which is of all kernels, and has what
    the screening found in ``settings["screening"]``.

    Args:
        rows: to learn from.
        expressions: kernels.
        config: of VBKS; its inducing points are those of the screening.
        way: what else was said.
        progress: told which part it is (learning, screening, refit) and where it is.
        earlier: a model that the optimisation goes on from.

    Raises:
        ConfigError: `earlier` has other inputs, or cannot be had together with a refit; or there
            is no GPU.
        ActiveSensingError: as `select_kernels`.
    """
    from gp_active_sensing.learning.kernel_selection import select_kernels

    if earlier is not None:
        _check_earlier(rows, earlier, way)
    if config.device == "cuda" and way.cluster is None:
        _check_gpu()

    def learned(part: str, kernels: Sequence[Expression], settings: VbksConfig) -> KernelModel:
        folder = way.checkpoint
        if folder is not None and part != "learning":
            folder = folder / part
            folder.mkdir(exist_ok=True)
        return select_kernels(
            rows,
            kernels,
            settings,
            jobs=way.jobs,
            cluster=way.cluster,
            progress=lambda now: progress(part, now),
            checkpoint=folder,
            resume=way.resume,
            earlier=earlier,
        )

    if way.refit is None:
        model = learned("learning", expressions, config)
        if way.top is None:
            return model
        return model.prune(way.top, samples=config.samples, seed=config.seed)
    screened = learned("screening", expressions, config)
    top = way.top or REFITTED
    chosen = [fit.composite.expression for fit in screened.fits[:top]]
    again = dataclasses.replace(config, inducing=way.refit, stages=(1.0,))
    model = learned("refit", chosen, again)
    why = f"screened out: not among the {top} most probable with {config.inducing} inducing points"
    gone = tuple((fit.name, why) for fit in screened.fits[top:])
    return dataclasses.replace(
        model,
        dropped=(*screened.dropped, *gone, *model.dropped),
        history=screened.history,
        settings=model.settings | {"screening": _summary(screened, config)},
    )


def _summary(screened: KernelModel, config: VbksConfig) -> dict[str, Any]:
    belief = screened.belief
    return {
        "inducing": config.inducing,
        "kernels": list(screened.names),
        "bounds": [float(fit.bound) for fit in screened.fits],
        "probabilities": [float(q) for q in belief.probabilities],
        "softmax": [float(q) for q in belief.softmax],
    }


def _check_gpu() -> None:
    import torch

    if not torch.cuda.is_available():
        msg = (
            f"device: cuda is asked for, and PyTorch {torch.__version__} sees no GPU; give cpu, or "
            "auto, which takes a GPU where there is one"
        )
        raise ConfigError(msg)


def _check_earlier(rows: Dataset, earlier: KernelModel, way: TwoStageSettings) -> None:
    if way.refit is not None:
        msg = "a model that is continued keeps its inducing points: leave --refit out"
        raise ConfigError(msg)
    if rows.input_names != earlier.input_names:
        msg = (
            f"the model to be continued has the inputs {', '.join(earlier.input_names)}, the rows "
            f"of {rows.source} have {', '.join(rows.input_names)}; give the same, in that order"
        )
        raise ConfigError(msg)
