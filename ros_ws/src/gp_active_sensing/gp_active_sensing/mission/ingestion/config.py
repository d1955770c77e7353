"""Configuration of how readings are taken in: waiting, averaging, gate and delay."""

from __future__ import annotations

from dataclasses import dataclass

from gp_active_sensing.mission.ingestion.outlier_gate import KEPT
from gp_active_sensing.mission.stream_config import (
    PoseConfig,
    ReadingConfig,
    most_per_second,
)

__all__ = ["PLAIN", "IngestionConfig", "taking_of"]

WAITING_SECONDS = 2.0
"""How much of the fastest stream of readings may wait for poses [s]."""
KEPT_SECONDS = 2.0
"""How much of the fastest stream of readings is kept when it is gated [s]."""


@dataclass(frozen=True)
class IngestionConfig:
    """How readings are taken in.

    Args:
        pose_wait: how long a reading waits for a pose that is not older than itself [s, real time].
        catch_up: what was missed while the node was away is to come first.
        max_ahead: how far a pose may be ahead of the node's clock [s]; None = any time.
        waiting: most readings that wait for their pose.
        gate: how far off a reading may be [standard deviations]; 0 = any.
        gate_places: places that must be observed before readings are gated.
        gate_kept: most gated readings kept.
        window: readings of a place within so long are averaged [s]; 0 = each stays as it is; None =
            those of one stay at a place are one reading.
        unit: of the readings, for messages.
        delay: how much older readings are than their stamps [s].
    """

    pose_wait: float = 0.0
    catch_up: bool = False
    max_ahead: float | None = None
    waiting: int = 1000
    gate: float = 0.0
    gate_places: int = 10
    gate_kept: int = KEPT
    window: float | None = 0.0
    unit: str = ""
    delay: float = 0.0


PLAIN = IngestionConfig()
"""Nothing is averaged or set aside, and the pose before a reading will do."""


def taking_of(reading: ReadingConfig, pose: PoseConfig, unit: str = "") -> IngestionConfig:
    """Return how readings are taken in, with room for the fastest stream that is used."""
    fastest = most_per_second(reading)
    return IngestionConfig(
        pose_wait=pose.wait,
        catch_up=reading.catch_up or pose.catch_up,
        max_ahead=pose.max_ahead,
        waiting=round(WAITING_SECONDS * fastest),
        gate=reading.gate,
        gate_places=reading.gate_places,
        gate_kept=max(KEPT, round(KEPT_SECONDS * fastest)),
        window=reading.window,
        unit=unit,
        delay=reading.delay,
    )
