"""Configuration of an expert: how its answers are taken, and how a simulated one behaves."""

from __future__ import annotations

from dataclasses import dataclass

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError

__all__ = ["KINDS", "AnswersConfig", "ExpertConfig"]

KINDS = ("none", "stations", "model", "probe")
_HUGE = 1e12
"""Bound of what is added to values, far beyond any sensor's."""


@dataclass(frozen=True)
class AnswersConfig:
    """Where an expert can be asked, and which of its answers are used."""

    timeout: float = param(
        5.0,
        help="longest time that a decision waits for the answers; 0 = it goes by what has come",
        unit="s",
        low=0.0,
    )
    max_age: float | None = param(
        3600.0,
        help="an answer whose value is older is not used (too_old); null or unset = any age",
        unit="s",
        above=0.0,
    )
    max_ahead: float = param(
        10.0,
        help="an answer stamped so much later than the clock says is not used (stamp_ahead)",
        unit="s",
        low=0.0,
    )
    stations: tuple[str, ...] = param(
        (),
        help="places of fixed stations, names or indices in quotes: it is asked there only; "
        "empty = anywhere",
    )


@dataclass(frozen=True)
class ExpertConfig(AnswersConfig):
    """A simulated expert; its draws are keyed by (seed, place, how often it was asked there)."""

    kind: str = param(
        "none",
        help="stations: fixed ones, which answer at their own places; model: answers anywhere; "
        "probe: a second one, which drives to the places and reads there; none = no expert",
        choices=KINDS,
    )
    noise_std: float = param(
        0.1,
        help="standard deviation of the answers' noise, which they state",
        unit="field unit",
        above=0.0,
        high=_HUGE,
    )
    delay: float = param(
        0.0,
        help="time from the question (of a probe, from its reading) to the answer; the value is "
        "that of the earlier time",
        unit="s",
        low=0.0,
    )
    start: str | None = param(
        None,
        help="probe: place it stands at first, a name or an index in quotes; null = it begins at "
        "the first place it is asked for",
    )
    speed: float | str = param(
        "limit",
        help="probe: constant speed, or limit = what the map says",
        unit="m/s",
        above=0.0,
        high=1000.0,
        choices=("limit",),
    )
    dropout: float = param(0.0, help="probability that an answer never comes", low=0.0, high=1.0)
    nan: float = param(0.0, help="probability that an answer is not a number", low=0.0, high=1.0)
    wrong: float = param(
        0.0,
        help="probability that an answer says another place than the one it was asked for",
        low=0.0,
        high=1.0,
    )

    def __post_init__(self) -> None:
        if self.kind == "stations" and not self.stations:
            msg = 'stations: is required for kind stations, such as ["3", "17"]'
            raise ConfigError(msg)
        if self.kind in ("model", "probe") and self.stations:
            msg = f"stations: is for kind stations, this one is of kind {self.kind}"
            raise ConfigError(msg)

    @property
    def own_speed(self) -> float | None:
        """Speed of a probe of its own [m/s]; None = the map's."""
        return None if isinstance(self.speed, str) else float(self.speed)
