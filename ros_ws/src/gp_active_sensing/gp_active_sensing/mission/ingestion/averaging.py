"""Average the readings of one place within a time window into one reading.

A sensor that is asked faster than its errors change gives the same error again and again; as many
readings they would count for more than they know. Time is that of the messages, so that a replayed
bag gives the same averages.
"""

from __future__ import annotations

from dataclasses import replace

from gp_active_sensing.mission.ingestion.visits import PendingReading

__all__ = ["AveragingWindow"]


class AveragingWindow:
    """The readings of the place where a probe is, until they are averaged; its size is constant.

    The average is taken as one reading: its noise is that of one reading of the belief, or, where
    all of them bring a variance, the mean of these. Its stamp is that of its last reading.

    Args:
        seconds: length by the stamps; 0 = each reading stays as it is.
    """

    def __init__(self, seconds: float) -> None:
        self.length_ns = round(1e9 * seconds)
        self._open: PendingReading | None = None
        """The average so far."""

    def __len__(self) -> int:
        return 0 if self._open is None else self._open.count

    @property
    def place(self) -> int | None:
        """Whose readings are in it."""
        return None if self._open is None else self._open.reading.location

    def add(self, held: PendingReading) -> list[PendingReading]:
        """Take a reading of a known place; return what is complete."""
        if self.length_ns <= 0:
            return [held]
        stamp_ns, before = held.reading.stamp_ns, self._open
        if before is None:
            self._open = replace(held, first_ns=stamp_ns)
            return []
        first_ns, last_ns = _span(before)
        longest = max(last_ns, stamp_ns) - min(first_ns, stamp_ns)
        if held.reading.location == self.place and longest < self.length_ns:
            self._open = _together(before, held)
            return []
        if stamp_ns < first_ns:
            return [held]  # a late one does not end what is newer
        done = self.close()
        self._open = replace(held, first_ns=stamp_ns)
        return done

    def pass_time(self, now_ns: int, here: int | None) -> list[PendingReading]:
        """Return what is complete.

        Args:
            now_ns: stamp of the newest pose.
            here: the place where the probe is; None = not known.
        """
        if self._open is None:
            return []
        over = now_ns - _span(self._open)[0] >= self.length_ns
        return self.close() if over or here not in (None, self.place) else []

    def close(self) -> list[PendingReading]:
        """Return the average of what is in it, if anything is, and begin again."""
        done, self._open = self._open, None
        return [] if done is None else [done]


def _span(held: PendingReading) -> tuple[int, int]:
    last_ns = held.reading.stamp_ns
    return last_ns if held.first_ns is None else held.first_ns, last_ns


def _together(before: PendingReading, held: PendingReading) -> PendingReading:
    """Return the average with one more reading in it."""
    count, new, old = before.count + 1, held.reading, before.reading
    first_ns, last_ns = _span(before)
    latest = new if new.stamp_ns >= last_ns else old
    variance = None
    if old.noise_variance is not None and new.noise_variance is not None:
        variance = old.noise_variance + (new.noise_variance - old.noise_variance) / count
    unsure = old.position_variance + (new.position_variance - old.position_variance) / count
    height = old.height_variance + (new.height_variance - old.height_variance) / count
    # By differences: exact for equal values, and no sum that overflows.
    value = old.value + (new.value - old.value) / count
    return PendingReading(
        replace(
            latest,
            value=value,
            noise_variance=variance,
            position_variance=unsure,
            height_variance=height,
        ),
        max(before.received, held.received),
        count=count,
        first_ns=min(first_ns, new.stamp_ns),
        taken_back=before.taken_back or held.taken_back,
    )
