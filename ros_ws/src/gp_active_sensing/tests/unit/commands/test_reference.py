"""Tables of keys with the fields of what an open section stands for."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from gp_active_sensing.commands.reference import describe_policies, key_table
from gp_active_sensing.config import param
from gp_active_sensing.planning import policies


@dataclass(frozen=True)
class Thing:
    size: float = param(2.0, help="how large", unit="m", above=0.0)


@dataclass(frozen=True)
class Whole:
    seed: int = param(0, help="key", low=0)
    policy: dict[str, Any] = param({"name": "thing"}, help="what is done")  # noqa: RUF009


def test_an_open_section_is_one_row_unless_its_fields_are_known() -> None:
    assert "| `policy` | mapping | `{name: thing}` |  |  | what is done |" in key_table(Whole)
    rows = key_table(Whole, sections={"policy": Thing}).splitlines()
    assert rows[2:] == [
        "| `seed` | whole number | `0` |  | ≥ 0 | key |",
        "| `policy.name` | text | `thing` |  |  | what is done |",
        "| `policy.size` | number | `2` | m | > 0 | how large |",
    ]


def test_every_policy_is_described() -> None:
    found = {policy["name"]: policy for policy in describe_policies()}
    assert sorted(found) == policies.names()
    for name, policy in found.items():
        assert policy["help"]
        fields = {field.name for field in dataclasses.fields(policies.factory(name))}  # type: ignore[arg-type]
        assert {parameter["name"] for parameter in policy["parameters"]} == fields
