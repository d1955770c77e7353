r"""Estimate from noisy poses how many metres a probe has driven.

The sum of the distances between poses is correct only for exact poses. While a probe stands, white
noise of standard deviation σ adds about 1.8 σ to this sum with each pose. The way is therefore
measured as a sum of chords. A chord begins at a position that is called the anchor. It ends when
noise alone does not explain the distance of the probe from the anchor. The probe's position is then
the new anchor:

- The poses are exact (no estimated noise, no covariance): every pose becomes the anchor, unless the
  measured velocity is 0.
- The probe moves: a chord has at least the length :math:`6\sigma`. A chord of measured length D
  counts :math:`D - \sigma^2/D`, since noise lengthens it by :math:`\sigma^2/D` on average.
- The probe is at rest (no new anchor for some time): the anchor follows the poses slowly, so that a
  drift of the localisation does not count. A drive starts when the probe is :math:`16\sigma` from
  the anchor, or 0.8 spacings of places if this is less.

σ is the standard deviation of the white noise on each axis. It is estimated from the second
differences :math:`e_k = p_k - 2p_{k-1} + p_{k-2}` of poses at regular times. White noise on two
axes gives :math:`E[e_k \cdot e_{k-1}] = -8\sigma^2`. Motion makes this product 0 or positive. Until
σ is estimated, a fraction of the published standard deviation is used. The published standard
deviation also sets a smallest length of chords, since smooth poses may still drift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gp_active_sensing.mission.poses import Pose

_CHORD, _START = 6.0, 16.0
"""Smallest length of a chord: `_CHORD` in motion, `_START` at rest [estimated σ]."""
_CLAIMED_CHORD, _CLAIMED_START = 0.5, 2.0
"""Smallest length of a chord: in motion, and at rest [published σ]."""
_GUESS = 0.25
"""Noise that is assumed before the first estimate, as a fraction of the published σ."""
_FOLLOWS = 10.0
"""Time constant with which the anchor follows the poses of a probe at rest [s]."""
_MOST_FOLLOWED = 0.2
"""One pose moves the anchor by at most this fraction of the way to a probe at rest."""
_RESTS, _RESTS_PER_METRE = 3.0, 20.0
"""A probe is at rest after max(`_RESTS`, σ · `_RESTS_PER_METRE`) [s] without a new anchor."""
_REGULAR = 1.25
"""Largest time between two consecutive poses from which noise is estimated [s]."""
_LEARNT, _MEMORY = 12, 32
"""Fewest second differences for an estimate of the noise, and most that the estimate averages."""
_NONE = 1e-6
"""Largest noise that counts as rounding error [m]."""
_STANDS, _DRIVES = 0.03, 0.1
"""Largest speed at rest, and speed above which a pose proves that speeds are measured [m/s]."""


class Odometer:
    """Odometer of one probe.

    Args:
        most: largest plausible standard deviation of the noise [m].
        length: returns the length of a displacement (x, y, z) [m].
        twists: True = use the poses' speeds from the start; False = use them once a speed above
            0.1 m/s has come.
    """

    def __init__(
        self, most: float, length: Callable[[float, float, float], float], *, twists: bool = False
    ) -> None:
        self.metres = 0.0
        self.counted: Pose | None = None
        """Anchor, up to which `metres` are counted; its stamp is that of the newest pose."""
        self.noise = 0.0
        """Estimated standard deviation of white noise on each axis [m]; 0 = no noise."""
        self._most, self._length, self._measured = most, length, twists
        self._forget()

    def _forget(self) -> None:
        self._claimed = 0.0
        self._moving, self._twists = False, self._measured
        self._anchored_ns = 0
        self._last: tuple[int, float, float] | None = None
        self._step: tuple[float, float, float] | None = None
        """Time [s] and displacement (x, y) [m] between the last two poses."""
        self._bend: tuple[float, float] | None = None
        self._square = self._product = self._seen = 0.0
        self._run: tuple[float, float, float] | None = None
        """Position (x, y) [m] and `metres` at the first pose from which noise is estimated."""

    def restart(self) -> None:
        """Restart at the next pose; the way from the last pose to that pose is not counted."""
        self.counted = None
        self._forget()

    @property
    def sigma(self) -> float:
        """Standard deviation of the white noise of positions [m]; 0 = no noise."""
        if self.noise or self._seen >= _LEARNT:
            return self.noise
        return _GUESS * min(self._claimed, self._most)

    def add(self, pose: Pose) -> None:
        """Count the distance to a pose; a pose that is not newer than the last pose is ignored."""
        anchor = self.counted
        if anchor is not None and pose.stamp_ns <= anchor.stamp_ns:
            return  # the pose was sent again after a restart
        self._claimed = math.sqrt(0.5 * max(0.0, pose.variance))
        self._twists = self._twists or pose.speed > _DRIVES
        if anchor is None:
            self._drop_anchor(pose)
        else:
            self._count(anchor, pose)
        self._estimate(pose)

    def _drop_anchor(self, pose: Pose) -> None:
        self.counted, self._anchored_ns = pose, pose.stamp_ns

    def _count(self, anchor: Pose, pose: Pose) -> None:
        sigma, claimed, most = self.sigma, self._claimed, self._most
        metres = self._length(pose.x - anchor.x, pose.y - anchor.y, pose.z - anchor.z)
        stands = self._twists and pose.speed < _STANDS
        if not claimed and sigma <= _NONE and not (stands and self._measured):
            self.metres += metres
            self._drop_anchor(pose)
            self._moving = True
            return
        if 1e-9 * (pose.stamp_ns - self._anchored_ns) > max(_RESTS, _RESTS_PER_METRE * sigma):
            self._moving = False
        far = max(min(_START * sigma, 4.0 * most), min(_CLAIMED_START * claimed, 2.0 * most))
        if self._moving:
            far = max(_CHORD * sigma, min(_CLAIMED_CHORD * claimed, 0.25 * most))
        if metres > far and not stands:
            self.metres += metres - self.noise * self.noise / metres
            self._drop_anchor(pose)
            self._moving = True
            return
        part = 0.0
        if stands or not self._moving:
            part = -math.expm1(-1e-9 * (pose.stamp_ns - anchor.stamp_ns) / _FOLLOWS)
            part = min(part, _MOST_FOLLOWED)
        x, y = anchor.x + part * (pose.x - anchor.x), anchor.y + part * (pose.y - anchor.y)
        z = anchor.z + part * (pose.z - anchor.z)
        z = z if math.isfinite(z) else pose.z
        self.counted = Pose(pose.stamp_ns, pose.frame, x, y, math.nan, z=z)

    def _estimate(self, pose: Pose) -> None:
        """Update the noise estimate with the second difference of the last three poses."""
        last, self._last = self._last, (pose.stamp_ns, pose.x, pose.y)
        if last is None:
            self._begin(pose)
            return
        seconds = 1e-9 * (pose.stamp_ns - last[0])
        before, self._step = self._step, (seconds, pose.x - last[1], pose.y - last[2])
        if seconds > _REGULAR or (before and not 0.5 <= seconds / before[0] <= 2.0):
            self._begin(pose)
            return
        if before is None:
            return
        bend, self._bend = self._bend, (self._step[1] - before[1], self._step[2] - before[2])
        if math.hypot(*self._bend) > 7.0 * self._most:
            self._begin(pose)  # the bend is too large for noise
            return
        if bend is None:
            return
        self._seen = min(self._seen + 1.0, float(_MEMORY))
        part = 1.0 / self._seen
        self._square += part * (math.hypot(*self._bend) ** 2 - self._square)
        product = self._bend[0] * bend[0] + self._bend[1] * bend[1]
        self._product += part * (product - self._product)
        if self._seen < _LEARNT or not -0.9 < self._product / (self._square or 1.0) < -0.4:
            return
        sigma = math.sqrt(-self._product / 8.0)
        if sigma > self._most:
            self._begin(pose)
        elif sigma > _NONE:
            first = not self.noise and not self._claimed and self._seen < _MEMORY
            self.noise = sigma
            if first and self._run is not None:  # correct metres counted without noise
                x, y, self.metres = self._run
                self._moving = False
                self._count(Pose(last[0], pose.frame, x, y, math.nan, z=pose.z), pose)

    def _begin(self, pose: Pose) -> None:
        self._square = self._product = self._seen = 0.0
        self._step = self._bend = None
        self._run = pose.x, pose.y, self.metres

    @property
    def memory(self) -> tuple[float, ...]:
        """State that a restart needs in addition to `metres` and `counted`; () = no more state."""
        if self.counted is None or (self.sigma <= _NONE and not self._claimed):
            return ()
        stamp_ns, last = self.counted.stamp_ns, self._last
        assert last is not None
        known = self.noise, self._claimed, self._square, self._product, self._seen
        flags = float(self._moving), float(self._twists), float(self._bend is not None)
        times = float(stamp_ns - self._anchored_ns), float(stamp_ns - last[0])
        return (
            *(*known, *flags, *times, last[1], last[2]),
            *(self._step or (0.0, 0.0, 0.0)),
            *(self._bend or (0.0, 0.0)),
        )

    def recall(self, metres: float, counted: Pose | None, memory: Sequence[float]) -> None:
        """Restore the state after a restart.

        Raises:
            ValueError: `memory` is not valid.
        """
        self.metres = metres
        if counted is None:
            return
        self._drop_anchor(counted)
        if not memory:
            return
        if len(memory) != 17:
            msg = f"expected 17 numbers of an odometer, got {len(memory)}"
            raise ValueError(msg)
        self.noise, self._claimed, self._square, self._product, self._seen = memory[:5]
        self._moving, self._twists, bent = map(bool, memory[5:8])
        self._anchored_ns = counted.stamp_ns - round(memory[8])
        self._last = counted.stamp_ns - round(memory[9]), memory[10], memory[11]
        self._step = (memory[12], memory[13], memory[14]) if memory[12] else None
        self._bend = (memory[15], memory[16]) if bent else None
