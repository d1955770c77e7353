"""Field given by a formula of place, time and the map's features.

The parser accepts only listed operators, functions and names. The text is never executed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.types import FloatArray

LONGEST = 2000
"""Largest number of characters in a formula."""
DEEPEST = 60
"""Largest nesting depth of brackets and operators in a formula."""
CONSTANTS: Mapping[str, float] = {"pi": float(np.pi), "e": float(np.e)}

_Value: TypeAlias = Any
_Apply: TypeAlias = Callable[..., _Value]
_Variables: TypeAlias = Mapping[str, FloatArray | float]
_Part: TypeAlias = Callable[[_Variables], _Value]
"""Function from variables to the value of a subexpression."""


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
"""Implementation, smallest and largest number of arguments (None = any) of each function."""
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
_UNARY: Mapping[type[ast.unaryop], _Apply] = {ast.UAdd: np.positive, ast.USub: np.negative}
_COMPARE: Mapping[type[ast.cmpop], _Apply] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}


class Formula:
    """Expression such as ``20 + 3*exp(-((x - 100*t/3600)**2 + y**2) / 800)``.

    An expression may contain the operators + - * / // % **, comparisons (1 for true, 0 for false),
    the functions of `FUNCTION_NAMES`, the constants pi and e, and variables. Numbers are 64-bit
    floats.

    Args:
        text: the expression.

    Raises:
        ConfigError: the text is not a valid expression.
    """

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        if len(self.text) > LONGEST:
            msg = f"expected at most {LONGEST} characters, got {len(self.text)}"
            raise ConfigError(msg)
        self._columns: dict[str, int] = {}
        self._whole = self._compiled(self._parsed(), 0)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables, in the order of their first use."""
        return tuple(self._columns)

    def check_variables(self, known: Collection[str]) -> None:
        """Raise ConfigError if a variable is not in `known`; the message has its column."""
        for name, column in self._columns.items():
            if name not in known:
                what = f"unknown variable {name!r}.{suggest(name, known)} Known: {', '.join(known)}"
                raise self._error(column, f"{what}, {', '.join(CONSTANTS)}")

    def value(self, variables: _Variables) -> FloatArray:
        """Return the value for broadcast variables; the value may be infinite or NaN.

        Raises:
            ConfigError: a variable has no value.
        """
        self.check_variables(variables)
        with np.errstate(all="ignore"):
            return np.asarray(self._whole(variables), dtype=np.float64)

    def _parsed(self) -> ast.expr:
        try:
            return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            column = max(0, (error.offset or 1) - 1)
            raise self._error(column, f"not an expression ({error.msg})") from error
        except (ValueError, MemoryError, RecursionError, OverflowError) as error:
            msg = f"{self._shown}: cannot be read as an expression ({error}); make it simpler"
            raise ConfigError(msg) from error

    def _compiled(self, node: ast.expr, depth: int) -> _Part:
        """Return the function of a subexpression. Raises ConfigError if the node is not allowed."""
        if depth > DEEPEST:
            raise self._at(node, f"more than {DEEPEST} levels of brackets; make it simpler")
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name):
            return self._variable(node)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.BitXor):
                raise self._at(node.right, "^ is not a power; write **")
            if type(node.op) not in _BINARY:
                raise self._at(node, f"operator {type(node.op).__name__} is not known")
            return self._applied(_BINARY[type(node.op)], [node.left, node.right], depth)
        if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            return self._applied(_UNARY[type(node.op)], [node.operand], depth)
        if isinstance(node, ast.Compare):
            if unknown := [op for op in node.ops if type(op) not in _COMPARE]:
                raise self._at(node, f"comparison {type(unknown[0]).__name__} is not known")
            compared = [_COMPARE[type(op)] for op in node.ops]

            def holds(*values: _Value) -> _Value:
                found = zip(compared, values, values[1:], strict=False)
                return reduce(np.multiply, (each(a, b) for each, a, b in found), np.float64(1.0))

            return self._applied(holds, [node.left, *node.comparators], depth)
        if isinstance(node, ast.Call):
            return self._applied(self._function(node), node.args, depth)
        what = f"{type(node).__name__} is not known; there are numbers, variables, operators "
        raise self._at(node, f"{what}and the functions {', '.join(FUNCTION_NAMES)}")

    def _applied(self, apply: _Apply, nodes: Sequence[ast.expr], depth: int) -> _Part:
        parts = [self._compiled(node, depth + 1) for node in nodes]
        return lambda variables: apply(*(part(variables) for part in parts))

    def _constant(self, node: ast.Constant) -> _Part:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise self._at(node, f"expected a number, got {node.value!r}")
        try:
            value = np.float64(float(node.value))
        except OverflowError:
            raise self._at(node, "the number is too large") from None
        return lambda variables: value

    def _variable(self, node: ast.Name) -> _Part:
        name = node.id
        if name in _FUNCTIONS:
            raise self._at(node, f"{name} is a function; write {name}(…)")
        if name not in CONSTANTS:
            self._columns.setdefault(name, self._column(node))
        known = CONSTANTS.get(name)
        return lambda variables: np.asarray(variables.get(name, known), dtype=np.float64)

    def _function(self, node: ast.Call) -> _Apply:
        if not isinstance(node.func, ast.Name):
            raise self._at(node, "only functions by their names can be called, such as sin(x)")
        name = node.func.id
        if name not in _FUNCTIONS:
            hint = suggest(name, FUNCTION_NAMES)
            what = f"unknown function {name!r}.{hint} Known: {', '.join(FUNCTION_NAMES)}"
            raise self._at(node, what)
        apply, least, most = _FUNCTIONS[name]
        count = len(node.args)
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise self._at(node, f"{name} takes plain arguments, such as {name}(x)")
        if count < least or (most is not None and count > most):
            wanted = f"{least}" if most == least else f"{least} or more"
            raise self._at(node, f"{name} takes {wanted} arguments, got {count}")
        return apply

    def _column(self, node: ast.expr) -> int:
        """Return the column of a node, counted from 0 in characters instead of bytes."""
        return len(self.text.encode("utf-8")[: node.col_offset].decode("utf-8"))

    def _at(self, node: ast.expr, what: str) -> ConfigError:
        return self._error(self._column(node), what)

    def _error(self, column: int, what: str) -> ConfigError:
        return ConfigError(f"{self._shown}, column {column + 1}: {what}")

    @property
    def _shown(self) -> str:
        return repr(self.text if len(self.text) <= 80 else f"{self.text[:77]}…")
