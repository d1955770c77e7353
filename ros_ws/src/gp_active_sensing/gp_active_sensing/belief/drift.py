"""Ageing of readings of a field that changes with time: configuration and weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.types import BoolArray, FloatArray

_NEEDED: dict[str, tuple[str, ...]] = {
    "none": (),
    "injection": ("rate", "doubling"),
    "kernel": ("time_scale",),
    "weights": ("time_scale",),
    "window": ("window",),
    "restart": ("window",),
}
"""Configuration keys by kind of ageing; exactly one of a kind's keys must be set."""
_ALLOWED = {kind: {*keys, "forget_after"} for kind, keys in _NEEDED.items()}
_ALLOWED["none"] = set()
_ALLOWED["injection"].add("discard_step")


@dataclass(frozen=True)
class DriftConfig:
    """Configuration of the ageing of readings.

    A reading has the noise variance v: σ_n²(λ), or a variance of its own. At age a [s], v becomes:

    - injection: ``v + rate² a²``, or ``v (1 + (a / doubling)²)`` [Mauduit2025, Eq. 10];
    - weights: ``v exp(a / time_scale)`` [Deng2022];
    - kernel: v; the field has the correlation ``exp(-|t - t'| / time_scale)`` between two times
      [Bogunovic2016; Mauduit2025, Eq. 8];
    - window: v; readings older than `window` are not used [Zhou2021];
    - restart: v; readings before the last multiple of `window` are not used [Zhou2021].

    With window and restart, places without a used reading count as unobserved.
    """

    kind: str = param(
        "none",
        help="none: the field does not change. injection, weights: noise grows with age. kernel: "
        "the field decorrelates in time. window, restart: old readings are dropped",
        choices=tuple(_NEEDED),
    )
    rate: float | None = param(
        None,
        help="injection: standard deviation of the field's change per second",
        unit="unit of the readings / s",
        above=0.0,
    )
    doubling: float | None = param(
        None,
        help="injection: age at which a reading's noise variance has doubled. Unlike rate, this "
        "key can be set while the scale of the readings is unknown",
        unit="s",
        above=0.0,
    )
    time_scale: float | None = param(
        None,
        help="kernel: age at which the correlation with the present field is 1/e. weights: age at "
        "which a reading's weight is 1/e",
        unit="s",
        above=0.0,
    )
    window: float | None = param(
        None,
        help="window: age at which readings are dropped. restart: all readings are dropped at "
        "every multiple of this time",
        unit="s",
        above=0.0,
    )
    discard_step: float | None = param(
        None,
        help="injection: length of a step, for dropping old readings. t steps after the first "
        "reading, a reading is dropped if the growth of its noise variance exceeds log t. The "
        "newest reading is never dropped",
        unit="s",
        above=0.0,
    )
    forget_after: float | None = param(
        None,
        help="age of a place's newest reading at which the place counts as unread and may be "
        "visited again. null = never",
        unit="s",
        above=0.0,
    )

    def __post_init__(self) -> None:
        needed = _NEEDED.get(self.kind)
        if needed is None:
            msg = f"kind: expected one of {', '.join(_NEEDED)}, got {self.kind!r}"
            raise ConfigError(msg)
        problems = []
        given = [key for key in needed if getattr(self, key) is not None]
        if needed and len(given) != 1:
            which = f"one of {' and '.join(needed)}" if len(needed) > 1 else needed[0]
            problems.append(f"{which}: is required for kind {self.kind}, got {len(given)} of them")
        keys = ("rate", "doubling", "time_scale", "window", "discard_step", "forget_after")
        problems += [
            f"{key}: is not for kind {self.kind}"
            for key in keys
            if getattr(self, key) is not None and key not in _ALLOWED[self.kind]
        ]
        if problems:
            raise ConfigError(problems)

    @property
    def changing(self) -> bool:
        """True if the field changes with time."""
        return self.kind != "none"


NO_DRIFT = DriftConfig()


FRACTION = 128.0
"""Number of slots in a time constant. Weights within a slot differ by less than 2 %. The number is
a power of two, so that each restart lies exactly between two slots."""
_ROUNDING = 1e-9
"""Relative tolerance of the length of a window."""
_LEAST = 1e-30
"""Smallest weight of a reading; a reading with a smaller weight is not used."""
_MOST = 1e100
"""Largest variance that age adds to a reading; the limit keeps results finite."""
_OLD = 1e50
"""Largest age in computations; an older reading is treated as this old [time constants]."""
_MOST_ROWS = 1024
"""Largest number of stored slots under the forgetting kernel."""
_FADED = 12.0
"""Age above which the forgetting kernel drops a reading [time scales]."""


class Ageing:
    """Weights and noise of readings by age.

    `noise_std` is the smallest standard deviation of the candidates' noise. With `rate`, the time
    constant is the age at which the field has changed by `noise_std`.
    """

    def __init__(self, config: DriftConfig, noise_std: float) -> None:
        self.config = config
        constants = (config.doubling, config.time_scale, config.window)
        given = [value for value in constants if value is not None]
        self.constant = given[0] if given else noise_std / (config.rate or math.inf)
        """Time constant of ageing [s]."""

    @property
    def slot(self) -> float:
        """Length of a slot of time, in which the readings of one place are combined [s]."""
        return self.constant / FRACTION

    @property
    def lasting(self) -> bool:
        """True if readings of any age are used."""
        return self.config.kind == "injection" and self.config.discard_step is None

    @property
    def most_slots(self) -> int:
        """Largest number of stored slots, which limits the cubic cost of the forgetting kernel."""
        return _MOST_ROWS if self.config.kind == "kernel" else 10**9

    def used(self, times: FloatArray, now: float, first: float) -> BoolArray:
        """Return the (S,) mask of the readings that are recent enough to be used.

        Args:
            times: (S,) times of the readings [s].
            now: current time [s].
            first: time of the first reading ever [s].
        """
        config, age = self.config, np.maximum(now - times, 0.0)
        if config.kind == "window":
            # The window is half-open: W seconds contain W readings at a rate of 1 Hz.
            end = (1.0 - _ROUNDING) * self.constant - 4.0 * math.ulp(now)
            return np.asarray(age < end)
        if config.kind == "restart":
            return np.asarray(times >= math.floor(now / self.constant) * self.constant)
        if config.kind == "kernel":
            return np.asarray(age <= _FADED * self.constant)
        if config.discard_step is None:
            return np.asarray(self.shares(age) > _LEAST)
        # [Mauduit2025, Algorithm 1, line 4]. The limit of 1 keeps readings in steps 1 and 2, where
        # log t would drop all of them. Readings of the current step have age 0.
        length = config.discard_step
        step = 1.0 + math.floor((now - first) / length) if now > first else 1.0
        whole = np.floor(np.minimum(age / length, _OLD)) * length
        return np.asarray(self._growth(whole) <= max(math.log(step), 1.0))

    def shares(self, age: FloatArray) -> FloatArray:
        """Return the weights in (0, 1] of readings by age [s]; a new reading has weight 1."""
        if self.config.kind == "weights":
            return np.asarray(np.exp(-np.minimum(age / self.constant, 700.0)))
        if self.config.doubling is not None:
            return np.asarray(1.0 / self._growth(age))
        return np.ones_like(age)

    def added(self, age: FloatArray) -> FloatArray | None:
        """Return the variance that readings gain up to an `age` [s]; None without `rate`."""
        if self.config.rate is None:
            return None
        return np.asarray(np.minimum(self.config.rate * age, math.sqrt(_MOST)) ** 2)

    def _growth(self, age: FloatArray) -> FloatArray:
        return np.asarray(1.0 + (np.minimum(age / self.constant, _OLD)) ** 2)
