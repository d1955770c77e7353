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
    K12,
    KERNEL_SETS,
    MATERN,
    MOST,
    BaseKernel,
    Expression,
    Sum,
    add,
    kernel_set,
    leaves,
    multiply,
    parse,
    sentences,
)
from tests.cases import for_each


def form(expression: Expression) -> str:
    """Return an expression with a, b, c for its base kernels."""
    if isinstance(expression, BaseKernel):
        return "a"
    inside = [form(part) for part in expression.parts]
    if isinstance(expression, Sum):
        return "+".join(sorted(inside))
    return "*".join(sorted(f"({s})" if "+" in s else s for s in inside))


def canonical(expression: Expression) -> object:
    """Return what is the same for two expressions that differ by order only; by brute force."""
    if isinstance(expression, BaseKernel):
        return expression.base
    inside = Counter(canonical(part) for part in expression.parts)
    return (type(expression).__name__, frozenset(inside.items()))


def test_counts_by_form() -> None:
    """As [Teng2020, Sec. 6.1] counts them: 4, then 10 + 10, then 20 + 20 + 40 + 40."""
    assert len(sentences(1)) == 4
    assert Counter(map(form, sentences(2))) == {"a": 4, "a+a": 10, "a*a": 10}
    found = sentences(3)
    assert Counter(map(form, found)) == {
        "a": 4,
        "a+a": 10,
        "a*a": 10,
        "a+a+a": 20,
        "a*a*a": 20,
        "a+a*a": 40,
        "(a+a)*a": 40,
    }
    assert len(found) == len(set(found)) == 144
    assert found[:24] == sentences(2)
    assert found[:4] == sentences(1) == tuple(BaseKernel(base) for base in BASES)


def test_the_twelve_kernels_of_the_paper() -> None:
    """[Teng2020, Table 1], letter by letter and in its order."""
    assert [str(k) for k in K12] == [
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
    ]
    assert set(K12) < set(sentences(3))


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
    with pytest.raises(ConfigError, match="50 at most, got 51"):
        sentences(MOST + 1)


def test_sets() -> None:
    assert kernel_set("base") == sentences(1)
    assert kernel_set("level2") == sentences(2)
    assert kernel_set("K12") == K12
    assert kernel_set("k144") == sentences(3)
    assert kernel_set("k12, mat32, rq+lin") == (*K12, BaseKernel("MAT32")), "LIN+RQ is one of them"
    assert kernel_set("SE,") == (BaseKernel("SE"),)
    assert kernel_set("SE+PER,PER+SE") == (parse("PER+SE"),)
    assert set(KERNEL_SETS) == {"base", "level2", "k12", "k144"}


@for_each("text", ["", " , ", "k13", "SE,foo", "SE+,PER"])
def test_sets_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match=r"kernels: .*k144"):
        kernel_set(text)


def test_deep_brackets_are_an_error_or_a_kernel_never_a_crash() -> None:
    assert parse("(" * 50 + "SE" + ")" * 50) == BaseKernel("SE")
    with pytest.raises(ConfigError, match="expected 200 names and signs at most, got 100001"):
        parse("(" * 100_000 + "SE")
