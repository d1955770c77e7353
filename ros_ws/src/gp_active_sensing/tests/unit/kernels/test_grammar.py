"""The grammar of kernels: which expressions there are, when two are one, names there and back."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from operator import add, mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels.base import BaseKernel, Expression, Sum
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import BASES, MATERN, MOST, base_kernel, parse
from tests.cases import for_each


def canonical(expression: Expression) -> object:
    """Return what is the same for two expressions that differ by order only; by brute force."""
    if isinstance(expression, BaseKernel):
        return expression.name
    inside = Counter(canonical(part) for part in expression.parts)
    return (type(expression).__name__, frozenset(inside.items()))


EXPRESSIONS = st.recursive(
    st.sampled_from([base_kernel(base) for base in (*BASES, *MATERN)]),
    lambda inner: st.builds(
        lambda parts, join: reduce(join, parts),
        st.lists(inner, min_size=2, max_size=3),
        st.sampled_from([add, mul]),
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
            return e.name
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
        *((text, "expected base kernels with") for text in ("", "SE+", "(SE+PER", "SE)", "SE PER")),
        ("SE+×PER", "expected base kernels with"),
        ("SE**PER", "expected base kernels with"),
        ("SE or PER", "expected base kernels with"),
        ("SE-PER", "got '-'"),
        ("2*SE", "got '2'"),
        ("RBF", "unknown base kernel 'RBF'"),
        ("MAT32", "Did you mean 'matern32'"),
    ],
)
def test_what_is_no_kernel(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse(text)


def test_the_largest_expressions() -> None:
    """One limit for what is read, grown or made by hand, far from what anyone needs."""
    for sign in "+×":
        assert len(parse(sign.join(["SE"] * MOST)).leaves) == MOST
        with pytest.raises(
            ConfigError, match="is no kernel: expected 50 base kernels at most, got"
        ):
            parse(sign.join(["SE"] * (MOST + 1)))
    with pytest.raises(ConfigError, match="50 base kernels at most, got 51"):
        Composite(reduce(add, [base_kernel("se")] * (MOST + 1)), 1)


def test_deep_brackets_are_an_error_or_a_kernel_never_a_crash() -> None:
    assert parse("(" * 50 + "SE" + ")" * 50) == base_kernel("se")
    with pytest.raises(ConfigError, match="expected 200 names and signs at most, got 100001"):
        parse("(" * 100_000 + "SE")
