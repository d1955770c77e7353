"""A grammar of kernels: sums and products of base kernels. [Duvenaud2013; Teng2020, Sec. 2.3].

Two expressions are equal when they differ by the order of their terms and factors only: what else
is the same function (SE×SE is an SE) stays apart, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

from gp_active_sensing.errors import ConfigError, suggest

__all__ = [
    "BASES",
    "MATERN",
    "MOST",
    "BaseKernel",
    "Expression",
    "Product",
    "Sum",
    "add",
    "base_kernel",
    "check_size",
    "leaves",
    "multiply",
    "parse",
]

BASES = ("SE", "PER", "LIN", "RQ")
"""Base kernels of the paper."""
MATERN = ("MAT12", "MAT32", "MAT52")
"""Base kernels that may be had beside them."""
_ORDER = {name: k for k, name in enumerate(("PER", "LIN", "RQ", "SE", *MATERN))}
_TIMES = "×"
MOST = 50
"""Base kernels in one expression, everywhere: to be learned, written and read."""
_LONGEST = 4 * MOST
"""Names, signs and brackets in a text; with more brackets it could not be walked."""


@dataclass(frozen=True)
class BaseKernel:
    """A base kernel."""

    base: str

    def __str__(self) -> str:
        return self.base


@dataclass(frozen=True)
class Sum:
    """A sum of two or more parts that are not sums, in canonical order."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return "+".join(str(part) for part in self.parts)


@dataclass(frozen=True)
class Product:
    """A product of two or more parts that are not products, in canonical order."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return _TIMES.join(f"({p})" if isinstance(p, Sum) else str(p) for p in self.parts)


Expression = BaseKernel | Sum | Product


def leaves(expression: Expression) -> tuple[str, ...]:
    """Return the base kernels of an expression, left to right."""
    if isinstance(expression, BaseKernel):
        return (expression.base,)
    return tuple(base for part in expression.parts for base in leaves(part))


def _key(expression: Expression) -> tuple[int, int, tuple[int, ...], str]:
    """Return what parts are ordered by: sums, products, base kernels; then as the paper does.

    The name distinguishes expressions of the same base kernels, as PER+LIN+RQ and PER×LIN+RQ.
    """
    kind = {Sum: 0, Product: 1, BaseKernel: 2}[type(expression)]
    bases = tuple(_ORDER[base] for base in leaves(expression))
    return kind, -len(bases), bases, str(expression)


def check_size(expression: Expression) -> None:
    """Refuse an expression of more than `MOST` base kernels.

    Raises:
        ConfigError: saying how many it has.
    """
    if (count := len(leaves(expression))) > MOST:
        text = str(expression)[:20] + "…"
        raise _bad(text, f"expected {MOST} base kernels at most, got {count}")


def add(*parts: Expression) -> Expression:
    """Return the sum, flattened and in canonical order."""
    flat = [q for p in parts for q in (p.parts if isinstance(p, Sum) else (p,))]
    return flat[0] if len(flat) == 1 else Sum(tuple(sorted(flat, key=_key)))


def multiply(*parts: Expression) -> Expression:
    """Return the product, flattened and in canonical order."""
    flat = [q for p in parts for q in (p.parts if isinstance(p, Product) else (p,))]
    return flat[0] if len(flat) == 1 else Product(tuple(sorted(flat, key=_key)))


def base_kernel(name: str) -> BaseKernel:
    """Return the base kernel of a name. Raises ConfigError."""
    if name not in _ORDER:
        msg = (
            f"unknown base kernel {name!r}.{suggest(name, list(_ORDER))} Known: {', '.join(_ORDER)}"
        )
        raise ConfigError(msg)
    return BaseKernel(name)


def parse(text: str) -> Expression:
    """Return the expression that a name such as ``(PER+RQ)×LIN`` stands for.

    ``*`` and ``·`` may stand for ``×``; the product binds more strongly. Order does not matter.

    Raises:
        ConfigError: an unknown base kernel, no expression, or one of more than `MOST`.
    """
    words: list[str] = []
    for character in text.replace("*", _TIMES).replace("·", _TIMES):
        if character in f"()+{_TIMES}":
            words.append(character)
        elif character.isspace():
            words.append("")
        elif words and words[-1] and words[-1] not in f"()+{_TIMES}":
            words[-1] += character.upper()
        else:
            words.append(character.upper())
    words = [word for word in words if word]
    if len(words) > _LONGEST:
        why = f"expected {_LONGEST} names and signs at most, got {len(words)}"
        raise _bad(text[:20] + "…", why)
    expression, rest = _sum(words, text)
    if rest:
        raise _bad(text, f"what does {rest[0]!r} stand for there?")
    check_size(expression)
    return expression


def _sum(words: list[str], text: str) -> tuple[Expression, list[str]]:
    part, words = _product(words, text)
    parts = [part]
    while words and words[0] == "+":
        part, words = _product(words[1:], text)
        parts.append(part)
    return add(*parts), words


def _product(words: list[str], text: str) -> tuple[Expression, list[str]]:
    part, words = _atom(words, text)
    parts = [part]
    while words and words[0] == _TIMES:
        part, words = _atom(words[1:], text)
        parts.append(part)
    return multiply(*parts), words


def _atom(words: list[str], text: str) -> tuple[Expression, list[str]]:
    if not words:
        raise _bad(text, "a base kernel is missing at the end")
    if words[0] == "(":
        inside, rest = _sum(words[1:], text)
        if not rest or rest[0] != ")":
            raise _bad(text, "a bracket is not closed")
        return inside, rest[1:]
    if words[0] in f")+{_TIMES}":
        raise _bad(text, f"expected a base kernel before {words[0]!r}")
    return base_kernel(words[0]), words[1:]


def _bad(text: str, why: str) -> ConfigError:
    return ConfigError(f"{text!r} is no kernel: {why}")
