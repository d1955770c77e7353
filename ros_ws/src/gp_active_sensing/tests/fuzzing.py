"""Absurd and mutated messages and parameters, and the sum that has to come out."""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

NUMBERS = (
    0.0, -0.0, 1.0, 20.0, -1.0, 1e-320, 1e-300, 1e99, 1e101, 1e308, -1e308, math.nan, math.inf,
    -math.inf, 3.0e9, 65535.0,
)  # fmt: skip
NO_MESSAGE = ("belief_error", "pose_off_map")
"""Counts that are not of a message that was refused: a belief in trouble, a pose off the map."""
SIZES = (0xFFFFFFFF, 0x7FFFFFFF, 0x10000000, 0x01000000, 0x00010000, 0)


def mutated(
    rng: random.Random, kinds: Mapping[str, Callable[[], Any]], serialise: Callable[[Any], bytes]
) -> Iterator[tuple[str, bytes]]:
    """Yield messages without end, absurd ones of each topic among them, as (topic, bytes)."""
    topics = list(kinds)
    while True:
        topic = rng.choice(topics)
        data = bytearray(serialise(kinds[topic]()))
        how = rng.randrange(8)
        if how == 0:
            for _ in range(rng.randrange(1, 8)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        elif how == 1:
            data = data[: rng.randrange(len(data))]
        elif how == 2:
            at = rng.randrange(max(1, len(data) - 4))
            data[at : at + 4] = struct.pack("<I", rng.choice(SIZES))
        elif how == 3:
            data = bytearray(rng.randbytes(rng.choice((0, 1, 3, 4, 40, 400))))
        elif how == 4 and rng.random() < 0.02:
            data += rng.randbytes(200_000)
        yield topic, bytes(data)


def absurd_values() -> tuple[Any, ...]:
    """Return values that no parameter was meant for, and some that are merely odd."""
    return (
        *NUMBERS, -1, 0, 1, 2**31, 2**63 - 1, -(2**63), True, False, "", " ", "x" * 10_000, "nan",
        "1e999", "[", "{}", "../../etc/passwd", "\x00", "ü", [], [""], [0.0], [math.nan] * 3,
        [1e308, -1e308], ["a", "b"], [True],
    )  # fmt: skip


def of_poses(word: str) -> bool:
    return word.startswith("pose_") or word == "wrong_frame"


def sums(mission: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Return what became of all readings and of all poses: used, waiting, and each reason."""
    ingestions = [probe.ingestion for probe in mission.probes.values()]
    counted = Counter(mission.rejected)
    for word in NO_MESSAGE:
        counted.pop(word, None)
    waiting = mission.inbox.pop()
    mission.inbox.put_back(waiting)
    inbox = Counter("readings" if hasattr(each.what, "value") else "poses" for each in waiting)
    readings = {word: n for word, n in counted.items() if not of_poses(word)}
    readings["used"] = sum(ingestion.pipeline.used for ingestion in ingestions)
    readings["waiting"] = inbox["readings"] + sum(
        i.waiting + i.visits.waiting + len(i.pipeline.window) for i in ingestions
    )
    readings["dropped"] = mission.inbox.dropped["readings"]
    poses = {word: n for word, n in counted.items() if of_poses(word)}
    poses["used"] = sum(ingestion.poses for ingestion in ingestions)
    poses["waiting"] = inbox["poses"]
    poses["dropped"] = mission.inbox.dropped["poses"]
    return readings, poses
