"""Resumable optimisation of a group of kernels.

A stage uses a fraction of the rows. Each stage has phases, in which q(θ) is a point or a Gaussian.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.kernel_selection.config import TrainingProgress
from gp_active_sensing_learning.kernel_selection.group import (
    FinishedGroup,
    KernelGroup,
    no_checkpoint,
    order_by_shape,
    read_checkpoint,
    write_checkpoint,
)
from gp_active_sensing_learning.kernel_selection.restarts import (
    FAULTS,
    Restarts,
    begin_phase,
    judge,
)
from gp_active_sensing_learning.kernel_selection.state import scaled_root

_SOME = 0.3
"""Fraction of the steps of a stage in which only a sample of the rows is used."""
_WIDTHS = (1.0, 0.5, 0.2, 0.05, 0.01)
"""Candidate factors by which the standard deviations of q(θ) are multiplied."""
_RATES = {"starts": 4.0, "some": 4.0, "point": 0.25, "full": 0.1}
"""Factors on the step size by phase. Exact gradients allow larger steps than mini-batches."""
_POINT = 0.7
"""Fraction of a stage's steps after which a point q(θ) becomes a Gaussian."""
_BATCHES, _PER_INDUCING, _SAMPLE = 8, 8, 512
"""Smallest sample for an estimate of a bound: number of mini-batches, number of rows per inducing
variable, and number of rows. The largest of the three is used."""
_CURVED = 256
"""Smallest number of rows from which the curvature is computed."""
_ESTIMATES = 8
"""Number of samples of θ for an estimate of a bound."""
_PASSED = 1_000_000
"""The bound at the end of a stage with n rows uses at most `_PASSED` / n samples of θ, but at least
two samples."""
_FEW, _MOST = 20_000, 256
"""A stage with few rows uses more samples of θ: `_FEW` / n for n rows, but at most `_MOST`."""


class Training:
    """Optimisation of a group of kernels. Each estimate of the bounds calls `progress`."""

    def __init__(
        self,
        group: KernelGroup,
        device: Any,
        progress: Callable[[TrainingProgress], None] | None = None,
    ) -> None:
        config = group.data.config
        self.group, self.config, self.data = group, config, group.data
        self._progress = progress
        dimensions = group.data.rows.inputs.shape[1]
        made = [Composite(parse(name), dimensions) for name in group.names]
        self.population = Restarts([made[k] for k in order_by_shape(made)], config, device)
        self._entered = False
        self._stage = self._phase = self._step = 0
        self._finished = FinishedGroup(bounds={name: [] for name in self.population.names})

    def run(self) -> FinishedGroup:
        """Optimise the group. Continue from a checkpoint if there is a checkpoint."""
        population = self.population
        if not self._resumed():
            sample = self.data.sample(0, _SAMPLE)
            population.begin(self.data.inducing, sample)
        while self._stage < len(self.config.stages) and population.alive:
            phases = self._phases()
            while self._phase < len(phases):
                phase, limit = phases[self._phase]
                self._optimise(limit, phase)
                population.gather()
                if phase == "starts":
                    population.choose()
                self._phase += 1
                self._entered = False
                if self._phase < len(phases):
                    self._step = limit
                    population.forget_outcomes()
            self._conclude()
        self._pad(len(self.config.stages))
        return self._finished

    def _pad(self, stages: int) -> None:
        """Fill the bounds of dropped kernels with NaN up to the number of stages."""
        for name in self._finished.dropped:
            found = self._finished.bounds[name]
            found.extend([math.nan] * (stages - len(found)))

    def _phases(self) -> list[tuple[str, int]]:
        """Return (name, step at which it ends) of each phase in the current stage.

        The first phase uses a sample of the rows, which quickly leads near an optimum. Later phases
        use mini-batches of all rows. q(θ) becomes a Gaussian only in the last phase, because
        samples of θ only add noise far from the optimum.
        """
        steps = self.config.iterations
        several = self._stage == 0 and self.population.several
        phases = [("starts" if several else "some", max(1, round(_SOME * steps)))]
        if self.config.hyperparameters == "point":
            return [*phases, ("point", steps)]
        return [*phases, ("point", max(1, round(_POINT * steps))), ("full", steps)]

    # -- the steps -----------------------------------------------------------------------------

    def _optimise(self, limit: int, phase: str) -> None:
        """Take steps until the stage has had `limit` steps, or all restarts have converged."""
        population = self.population
        population.set_full(phase == "full")
        if not population.going:
            return  # all restarts had converged before the checkpoint
        stage, every = self._stage, self.config.evaluate_every
        rows = self.data.rows_of(stage)
        few = phase in ("starts", "some")
        whole = few or self.data.whole(stage)
        M = population.state.inducing.shape[1]
        size = max(_SAMPLE, _PER_INDUCING * M, _BATCHES * min(self.config.batch, rows))
        sample = self.data.sample(stage, size)
        if not self._entered:
            if population.full:
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
        while self._step < limit and population.going:
            X, y = next(batches)
            optimiser = population.optimiser
            eta = optimiser.tensor(next(etas))
            pace = _pace(self._step / limit) if few else 1.0
            optimiser.step(population.state, X, y, eta, rows, whole=whole, pace=pace)
            self._step += 1
            for i in range(population.going):
                population.member(i).iterations += 1
            if self._step % every == 0 or self._step == limit:
                left = self._estimate(sample)
                if phase == "starts":
                    left = population.race(self._step / limit) or left
                if left:
                    etas = self._etas()
                self._checkpoint()

    def _etas(self) -> Iterator[FloatArray]:
        """Yield a standard normal sample (K, P) for each step; zeros for a point q(θ)."""
        draws = self.population.draws
        if self.population.full:
            return draws.steps(self._stage, self._step)
        return itertools.repeat(draws.zeros()[0])

    def _spread(self, count: int) -> Any:
        """Return standard normal samples (S, K, P); zeros (1, K, P) for a point q(θ)."""
        draws = self.population.draws
        found = draws.spread(count) if self.population.full else draws.zeros()
        return self.population.optimiser.tensor(found)

    def _widen(self, sample: tuple[FloatArray, FloatArray]) -> None:
        """Replace a point q(θ) by a Gaussian. The curvature of the bound gives the covariance."""
        state, optimiser = self.population.state, self.population.optimiser
        rows = self.data.rows_of(self._stage)
        weight = rows / len(sample[1])
        few = max(_CURVED, 4 * state.inducing.shape[1])
        X, y = (part[:: max(1, len(sample[1]) // few)] for part in sample)
        zeros = optimiser.tensor(self.population.draws.zeros())
        for etas in (zeros, self._spread(_ESTIMATES)):
            total = optimiser.total(state, [sample], weight, etas)
            optimiser.settle(state, X, y, rows / len(y), total)
        self._narrow(sample, weight)

    def _narrow(self, sample: tuple[FloatArray, FloatArray], weight: float) -> None:
        """Scale the standard deviations of q(θ) by the best factor in `_WIDTHS`.

        The curvature alone is only a local estimate of the standard deviations.
        """
        state, optimiser = self.population.state, self.population.optimiser
        etas = self._spread(_ESTIMATES)
        given = state.raw
        best = torch.full_like(state.best, -math.inf)
        chosen = given.clone()
        for factor in _WIDTHS:
            state.raw = scaled_root(given, factor)
            total = optimiser.total(state, [sample], weight, etas)
            bound = optimiser.bound(state, total)
            better = bound > best
            chosen[better] = state.raw[better]
            best = torch.where(better, bound, best)
        state.raw = chosen

    # -- estimates -----------------------------------------------------------------------------

    def _estimate(self, sample: tuple[FloatArray, FloatArray], *, first: bool = False) -> bool:
        """Estimate the bounds. Return True if a restart has now converged or been dropped."""
        population, config = self.population, self.config
        state, optimiser = population.state, population.optimiser
        rows = self.data.rows_of(self._stage)
        total = optimiser.total(state, [sample], rows / len(sample[1]), self._spread(_ESTIMATES))
        bound = optimiser.bound(state, total)
        if first:
            # The first mini-batch starts from the best q(u) for the sample.
            state.precision, state.linear = total.precision, total.linear
            begin_phase(state, config.rate * _RATES[self._phases()[self._phase][0]])
        judge(state, bound, config, rows, first=first)
        for i, value in enumerate(bound.tolist()):
            member = population.member(i)
            if math.isfinite(value):
                member.trace.append([float(member.iterations), float(rows), value])
        self._tell(bound)
        return population.set_aside(bound, first=first)

    # -- the end of a stage --------------------------------------------------------------------

    def _conclude(self) -> None:
        """Compute the bounds and q(u) from all rows of the stage."""
        population, config, finished = self.population, self.config, self._finished
        state, optimiser = population.state, population.optimiser
        rows = self.data.rows_of(self._stage)
        wanted = max(config.theta_samples, min(_MOST, _FEW // rows))
        count = 1 << (max(2, min(wanted, _PASSED // rows)).bit_length() - 1)
        everything = self.data.everything(self._stage)
        total = optimiser.total(state, everything, 1.0, self._spread(count))
        bound = optimiser.bound(state, total)
        state.precision, state.linear = total.precision, total.linear
        last = self._stage + 1 == len(config.stages)
        mean, root = optimiser.moments(total)
        alive = torch.isfinite(bound) & (state.faults < FAULTS)
        for i, value in enumerate(bound.tolist()):
            member, name = population.member(i), population.name(i)
            if not bool(alive[i]):
                why = f"dropped: its bound was not finite, last at step {member.iterations}"
                given_up = member.outcome.startswith("dropped")
                finished.dropped[name] = member.outcome if given_up else why
                continue
            finished.bounds[name].append(value)
            member.trace.append([float(member.iterations), float(rows), value])
            if last:
                finished.fits[name] = population.fit(i, value, mean[i], root[i])
            member.outcome = ""
        population.keep(alive)
        self._stage += 1
        self._pad(self._stage)
        self._phase = self._step = 0
        self._entered = False
        self._checkpoint()

    # -- progress and checkpoints --------------------------------------------------------------

    def _tell(self, bound: Any) -> None:
        if self._progress is None:
            return
        names = self.population.names
        self._progress(
            TrainingProgress(
                tuple(names),
                0,
                len(names),
                self._stage + 1,
                len(self.config.stages),
                self._step,
                self.config.iterations,
                self.data.rows_of(self._stage),
                tuple(self.population.best(bound).values()),
            )
        )

    def _checkpoint(self) -> None:
        if self.group.checkpoint is None:
            return
        facts, arrays = self.population.stored()
        facts |= {
            "names": list(self.population.names),
            "stage": self._stage,
            "step": self._step,
            "phase": self._phase,
            "entered": self._entered,
        }
        write_checkpoint(self.group.checkpoint, facts, arrays, self._finished)

    def _resumed(self) -> bool:
        """Restore the checkpoint. Return False if there is no checkpoint."""
        path = self.group.checkpoint
        if path is None or not self.group.resume or not path.exists():
            return False
        facts, arrays, self._finished = read_checkpoint(path, self.population.names)
        self._stage = facts["stage"]
        if self._stage == len(self.config.stages):
            return True
        try:
            self._step, self._phase = facts["step"], facts["phase"]
            self._entered = facts["entered"]
            self.population.restored(facts, arrays)
        except (LookupError, TypeError, ValueError) as error:
            raise no_checkpoint(path, error) from error
        return True


def _pace(share: float) -> float:
    """Return the factor on the step size after a fraction `share` of a phase.

    The factor is half a cosine from 1 to 0.05. Large first steps leave poor maxima.
    [Loshchilov2017]
    """
    return 0.05 + 0.475 * (1.0 + math.cos(math.pi * share))
