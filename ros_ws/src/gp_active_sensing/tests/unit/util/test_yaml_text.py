"""Text from files and from the network as comments and values of YAML."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, strategies

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.util.yaml_files import check_meaning, comment, scalar
from tests.unit.util.hostile import HOSTILE

ANY = strategies.one_of(
    strategies.text(),
    strategies.sampled_from(HOSTILE),
    strategies.integers(),
    strategies.floats(allow_nan=False),
    strategies.booleans(),
    strategies.none(),
)


@given(value=strategies.one_of(ANY, strategies.lists(ANY)), note=strategies.text())
def test_a_parser_reads_the_value_that_was_meant_and_no_key_of_a_comment(
    value: object, note: str
) -> None:
    if any("\ud800" <= c <= "\udfff" for c in str(value)):
        return  # no text: half of a surrogate pair
    text = f"{comment(note)}\nkey: {scalar(value)}  {comment(note)}\n"
    assert text.isascii() or text.replace("\n", "").isprintable()
    assert yaml.safe_load(text) == {"key": value}
    check_meaning(text, {"key": value}, what="a test")


def test_text_that_rcl_would_read_as_a_number_or_truth_value_is_quoted() -> None:
    for text in ("nan", "INF", "y", "Off", "null", "~", "1e5", "0x1f", "a # b", "a: b", ""):
        assert scalar(text) == f'"{text}"'


def test_other_keys_values_or_types_than_meant_are_refused() -> None:
    meant = {"a": 1, "b": ["x"]}
    check_meaning("a: 1\nb: [x]\n", meant, what="a test")
    for text in ("a: 1\nb: [x]\nc: 2", "a: 1.0\nb: [x]", "a: true\nb: [x]", "a: 1\nb: [y]", "a: ["):
        with pytest.raises(ConfigError):
            check_meaning(text, meant, what="a test")
