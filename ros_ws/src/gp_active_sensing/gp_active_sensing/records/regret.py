"""Regret of a search for the largest or smallest value of a known field.

The regret of decision t at place x_t is ``r_t = max_x f_t(x) - f_t(x_t)``. Here f_t is the
noise-free field at the end of stage t, multiplied by -1 in a search for the smallest value. The
average regret is ``R_T / T`` with ``R_T = Σ_t r_t``. [Srinivas2010, Sec. 2; Mauduit2025]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.ties import first_best

OBJECTIVES = ("maximise", "minimise")


def objective_of(policy: Any, seek: str | None = None) -> str:
    """Return the objective of a mission, one of `OBJECTIVES`; "" = no objective.

    Args:
        policy: policy of the mission; its ``objective`` is used if it is one of `OBJECTIVES`.
        seek: objective to use if the policy has no objective; None = not given.

    Raises:
        ConfigError: policy and `seek` have opposite objectives.
    """
    own = _objective(policy)
    if seek is not None and own is not None and own != seek:
        msg = f"policy.objective: is {own}, and seek says {seek}; give both the same value"
        raise ConfigError(msg)
    return str(seek or own or "")


def _objective(policy: Any) -> str | None:
    own = getattr(policy, "objective", None)
    return own if own in OBJECTIVES else None


class Regret:
    """Cumulative regret of a mission, stage by stage.

    Args:
        truth: noise-free field.
        objective: "maximise" or "minimise".
        bound: function from a number of decisions to the bound on their cumulative regret; None =
            no bound is known.
    """

    def __init__(
        self,
        truth: GroundTruth,
        objective: str,
        bound: Callable[[int], float | None] = lambda decisions: None,
    ) -> None:
        self.objective = objective
        self._truth = truth
        self._sign = -1.0 if objective == "minimise" else 1.0
        self._bound = bound
        self.decisions = 0
        self.cumulative = 0.0

    def stage(self, went: int | None, mean: FloatArray, seconds: float) -> dict[str, Any]:
        """Add a stage; return the keys for the record of the stage.

        ``recommended`` is the first place with the best (largest or smallest) predicted value.

        Args:
            went: observed place; None = no reading and no regret.
            mean: (n,) predicted values after the stage.
            seconds: mission time at the end of the stage [s].
        """
        gain = self._sign * self._truth.at(seconds)
        best = float(gain.max())
        named = int(first_best(self._sign * mean))
        regret = None
        if went is not None:
            regret = best - float(gain[went])
            self.cumulative += regret
            self.decisions += 1
        bound = self._bound(self.decisions) if self.decisions else None
        return {
            "regret": regret,
            "cumulative_regret": self.cumulative,
            "recommended": named,
            "recommended_regret": best - float(gain[named]),
            **({} if bound is None else {"regret_bound": bound}),
        }

    def resume(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Continue from the records of earlier stages."""
        counted = [record for record in records if record.get("regret") is not None]
        self.decisions = len(counted)
        self.cumulative = float(counted[-1]["cumulative_regret"]) if counted else 0.0


def regret_of(
    loop: SensingLoop, truth: GroundTruth | None, seek: str | None = None, *, probes: int = 1
) -> Regret | None:
    """Return the regret of a new mission; None = no known truth or no objective.

    The regret has a bound for one probe in a constant field, if every place can be chosen next.

    Args:
        loop: the engine, before its first reading.
        truth: noise-free field.
        seek: see `objective_of`.
        probes: number of probes.

    Raises:
        ConfigError: policy and `seek` have opposite objectives.
    """
    objective = objective_of(loop.policy, seek)
    if truth is None or not objective:
        return None
    bounded = not truth.changes and probes == 1 and _objective(loop.policy) is not None
    if not (bounded and _any_place_next(loop)):
        return Regret(truth, objective)
    prior: Belief = loop.belief.copy()
    from gp_active_sensing.planning.bandits.gp_ucb import regret_bound

    return Regret(truth, objective, lambda decisions: regret_bound(loop.policy, prior, decisions))


def _any_place_next(loop: SensingLoop) -> bool:
    """Return whether every place can be chosen next, as the theorems on regret assume."""
    topology, left = loop.topology, loop.remaining
    if left.metres is not None or left.seconds is not None or left.end is not None:
        return False
    if topology.free:
        return True
    ways = topology.ways_from(0).seconds, topology.ways_to(0).seconds
    return bool(np.isfinite(ways).all())


def regret_summary(
    records: Sequence[Mapping[str, Any]],
    truth: GroundTruth,
    names: Sequence[str],
    objective: str,
    at_seconds: float,
) -> dict[str, Any]:
    """Return the regret of a whole mission; {} if it was not computed.

    Args:
        records: record of each stage.
        truth: noise-free field.
        names: (n,) names of the places.
        objective: "maximise" or "minimise".
        at_seconds: mission time at the end of the mission [s].

    Returns:
        Keys ``objective``, ``decisions``, ``average``, ``cumulative`` and ``simple`` (smallest
        regret of a stage). ``recommended`` and ``best`` are names of places. Their true values are
        ``recommended_value`` and ``best_value``. ``recommended_regret`` is the absolute difference.
        ``bound`` is a bound on the cumulative regret (None = not known).
    """
    counted = [record for record in records if record.get("regret") is not None]
    if not counted:
        return {}
    last = counted[-1]
    field = truth.at(at_seconds)
    best = int(np.argmin(field) if objective == "minimise" else np.argmax(field))
    named = int(records[-1]["recommended"])
    total = float(last["cumulative_regret"])
    bound = last.get("regret_bound")
    return {
        "objective": objective,
        "decisions": len(counted),
        "average": total / len(counted),
        "cumulative": total,
        "simple": min(float(record["regret"]) for record in counted),
        "recommended": names[named],
        "recommended_value": float(field[named]),
        "recommended_regret": abs(float(field[best] - field[named])),
        "best": names[best],
        "best_value": float(field[best]),
        "bound": None if bound is None else float(bound),
    }
