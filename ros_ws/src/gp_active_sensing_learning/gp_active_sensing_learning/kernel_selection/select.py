"""Variational Bayesian kernel selection (VBKS), with an optional refit of the best kernels."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.config import to_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model import History, KernelModel
from gp_active_sensing.kernels.base import Expression
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.files import cannot, write_whole
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_belief import kernel_belief
from gp_active_sensing_learning.kernel_predictor import prune
from gp_active_sensing_learning.kernel_selection.config import TrainingProgress, VbksConfig
from gp_active_sensing_learning.kernel_selection.data import Data, scaling_of

if TYPE_CHECKING:
    from gp_active_sensing_learning.kernel_selection.group import FinishedGroup

logger = logging.getLogger(__name__)


def select_kernels(
    rows: Dataset,
    expressions: Sequence[Expression],
    config: VbksConfig = VbksConfig(),
    *,
    jobs: int = 1,
    progress: Callable[[TrainingProgress], None] | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> KernelModel:
    """Learn a belief over kernels, and a sparse Gaussian process for each. [Teng2020, Sec. 4].

    Args:
        rows: data set.
        expressions: the kernels.
        config: settings of VBKS.
        jobs: number of processes.
        progress: callback. With several processes, the callback is called after each kernel group.
        checkpoint: directory for checkpoint files; None = no checkpoint.
        resume: True to continue from the checkpoint.

    Raises:
        ConfigError: there are no kernels, the checkpoint belongs to other data or settings, or no
            kernel could be optimised.
        ReadingError: the outputs do not vary.
        MissingDependencyError: `jobs` is above 1, and joblib is not installed.
    """
    from gp_active_sensing_learning.kernel_selection.group import KernelGroup
    from gp_active_sensing_learning.kernel_selection.kernel_groups import partition, train_all

    names = list(dict.fromkeys(str(e) for e in expressions))
    if not names:
        msg = "kernels: expected at least one, got none"
        raise ConfigError(msg)
    data = Data.of(rows, scaling_of(rows, config), config)
    dimensions = rows.inputs.shape[1]
    composites = [Composite(e, dimensions) for e in dict.fromkeys(expressions)]
    groups = partition(composites, data, jobs)
    if checkpoint is not None:
        signature = _signature(rows, names, config)
        begun = _prepare(checkpoint, signature, [g.names for g in groups], resume=resume)
        files = [checkpoint / f"group-{k:03d}.npz" for k in range(len(begun))]
        groups = [
            KernelGroup(tuple(some), data, checkpoint=file, resume=resume)
            for some, file in zip(begun, files, strict=True)
        ]
    finished = train_all(groups, jobs=jobs, progress=progress)
    return _model(names, finished, data)


def _prepare(
    directory: Path, signature: str, groups: Sequence[Sequence[str]], *, resume: bool
) -> Sequence[Sequence[str]]:
    """Create the directory for a checkpoint, or compare its signature with `signature`.

    Returns:
        Names of the kernels of each group. A checkpoint determines the groups.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot(directory, "make the folder", error) from error
    signed = directory / "signature.json"
    there = sorted(directory.glob("group-*.npz"))
    if there and not resume:
        msg = f"{directory}: has a checkpoint; go on with --resume, or remove it to begin again"
        raise ConfigError(msg)
    if there and not signed.exists():
        msg = f"{directory}: has a checkpoint without signature.json; remove it to begin again"
        raise ConfigError(msg)
    if resume and signed.exists():
        try:
            begun = json.loads(signed.read_text(encoding="utf-8"))
            same = begun["signature"] == signature
            found = [[str(name) for name in group] for group in begun["groups"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            msg = f"{signed}: cannot be read ({error}); remove {directory} to begin again"
            raise ConfigError(msg) from error
        if not same:
            msg = (
                f"{directory}: its checkpoint is of other rows, kernels or settings; give the same "
                "ones, or remove it to begin again"
            )
            raise ConfigError(msg)
        return found
    write_whole(signed, json.dumps({"signature": signature, "groups": [*map(list, groups)]}))
    return groups


def _signature(rows: Dataset, names: Sequence[str], config: VbksConfig) -> str:
    """Return a checksum of the rows, the kernels, and the settings of the optimisation.

    Settings of the belief over kernels are left out, because the optimisation does not use them.
    """
    settings = to_mapping(config)
    for key in ("prior_std", "samples"):
        del settings[key]
    signed = {"rows": rows.digest(), "names": list(names), "config": settings}
    return hashlib.sha256(json.dumps(signed, sort_keys=True).encode()).hexdigest()


def _model(names: Sequence[str], finished: FinishedGroup, data: Data) -> KernelModel:
    config = data.config
    if not finished.fits:
        why = "; ".join(f"{name}: {text}" for name, text in list(finished.dropped.items())[:3])
        msg = f"no kernel could be learned from {data.rows.source} ({why})"
        raise ConfigError(msg)
    for name, why in finished.dropped.items():
        logger.warning("kernel %s %s; the others are not affected", name, why)
    history = _history(names, finished, data)
    left = [name for name in names if name in finished.fits]
    bounds = np.array([finished.fits[name].bound for name in left])
    order = np.argsort(-bounds, kind="stable")
    belief = kernel_belief(
        bounds[order], prior_std=config.prior_std, samples=config.samples, seed=config.seed
    )
    model = KernelModel(
        fits=tuple(finished.fits[left[k]] for k in order),
        belief=belief,
        dropped=tuple(finished.dropped.items()),
        scaling=data.scaling,
        input_names=data.rows.input_names,
        output_name=data.rows.output_name,
        rows=data.rows_of(len(config.stages) - 1),
        source=data.rows.source,
        history=history,
        settings={"vbks": to_mapping(config)},
    )
    return model.ordered()


def _history(names: Sequence[str], finished: FinishedGroup, data: Data) -> History:
    """Return the belief over kernels after each stage."""
    config = data.config
    rows: list[float] = []
    bounds: list[list[float]] = []
    chances: list[list[float]] = []
    soft: list[list[float]] = []
    for stage in range(len(config.stages)):
        found = np.array([finished.bounds[name][stage] for name in names])
        there = np.isfinite(found)
        chance, share = np.zeros((2, len(names)))
        if there.any():
            belief = kernel_belief(
                found[there], prior_std=config.prior_std, samples=config.samples, seed=config.seed
            )
            chance[there], share[there] = belief.probabilities, belief.softmax
        rows.append(float(data.rows_of(stage)))
        bounds.append(found.tolist())
        chances.append(chance.tolist())
        soft.append(share.tolist())

    def table(values: list[list[float]]) -> FloatArray:
        return np.array(values, dtype=np.float64)

    return History(np.array(rows), tuple(names), table(bounds), table(chances), table(soft))


REFITTED = 10
"""Default number of kernels in a refit."""


@dataclass(frozen=True)
class TwoStageSettings:
    """Settings for learning a model, in addition to `VbksConfig`.

    Args:
        top: number of kernels in the model; None = all, or `REFITTED` with a refit.
        refit: number of inducing points in the refit; None = no refit.
        checkpoint: folder of the checkpoint.
    """

    top: int | None = None
    refit: int | None = None
    jobs: int = 1
    checkpoint: Path | None = None
    resume: bool = False


def learn_model(
    rows: Dataset,
    expressions: Sequence[Expression],
    config: VbksConfig,
    way: TwoStageSettings,
    *,
    progress: Callable[[str, TrainingProgress], None] = lambda part, now: None,
) -> KernelModel:
    """Learn a belief over kernels in one or two steps.

    With `way.refit`, a screening of all kernels is followed by a refit of the best kernels. The
    model then has the history of the screening. ``settings["screening"]`` has the results of the
    screening.

    Args:
        rows: data set.
        expressions: the kernels.
        config: settings of VBKS. With a refit, `inducing` applies to the screening.
        way: settings of the refit, the processes and the checkpoint.
        progress: callback, called with the name of the step (learning, screening, refit).

    Raises:
        ConfigError: the settings require a GPU, and there is no GPU.
        ActiveSensingError: as in `select_kernels`.
    """
    if config.device == "cuda":
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
            progress=lambda now: progress(part, now),
            checkpoint=folder,
            resume=way.resume,
        )

    if way.refit is None:
        model = learned("learning", expressions, config)
        if way.top is None:
            return model
        return prune(model, way.top, samples=config.samples, seed=config.seed)
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
