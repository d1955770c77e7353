"""Parser for names of sums and products of base kernels. [Duvenaud2013; Teng2020]."""

from __future__ import annotations

import ast
import re

from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.kernels.base import (
    BaseKernel,
    Expression,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
)

BASES = ("se", "per", "lin", "rq")
"""Base kernels of [Teng2020]."""
MATERN = ("matern12", "matern32", "matern52")
"""Additional base kernels."""
_CLASSES = (Periodic, Linear, RationalQuadratic, SquaredExponential, Matern12, Matern32, Matern52)
_KERNELS: dict[str, BaseKernel] = {cls.name: cls() for cls in _CLASSES}
MOST = 50
"""Largest number of base kernels in one expression."""
_LONGEST = 4 * MOST
"""Largest total number of names, signs and brackets in an expression."""


def check_size(expression: Expression) -> None:
    """Raise ConfigError for an expression of more than `MOST` base kernels."""
    if (count := len(expression.leaves)) > MOST:
        text = str(expression)[:20] + "…"
        raise _bad(text, f"expected {MOST} base kernels at most, got {count}")


def base_kernel(name: str) -> BaseKernel:
    """Return the base kernel called `name`, ignoring case. Raise ConfigError if there is none."""
    if name.lower() not in _KERNELS:
        hint = suggest(name.lower(), _KERNELS)
        msg = f"unknown base kernel {name!r}.{hint} Known: {', '.join(_KERNELS)}"
        raise ConfigError(msg)
    return _KERNELS[name.lower()]


def parse(text: str) -> Expression:
    """Return the expression of a name such as ``(PER+RQ)×LIN``.

    ``*`` and ``·`` may replace ``×``. Products have precedence over sums.

    Raises:
        ConfigError: the text is not an expression, or has unknown or too many base kernels.
    """
    plain = text.replace("×", "*").replace("·", "*")
    words = re.findall(r"\w+|[^\w\s]", plain)
    if len(words) > _LONGEST:
        why = f"expected {_LONGEST} names and signs at most, got {len(words)}"
        raise _bad(text[:20] + "…", why)
    if odd := [word for word in words if not re.fullmatch(r"[A-Za-z]\w*|[()+*]", word)]:
        raise _bad(text, f"expected names of base kernels, +, * and brackets, got {odd[0]!r}")
    try:
        expression = _read(ast.parse(" ".join(words), mode="eval").body)
    except (SyntaxError, TypeError) as error:
        raise _bad(text, "expected base kernels with + or * between them") from error
    check_size(expression)
    return expression


def _read(node: ast.expr) -> Expression:
    if isinstance(node, ast.Name):
        return base_kernel(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        left, right = _read(node.left), _read(node.right)
        return left + right if isinstance(node.op, ast.Add) else left * right
    raise TypeError


def _bad(text: str, why: str) -> ConfigError:
    return ConfigError(f"{text!r} is no kernel: {why}")
