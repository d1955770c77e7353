"""A grammar of kernels: sums and products of base kernels. [Duvenaud2013; Teng2020, Sec. 2.3].

Two expressions are equal when they differ by the order of their terms and factors only: what else
is the same function (SE×SE is an SE) stays apart, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gp_active_sensing.errors import ConfigError, suggest

__all__ = [
    "BASES",
    "K12",
    "KERNEL_SETS",
    "MATERN",
    "MOST",
    "BaseKernel",
    "Expression",
    "Product",
    "Sum",
    "add",
    "check_size",
    "kernel_set",
    "leaves",
    "multiply",
    "parse",
    "sentences",
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
    """A sum of two or more parts, none of which is a sum; in canonical order."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return "+".join(str(part) for part in self.parts)


@dataclass(frozen=True)
class Product:
    """A product of two or more parts, none of which is a product; in canonical order."""

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

    The name tells apart what has the same base kernels, as PER+LIN+RQ and PER×LIN+RQ.
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


def sentences(level: int = 3, bases: Sequence[str] = BASES) -> tuple[Expression, ...]:
    """Return all expressions of up to `level` base kernels; 4, 24, 144 with the paper's four.

    From one level to the next every part of an expression is added to, or multiplied by, every base
    kernel.

    Args:
        level: number of base kernels at most, 1 … `MOST`.
        bases: names of base kernels.

    Raises:
        ConfigError: no such base kernel, or no such level.
    """
    if not 1 <= level <= MOST:
        msg = f"level: expected 1 or more, {MOST} at most, got {level}"
        raise ConfigError(msg)
    atoms = [_leaf(base) for base in dict.fromkeys(bases)]
    found: dict[Expression, None] = dict.fromkeys(atoms)
    newest: list[Expression] = list(atoms)
    for _ in range(level - 1):
        grown = dict.fromkeys(
            made for old in newest for atom in atoms for made in _grown(old, atom)
        )
        newest = [e for e in grown if e not in found]
        found.update(dict.fromkeys(newest))
    return tuple(found)


def _grown(expression: Expression, atom: BaseKernel) -> Iterator[Expression]:
    """Yield the expression with the atom joined to it, or to any part of it."""
    yield add(expression, atom)
    yield multiply(expression, atom)
    if isinstance(expression, BaseKernel):
        return
    join = add if isinstance(expression, Sum) else multiply
    for k, part in enumerate(expression.parts):
        others = expression.parts[:k] + expression.parts[k + 1 :]
        for made in _grown(part, atom):
            yield join(made, *others)


def _leaf(name: str) -> BaseKernel:
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
    return _leaf(words[0]), words[1:]


def _bad(text: str, why: str) -> ConfigError:
    return ConfigError(f"{text!r} is no kernel: {why}")


K12: tuple[Expression, ...] = tuple(
    parse(name)
    for name in (
        "LIN+RQ",
        "LIN×RQ+LIN",
        "LIN×RQ+PER",
        "PER+RQ+SE",
        "PER+LIN+RQ",
        "PER+PER+SE",
        "PER×SE+SE",
        "PER×RQ+SE",
        "PER×LIN+SE",
        "PER×LIN×SE",
        "PER×LIN×RQ",
        "(PER+RQ)×LIN",
    )
)
"""The twelve kernels of [Teng2020, Table 1], in its order."""

KERNEL_SETS = ("base", "level2", "k12", "k144")
"""Names of sets of kernels."""


def kernel_set(text: str) -> tuple[Expression, ...]:
    """Return the kernels that a word or a list asks for.

    Args:
        text: one of `KERNEL_SETS`, ``k12`` and ``k144`` those of the paper; or kernels with commas
            between them; or both, as in ``k12,MAT32``.

    Raises:
        ConfigError: neither a set nor a kernel.
    """
    sets = {
        "base": lambda: sentences(1),
        "level2": lambda: sentences(2),
        "k12": lambda: K12,
        "k144": lambda: sentences(3),
    }
    found: dict[Expression, None] = {}
    for word in (w.strip() for w in text.split(",")):
        if not word:
            continue
        if word.lower() in sets:
            found.update(dict.fromkeys(sets[word.lower()]()))
            continue
        try:
            found[parse(word)] = None
        except ConfigError as error:
            msg = f"kernels: {error}; or take one of the sets {', '.join(KERNEL_SETS)}"
            raise ConfigError(msg) from error
    if not found:
        msg = (
            f"kernels: expected at least one kernel or set ({', '.join(KERNEL_SETS)}), got {text!r}"
        )
        raise ConfigError(msg)
    return tuple(found)
