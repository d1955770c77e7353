"""Data of a run for the scripts of its page, with compressed maps."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gp_active_sensing.kernels import scale_unit as unit_of_scales
from gp_active_sensing.planning.explain import called, elsewhere, outcome, value_unit, why
from gp_active_sensing.records.event_lines import parse_events
from gp_active_sensing.records.events import MissionStarted
from gp_active_sensing.report.frame import DOUBT, VALUES
from gp_active_sensing.report.map_frame import georeference, layers_of, shore_of
from gp_active_sensing.report.quality import calibration_of
from gp_active_sensing.report.source import RunData
from gp_active_sensing.report.steps import Reconstruction, ReportStep, number_of
from gp_active_sensing.report.track import GrowingTracks
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import CandidateValue, FloatArray, IntArray, Plan
from gp_active_sensing.util.wording import counted, distance

LEVELS = 65535
"""Largest integer of packed values; the resolution is 1/65535 of the value range."""


def pack(values: FloatArray, low: float, high: float) -> dict[str, Any]:
    """Compress values (rows, columns) to JSON data, which ``assets/decode.js`` unpacks.

    Values are clipped to [low, high] and rounded to 16 bits. The differences between rows are
    compressed, high bytes before low bytes.
    """
    step = (high - low) / LEVELS if high > low else 1.0
    levels = np.rint((np.clip(values, low, max(low, high)) - low) / step).astype(np.uint16)
    return _pack(levels, low, step)


def pack_integers(values: IntArray) -> dict[str, Any]:
    """Compress integers (rows,) from 0 to 2³²-1, as two columns of 16 bits."""
    whole = np.asarray(values, dtype=np.int64)
    if whole.size and (whole.min() < 0 or whole.max() >= 2**32):
        msg = f"expected integers of 0 … 2³²-1, got {whole.min()} … {whole.max()}"
        raise ValueError(msg)
    return _pack(np.column_stack([whole >> 16, whole & 0xFFFF]).astype(np.uint16), 0.0, 1.0)


def _pack(levels: Any, low: float, step: float) -> dict[str, Any]:
    rows, columns = levels.shape
    changes = levels.copy()
    changes[1:] -= levels[:-1]  # Integer overflow wraps around, and the sum wraps back.
    planes = np.concatenate([(changes >> 8).ravel(), (changes & 0xFF).ravel()]).astype(np.uint8)
    data = base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")
    return {"rows": rows, "columns": columns, "low": low, "step": step, "data": data}


MAP_BYTES = 3_000_000
"""Largest size of the packed maps [bytes]."""
CANDIDATES = 200
"""Largest number of stored candidate places per decision."""
ALL_CANDIDATES = 12_000
"""Largest number of stored candidate places over all decisions."""
SCALES = 12
"""Largest number of length-scales that a page shows separately."""
_TO = " to "
Scale: TypeAlias = tuple[float, ...]


def build_payload(data: RunData, done: Reconstruction, thin: int = 1) -> dict[str, Any]:
    """Return the data of a page, with only every `thin`-th map and 1/`thin` of the candidates."""
    maps = _maps(done, thin)
    while _size(maps) > MAP_BYTES and len(maps["steps"]) > 2:
        thin *= 2
        maps = _maps(done, thin)
    groups, kept = groups_of(done), kept_of(len(done.steps), thin)
    return {
        **describe(data, done),
        "places": places_of(data.topology),
        "steps": [describe_step(data, step, groups, kept) for step in done.steps],
        "readings": _readings(done.steps),
        "maps": maps,
        "quality": quality_of(data, done),
        "floor": floor_of(data, done),
        "tracks": _tracks(data, done),
    }


def quality_of(data: RunData, done: Reconstruction) -> dict[str, Any] | None:
    """Return the leave-one-out quality of the map; None if the truth is known.

    The cost is O(L D³), see `calibration_of`.
    """
    if data.truth is not None:
        return None
    found = calibration_of(done.belief)
    return None if found is None else found.to_payload()


def _tracks(data: RunData, done: Reconstruction) -> list[dict[str, Any]]:
    """Return the driven tracks; [] for a simulation or a map with heights."""
    events = tuple(parse_events(data.events))
    first = next((event for event in events if isinstance(event, MissionStarted)), None)
    has_heights = data.topology.heights is not None  # tracks have only x and y
    if first is None or first.details.get("driver") == "sim" or has_heights:
        return []
    driven = GrowingTracks(float(np.ptp(data.topology.positions, axis=0).max()))
    for event in events:
        driven.add(event)
    return pack_tracks(driven, done)


def pack_tracks(driven: GrowingTracks, done: Reconstruction) -> list[dict[str, Any]]:
    """Return tracks with at least two points as plain data."""
    ends = [number if done.by_stage else step.number for number, step in enumerate(done.steps)]
    found = []
    for track in driven.tracks(ends, by_stage=done.by_stage):
        way = _packed([np.array(track.points, dtype=np.float64)])
        found.append({"probe": track.probe, "x": way["x"], "y": way["y"], "upto": track.upto})
    return found


def describe(data: RunData, done: Reconstruction) -> dict[str, Any]:
    """Return the data common to all steps."""
    groups = groups_of(done)
    return {
        "kind": "stages" if done.by_stage else "readings",
        "name": str(data.config.get("name") or data.topology.name),
        "unit": data.symbol,
        "unitSaid": data.unit,
        "quantity": data.quantity,
        "frame": data.topology.frame,
        "valueUnit": value_unit(data.policy),
        "objective": data.objective,
        "probes": sorted({str(s.record["probe"]) for s in done.steps if s.record.get("probe")}),
        "regret": _regret(done.steps),
        "scales": {
            "labels": [_group_label(scale_unit(data), group) for group in groups],
            "prior": _shares(done.prior, groups),
        },
        "kernels": {
            "labels": list(done.prior_kernels),
            "prior": [round(weight, 4) for weight in done.prior_kernels.values()],
        },
        "colours": {"values": VALUES, "doubt": DOUBT},
    }


def kept_of(steps: int, thin: int = 1) -> int:
    """Return the number of stored candidate places per decision for a run of `steps` steps.

    The number changes only by factors of 2, because a change rewrites all steps of a live page.
    """
    most = CANDIDATES
    while most > 4 and most * steps > ALL_CANDIDATES:
        most //= 2
    return max(4, most // thin)


def floor_of(data: RunData, done: Reconstruction) -> tuple[float, int] | None:
    """Return (bound, k): a lower bound on the expected error after k readings on any route.

    The result is None if the bound is unknown or zero.
    """
    if "least_error" in data.summary:
        least, places = data.summary["least_error"], data.summary["least_places"]
    else:  # older and running runs have no bound in the summary
        least, places = done.belief.floor(data.topology.weights) or (None, None)
    if least is None or places is None or not least > 0.0:
        return None
    return float(least), int(places)


def is_line(topology: Topology) -> bool:
    """Return True if all places of a map in the plane lie on one line along x or y."""
    spread = np.ptp(topology.positions, axis=0)
    return bool(spread.min() <= 1e-9 * max(float(spread.max()), 1e-9))


def scale_unit(data: RunData) -> str:
    """Return the unit of the length-scales; "" for features that are not positions."""
    return unit_of_scales(data.topology.feature_names, data.belief.kernel_names)


def scale_labels(unit: str, scales: Sequence[tuple[float, ...]]) -> list[str]:
    """Return each length-scale as text with its unit."""
    return [_group_label(unit, [scale]) for scale in scales]


def groups_of(done: Reconstruction) -> list[list[Scale]]:
    """Return groups of length-scales, smallest first; the page shows each group as one.

    With at most `SCALES` length-scales, only length-scales with equal labels share a group.
    """
    scales = sorted({scale for step in done.steps for scale in step.masses} | set(done.prior))
    if len(scales) <= SCALES:
        by_label: dict[str, list[Scale]] = {}
        for scale in scales:
            by_label.setdefault(_group_label("", [scale]), []).append(scale)
        return list(by_label.values())
    size = np.log([np.exp(np.mean(np.log(scale))) for scale in scales])
    edges = np.linspace(size.min(), size.max(), SCALES + 1)[1:-1]
    number = np.searchsorted(edges, size)
    groups = [[s for s, n in zip(scales, number, strict=True) if n == g] for g in range(SCALES)]
    return [group for group in groups if group]


def _group_label(unit: str, group: Sequence[Scale]) -> str:
    after = f" {unit}" if unit else ""
    if all(len(set(scale)) == 1 for scale in group):
        return _from_to([scale[0] for scale in group], _TO) + after
    axes = [_from_to(values, "\N{EN DASH}") for values in zip(*group, strict=True)]
    if unit and len(axes) == 3 and axes[0] == axes[1]:
        return f"{axes[0]} across, {axes[2]}{after} up"
    return " × ".join(axes) + after


def _from_to(values: Sequence[float], to: str) -> str:
    low, high = min(values), max(values)
    digits = 3 if to == _TO or low == high else 2  # less room with several axes
    ends = [f"{v:.0f}" if v >= 100.0 else f"{v:.{digits}g}" for v in (low, high)]
    return ends[0] if ends[0] == ends[1] else to.join(ends)


def _shares(masses: Mapping[Scale, float], groups: Sequence[Sequence[Scale]]) -> list[float]:
    return [round(sum(masses.get(scale, 0.0) for scale in group), 4) for group in groups]


def describe_step(
    data: RunData, step: ReportStep, groups: Sequence[Sequence[Scale]], kept: int
) -> dict[str, Any]:
    """Return the data of a step with up to `kept` candidate places, without readings and maps."""
    found: dict[str, Any] = {
        "n": step.number,
        "observed": step.observed,
        "weights": _shares(step.masses, groups),
        **({"kernels": [round(w, 4) for w in step.kernels.values()]} if step.kernels else {}),
        "rmspe": _significant(step.scores["rmspe"]),
        "nlpd": _significant(step.scores["nlpd"]),
        "promised": _significant(step.promised),
        "held": _percent(step, "coverage"),
        "heldReadings": _percent(step, "reading_coverage"),
        "r": len(step.readings),
        "seconds": _significant(step.seconds),
    }
    if step.limits:
        found["closed"] = sorted(p for p, closed in step.limits.items() if closed)
        found["opened"] = sorted(p for p, closed in step.limits.items() if not closed)
    plan = step.plan
    if plan is None:
        return found
    if plan.waypoint is None:
        return found | _way_home(data, step, plan)
    record = step.record
    chosen = _best(plan.candidates, plan.waypoint, kept)
    if record.get("probe"):
        found["probe"] = str(record["probe"])
    return found | {
        "place": plan.waypoint,
        "at": step.at,
        "path": list(plan.path),
        "plan": list(plan.waypoints[1:]),
        **_went(step, plan),
        "value": _significant(step.value, 6),
        "expected": [_significant(v) for v in step.expected] if step.expected else None,
        "why": why(plan, data.topology.names, data.policy),
        "outcome": " ".join(
            (
                *elsewhere(record, data.topology.names),
                outcome(
                    step.expected,
                    step.value,
                    data.symbol,
                    set_aside=bool(record.get("set_aside")),
                    blocked=str(record.get("blocked") or ""),
                ),
            )
        ),
        "candidates": [[c.location, _fine(c.lower), _fine(c.upper)] for c in chosen],
        "others": len(plan.candidates) - len(chosen),
        # Bounds need candidate places; the policy `random` has none.
        "lower": _fine(plan.lower) if plan.candidates else None,
        "upper": _fine(plan.upper) if plan.candidates else None,
        "planSeconds": _significant(float(record.get("plan_seconds") or plan.seconds)),
        "limit": plan.deadline_hit,
        "driven": _driven(number_of(record.get("driven_metres"))),
    }


def _driven(metres: float | None) -> str:
    return distance(metres) if metres else ""


def _percent(step: ReportStep, kind: str) -> list[float | None]:
    found = (step.scores[f"{kind}_{level}"] for level in (50, 90, 95))
    return [None if share is None else round(100.0 * share, 2) for share in found]


def _went(step: ReportStep, plan: Plan) -> dict[str, Any]:
    went = step.record.get("went")
    if not isinstance(went, int) or went == plan.waypoint:
        return {}
    return {"chosen": plan.waypoint, "place": went, "path": [went], "plan": []}


def _way_home(data: RunData, step: ReportStep, plan: Plan) -> dict[str, Any]:
    end = called(data.topology.names[plan.path[-1]])
    read = len(step.readings)
    return {
        "home": True,
        "at": step.at,
        "path": list(plan.path),
        "driven": _driven(step.metres),
        "why": f"Nothing more was chosen: {plan.reason}. The way to {end}, where the mission had "
        f"to end: {plan.cost.metres:.0f} m.",
        "outcome": f"{counted(read, 'place')} read on the way." if read else "",
    }


def _best(candidates: Sequence[CandidateValue], chosen: int, kept: int) -> list[CandidateValue]:
    ordered = sorted(candidates, key=lambda c: (-c.upper, -c.lower, c.location))
    first = ordered[:kept]
    if all(c.location != chosen for c in first):
        first[-1:] = [c for c in ordered if c.location == chosen] or first[-1:]
    return first


def _regret(steps: Sequence[ReportStep]) -> dict[str, list[float | None]] | None:
    """Return the regret at each step; None = not computed.

    Keys: ``each`` = regret of the stage; ``average`` = average over the stages so far;
    ``recommended`` = regret of the recommended place; ``bound`` = upper bound on ``average``.
    """
    records = [step.record for step in steps]
    if not any(record.get("regret") is not None for record in records):
        return None
    keys = ("each", "average", "recommended", "bound")
    found: dict[str, list[float | None]] = {key: [] for key in keys}
    # The stages of several probes do not end in the order of their numbers.
    bounds = sorted(float(r["regret_bound"]) for r in records if r.get("regret_bound") is not None)
    total, count = 0.0, 0
    for record in records:
        regret = record.get("regret")
        if regret is not None:
            total, count = total + float(regret), count + 1
        found["each"].append(_significant(regret))
        found["average"].append(_significant(total / count) if count else None)
        found["recommended"].append(_significant(record.get("recommended_regret")))
        known = 0 < count <= len(bounds)
        found["bound"].append(_significant(bounds[count - 1] / count) if known else None)
    if not bounds:
        del found["bound"]
    return found


def places_of(topology: Topology) -> dict[str, Any]:
    """Return the names and shapes of the places of a map."""
    lines = [np.asarray(topology.geometry(i), dtype=np.float64) for i in range(topology.n)]
    found: dict[str, Any] = {
        "names": list(topology.names),
        "north": topology.datum is not None,
        "georeference": georeference(topology),
        **_packed(lines),
    }
    if topology.heights is not None:
        side = side_of(topology.positions)
        found |= {"shape": "cells", "side": side, "layers": layers_of(topology, side)}
        return found | {"z": topology.heights.round(3).tolist()}
    if is_line(topology):
        axis = int(np.argmax(np.ptp(topology.positions, axis=0)))
        return found | {"shape": "line", "axis": "xy"[axis]}
    if all(len(line) == 1 for line in lines):
        side = side_of(topology.positions)
        return found | {"shape": "cells", "side": side, "shore": _shore(topology, side)}
    return found | {"shape": "roads", "counts": _counts(lines)}


def _shore(topology: Topology, side: float) -> dict[str, Any] | None:
    lines = shore_of(topology, side)
    return {**_packed(lines), "counts": _counts(lines)} if lines else None


def _packed(lines: Sequence[FloatArray]) -> dict[str, Any]:
    points = np.vstack(lines)
    low, high = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    x, y = (pack(points[:, k : k + 1], low[k], high[k]) for k in (0, 1))
    return {"low": low, "high": high, "x": x, "y": y}


def _counts(lines: Sequence[FloatArray]) -> dict[str, Any]:
    return pack_integers(np.array([len(line) for line in lines]))


def side_of(positions: FloatArray) -> float:
    """Return the distance between neighbouring places [m]; squares of this side show the places."""
    from scipy.spatial import cKDTree

    positions = np.unique(np.round(positions, 6), axis=0)  # places may be above each other
    if len(positions) < 2:
        return 1.0
    distances, _ = cKDTree(positions).query(positions, k=2)
    return float(np.median(np.asarray(distances)[:, 1])) or 1.0


def _readings(steps: Sequence[ReportStep]) -> dict[str, Any]:
    used_readings = [reading for step in steps for reading in step.readings]
    values = np.array([value for _, value, _ in used_readings], dtype=np.float64)
    low, high = (float(values.min()), float(values.max())) if used_readings else (0.0, 1.0)
    return {
        "place": pack_integers(np.array([place for place, _, _ in used_readings], dtype=np.int64)),
        "count": pack_integers(np.array([count for _, _, count in used_readings], dtype=np.int64)),
        "value": pack(values[:, None], low, high),
    }


def _maps(done: Reconstruction, thin: int) -> dict[str, Any]:
    last = len(done.shown) - 1
    rows = sorted({*range(0, len(done.shown), thin), last})
    truth = done.truth
    ranges = ranges_of(done)
    (low, high), (_, most) = ranges["range"], ranges["doubt"]
    reach = 4.0 * (high - low)
    found: dict[str, Any] = {
        "steps": [done.shown[row] for row in rows],
        "all": len(done.steps),
        **ranges,
        "mean": pack(done.mean[rows], low - reach, high + reach),
        "std": pack(done.std[rows], 0.0, min(float(done.std.max()), 20.0 * most)),
        "truth": None,
    }
    if truth is not None:
        found["truth"] = pack(truth if len(truth) == 1 else truth[rows], low, high)
    return found


def ranges_of(done: Reconstruction) -> dict[str, list[float]]:
    """Return the colour ranges of the field and of its standard deviation, for all steps."""
    final, truth = done.mean[-1], done.truth
    shared = final if truth is None else np.concatenate([final, truth.ravel()])
    # The first maps may be inaccurate. Their values beyond the range get the first or last colour.
    most = float(np.median(done.std.max(axis=1)[min(1, len(done.std) - 1) :])) or 1.0
    low, high = float(shared.min()), float(shared.max())
    return {"range": [low, high] if high > low else [low - 0.5, high + 0.5], "doubt": [0.0, most]}


def _size(maps: dict[str, Any]) -> int:
    return sum(len(maps[key]["data"]) for key in ("mean", "std", "truth") if maps[key])


def _fine(value: float) -> float:
    """Round a bound to enough digits to distinguish candidate places."""
    return float(f"{value:.8g}")


def _significant(value: float | None, digits: int = 5) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.{digits}g}")
