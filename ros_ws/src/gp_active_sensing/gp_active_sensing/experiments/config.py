"""An experiment: configurations × policies × seeds × budgets of a scenario, as one YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.experiments.metrics import METRICS

__all__ = ["ExperimentConfig"]


@dataclass(frozen=True)
class ExperimentConfig:
    """What is tried, how often, and what is read off."""

    scenario: str | dict[str, Any] = param(  # noqa: RUF009
        help="a shipped scenario's name, a path relative to this file, or a scenario written out"
    )
    name: str = param("", help='used in the name of the directory; "" = the name of the file')
    description: str = param("", help="one or two sentences, for reports")
    seeds: int | tuple[int, ...] = param(
        10, help="keys of the random draws: a number n for 0 … n-1, or a list", low=0
    )
    seeded: tuple[str, ...] = param(
        (),
        help="further keys of the scenario that get the seed: with map.seed each run has points of "
        "its own to choose from",
    )
    policies: dict[str, Any] = param(  # noqa: RUF009
        {},
        help="label: policy and its parameters, as in a scenario; `name` may be left out where "
        "the label is the name. None given = the scenario's own policy",
    )
    configurations: dict[str, Any] = param(  # noqa: RUF009
        {},
        help="label: keys of the scenario that differ, as `a.b: value` or nested. None given = "
        "the scenario as it is, as `default`",
    )
    budgets: tuple[int, ...] = param(
        (),
        help="newly observed places; each number is a mission of its own, since policies plan "
        "with what is left",
        unit="readings",
        low=1,
    )
    checkpoints: tuple[int, ...] = param(
        (),
        help="observed places after which one mission is read off, instead of `budgets`. Neither "
        "= the end of the scenario's own budget",
        unit="readings",
        low=1,
    )
    baseline: str | None = param(
        None, help="label of the policy that the others are compared with, seed by seed"
    )
    metrics: tuple[str, ...] = param(
        ("rmspe",), help="what is read off; see the list below", choices=tuple(METRICS), min_items=1
    )
    designs: int | None = param(
        None,
        help="observed places that the picture of where policies went shows (first seed); null = "
        "the first of `budgets` or `checkpoints`",
        unit="readings",
        low=1,
    )
    expected: str = param("", help="what is known from elsewhere, for the reader; not used")

    def __post_init__(self) -> None:
        problems = []
        if self.name and (any(c in self.name for c in "/\\\0") or self.name.startswith(".")):
            problems.append(
                f"name: expected a word that can be part of a file name, got {self.name!r}"
            )
        if self.seeds in (0, ()):
            problems.append("seeds: expected at least one seed, got none")
        if self.budgets and self.checkpoints:
            problems.append(
                "checkpoints: cannot go with budgets; use budgets for missions of their own, or "
                "checkpoints along one mission"
            )
        for key in ("seeds", "budgets", "checkpoints", "metrics"):
            problems += _repeated(key, getattr(self, key))
        if self.baseline is not None and self.policies and self.baseline not in self.policies:
            known = ", ".join(self.policies)
            problems.append(
                f"baseline: no policy is labelled {self.baseline!r}."
                f"{suggest(self.baseline, self.policies)} Labels: {known}"
            )
        if problems:
            raise ConfigError(problems)

    def seed_list(self) -> tuple[int, ...]:
        """Return the seeds."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


def _repeated(key: str, values: Any) -> list[str]:
    if isinstance(values, int):
        return []
    again = sorted({str(v) for v in values if values.count(v) > 1})
    return [f"{key}: {', '.join(again)} given more than once"] if again else []


def flat_overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides as ``a.b`` -> value, whether they were given so or nested."""
    flat: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, Mapping) and value:
            flat.update({f"{key}.{k}": v for k, v in flat_overrides(value).items()})
        else:
            flat[str(key)] = value
    return flat
