"""Words, numbers and units for people, in the log and in ``/diagnostics``."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_KILOMETRES = 10_000.0
"""Smallest distance that is shown in kilometres [m]."""
_FEW = 10
"""Predictability is logged if at least this many places have readings."""
_AGAIN = 0.1
"""R² from which predictability is reported as regained."""


def shown(value: object, unit: str = "") -> str:
    """Return a value as text for people; the value may be a nested sequence or mapping.

    Numbers have six significant digits and the given unit.
    """
    if value is None:
        return "not set"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, numbers.Real | np.number):
        return _number(value, unit)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {shown(item, unit)}" for key, item in value.items()) or "none"
    if isinstance(value, Sequence | set | frozenset | np.ndarray):
        return ", ".join(shown(item, unit) for item in value) or "none"
    return str(value)


REASONS = {
    "gated": "far off the prediction",
    "no_pose": "no position near its time",
    "off_map": "off the map",
    "settling": "the sensor was settling",
    "partial_visit": "too short a part of the road was driven",
    "not_finite": "not a finite number",
    "fill_value": "fill value",
    "not_valid": "outside the valid range",
    "too_fast": "above the largest rate",
    "budget_spent": "the budget was spent",
    "mission_over": "the mission was over",
    "unknown_probe": "from an unknown probe",
}
"""Displayed words for the reasons of unused readings; other reasons are shown unchanged."""


def in_words(counts: Mapping[str, int]) -> str:
    """Return text that lists each reason in words, with its code and its number of messages."""
    codes = {code: f"{REASONS[code]} [{code}]" if code in REASONS else code for code in counts}
    return ", ".join(f"{codes[code]}: {count}" for code, count in counts.items())


_SYMBOLS = {"degC": "\N{DEGREE SIGN}C", "degF": "\N{DEGREE SIGN}F", "deg": "\N{DEGREE SIGN}"}


def symbol(unit: str) -> str:
    """Return the symbol of a unit, such as °C for degC."""
    return _SYMBOLS.get(unit, unit)


def brief(value: float) -> str:
    """Return a number as text with about three digits; 0.001 to 100,000 have no exponent."""
    if value != 0.0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}"
    decimals = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:.{decimals}f}" if abs(value) >= 0.1 or value == 0.0 else f"{value:.2g}"


def fixed(value: float, digits: int) -> str:
    """Return a number with `digits` decimals; a value that rounds to zero has no sign."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0.0 else text


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as 1 place or 2 places."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def distance(metres: float) -> str:
    """Return a distance with its unit, such as 4.2 m, 42 m or 12.3 km."""
    if metres >= _KILOMETRES:
        return f"{metres / 1000.0:.1f} km"
    return f"{metres:.0f} m" if metres >= 10.0 else f"{metres:.1f} m"


def moment(stamp_ns: int) -> str:
    """Return a time stamp [ns] as text in seconds."""
    return f"{1e-9 * stamp_ns:.3f} s"


def promised(summary: Mapping[str, Any]) -> str:
    """Return text with a run's promised error and the lower bound on the error of any route."""
    unit = f" {summary['unit']}" if summary["unit"] else ""
    text = f"{summary['promised_error']:.3g}{unit}"
    if summary.get("promised_worst") is not None:
        text += f" ({summary['promised_worst']:.3g}{unit} where it is worst)"
    if summary.get("least_error") is not None:
        text += (
            f"; lower bound for any route with {summary['least_places']} readings: "
            f"{summary['least_error']:.3g}{unit}"
        )
    return text


def describe_predictability(share: float, *, simulated: bool = False) -> str:
    """Return a sentence on how well readings of neighbouring places predict each other.

    `share` is R² of predictions from the readings of other places. At 0 or less, the predictions
    are not better than the mean. With `simulated` the sentence has no advice about the sensor.
    """
    percent = round(100.0 * share)
    if percent <= 0:
        advice = "take them closer together, or check the sensor"
        if simulated:
            advice = "the simulated field changes too much between the places read so far"
        return f"neighbouring readings do not predict each other (R\u00b2 = 0): {advice}"
    how = "well" if percent >= 70 else "partly" if percent >= 30 else "poorly"
    return f"neighbouring readings predict each other {how} (R\u00b2 = {share:.2f})"


class PredictabilityMonitor:
    """Monitor that reports when readings stop predicting each other, and when they start again.

    Predictability counts as lost at an R² of 0 and as regained at 0.1. Each change is reported
    once.
    """

    def __init__(self) -> None:
        self._predicting = True

    def message(self, record: Mapping[str, Any]) -> str:
        """Return the log message for a stage's record; "" = no message."""
        share, places = record.get("explained"), record.get("explained_places") or 0
        if share is None or places < _FEW:
            return ""
        predicting = share > 0.0 if self._predicting else share >= _AGAIN
        if predicting == self._predicting:
            return ""
        self._predicting = predicting
        now = " now" if predicting else ""
        return f"{places} places read: {describe_predictability(share)}{now}"


def _number(value: object, unit: str) -> str:
    if isinstance(value, numbers.Integral | np.integer):
        text = str(int(value))
    else:
        number = float(value)  # type: ignore[arg-type]
        if math.isnan(number):
            return "not known"
        if math.isinf(number):
            return "infinite" if number > 0 else "minus infinite"
        text = f"{number:.6g}"
    return f"{text} {unit}" if unit else text


def is_reported(count: int) -> bool:
    """Return whether the `count`-th event is logged: 1, 10, 100 and all multiples of 1000."""
    return count in (1, 10, 100) or count % 1000 == 0
