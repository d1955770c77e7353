"""Configuration of how readings age: section `belief.drift`."""

from __future__ import annotations

from dataclasses import dataclass

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError

__all__ = ["NO_DRIFT", "DriftConfig"]

_NEEDED: dict[str, tuple[str, ...]] = {
    "none": (),
    "injection": ("rate", "doubling"),
    "kernel": ("time_scale",),
    "weights": ("time_scale",),
    "window": ("window",),
    "restart": ("window",),
}
"""By kind: the keys of which exactly one has to be given."""
_ALLOWED = {kind: {*keys, "forget_after"} for kind, keys in _NEEDED.items()}
_ALLOWED["none"] = set()
_ALLOWED["injection"].add("discard_step")


@dataclass(frozen=True)
class DriftConfig:
    """How much a reading of some age says about the field as it is now.

    With age a [s], the noise variance v = σ_n²(λ) or the reading's own:

    - injection: ``v + rate² a²``, or ``v (1 + (a / doubling)²)`` [Mauduit2025, Eq. 10];
    - weights: ``v exp(a / time_scale)`` [Deng2022];
    - kernel: correlation ``exp(-|t - t'| / time_scale)`` between the field at two times
      [Bogunovic2016; Mauduit2025, Eq. 8];
    - window, restart: readings younger than `window`, or since the last multiple of it
      [Zhou2021]; a place without such a reading is not observed any more. Of one reading a second,
      a window of W seconds holds the latest W.
    """

    kind: str = param(
        "none",
        help="none: the field stands; injection or weights: noise grows with age; kernel: the "
        "field decorrelates in time; window or restart: old readings are dropped",
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
        help="injection: age at which a reading's noise variance has doubled; needs no unit of "
        "the readings, so it works while their scale is unknown",
        unit="s",
        above=0.0,
    )
    time_scale: float | None = param(
        None,
        help="kernel, weights: age at which the correlation with now, or a reading's weight, is "
        "1/e",
        unit="s",
        above=0.0,
    )
    window: float | None = param(
        None,
        help="window: age from which on readings do not count; restart: they count since the last "
        "multiple of it",
        unit="s",
        above=0.0,
    )
    discard_step: float | None = param(
        None,
        help="injection: seconds of a step t, counted from the first reading; readings whose "
        "variance has grown by more than log t are dropped, the newest never",
        unit="s",
        above=0.0,
    )
    forget_after: float | None = param(
        None,
        help="age of a place's newest reading from which on it counts as not observed, so that it "
        "is visited again; null = never",
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
        """The field changes: ages matter."""
        return self.kind != "none"


NO_DRIFT = DriftConfig()
