"""Configuration of a belief and its defaults; `belief.build` builds the belief.

By default, a few candidates (kernel, length-scale and variances) represent all fields. The variance
of a reading is the sum of three variances: of the smooth field, of the independent component of
each place, and of the noise. One kernel has no spatial correlation. The readings determine the
weights of the candidates. A mixture of two candidates also predicts fields between them well.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

from gp_active_sensing.belief.drift import NO_DRIFT, DriftConfig
from gp_active_sensing.belief.prior import TRANSFORMS, HyperParameters
from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels import NONE, graph_kernels, kernel_problems

PLANE_KERNELS = ("matern12", "matern32", "se", NONE)
"""Default kernels on an area: rough, differentiable, very smooth, and no spatial correlation."""
ROAD_KERNELS = ("graph_matern12", "graph_matern32", "matern12", NONE)
"""Default kernels on roads: two along the roads, one by straight distance, one uncorrelated."""
SHARES = (
    (0.3, 0.5, 0.2),
    (0.6, 0.15, 0.25),
    (0.6, 0.35, 0.05),
    (0.97, 0.015, 0.015),
    (0.995, 0.0025, 0.0025),
    (0.9995, 0.00025, 0.00025),
    (0.9999, 0.00005, 0.00005),
)
"""Fractions of a reading's variance that are due to the smooth field, the independent component of
each place, and the noise. The entries are sorted by the first fraction."""
_COARSE = 4
"""A field with drift uses only this number of first entries of `SHARES`."""
LONG = 1.0
"""Variance of the long-range component, relative to the variance of the smooth field."""
NONE_SHARES = ((0.0, 0.95, 0.05), (0.0, 0.7, 0.3))
"""Fractions as in `SHARES` for a field without spatial correlation."""
NONE_WEIGHT = 0.15
"""Prior weight of the kernel without spatial correlation, relative to the weight of another kernel.
The weight is small because a few readings of a flat region favour a model without length-scales."""
NOISE_SHARES = (0.01, 0.03, 0.12, 0.5)
"""Candidate ratios of the noise's standard deviation to the field's. They are used if only one of
the two is known."""
OWN_SHARES = (0.002, 0.05, 0.5)
"""Candidate variances of the independent component of each place, as fractions of the field's
variance. They are used if the noise is known."""
ATTRIBUTE_SHARE = 0.3
"""Variance that all attributes explain together, relative to the sum of the other variances of a
reading."""


def parts_with(signal_std: float, noise_std: float, place_std: float = 0.0) -> HyperParameters:
    """Return a candidate with these standard deviations and a length-scale of 1."""
    return HyperParameters((1.0,), signal_std, noise_std, place_std=place_std)


def parts_of_field(
    std: float | None, kernel: str, *, changing: bool
) -> tuple[HyperParameters, ...]:
    """Return the standard deviations of one candidate for each entry of `SHARES`.

    `std` is the standard deviation of the whole field. None = unknown; a reading then has a
    variance of 1. A `changing` field (one with drift) uses only the first entries.
    """
    found = []
    shares = SHARES[:_COARSE] if changing else SHARES
    for smooth, own, noise in NONE_SHARES if kernel == NONE else shares:
        size = 1.0 if std is None else std / math.sqrt(smooth + own)
        signal, place = math.sqrt(smooth), math.sqrt(own)
        if kernel == NONE:
            signal, place = place, 0.0
        found.append(parts_with(size * signal, size * math.sqrt(noise), size * place))
    return tuple(found)


def parts_of_noise(noise: float, kernel: str) -> tuple[HyperParameters, ...]:
    """Return the standard deviations of candidates for a known noise and an unknown field."""
    stds = [noise / share for share in NOISE_SHARES]
    if kernel == NONE:
        return tuple(parts_with(std, noise) for std in stds)
    return tuple(
        parts_with(std * math.sqrt(1.0 - own), noise, std * math.sqrt(own))
        for std, own in product(stds, OWN_SHARES)
    )


def with_attribute_parts(parts: tuple[HyperParameters, ...]) -> tuple[HyperParameters, ...]:
    """Return `parts`, and copies of two of them with an additional component of attributes.

    The two have the largest independent components, relative to the smooth field. Attributes may
    explain a part of these components.
    """
    half = sorted(parts, key=lambda p: -p.place_std / p.signal_std)[:2]
    found = []
    for each in half:
        total = each.signal_std**2 + each.place_std**2 + each.noise_std**2
        found.append(replace(each, attribute_std=math.sqrt(ATTRIBUTE_SHARE * total)))
    return (*parts, *found)


VAGUE = 100.0
"""Default standard deviation of the mean, in multiples of the largest `signal_std`."""
FLAT = 1e6
"""Default standard deviation of the mean if the scale is unknown, in units of that scale."""

EMPIRICAL = "empirical"
"""Value of `kernel` for a covariance from earlier readings."""
GIVEN = "se"
"""Default kernel if length-scales are configured."""
_OF_MODEL = (
    *("kernel", "length_scales", "signal_std", "noise_std", "place_std"),
    *("mean", "mean_features", "mean_value", "attributes", "history"),
)
"""Configuration keys that a kernel model sets."""


@dataclass(frozen=True)
class BeliefConfig:
    """Prior belief: the candidates Λ are all combinations of the listed kernels and parameters.

    A parameter that is not given is unknown. Unknown kernels and length-scales come from the map
    and are weighted by the readings. An unknown scale of the field is integrated out. The
    variance is then divided as in `SHARES`.
    """

    length_scales: tuple[float | tuple[float, ...], ...] | None = param(
        None,
        help="candidate length-scales. A candidate may be a list with one value per feature, such "
        "as x, y and z. null = derived from the map's spacing and extent, and adapted to the "
        "readings",
        unit="feature units, metres on a map",
        above=0.0,
        min_items=1,
    )
    kernel: str | tuple[str, ...] | None = param(
        None,
        help="covariance function. It depends on the features, on the road graph (graph_matern…) "
        "or on earlier readings (empirical, with history). none = no spatial correlation. The "
        "candidates of a list are equally probable. If length_scales is not given, however, `none` "
        f"is {NONE_WEIGHT:g} times as probable as each other candidate. null = {GIVEN} if "
        f"length_scales is given, otherwise {', '.join(ROAD_KERNELS)} on roads and "
        f"{', '.join(PLANE_KERNELS)} elsewhere",
        min_items=1,
    )
    model: str | None = param(
        None,
        help="file that `learn --kernels` wrote. The file sets kernels, length-scales, signal, "
        "noise, weights and mean",
    )
    model_mark: str | None = param(
        None,
        help="mark of the file in `model`, by which a continued run recognises that file. The run "
        "writes this key itself. null = no check",
    )
    history: str | None = param(
        None,
        help="empirical: CSV table of earlier readings. Each line is a time, and each column has "
        "the name of a place. The table gives the covariance and the mean of the field",
    )
    signal_std: tuple[float, ...] | None = param(
        None,
        help="candidate standard deviations of the field about its mean. null = unknown, or taken "
        "from the history",
        unit="unit of the readings",
        above=0.0,
        min_items=1,
    )
    noise_std: tuple[float, ...] | None = param(
        None,
        help="candidate standard deviations of a reading's noise. null = several fractions of the "
        "field's standard deviation",
        unit="unit of the readings",
        above=0.0,
        min_items=1,
    )
    place_std: tuple[float, ...] | None = param(
        None,
        help="candidate standard deviations of variation that is not correlated between places. "
        "null = several fractions of the field's standard deviation, or [0] if signal_std and "
        "noise_std are given. [0] = no such variation",
        unit="unit of the readings",
        low=0.0,
        min_items=1,
    )
    mean: str = param(
        "constant",
        help="prior mean: an unknown constant, or a linear function of the features plus a "
        "constant",
        choices=("constant", "linear"),
    )
    mean_features: tuple[str, ...] | None = param(
        None,
        help="linear mean: columns of the map that the mean depends on, such as speed_limit. null "
        "= the features of the map",
        min_items=1,
    )
    attributes: tuple[str, ...] | None = param(
        None,
        help="columns of the map, such as length, lanes, speed_limit or class, on which the mean "
        "may depend linearly. Small slopes are assumed. null = all of them, or none if "
        "length_scales are given or the mean is linear. [] = none",
    )
    mean_value: float = param(
        0.0, help="prior expectation of the field's mean", unit="unit of the readings"
    )
    mean_std: float | None = param(
        None,
        help="prior standard deviation of the mean and of each slope. 0 = the mean is mean_value. "
        f"null = unknown ({VAGUE:g} times the largest signal_std), or taken from the history",
        unit="unit of the readings",
        low=0.0,
    )
    transform: str | None = param(
        None,
        help="transform of the readings before they are used. The other keys then describe the "
        "transformed readings. null = chosen by the readings: none, or log(reading + offset) if "
        "that fits better. If signal_std, noise_std or drift is given, null = none",
        choices=tuple(TRANSFORMS),
    )
    drift: DriftConfig = param(  # noqa: RUF009
        NO_DRIFT, help="way in which older readings lose weight, for a field that changes in time"
    )

    REMOVED: ClassVar[Mapping[str, str]] = {
        "smoothness": "is removed; take kernel graph_matern12, graph_matern32 or graph_matern52",
        "axis_ratio": "is removed; give length_scales a list for x, y and z, such as [20, 20, 2]",
    }
    WERE: ClassVar[Mapping[str, Any]] = {"axis_ratio": None}

    def __post_init__(self) -> None:
        problems = self._history_problems() + self._model_problems()
        if self.kernel != EMPIRICAL:
            problems += self._kernel_problems()
        if self.mean_features is not None and self.mean != "linear":
            problems.append(f"mean_features: are for mean: linear, the mean is {self.mean!r}")
        per_feature = any(isinstance(v, tuple) and len(v) > 1 for v in self.length_scales or ())
        problems += [
            f"length_scales: {name} has one length-scale [m], not one per feature"
            for name in self.kernel_names
            if per_feature and name in graph_kernels
        ]
        if not self.scale_known and self.mean_std:
            problems.append(
                "mean_std: has no unit to be in while signal_std and noise_std are not given; give "
                "signal_std, or mean_std: 0 (the mean is mean_value), or null (not known)"
            )
        if self.attributes and self.mean == "linear":
            problems.append(
                "attributes: the mean is linear already; name the columns in mean_features, or "
                "leave mean out"
            )
        if self.place_std is not None and any(self.place_std) and not self.scale_known:
            problems.append(
                "place_std: has no unit to be in while signal_std and noise_std are not given; "
                "give signal_std, or leave place_std out"
            )
        if not self.scale_known and self.drift.rate is not None:
            problems.append(
                "drift.rate: has no unit to be in while signal_std and noise_std are not given; "
                "give one of them, or drift.doubling instead"
            )
        if problems:
            raise ConfigError(problems)

    def _history_problems(self) -> list[str]:
        if self.kernel != EMPIRICAL:
            if self.history is None:
                return []
            kernel = "null" if self.kernel is None else repr(self.kernel)
            return [f"history: is for kernel: empirical, not {kernel}"]
        problems = []
        if self.history is None:
            problems.append("history: is needed for kernel: empirical, a table of earlier readings")
        if self.length_scales is not None:
            problems.append(
                "length_scales: a covariance of earlier readings has none; leave it out"
            )
        if self.attributes:
            problems.append("attributes: the mean comes from the history; leave attributes out")
        if self.mean != "constant" or self.mean_value != 0.0:
            problems.append("mean: comes from the history; leave mean and mean_value out")
        return problems

    def _model_problems(self) -> list[str]:
        if self.model is None and self.model_mark is None:
            return []
        if self.model is None:
            return ["model_mark: is for a belief over kernels; give its file as belief.model"]
        defaults = {f.name: f.default for f in dataclasses.fields(self)}
        return [
            f"{key}: comes from belief.model; leave it out, or set it to "
            f"{'null' if defaults[key] is None else defaults[key]}"
            for key in _OF_MODEL
            if getattr(self, key) != defaults[key]
        ]

    def _kernel_problems(self) -> list[str]:
        names = self.kernel_names
        if EMPIRICAL in names:
            return [f"kernel: {EMPIRICAL} is a history of readings and stands alone"]
        doubled = sorted({name for name in names if names.count(name) > 1})
        problems = [f"kernel: {name} is in the list more than once" for name in doubled]
        for name in dict.fromkeys(names):
            problems += [] if name == NONE else kernel_problems(name)
        return problems

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """Names of the candidate kernels; () = the default kernels of the map (see `on`)."""
        if self.kernel is None:
            return () if self.length_scales is None and self.model is None else (GIVEN,)
        return (self.kernel,) if isinstance(self.kernel, str) else self.kernel

    def on(self, *, roads: bool) -> BeliefConfig:
        """Return the configuration; add the default kernels of roads or areas if none are given."""
        if self.kernel_names:
            return self
        return replace(self, kernel=ROAD_KERNELS if roads else PLANE_KERNELS)

    @property
    def scale_known(self) -> bool:
        """True if signal, noise, history or model determine the scale of the variances."""
        given = self.signal_std is not None or self.noise_std is not None
        return given or self.kernel == EMPIRICAL or self.model is not None

    @property
    def given_transform(self) -> str:
        """Name of the transform; "identity" if the readings select the transform."""
        return self.transform or "identity"

    def parts(self, kernel: str = "", typical: float = 1.0) -> tuple[HyperParameters, ...]:
        """Return the standard deviations that are combined with every length-scale of a kernel.

        Without configured values, a variance of 1 is divided as in `SHARES`. The component of
        attributes is not included. `typical` is the field's standard deviation in a history of
        readings; it is used with the kernel of the history only.
        """
        signals, noises, owns = self.signal_std, self.noise_std, self.place_std
        if self.kernel == EMPIRICAL:
            signals, owns = signals or (typical,), owns or (0.0,)
        if owns is None and (signals is None or noises is None):
            if noises is not None:
                return tuple(p for noise in noises for p in parts_of_noise(noise, kernel))
            stds = signals or (None,)
            changing = self.drift.changing
            return tuple(p for s in stds for p in parts_of_field(s, kernel, changing=changing))
        if signals is not None and noises is not None:
            pairs = tuple(product(signals, noises))
        elif noises is not None:
            pairs = tuple((noise / r, noise) for noise in noises for r in NOISE_SHARES)
        else:
            pairs = tuple((std, std * r) for std in signals or (1.0,) for r in NOISE_SHARES)
        parts = [parts_with(*pair, own) for pair in pairs for own in owns or (0.0,)]
        if kernel == NONE:
            parts = [parts_with(math.hypot(p.signal_std, p.place_std), p.noise_std) for p in parts]
        return tuple(dict.fromkeys(parts))

    def candidates(
        self, kernel: str, parts: Sequence[HyperParameters]
    ) -> tuple[HyperParameters, ...]:
        """Return the candidates of a kernel for the configured length-scales."""
        scales = [v if isinstance(v, tuple) else (v,) for v in self.length_scales or ()]
        name = kernel if len(self.kernel_names) > 1 else ""
        some = scales[:1] if kernel == NONE else scales
        return tuple(replace(p, length_scales=ell, kernel=name) for ell in some for p in parts)
