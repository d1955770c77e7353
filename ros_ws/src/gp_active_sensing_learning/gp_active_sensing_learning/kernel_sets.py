"""Sets of candidate kernels for kernel selection. [Teng2020]."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import reduce

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels.base import BaseKernel, Expression, Sum
from gp_active_sensing.kernels.grammar import BASES, MOST, base_kernel, parse


def sentences(level: int = 3) -> tuple[Expression, ...]:
    """Return all expressions of up to `level` base kernels, as in the paper.

    The levels 1, 2 and 3 have 4, 24 and 144 expressions. A level is made from the expressions of
    the level below: a base kernel is added to a sub-expression, or multiplies it.

    Raises:
        ConfigError: `level` is not 1 … `MOST`.
    """
    if not 1 <= level <= MOST:
        msg = f"level: expected 1 or more, {MOST} at most, got {level}"
        raise ConfigError(msg)
    atoms = [base_kernel(base) for base in BASES]
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
    """Yield the expressions in which `atom` is added to a sub-expression or multiplies it."""
    yield expression + atom
    yield expression * atom
    if isinstance(expression, BaseKernel):
        return
    join = operator.add if isinstance(expression, Sum) else operator.mul
    for k, part in enumerate(expression.parts):
        others = expression.parts[:k] + expression.parts[k + 1 :]
        for made in _grown(part, atom):
            yield reduce(join, others, made)


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
"""The twelve kernels of [Teng2020, Table 1], in the order of the table."""

KERNEL_SETS = ("base", "level2", "k12", "k144")
"""Names of the kernel sets that `kernel_set` accepts."""


def kernel_set(text: str) -> tuple[Expression, ...]:
    """Parse a list of kernels.

    Args:
        text: names of kernels or of `KERNEL_SETS`, separated by commas, such as ``k12,MATERN32``.
            ``k12`` and ``k144`` are the sets of the paper.

    Raises:
        ConfigError: a name is neither a set nor a kernel, or the list is empty.
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
