r"""Metres that a probe drives, by its poses; noise does not drive.

The sum of the distances from pose to pose is right for exact poses only: white noise of standard
deviation σ adds about 1.8 σ with each pose of a probe that stands. So the way is counted in chords
from an anchor, which moves on once the probe is farther from it than noise explains:

- Exact poses (no noise seen, no covariance): every pose is an anchor, unless a measured velocity
  says that the probe stands.
- Moving: chords of at least :math:`6\sigma`; one of measured length D counts
  :math:`D - \sigma^2/D`, since noise across a chord lengthens it by that in the mean.
- At rest (no new anchor for a while): the anchor follows the poses slowly, so that a drift of the
  localisation adds up to nothing. A drive begins :math:`16\sigma` from it, or most of a spacing
  where that is less, and counts from there.

σ is the white noise per axis, estimated from the second differences
:math:`e_k = p_k - 2p_{k-1} + p_{k-2}` of poses that come regularly: for white noise
:math:`E[e_k \cdot e_{k-1}] = -8\sigma^2` (two axes), while driving at a steady speed, starting,
braking and turning make that product 0 or positive. What the publisher claims stands in for it
until it is known, and widens the chords of poses that are smooth and wander all the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gp_active_sensing.mission.poses import Pose

_CHORD, _START = 6.0, 16.0
"""Distance from the anchor that counts, while moving and from rest, in standard deviations."""
_CLAIMED_CHORD, _CLAIMED_START = 0.5, 2.0
"""The same in standard deviations that the publisher claims, where the noise is known."""
_GUESS = 0.25
"""White noise as a part of what is claimed, while it is not known."""
_FOLLOWS = 10.0
"""Time constant with which the anchor of a probe at rest follows its poses [s]."""
_MOST_FOLLOWED = 0.2
"""Greatest part of the way to one pose by which it follows: it averages several poses."""
_RESTS, _RESTS_PER_METRE = 3.0, 20.0
"""A probe without a new anchor for so long rests [s], or for so long for each metre of noise."""
_REGULAR = 1.25
"""Longest time between poses from which noise is estimated [s]."""
_LEARNT, _MEMORY = 12, 32
"""Second differences from which the noise is known, and over which it is averaged."""
_NONE = 1e-6
"""Noise that is rounding [m]."""
_STANDS, _DRIVES = 0.03, 0.1
"""Speed at which a probe stands by its twist, and one that shows that twists come [m/s]."""


class Odometer:
    """Counts the metres of one probe.

    Args:
        most: standard deviation of a noise that is believed in; what is more is driving [m].
        length: x, y, z of a way -> its length [m].
        twists: speeds are measured; otherwise they count once one shows that they come.
    """

    def __init__(
        self, most: float, length: Callable[[float, float, float], float], *, twists: bool = False
    ) -> None:
        self.metres = 0.0
        """Metres driven since the mission began."""
        self.counted: Pose | None = None
        """Up to where `metres` are counted; with the stamp of the newest pose."""
        self.noise = 0.0
        """White noise of a pose along each axis; 0 = none was seen [m]."""
        self._most, self._length, self._measured = most, length, twists
        self._forget()

    def _forget(self) -> None:
        self._claimed = 0.0
        self._moving, self._twists = False, self._measured
        self._anchored_ns = 0
        self._last: tuple[int, float, float] | None = None
        self._step: tuple[float, float, float] | None = None
        """Time [s] and way [m] from the pose before to the last one."""
        self._bend: tuple[float, float] | None = None
        self._square = self._product = self._seen = 0.0
        self._run: tuple[float, float, float] | None = None
        """Where poses began to come regularly, and metres counted then."""

    def restart(self) -> None:
        """Restart at the next pose; the way to it is not counted."""
        self.counted = None
        self._forget()

    @property
    def sigma(self) -> float:
        """Standard deviation of the white noise of positions [m]; 0 = none."""
        if self.noise or self._seen >= _LEARNT:
            return self.noise
        return _GUESS * min(self._claimed, self._most)

    def add(self, pose: Pose) -> None:
        """Count the way to a pose; one that is not newer than the last is ignored."""
        anchor = self.counted
        if anchor is not None and pose.stamp_ns <= anchor.stamp_ns:
            return  # sent again to a node that was started again
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
        """Update the noise estimate with the second difference that ends at a pose."""
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
            self._begin(pose)  # no noise is as wide
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
            if first and self._run is not None:  # count again what was counted as if it were exact
                x, y, self.metres = self._run
                self._moving = False
                self._count(Pose(last[0], pose.frame, x, y, math.nan, z=pose.z), pose)

    def _begin(self, pose: Pose) -> None:
        """Estimate the noise afresh, from a pose on."""
        self._square = self._product = self._seen = 0.0
        self._step = self._bend = None
        self._run = pose.x, pose.y, self.metres

    @property
    def memory(self) -> tuple[float, ...]:
        """Return the further state that a restart needs; () = none."""
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
        """Restore the counts from before a restart.

        Raises:
            ValueError: a memory that is none.
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
