"""The grammar of kernels: which expressions there are, when two are one, names there and back."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import (
    BASES,
    MATERN,
    MOST,
    BaseKernel,
    Expression,
    Sum,
    add,
    leaves,
    multiply,
    parse,
)
from tests.cases import for_each


def canonical(expression: Expression) -> object:
    """Return what is the same for two expressions that differ by order only; by brute force."""
    if isinstance(expression, BaseKernel):
        return expression.base
    inside = Counter(canonical(part) for part in expression.parts)
    return (type(expression).__name__, frozenset(inside.items()))


EXPRESSIONS = st.recursive(
    st.sampled_from([BaseKernel(base) for base in (*BASES, *MATERN)]),
    lambda inner: st.builds(
        lambda parts, join: join(*parts),
        st.lists(inner, min_size=2, max_size=3),
        st.sampled_from([add, multiply]),
    ),
    max_leaves=9,
)


@given(EXPRESSIONS)
def test_any_name_is_read_back(expression: Expression) -> None:
    assert parse(str(expression)) == expression
    assert str(parse(str(expression))) == str(expression)


@given(EXPRESSIONS, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(expression: Expression, random: object) -> None:
    def shuffled(e: Expression) -> str:
        if isinstance(e, BaseKernel):
            return e.base.lower()
        inside = [f"({shuffled(part)})" for part in e.parts]
        random.shuffle(inside)  # type: ignore[attr-defined]
        return ("+" if isinstance(e, Sum) else "*").join(inside)

    text = shuffled(expression)
    assert parse(text) == expression
    assert str(parse(text)) == str(expression)


@given(EXPRESSIONS, EXPRESSIONS)
def test_equal_exactly_when_equal_by_brute_force(a: Expression, b: Expression) -> None:
    assert (a == b) == (canonical(a) == canonical(b))


@for_each(
    ("text", "why"),
    [
        ("", "missing at the end"),
        ("SE+", "missing at the end"),
        ("SE+×PER", "expected a base kernel before '×'"),
        ("(SE+PER", "a bracket is not closed"),
        ("SE)", "what does '\\)' stand for"),
        ("RBF", "unknown base kernel 'RBF'.*Known: PER, LIN, RQ, SE, MAT12"),
        ("MAT33", "Did you mean 'MAT32'"),
    ],
)
def test_what_is_no_kernel(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse(text)


def test_the_largest_expressions() -> None:
    """One limit for what is read, grown or made by hand, far from what anyone needs."""
    for sign in "+×":
        assert len(leaves(parse(sign.join(["SE"] * MOST)))) == MOST
        with pytest.raises(
            ConfigError, match="is no kernel: expected 50 base kernels at most, got"
        ):
            parse(sign.join(["SE"] * (MOST + 1)))
    with pytest.raises(ConfigError, match="50 base kernels at most, got 51"):
        Composite(add(*[BaseKernel("SE")] * (MOST + 1)), 1)


def test_deep_brackets_are_an_error_or_a_kernel_never_a_crash() -> None:
    assert parse("(" * 50 + "SE" + ")" * 50) == BaseKernel("SE")
    with pytest.raises(ConfigError, match="expected 200 names and signs at most, got 100001"):
        parse("(" * 100_000 + "SE")
