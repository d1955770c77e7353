from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.sim import FieldConfig, build_truth
from gp_active_sensing.sim.fields.formula import Formula
from gp_active_sensing.topology import make_grid, make_line
from gp_active_sensing.topology.grids import make_points

X = np.linspace(-2.0, 3.0, 7)
Y = np.linspace(1.0, 4.0, 7)
FUNCTIONS = (
    "sqrt square log log2 log10 tan arcsin arccos arctan sinh cosh tanh floor ceil abs sign".split()
)


def test_it_means_what_it_says() -> None:
    for text, expected in (
        ("1", np.ones(7)),
        ("x + 2*y - 3/4", X + 2 * Y - 0.75),
        ("-x**2 + +y % 2 + y // 2", -(X**2) + Y % 2 + Y // 2),
        ("2**3**2", np.full(7, 512.0)),
        (
            "exp(-0.05*(x - 5*sin(0.1*t))**2) + 0.5*cos(0.2*x) + 1.5",
            np.exp(-0.05 * (X - 5 * math.sin(0.7)) ** 2) + 0.5 * np.cos(0.2 * X) + 1.5,
        ),
        ("where(x > 0, x, -1) * pi / e", np.where(X > 0, X, -1.0) * math.pi / math.e),
        (
            "(0 < x < 2) - (x == x) * (x != 0) - (y >= 2) - (y <= 3)",
            ((X > 0) & (X < 2)) * 1.0 - (X != 0) - (Y >= 2) - (Y <= 3),
        ),
        (
            "min(x, y, 0) + max(x, 1, y) + clip(x, -1, 1)",
            np.minimum(np.minimum(X, Y), 0) + np.maximum(np.maximum(X, 1), Y) + np.clip(X, -1, 1),
        ),
        ("hypot(x, y) +\n arctan2(y, x)", np.hypot(X, Y) + np.arctan2(Y, X)),
        *((f"{name}(y / 4)", getattr(np, name)(Y / 4)) for name in FUNCTIONS),
    ):
        found = Formula(text).value({"x": X, "y": Y, "t": 7.0})
        np.testing.assert_allclose(np.broadcast_to(found, X.shape), expected, rtol=1e-12)


def test_what_it_may_not_hold_is_said_with_its_column() -> None:
    for text, message in (
        ("x + sinn(y)", r"column 5: unknown function 'sinn'\. Did you mean 'sin'\?"),
        ("x +", r"column \d+: not an expression"),
        ("x^2", r"column 3: \^ is not a power; write \*\*"),
        ("__import__('os')", r"column 1: unknown function '__import__'"),
        ("sin.x(1)", r"only functions by their names"),
        ("[x for x in (1, 2)]", r"ListComp is not known"),
        ("~x", r"UnaryOp is not known"),
        ("'a' + x", r"column 1: expected a number, got 'a'"),
        ("x + 1" + "0" * 400, r"column 5: the number is too large"),
        ("sin", r"sin is a function; write sin\(…\)"),
        ("sin(x, y)", r"sin takes 1 arguments, got 2"),
        ("sin(x=1)", r"plain arguments"),
        ("min(*x)", r"plain arguments"),
        ("(" * 200 + "x" + ")" * 200 + "+ sinn(x)", r"parsed|not an expression|unknown function"),
        ("-" * 100 + "x", r"more than 60 levels"),
        ("+".join("x" for _ in range(100)), r"more than 60 levels"),
    ):
        with pytest.raises(ConfigError, match=message):
            Formula(text)


def test_large_powers_end_at_once_as_values_that_are_refused() -> None:
    assert np.isinf(Formula("9**9**9**9").value({}))


def test_a_variable_without_a_value_is_named_with_its_column() -> None:
    with pytest.raises(ConfigError, match=r"column 5: unknown variable 'speed_limt'.*speed_limit"):
        Formula("x + speed_limt").value({"x": 1.0, "speed_limit": 2.0})


def test_a_field_of_place_time_and_features() -> None:
    grid = make_grid(3, 2, 10.0)
    found = build_truth(FieldConfig(kind="formula", formula="x + 2*y", scale=2, offset=1), grid, 0)
    x, y = grid.positions.T
    np.testing.assert_allclose(found.at(5.0), 1 + 2 * (x + 2 * y))
    assert not found.changes
    moving = build_truth(FieldConfig(kind="formula", formula="x * t"), grid, 0)
    assert moving.changes
    np.testing.assert_allclose(moving.at(3.0), 3 * x)
    np.testing.assert_allclose(moving.at(0.0), 0 * x)
    assert not moving.at(3.0).flags.writeable
    cube = make_points(9, (0, 0, 0), (1, 1, 1))
    high = build_truth(FieldConfig(kind="formula", formula="x3 + x1"), cube, 0)
    np.testing.assert_allclose(high.at(0.0), cube.features[:, 2] + cube.features[:, 0])
    constant = build_truth(FieldConfig(kind="formula", formula="7"), cube, 0)
    np.testing.assert_allclose(constant.at(0.0), np.full(9, 7.0))


def test_values_that_cannot_be_used_name_the_place() -> None:
    for formula, message in (
        ("log(x)", r"field\.formula: .*got -inf at place '0' \(x = 0, y = 0, t = 0 s\)$"),
        ("log(x - 3)", r"got nan at place '0'.*and 3 others"),
        ("1e13 * x", r"within ±1e\+12, got 1e\+13 at place '1'"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_truth(FieldConfig(kind="formula", formula=formula), make_line(5, 1.0), 0)


def test_values_that_go_wrong_later_say_when() -> None:
    found = build_truth(FieldConfig(kind="formula", formula="x / (t - 4)"), make_line(3, 1.0), 0)
    assert found.at(3.0).tolist() == [0.0, -1.0, -2.0]
    with pytest.raises(ConfigError, match=r"got nan at place '0' \(x = 0, y = 0, t = 4 s\)"):
        found.at(4.0)
