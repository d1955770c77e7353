from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.report.payload import LEVELS, pack, pack_integers, unpack


def test_values_come_back_to_half_a_level() -> None:
    rng = np.random.default_rng([1])
    values = rng.normal(30.0, 5.0, (20, 50)).cumsum(axis=0)
    packed = pack(values, float(values.min()), float(values.max()))
    assert (packed["rows"], packed["columns"]) == (20, 50)
    half = 0.5 * (values.max() - values.min()) / LEVELS
    assert np.abs(unpack(packed) - values).max() <= half * 1.001


def test_what_is_out_of_range_gets_the_end() -> None:
    packed = pack(np.array([[-5.0, 0.5, 9.0]]), 0.0, 1.0)
    assert unpack(packed)[0] == pytest.approx([0.0, 0.5, 1.0], abs=1e-4)


def test_one_value_only() -> None:
    assert unpack(pack(np.full((2, 3), 7.0), 7.0, 7.0)) == pytest.approx(np.full((2, 3), 7.0))


def test_integers() -> None:
    values = np.array([0, 1, 65535, 65536, 2**32 - 1])
    back = unpack(pack_integers(values))
    assert (back[:, 0] * 65536 + back[:, 1]).tolist() == values.tolist()
    assert unpack(pack_integers(np.array([], dtype=np.int64))).shape == (0, 2)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_integers_that_do_not_fit(value: int) -> None:
    with pytest.raises(ValueError, match="expected integers"):
        pack_integers(np.array([value]))


def test_maps_that_change_little_take_little() -> None:
    rng = np.random.default_rng([2])
    first = rng.normal(size=1000)
    slow = np.array([first + (0.001 * i) for i in range(100)])
    fast = rng.normal(size=(100, 1000))
    size = [len(pack(v, -5.0, 5.0)["data"]) for v in (slow, fast)]
    assert size[0] < 0.2 * size[1]
