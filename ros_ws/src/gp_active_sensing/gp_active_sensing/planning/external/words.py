"""What is said to a program that chooses, and what it may answer: plain data, for JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.prior import TRANSFORMS
from gp_active_sensing.planning.base import Candidates
from gp_active_sensing.planning.external.process import ProgramError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Budget

__all__ = ["PROTOCOL", "Answer", "decision_words", "map_words", "understood"]

PROTOCOL = 1
"""Number of the protocol; it grows when a program written for it could no longer cope."""
_SHOWN = 80
"""Characters of a wrong answer that are shown."""


def map_words(topology: Topology) -> dict[str, Any]:
    """Return the line about a map, which comes before the first question about it."""
    n = topology.n
    weights = getattr(topology, "weights", None)
    ways = topology.ways_from(0)
    driven = np.isfinite(ways.seconds) & (ways.seconds > 0.0)
    speeds = ways.metres[driven] / ways.seconds[driven]
    return {
        "type": "map",
        "protocol": PROTOCOL,
        "name": topology.name,
        "frame": topology.frame,
        "names": list(topology.names),
        "positions": topology.positions.tolist(),
        "features": topology.features.tolist(),
        "feature_names": list(topology.feature_names),
        "weights": [1.0] * n if weights is None else np.asarray(weights).tolist(),
        "free": bool(topology.free),
        "moves": None if topology.free else [topology.neighbours(i).tolist() for i in range(n)],
        "speed": float(np.median(speeds)) if speeds.size else None,
    }


def decision_words(
    belief: Belief,
    topology: Topology,
    at: int | None,
    options: Candidates,
    *,
    number: int,
    seed: int,
    seconds: float,
    pending: Collection[int],
    unavailable: Collection[int],
    remaining: Budget,
) -> dict[str, Any]:
    """Return the line that asks for a place.

    Args:
        belief: what is known about the field.
        topology: where the probe may go.
        at: where it stands; None = nowhere yet.
        options: the places that may be answered.
        number: of the decision.
        seed: for what is random in it.
        seconds: until the answer comes too late [s].
        pending: waypoints already given to other probes.
        unavailable: places that are set aside.
        remaining: of the budget.
    """
    return {
        "type": "decision",
        "decision": number,
        "seed": seed,
        "time": seconds,
        "at": at,
        "candidates": {
            "places": options.locations.tolist(),
            "metres": [route.cost.metres for route in options.routes],
            "seconds": [route.cost.seconds for route in options.routes],
        },
        "pending": sorted(int(place) for place in pending),
        "unavailable": sorted(int(place) for place in unavailable),
        "remaining": {k: _finite(v) for k, v in dataclasses.asdict(remaining).items()},
        "belief": _belief_words(belief),
    }


def _belief_words(belief: Belief) -> dict[str, Any]:
    """Return what is believed, as the Gaussian process sees it (see ``scale``)."""
    weights = belief.weights
    mean, variance = belief.marginals()
    middle = weights @ mean
    deviation = np.sqrt(weights @ (variance + np.square(mean - middle)))
    read = np.flatnonzero(belief.observed)
    known = [name for name, one in TRANSFORMS.items() if one is belief.transform]
    values, noise = np.empty(0), np.empty(0)
    if read.size:
        values = weights @ belief.averages(read)
        noise = np.sqrt(weights @ belief.average_noise(read))
    return {
        "scale": known[0] if known else "other",
        "mean": middle.tolist(),
        "std": deviation.tolist(),
        "noise_std": math.sqrt(float(weights @ belief.noise_variance)),
        "candidates": [
            {"weight": float(weight), **dataclasses.asdict(candidate)}
            for weight, candidate in zip(weights, belief.hyperparameters, strict=True)
        ],
        "readings": {
            "places": read.tolist(),
            "values": values.tolist(),
            "counts": belief.readings[read].tolist(),
            "noise_std": noise.tolist(),
        },
    }


class Answer(NamedTuple):
    """What a program chose.

    Args:
        candidate: its number.
        route: the places it would go to afterwards.
        value: what it says the decision is worth; 0 = it says nothing.
    """

    candidate: int
    route: tuple[int, ...] = ()
    value: float = 0.0


def understood(answer: Mapping[str, Any], options: Candidates, topology: Topology) -> Answer:
    """Return the choice that an answer stands for.

    Args:
        answer: ``place``, and if it likes ``route`` and ``value``.
        options: what may be chosen.
        topology: knows the names of the places.

    Raises:
        ProgramError: a place that may not be chosen, or anything else that cannot be meant.
    """
    if "place" not in answer:
        raise ProgramError(_wrong("an answer without a place", answer.get("error")))
    place = _place(answer["place"], topology)
    found = np.flatnonzero(options.locations == place)
    if not found.size:
        word = f"{answer['place']!r}, which is none of the candidates"
        msg = f"chose {word:.{_SHOWN}}"
        raise ProgramError(msg)
    route = answer.get("route") or ()
    if not isinstance(route, list | tuple) or len(route) > topology.n:
        raise ProgramError(_wrong("a route that is no list of places", route))
    places = [_place(entry, topology) for entry in route]
    if places and places[0] == place:
        places = places[1:]
    value = answer.get("value")
    value = 0.0 if value is None else value
    # Not beyond what a float can hold: an integer of JSON may have any number of digits.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise ProgramError(_wrong("a value that is no finite number", value))
    return Answer(int(found[0]), tuple(places), float(value))


def _place(word: Any, topology: Topology) -> int:
    """Return the index that a name or an index stands for."""
    n = topology.n
    if isinstance(word, str) and word in (names := topology.names):
        return names.index(word)
    if isinstance(word, int) and not isinstance(word, bool) and 0 <= word < n:
        return word
    raise ProgramError(_wrong("a place that is not on the map", word))


def _wrong(what: str, value: Any) -> str:
    return f"gave {what}: {value!r:.{_SHOWN}}"


def _finite(value: float | None) -> float | None:
    """Return a limit, None where it is infinite: JSON has no word for that."""
    return None if value is None or not math.isfinite(value) else value
