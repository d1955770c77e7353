"""Fields given as a formula in place and time, and named test functions for optimisation.

The text of a formula is parsed as an expression and walked, without running code; what is not
listed here is an error that says where it stands. No name leads to anything but numbers.

The test functions are turned so that the maximum is sought:

| name | domain | largest value | where |
| --- | --- | --- | --- |
| `branin` | [-5, 10] × [0, 15] | -0.397887 | (-π, 12.275), (π, 2.275), (3π, 2.475) |
| `cosines` | [0, 1]² | 1.6 | (0.3125, 0.3125) |
| `hartmann6` | [0, 1]⁶ | 3.322368 | (0.201690, 0.150011, 0.476874, 0.275332, 0.311652, 0.657300) |

Branin–Hoo and Hartmann-6 are usually minimised; here they have the other sign. [Branin1972;
Dixon1978; Anderson2000; Kathuria2016, Sec. 5]
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.types import FloatArray

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "FUNCTION_NAMES",
    "LONGEST",
    "Formula",
    "TestFunction",
    "branin",
    "cosines",
    "hartmann6",
]

LONGEST = 2000
"""Characters that a formula may have."""
DEEPEST = 60
"""Levels of brackets and operators that a formula may have."""
CONSTANTS: Mapping[str, float] = {"pi": float(np.pi), "e": float(np.e)}

_Value: TypeAlias = Any
_Apply: TypeAlias = Callable[..., _Value]


def _all(function: Callable[[_Value, _Value], _Value]) -> _Apply:
    return lambda *values: reduce(function, values)


def _where(condition: _Value, yes: _Value, no: _Value) -> _Value:
    return np.where(np.asarray(condition) != 0.0, yes, no)


def _clip(value: _Value, low: _Value, high: _Value) -> _Value:
    return np.minimum(np.maximum(value, low), high)


_FUNCTIONS: Mapping[str, tuple[_Apply, int, int | None]] = {
    **{
        name: (getattr(np, name), 1, 1)
        for name in (
            "abs sqrt square exp log log2 log10 sin cos tan arcsin arccos arctan sinh cosh tanh "
            "floor ceil sign"
        ).split()
    },
    "arctan2": (np.arctan2, 2, 2),
    "hypot": (np.hypot, 2, 2),
    "min": (_all(np.minimum), 2, None),
    "max": (_all(np.maximum), 2, None),
    "clip": (_clip, 3, 3),
    "where": (_where, 3, 3),
}
"""Name -> what to call, least and largest number of arguments (None = any)."""
FUNCTION_NAMES = tuple(sorted(_FUNCTIONS))

_BINARY: Mapping[type[ast.operator], _Apply] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
_COMPARE: Mapping[type[ast.cmpop], _Apply] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}


class Formula:
    """An expression such as ``20 + 3*exp(-((x - 100*t/3600)**2 + y**2) / 800)``.

    It has the operators + - * / // % **, comparisons (1 where true, 0 where not), the functions of
    `FUNCTION_NAMES`, the constants pi and e, and variables; all numbers are 64-bit floats.

    Args:
        text: the expression.

    Raises:
        ConfigError: not such an expression; the message says at which column and what is known.
    """

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        if len(self.text) > LONGEST:
            msg = f"expected at most {LONGEST} characters, got {len(self.text)}"
            raise ConfigError(msg)
        self._tree = self._parsed()
        self._columns: dict[str, int] = {}
        self._check(self._tree, 0)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names that need a value, in the order in which they come."""
        return tuple(self._columns)

    def check_variables(self, known: Collection[str]) -> None:
        """Check that every variable is among those given.

        Raises:
            ConfigError: one is not; the message says where it stands and has the nearest match.
        """
        for name, column in self._columns.items():
            if name not in known:
                what = f"unknown variable {name!r}.{suggest(name, known)} Known: {', '.join(known)}"
                raise self._error(column, f"{what}, {', '.join(CONSTANTS)}")

    def value(self, variables: Mapping[str, FloatArray | float]) -> FloatArray:
        """Return the value for arrays that broadcast; it may be infinite or NaN.

        Raises:
            ConfigError: a variable has no value.
        """
        self.check_variables(variables)
        with np.errstate(all="ignore"):
            return np.asarray(_value(self._tree, variables), dtype=np.float64)

    def _parsed(self) -> ast.expr:
        try:
            return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            column = max(0, (error.offset or 1) - 1)
            raise self._error(column, f"not an expression ({error.msg})") from error
        except (ValueError, MemoryError, RecursionError, OverflowError) as error:
            msg = f"{self._shown}: cannot be read as an expression ({error}); make it simpler"
            raise ConfigError(msg) from error

    def _check(self, node: ast.expr, depth: int) -> None:
        """Refuse whatever is not listed, with where it stands."""
        if depth > DEEPEST:
            raise self._at(node, f"more than {DEEPEST} levels of brackets; make it simpler")
        inner: list[ast.expr] = []
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, int | float):
                raise self._at(node, f"expected a number, got {node.value!r}")
            try:
                float(node.value)
            except OverflowError:
                raise self._at(node, "the number is too large") from None
        elif isinstance(node, ast.Name):
            if node.id in _FUNCTIONS:
                raise self._at(node, f"{node.id} is a function; write {node.id}(…)")
            if node.id not in CONSTANTS:
                self._columns.setdefault(node.id, self._column(node))
        elif isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.BitXor):
                raise self._at(node.right, "^ is not a power; write **")
            if type(node.op) not in _BINARY:
                raise self._at(node, f"operator {type(node.op).__name__} is not known")
            inner = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
            inner = [node.operand]
        elif isinstance(node, ast.Compare):
            if unknown := [op for op in node.ops if type(op) not in _COMPARE]:
                raise self._at(node, f"comparison {type(unknown[0]).__name__} is not known")
            inner = [node.left, *node.comparators]
        elif isinstance(node, ast.Call):
            self._check_call(node)
            inner = node.args
        else:
            what = f"{type(node).__name__} is not known; there are numbers, variables, operators "
            raise self._at(node, f"{what}and the functions {', '.join(FUNCTION_NAMES)}")
        for part in inner:
            self._check(part, depth + 1)

    def _check_call(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Name):
            raise self._at(node, "only functions by their names can be called, such as sin(x)")
        name = node.func.id
        if name not in _FUNCTIONS:
            hint = suggest(name, FUNCTION_NAMES)
            what = f"unknown function {name!r}.{hint} Known: {', '.join(FUNCTION_NAMES)}"
            raise self._at(node, what)
        _, least, most = _FUNCTIONS[name]
        count = len(node.args)
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise self._at(node, f"{name} takes plain arguments, such as {name}(x)")
        if count < least or (most is not None and count > most):
            wanted = f"{least}" if most == least else f"{least} or more"
            raise self._at(node, f"{name} takes {wanted} arguments, got {count}")

    def _column(self, node: ast.expr) -> int:
        """Return the column of a node in characters, from 0 (the parser counts bytes)."""
        return len(self.text.encode("utf-8")[: node.col_offset].decode("utf-8"))

    def _at(self, node: ast.expr, what: str) -> ConfigError:
        return self._error(self._column(node), what)

    def _error(self, column: int, what: str) -> ConfigError:
        return ConfigError(f"{self._shown}, column {column + 1}: {what}")

    @property
    def _shown(self) -> str:
        return repr(self.text if len(self.text) <= 80 else f"{self.text[:77]}…")


def _value(node: ast.expr, variables: Mapping[str, FloatArray | float]) -> _Value:
    """Return the value of a checked expression."""
    if isinstance(node, ast.Constant):
        return np.float64(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        if node.id in variables:
            return np.asarray(variables[node.id], dtype=np.float64)
        return np.float64(CONSTANTS[node.id])
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, variables), _value(node.right, variables)
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand, variables)
        return np.negative(value) if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Compare):
        parts = [_value(part, variables) for part in (node.left, *node.comparators)]
        holds: _Value = np.float64(1.0)
        for op, left, right in zip(node.ops, parts, parts[1:], strict=False):
            holds = holds * _COMPARE[type(op)](left, right)
        return holds
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        apply, _, _ = _FUNCTIONS[node.func.id]
        return apply(*(_value(argument, variables) for argument in node.args))
    raise TypeError(node)  # `Formula` has refused everything else


@dataclass(frozen=True)
class TestFunction:
    """A function with its domain and what is known of its maximum.

    Args:
        value: (m, d) points -> (m,) values.
        low: (d,) lower corner of the domain.
        high: (d,) upper corner.
        maximum: largest value within the domain.
        at: points where it is taken, each (d,).
    """

    __test__ = False  # no test case, whatever pytest makes of the name

    value: Callable[[FloatArray], FloatArray]
    low: tuple[float, ...]
    high: tuple[float, ...]
    maximum: float
    at: tuple[tuple[float, ...], ...]

    @property
    def dimensions(self) -> int:
        """Number of variables d."""
        return len(self.low)


def branin(points: FloatArray) -> FloatArray:
    """Return ``-[(y - 5.1 x²/(4π²) + 5x/π - 6)² + 10 (1 - 1/(8π)) cos x + 10]`` of (m, 2) points.

    [Branin1972; Dixon1978]
    """
    x, y = points[:, 0], points[:, 1]
    bowl = np.square(y - 5.1 / (4.0 * np.pi**2) * np.square(x) + 5.0 / np.pi * x - 6.0)
    return np.asarray(-(bowl + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x) + 10.0))


def cosines(points: FloatArray) -> FloatArray:
    """Return ``1 - Σ_i [u_i² - 0.3 cos(3π u_i)]`` with ``u_i = 1.6 x_i - 0.5`` of (m, 2) points.

    [Anderson2000]
    """
    u = 1.6 * points - 0.5
    return np.asarray(1.0 - (np.square(u) - 0.3 * np.cos(3.0 * np.pi * u)).sum(axis=1))


_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_RATES = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_CENTRES = 1e-4 * np.array(
    [
        [1312.0, 1696.0, 5569.0, 124.0, 8283.0, 5886.0],
        [2329.0, 4135.0, 8307.0, 3736.0, 1004.0, 9991.0],
        [2348.0, 1451.0, 3522.0, 2883.0, 3047.0, 6650.0],
        [4047.0, 8828.0, 8732.0, 5743.0, 1091.0, 381.0],
    ]
)


def hartmann6(points: FloatArray) -> FloatArray:
    """Return ``Σ_i α_i exp(-Σ_j A_ij (x_j - P_ij)²)`` of (m, 6) points. [Dixon1978]."""
    apart = np.square(points[:, None, :] - _CENTRES)
    return np.asarray(np.exp(-(apart * _RATES).sum(axis=2)) @ _WEIGHTS)


FUNCTIONS: dict[str, TestFunction] = {
    "branin": TestFunction(
        branin,
        (-5.0, 0.0),
        (10.0, 15.0),
        -0.39788735772973816,
        ((-np.pi, 12.275), (np.pi, 2.275), (3.0 * np.pi, 2.475)),
    ),
    "cosines": TestFunction(cosines, (0.0, 0.0), (1.0, 1.0), 1.6, ((0.3125, 0.3125),)),
    "hartmann6": TestFunction(
        hartmann6,
        (0.0,) * 6,
        (1.0,) * 6,
        3.3223680114155147,
        ((0.20168952, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730054),),
    ),
}
"""Name -> function, as in the table above."""
