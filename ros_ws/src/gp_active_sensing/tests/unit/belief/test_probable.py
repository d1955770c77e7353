"""What is said to be most probable: a kernel, and a length-scale with that kernel."""

from __future__ import annotations

from gp_active_sensing.belief.probable import Probable, most_probable


def test_the_length_scale_is_of_the_most_probable_kernel() -> None:
    """Length-scale 2 has most weight of all, but most of it with the other kernel."""
    candidates = [
        ("matern12", (1.0,), 0.3),
        ("matern12", (2.0,), 0.25),
        ("se", (2.0,), 0.2),
        ("se", (2.0,), 0.2),
        ("se", (4.0,), 0.05),
    ]
    assert most_probable(candidates) == Probable("matern12", 0.55, (1.0,), 0.3)


def test_without_names_the_length_scales_are_added_up() -> None:
    candidates = [("", [1.0, 2.0], 0.4), ("", [3.0, 2.0], 0.3), ("", [3.0, 2.0], 0.3)]
    assert most_probable(candidates) == Probable("", 1.0, (3.0, 2.0), 0.6)
