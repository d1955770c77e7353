"""Restarts of the optimisation, with several initial values of θ for each kernel."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gp_active_sensing.kernel_model.model import KernelFit
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.kernel_selection.config import VbksConfig
from gp_active_sensing_learning.kernel_selection.optimiser import Optimiser
from gp_active_sensing_learning.kernel_selection.state import Draws, State, begin, best_starts

CUTS = 3
"""A restart with a point q(θ) has converged after this number of plateaus of its bound."""
CUTS_OF_FULL = 1
"""A restart with a Gaussian q(θ) has converged after this number of plateaus of its bound."""
FAULTS = 3
"""A restart is dropped after this number of infinite or NaN bounds."""
_DIVISOR = 4.0
RACE = (0.125, 0.25, 0.5)
"""After each of these fractions of all steps, the worse half of a kernel's restarts is dropped."""


def begin_phase(state: State, rate: float) -> None:
    """Reset the best bounds and the counters, and set the step size."""
    state.stale.zero_()
    state.cuts.zero_()
    state.faults.zero_()
    state.best.fill_(-math.inf)
    state.rate.fill_(rate)


def judge(state: State, bound: Any, config: VbksConfig, rows: int, *, first: bool) -> None:
    """Update the best state of each restart, and reduce step sizes.

    An infinite or NaN bound restores the best state. A plateau reduces the step size.

    Args:
        state: state of K restarts, which is changed in place.
        bound: (K,) estimates of the local ELBOs.
        config: tolerance and patience.
        rows: number of rows that the bounds represent.
        first: True for the first estimate of a phase, which cannot be a plateau.
    """
    gained = bound > state.best + config.tolerance * rows
    better = bound > state.best
    for variable, kept in zip(state.variables, state.kept, strict=True):
        kept[better] = variable[better]
    state.best = torch.where(better, bound, state.best)
    state.stale = torch.where(gained, torch.zeros_like(state.stale), state.stale + 1)
    finite = torch.isfinite(bound)
    if not bool(finite.all()):
        _put_back(state, ~finite)
    if not first:
        flat = finite & (state.stale >= config.patience)
        state.rate[flat] /= _DIVISOR
        state.cuts[flat] += 1
        state.stale[flat] = 0


def _put_back(state: State, bad: Any) -> None:
    """Restore the best state of the restarts in the mask `bad` (K,), with a smaller step size."""
    for variable, kept in zip(state.variables, state.kept, strict=True):
        variable[bad] = kept[bad]
    for moment in state.moments:
        moment[bad] = 0.0
    M = state.precision.shape[1]
    eye = torch.eye(M, dtype=state.precision.dtype, device=state.precision.device)
    state.precision[bad] = eye
    state.linear[bad] = 0.0
    state.rate[bad] /= _DIVISOR
    state.faults[bad] += 1


def restore(state: State) -> None:
    """Restore the best state of all restarts."""
    for variable, kept in zip(state.variables, state.kept, strict=True):
        variable.copy_(kept)


def leaving(state: State, bound: Any, *, first: bool, full: bool) -> tuple[Any, Any]:
    """Return masks (K,) of the converged restarts, and of the restarts that must be dropped."""
    given_up = state.faults >= FAULTS
    if first:
        given_up = given_up & ~torch.isfinite(bound)
    return (state.cuts >= (CUTS_OF_FULL if full else CUTS)) & ~given_up, given_up


@dataclass
class Restart:
    """Progress of one restart.

    Args:
        kernel: index of the kernel in the group.
        start: number of the restart, which determines its initial θ.
        iterations: number of steps taken.
        outcome: reason for the end of the optimisation; "" = not finished.
        trace: (iterations, rows, bound [nat]) of each estimate.
    """

    kernel: int
    start: int
    iterations: int = 0
    outcome: str = ""
    trace: list[list[float]] = field(default_factory=list)


class Restarts:
    """All restarts of the kernels of a group.

    Active restarts take steps. Row i of `state` is the active restart `member(i)`. Converged and
    dropped restarts wait for the end of the phase.

    Args:
        composites: the kernels, in the order of `order_by_shape`.
    """

    def __init__(self, composites: Sequence[Composite], config: VbksConfig, device: Any) -> None:
        self.composites, self.config, self.device = list(composites), config, device
        self.names = [c.name for c in self.composites]
        self.members: list[Restart] = []
        self.full = False
        """True if q(θ) is a Gaussian, False for a point."""
        self.optimiser: Optimiser
        self.draws: Draws
        self.state: State
        self._size = max(c.size for c in self.composites)
        self._waiting: list[State] = []
        """States of the waiting restarts."""

    def begin(self, Z: FloatArray, sample: tuple[FloatArray, FloatArray]) -> None:
        """Create the best restarts for a sample of rows, with initial inducing inputs Z (M, d)."""
        config = self.config
        self.members = [
            Restart(k, number)
            for k, composite in enumerate(self.composites)
            for number in best_starts(composite, sample, Z, config, self.device)
        ]
        starts = [(member.kernel, member.start) for member in self.members]
        self.state = begin(self.composites, starts, Z, config, self.device)
        self.prepare()

    def prepare(self) -> None:
        """Create the optimiser and the random generators for the active restarts."""
        members = [self.member(i) for i in range(self.going)]
        if not members:
            return
        chosen = [self.composites[member.kernel] for member in members]
        self.optimiser = Optimiser(chosen, self.config, self.device, width=self._size)
        self.optimiser.full = self.full
        starts = [member.start for member in members]
        self.draws = Draws(chosen, starts, self.config.seed, self._size)

    def set_full(self, full: bool) -> None:
        """Set the form of q(θ): True for a Gaussian, False for a point."""
        self.full = full
        if self.going:
            self.optimiser.full = full

    # -- active and waiting restarts -----------------------------------------------------------

    @property
    def going(self) -> int:
        """Number of active restarts."""
        return len(self.state.number)

    @property
    def alive(self) -> bool:
        """True if there is an active or a waiting restart."""
        return self.going > 0 or bool(self._waiting)

    @property
    def several(self) -> bool:
        """True if a kernel has more than one restart."""
        return len(self.members) > len(self.names)

    def member(self, i: int) -> Restart:
        """Return the restart of row i of the state."""
        return self.members[int(self.state.number[i])]

    def name(self, i: int) -> str:
        """Return the name of the kernel of row i."""
        return self.names[self.member(i).kernel]

    def best(self, bound: Any) -> dict[str, float]:
        """Return the largest bound of each kernel. `bound[i]` belongs to restart `member(i)`."""
        found = {name: math.nan for name in self.names}
        numbers, values = self.state.number.tolist(), bound.tolist()
        for part in self._waiting:
            numbers, values = numbers + part.number.tolist(), values + part.best.tolist()
        for number, value in zip(numbers, values, strict=True):
            name = self.names[self.members[number].kernel]
            found[name] = value if not found[name] >= value else found[name]
        return found

    # -- selection -----------------------------------------------------------------------------

    def set_aside(self, bound: Any, *, first: bool) -> bool:
        """Let converged and dropped restarts wait. Return True if there are such restarts."""
        state, config = self.state, self.config
        converged, given_up = leaving(state, bound, first=first, full=self.full)
        going = converged | given_up
        if not bool(going.any()):
            return False
        for i in torch.nonzero(going).flatten().tolist():
            member = self.member(i)
            if bool(given_up[i]):
                member.outcome = (
                    f"dropped: its bound was not finite {FAULTS} times, "
                    f"last at step {member.iterations}"
                )
                state.best[i] = -math.inf
            else:
                member.outcome = (
                    f"converged: the bound rose by less than {config.tolerance:g} nat a row "
                    f"in {config.patience} estimates"
                    + ("" if self.full else f", with {CUTS} sizes of the step")
                )
        self._waiting.append(state.cut(going))
        self.keep(~going)
        return True

    def keep(self, these: Any) -> None:
        """Keep only the active restarts `these`, given as row indices or as a mask (K,)."""
        self.state = self.state.cut(these)
        self.prepare()

    def race(self, share: float) -> bool:
        """Drop the worse restarts after a fraction `share` of all steps.

        Return True if a restart was dropped. Successive halving [Jamieson2016] keeps
        ``ceil(S / 2^h)`` of the S restarts of a kernel after h halvings. Waiting restarts are
        ranked with the active restarts.
        """
        halvings = sum(share >= at for at in RACE)
        placed: dict[int, list[tuple[float, int]]] = {}
        for part in (*self._waiting, self.state):
            for number, best in zip(part.number.tolist(), part.best.tolist(), strict=True):
                placed.setdefault(self.members[number].kernel, []).append((-best, number))
        staying: set[int] = set()
        for kernel, order in placed.items():
            begun = sum(member.kernel == kernel for member in self.members)
            left = math.ceil(begun / 2**halvings)
            staying |= {number for _, number in sorted(order)[:left]}
        stays = [number in staying for number in self.state.number.tolist()]
        if all(stays):
            return False
        self.keep(torch.tensor(stays, device=self.device))
        return True

    def gather(self) -> None:
        """Make all waiting restarts active again, and restore the best state of each restart."""
        parts = [*self._waiting, self.state]
        values: dict[str, Any] = {}
        for item in dataclasses.fields(State):
            several = [getattr(part, item.name) for part in parts]
            if isinstance(several[0], tuple):
                values[item.name] = tuple(torch.cat(v) for v in zip(*several, strict=True))
            else:
                values[item.name] = torch.cat(several)
        whole = State(**values)
        self.state = whole.cut(torch.argsort(whole.number))
        self._waiting = []
        restore(self.state)
        self.prepare()

    def choose(self) -> None:
        """Keep only the best active restart of each kernel."""
        best: dict[int, int] = {}
        bounds = self.state.best.tolist()
        for i, bound in enumerate(bounds):
            k = self.member(i).kernel
            if k not in best or bound > bounds[best[k]]:
                best[k] = i
        self.keep(torch.tensor(sorted(best.values()), device=self.device))

    def forget_outcomes(self) -> None:
        """Clear the outcomes of all restarts."""
        for member in self.members:
            member.outcome = ""

    # -- results and checkpoints ---------------------------------------------------------------

    def fit(self, i: int, bound: float, mean: Any, root: Any) -> KernelFit:
        """Return the fit of active restart i; `mean` (M,) and `root` (M, M) belong to q(u)."""
        member = self.member(i)
        composite = self.composites[member.kernel]
        size = composite.size

        def array(tensor: Any) -> FloatArray:
            return np.array(tensor.detach().cpu().numpy(), dtype=np.float64)

        return KernelFit(
            composite,
            bound,
            array(self.state.mean[i])[:size],
            array(self.optimiser.root(self.state)[i])[:size, :size],
            array(self.state.inducing[i]),
            array(mean),
            array(root),
            self.optimiser.whitened,
            self.config.noise_floor,
            member.iterations,
            member.outcome or f"stopped at the limit of {self.config.iterations} steps",
            np.array(member.trace),
        )

    def stored(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Return JSON data and arrays for a checkpoint."""
        arrays = {f"state.{k}": v for k, v in self.state.arrays().items()}
        for n, part in enumerate(self._waiting):
            arrays |= {f"done{n}.{k}": v for k, v in part.arrays().items()}
        facts = {
            "rows": [dataclasses.asdict(member) for member in self.members],
            "done": len(self._waiting),
            "full": self.full,
        }
        return facts, arrays

    def restored(self, facts: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> None:
        """Restore the restarts from the results of `stored`.

        Raises:
            LookupError, TypeError, ValueError: the content of `facts` or `arrays` is invalid.
        """

        def part(prefix: str) -> State:
            own = {k[len(prefix) + 1 :]: v for k, v in arrays.items() if k.startswith(prefix + ".")}
            return State.from_arrays(own, self.device)

        self.members = [Restart(**row) for row in facts["rows"]]
        self.full = bool(facts["full"])
        self.state = part("state")
        self._waiting = [part(f"done{n}") for n in range(facts["done"])]
        self.prepare()
