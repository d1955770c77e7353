"""The optimisation of a group of kernels: starts, stages, plateaus, faults; it can be resumed."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing.learning.vbks.checkpoint import (
    no_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from gp_active_sensing.learning.vbks.config import Progress
from gp_active_sensing.learning.vbks.data import inducing_inputs
from gp_active_sensing.learning.vbks.draws import Draws
from gp_active_sensing.learning.vbks.group import Finished, Group, order_by_shape
from gp_active_sensing.learning.vbks.optimiser import Optimiser
from gp_active_sensing.learning.vbks.plateau import (
    FAULTS,
    begin_phase,
    judge,
    leaving,
    restore,
)
from gp_active_sensing.learning.vbks.starts import best_starts
from gp_active_sensing.learning.vbks.state import State, begin, scaled_root
from gp_active_sensing.selection.model import KernelFit
from gp_active_sensing.types import FloatArray

__all__ = ["Training"]

_SOME = 0.3
"""Share of the steps with some of the rows; all starts take them, then the best of each kernel."""
_WIDTHS = (1.0, 0.5, 0.2, 0.05, 0.01)
"""Factors on the width that curvature gives q(θ)."""
_RATES = {"starts": 4.0, "some": 4.0, "point": 0.25, "full": 0.1}
"""Factors of the step: large where gradients are exact, small near the best and in mini-batches."""
_POINT = 0.7
"""Share of the steps until which q(θ) is a point."""
_BATCHES, _PER_INDUCING, _SAMPLE = 8, 8, 512
"""Mini-batches that a bound is estimated from; at least so many rows an inducing variable, and
so many."""
_CURVED = 256
"""Rows that curvature is seen from, or four an inducing variable."""
_ESTIMATES = 8
"""Samples of θ in such an estimate."""
_PASSED = 1_000_000
"""Rows times samples of θ of the last, exact bound, about."""
_FEW, _MOST = 20_000, 256
"""With few rows there are as many samples as make so many rows, up to so many."""


@dataclass
class _Row:
    """What is told of one start of a kernel."""

    kernel: int
    start: int
    iterations: int = 0
    outcome: str = ""
    trace: list[list[float]] = field(default_factory=list)


class Training:
    """Optimises a group.

    Args:
        group: what.
        device: of torch.
        progress: told now and then.
    """

    def __init__(
        self, group: Group, device: Any, progress: Callable[[Progress], None] | None = None
    ) -> None:
        config = group.data.config
        self.group, self.config, self.data = group, config, group.data
        self._device, self._progress = device, progress
        self._dtype = torch.float64 if config.dtype == "float64" else torch.float32
        dimensions = group.data.rows.inputs.shape[1]
        made = [Composite(parse(name), dimensions) for name in group.names]
        self._composites = [made[k] for k in order_by_shape(made)]
        self._names = [c.name for c in self._composites]
        self._size = max(c.size for c in self._composites)
        self._full = self._entered = False
        self._rows: list[_Row] = []
        self._done: list[State] = []
        self._stage = self._phase = self._step = 0
        self._finished = Finished(bounds={name: [] for name in self._names})
        self.state: State
        self._optimiser: Optimiser
        self._draws: Draws

    def run(self) -> Finished:
        """Return what came of it."""
        if not self._resumed():
            self._begin()
        while self._stage < len(self.config.stages) and self._any():
            phases = self._phases()
            while self._phase < len(phases):
                phase, limit = phases[self._phase]
                self._optimise(limit, phase)
                self._gather()
                if phase == "starts":
                    self._choose()
                self._phase += 1
                self._entered = False
                if self._phase < len(phases):
                    self._step = limit
                    self._forget_outcomes()
            self._conclude()
        for name in self._finished.dropped:
            found = self._finished.bounds[name]
            found.extend([math.nan] * (len(self.config.stages) - len(found)))
        return self._finished

    def _any(self) -> bool:
        """Return whether there are kernels left; those that have converged wait in `_done`."""
        return len(self.state.number) > 0 or bool(self._done)

    def _phases(self) -> list[tuple[str, int]]:
        """Return what a stage consists of, and the number of the step that each part ends with.

        First some rows stand for all, q(u) always at its best for them: that is the shortest way
        from a start to the neighbourhood of an optimum. Then mini-batches of all rows. q(θ) is a
        point while it is far from its best: samples of it only add noise there.
        """
        steps = self.config.iterations
        several = self._stage == 0 and len(self._rows) > len(self._names)
        phases = [("starts" if several else "some", max(1, round(_SOME * steps)))]
        if self.config.hyperparameters == "point":
            return [*phases, ("point", steps)]
        return [*phases, ("point", max(1, round(_POINT * steps))), ("full", steps)]

    # -- beginning -----------------------------------------------------------------------------

    def _begin(self) -> None:
        config = self.config
        known = self.group.earlier
        Z = inducing_inputs(self.data, config.inducing)
        sample = self.data.sample(0, _SAMPLE)
        self._rows = [
            _Row(k, number)
            for k, composite in enumerate(self._composites)
            for number in (
                [0]
                if composite.name in known
                else best_starts(composite, sample, Z, config, self._device, self._dtype)
            )
        ]
        starts = [(row.kernel, row.start) for row in self._rows]
        self.state = begin(self._composites, starts, Z, config, self._device, self._dtype, known)
        self._prepare()

    def _prepare(self) -> None:
        """Make what computes with the rows of the state as they are now."""
        chosen = [self._composites[self._row(i).kernel] for i in range(len(self.state.number))]
        if not chosen:
            return
        self._optimiser = Optimiser(
            chosen, self.config, self._device, self._dtype, width=self._size
        )
        self._optimiser.full = self._full
        starts = [self._row(i).start for i in range(len(chosen))]
        self._draws = Draws(chosen, starts, self.config.seed, self._size)

    def _row(self, i: int) -> _Row:
        return self._rows[int(self.state.number[i])]

    # -- the steps -----------------------------------------------------------------------------

    def _optimise(self, limit: int, phase: str) -> None:
        """Take steps up to number `limit` of the stage, or until all kernels have converged."""
        self._full = phase == "full"
        if not len(self.state.number):
            return  # all had converged when a checkpoint was written
        self._optimiser.full = self._full
        stage, every = self._stage, self.config.evaluate_every
        rows = self.data.rows_of(stage)
        few = phase in ("starts", "some")
        whole = few or self.data.whole(stage)
        M = self.state.inducing.shape[1]
        size = max(_SAMPLE, _PER_INDUCING * M, _BATCHES * min(self.config.batch, rows))
        sample = self.data.sample(stage, size)
        if not self._entered:
            if self._full:
                self._widen(sample)
            self._estimate(sample, first=True)
            self._entered = True
        batches: Iterator[tuple[FloatArray, FloatArray]]
        if few:
            size = max(_SAMPLE, _PER_INDUCING * M)
            batches = itertools.repeat(self.data.sample(stage, size))
        else:
            batches = self.data.batches(stage, self._step)
        etas = self._etas()
        while self._step < limit and len(self.state.number):
            X, y = next(batches)
            eta = self._optimiser.tensor(next(etas))
            pace = _pace(self._step / limit) if few else 1.0
            self._optimiser.step(self.state, X, y, eta, rows, whole=whole, pace=pace)
            self._step += 1
            for i in range(len(self.state.number)):
                self._row(i).iterations += 1
            if self._step % every == 0 or self._step == limit:
                if self._estimate(sample):
                    etas = self._etas()
                self._checkpoint()

    def _etas(self) -> Iterator[FloatArray]:
        """Yield a sample of η (K, P) for every step; zeros of a point."""
        if self._full:
            return self._draws.steps(self._stage, self._step)
        return itertools.repeat(self._draws.zeros()[0])

    def _spread(self, count: int) -> Any:
        """Return samples of η (S, K, P) for an expectation; one of zeros for a point."""
        found = self._draws.spread(count) if self._full else self._draws.zeros()
        return self._optimiser.tensor(found)

    def _widen(self, sample: tuple[FloatArray, FloatArray]) -> None:
        """Turn the point q(θ) into a Gaussian that fits the bound's curvature."""
        rows = self.data.rows_of(self._stage)
        weight = rows / len(sample[1])
        few = max(_CURVED, 4 * self.state.inducing.shape[1])
        X, y = (part[:: max(1, len(sample[1]) // few)] for part in sample)
        for etas in (self._optimiser.tensor(self._draws.zeros()), self._spread(_ESTIMATES)):
            total = self._optimiser.total(self.state, [sample], weight, etas)
            self._optimiser.settle(self.state, X, y, rows / len(y), total)
        self._narrow(sample, weight)

    def _narrow(self, sample: tuple[FloatArray, FloatArray], weight: float) -> None:
        """Take of several widths of q(θ) the best: curvature at one point may say too little."""
        state, etas = self.state, self._spread(_ESTIMATES)
        given = state.raw
        best = torch.full_like(state.best, -math.inf)
        chosen = given.clone()
        for factor in _WIDTHS:
            state.raw = scaled_root(given, factor)
            total = self._optimiser.total(state, [sample], weight, etas)
            bound = self._optimiser.bound(state, total)
            better = bound > best
            chosen[better] = state.raw[better]
            best = torch.where(better, bound, best)
        state.raw = chosen

    # -- estimates -----------------------------------------------------------------------------

    def _estimate(self, sample: tuple[FloatArray, FloatArray], *, first: bool = False) -> bool:
        """Estimate the bounds, and see what follows; return whether kernels have left."""
        state, config = self.state, self.config
        rows = self.data.rows_of(self._stage)
        total = self._optimiser.total(
            state, [sample], rows / len(sample[1]), self._spread(_ESTIMATES)
        )
        bound = self._optimiser.bound(state, total)
        if first:
            # The best q(u) for what the sample says: mini-batches take over from there.
            state.precision, state.linear = total.precision, total.linear
            begin_phase(state, config.rate * _RATES[self._phases()[self._phase][0]])
        judge(state, bound, config, rows, first=first)
        for i, value in enumerate(bound.tolist()):
            row = self._row(i)
            if math.isfinite(value):
                row.trace.append([float(row.iterations), float(rows), value])
        self._tell(bound)
        return self._leave(bound, first=first)

    def _leave(self, bound: Any, *, first: bool) -> bool:
        """Let kernels go that have converged or were given up; return whether any did."""
        state = self.state
        converged, given_up = leaving(state, bound, first=first)
        going = converged | given_up
        if not bool(going.any()):
            return False
        for i in torch.nonzero(going).flatten().tolist():
            row = self._row(i)
            if bool(given_up[i]):
                row.outcome = (
                    f"dropped: its bound was not finite {FAULTS} times, "
                    f"last at step {row.iterations}"
                )
                state.best[i] = -math.inf
            else:
                row.outcome = (
                    f"converged: the bound rose by less than {self.config.tolerance:g} nat a row "
                    f"in {self.config.patience} estimates, with three sizes of the step"
                )
        self._done.append(state.cut(going))
        self.state = state.cut(~going)
        self._prepare()
        return True

    def _gather(self) -> None:
        """Bring the kernels that have left back, in their order, each where its bound was best."""
        parts = [*self._done, self.state]
        values: dict[str, Any] = {}
        for item in dataclasses.fields(State):
            several = [getattr(part, item.name) for part in parts]
            if isinstance(several[0], tuple):
                values[item.name] = tuple(torch.cat(v) for v in zip(*several, strict=True))
            else:
                values[item.name] = torch.cat(several)
        whole = State(**values)
        self.state = whole.cut(torch.argsort(whole.number))
        self._done = []
        restore(self.state)
        self._prepare()

    def _choose(self) -> None:
        """Go on with the best start of each kernel."""
        best: dict[int, int] = {}
        bounds = self.state.best.tolist()
        for i, bound in enumerate(bounds):
            k = self._row(i).kernel
            if k not in best or bound > bounds[best[k]]:
                best[k] = i
        self.state = self.state.cut(torch.tensor(sorted(best.values()), device=self._device))
        self._prepare()

    def _forget_outcomes(self) -> None:
        """What converged, or was given up, in one part of a stage is judged anew in the next."""
        for row in self._rows:
            row.outcome = ""

    # -- the end of a stage --------------------------------------------------------------------

    def _conclude(self) -> None:
        """Compute the bounds of all rows of the stage exactly, and q(u) with them."""
        state, config = self.state, self.config
        rows = self.data.rows_of(self._stage)
        wanted = max(config.theta_samples, min(_MOST, _FEW // rows))
        count = 1 << (max(2, min(wanted, _PASSED // rows)).bit_length() - 1)
        total = self._optimiser.total(
            state, self.data.everything(self._stage), 1.0, self._spread(count)
        )
        bound = self._optimiser.bound(state, total)
        state.precision, state.linear = total.precision, total.linear
        last = self._stage + 1 == len(config.stages)
        mean, root = self._optimiser.moments(total)
        alive = torch.isfinite(bound) & (state.faults < FAULTS)
        for i, value in enumerate(bound.tolist()):
            row = self._row(i)
            name = self._names[row.kernel]
            if not bool(alive[i]):
                self._finished.bounds[name].append(math.nan)
                self._finished.dropped[name] = (
                    row.outcome
                    or f"dropped: its bound was not finite, last at step {row.iterations}"
                )
                continue
            self._finished.bounds[name].append(value)
            row.trace.append([float(row.iterations), float(rows), value])
            if last:
                outcome = row.outcome or f"stopped at the limit of {config.iterations} steps"
                self._finished.fits[name] = self._fit(i, value, mean[i], root[i], outcome)
            row.outcome = ""
        self.state = state.cut(alive)
        self._prepare()
        self._stage += 1
        self._phase = self._step = 0
        self._entered = False
        self._checkpoint()

    def _fit(self, i: int, bound: float, mean: Any, root: Any, outcome: str) -> KernelFit:
        row = self._row(i)
        composite = self._composites[row.kernel]
        size = composite.size

        def array(tensor: Any) -> FloatArray:
            return np.array(tensor.detach().cpu().numpy(), dtype=np.float64)

        theta_root = array(self._optimiser.root(self.state)[i])[:size, :size]
        return KernelFit(
            composite,
            bound,
            array(self.state.mean[i])[:size],
            theta_root,
            array(self.state.inducing[i]),
            array(mean),
            array(root),
            self._optimiser.whitened,
            self.config.noise_floor,
            row.iterations,
            outcome,
            np.array(row.trace),
        )

    # -- telling, and going on -----------------------------------------------------------------

    def _tell(self, bound: Any) -> None:
        if self._progress is None:
            return
        best = {name: math.nan for name in self._names}
        for i, value in enumerate(bound.tolist()):
            name = self._names[self._row(i).kernel]
            best[name] = value if not best[name] >= value else best[name]
        for part in self._done:
            for number, value in zip(part.number.tolist(), part.best.tolist(), strict=True):
                name = self._names[self._rows[number].kernel]
                best[name] = value if not best[name] >= value else best[name]
        self._progress(
            Progress(
                tuple(self._names),
                0,
                len(self._names),
                self._stage + 1,
                len(self.config.stages),
                self._step,
                self.config.iterations,
                self.data.rows_of(self._stage),
                tuple(best.values()),
            )
        )

    def _checkpoint(self) -> None:
        if self.group.checkpoint is None:
            return
        arrays = {f"state.{k}": v for k, v in self.state.arrays().items()}
        for n, part in enumerate(self._done):
            arrays |= {f"done{n}.{k}": v for k, v in part.arrays().items()}
        facts = {
            "names": list(self._names),
            "rows": [dataclasses.asdict(row) for row in self._rows],
            "done": len(self._done),
            "stage": self._stage,
            "step": self._step,
            "phase": self._phase,
            "entered": self._entered,
            "full": self._full,
        }
        write_checkpoint(self.group.checkpoint, facts, arrays, self._finished)

    def _resumed(self) -> bool:
        """Take up where a checkpoint is; return whether there is one."""
        path = self.group.checkpoint
        if path is None or not self.group.resume or not path.exists():
            return False
        facts, arrays, finished = read_checkpoint(path, self._names)
        self._finished, self._stage = finished, facts["stage"]
        if self._stage == len(self.config.stages):
            return True

        def part(prefix: str) -> State:
            own = {k[len(prefix) + 1 :]: v for k, v in arrays.items() if k.startswith(prefix + ".")}
            return State.from_arrays(own, self._device)

        try:
            self._rows = [_Row(**row) for row in facts["rows"]]
            self._step, self._phase = facts["step"], facts["phase"]
            self._entered, self._full = facts["entered"], facts["full"]
            self.state = part("state")
            self._done = [part(f"done{n}") for n in range(facts["done"])]
        except (LookupError, TypeError, ValueError) as error:
            raise no_checkpoint(path, error) from error
        self._prepare()
        return True


def _pace(share: float) -> float:
    """Return the factor of a step after so much of a part of a stage: half a cosine, 1 … 0.05.

    Large steps first, which leave poor maxima, and small ones in the end. [Loshchilov2017]
    """
    return 0.05 + 0.475 * (1.0 + math.cos(math.pi * share))
