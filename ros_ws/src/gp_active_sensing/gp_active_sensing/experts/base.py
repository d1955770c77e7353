"""Configuration of experts, which are costly sources of current field values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.types import FloatArray, IntArray

SOURCE = "expert"
"""Value of `Reading.source` for every answer of an expert."""

Field: TypeAlias = Callable[[IntArray, float], FloatArray]
"""Function of places (k,) and a time [s] that returns values (k,)."""
KINDS = ("none", "stations", "model", "probe")


@dataclass(frozen=True)
class AnswersConfig:
    """Configuration of an expert's places and of the use of its answers."""

    timeout: float = param(
        5.0,
        help="longest time that a decision waits for the answers. 0 = no waiting",
        unit="s",
        low=0.0,
    )
    max_age: float | None = param(
        3600.0,
        help="largest age of an answer's value. Older answers are rejected (too_old). null or "
        "unset = any age",
        unit="s",
        above=0.0,
    )
    max_ahead: float = param(
        10.0,
        help="largest time by which an answer's stamp may be ahead of the clock. Answers whose "
        "stamp is farther ahead are rejected (stamp_ahead)",
        unit="s",
        low=0.0,
    )
    stations: tuple[str, ...] = param(
        (),
        help="places of fixed stations, as names or indices in quotes. The expert is asked about "
        "these places only. Empty = about any place",
    )


@dataclass(frozen=True)
class ExpertConfig(AnswersConfig):
    """Configuration of a simulated expert."""

    kind: str = param(
        "none",
        help="stations: fixed stations, which answer at their own places. model: answers anywhere. "
        "probe: a second probe, which drives to the places and reads there. none = no expert",
        choices=KINDS,
    )
    noise_std: float = param(
        0.1,
        help="standard deviation of the noise of answers. Each answer also states this standard "
        "deviation",
        unit="field unit",
        above=0.0,
        high=1e12,
    )
    delay: float = param(
        0.0,
        help="time from the question to the answer. probe: time from the second probe's reading "
        "to its answer. An answer gives the value that the field had at the beginning of the delay",
        unit="s",
        low=0.0,
    )
    start: str | None = param(
        None,
        help="probe: first place of the second probe, a name or an index in quotes. null = the "
        "place of the first question",
    )
    speed: float | str = param(
        "limit",
        help="probe: constant speed, or limit = the speed limits of the map",
        unit="m/s",
        above=0.0,
        high=1000.0,
        choices=("limit",),
    )
    faults: float = param(
        0.0,
        help="probability of each fault of an answer: it never comes, it is not a number, or it "
        "names another place",
        low=0.0,
        high=1.0,
    )

    REMOVED: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("dropout", "nan", "wrong"), "is removed; give `faults`, the probability of each fault"
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
        """Speed of the expert's probe [m/s]; None = the speed limits of the map."""
        return None if isinstance(self.speed, str) else float(self.speed)
