"""Sets of kernels: counts by form, the twelve kernels of the paper, names of sets."""

from __future__ import annotations

from collections import Counter

import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels.base import BaseKernel, Expression, Sum
from gp_active_sensing.kernels.grammar import BASES, MOST, base_kernel, parse
from gp_active_sensing_learning.kernel_sets import K12, KERNEL_SETS, kernel_set, sentences
from tests.cases import for_each


def form(expression: Expression) -> str:
    """Return an expression with a, b, c for its base kernels."""
    if isinstance(expression, BaseKernel):
        return "a"
    inside = [form(part) for part in expression.parts]
    if isinstance(expression, Sum):
        return "+".join(sorted(inside))
    return "*".join(sorted(f"({s})" if "+" in s else s for s in inside))


def test_counts_by_form() -> None:
    """[Teng2020, Sec. 6.1] has the counts 4, then 10 + 10, then 20 + 20 + 40 + 40."""
    assert len(sentences(1)) == 4
    assert Counter(map(form, sentences(2))) == {"a": 4, "a+a": 10, "a*a": 10}
    found = sentences(3)
    three = {"a+a+a": 20, "a*a*a": 20, "a+a*a": 40, "(a+a)*a": 40}
    assert Counter(map(form, found)) == {"a": 4, "a+a": 10, "a*a": 10, **three}
    assert len(found) == len(set(found)) == 144
    assert found[:24] == sentences(2)
    assert found[:4] == sentences(1) == tuple(base_kernel(base) for base in BASES)


def test_the_twelve_kernels_of_the_paper() -> None:
    """The kernels equal [Teng2020, Table 1] in its notation and order."""
    twelve = "LIN+RQ LIN×RQ+LIN LIN×RQ+PER PER+RQ+SE PER+LIN+RQ PER+PER+SE PER×SE+SE PER×RQ+SE"
    twelve += " PER×LIN+SE PER×LIN×SE PER×LIN×RQ (PER+RQ)×LIN"
    assert [str(k) for k in K12] == twelve.split()
    assert set(K12) < set(sentences(3))


def test_no_larger_ones_than_can_be_read() -> None:
    with pytest.raises(ConfigError, match="50 at most, got 51"):
        sentences(MOST + 1)


def test_sets() -> None:
    assert kernel_set("base") == sentences(1)
    assert kernel_set("level2") == sentences(2)
    assert kernel_set("K12") == K12
    assert kernel_set("k144") == sentences(3)
    assert kernel_set("k12, matern32, rq+lin") == (*K12, base_kernel("matern32"))
    assert kernel_set("SE,") == (base_kernel("se"),)
    assert kernel_set("SE+PER,PER+SE") == (parse("PER+SE"),)
    assert set(KERNEL_SETS) == {"base", "level2", "k12", "k144"}


@for_each("text", ["", " , ", "k13", "SE,foo", "SE+,PER"])
def test_sets_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match=r"kernels: .*k144"):
        kernel_set(text)
