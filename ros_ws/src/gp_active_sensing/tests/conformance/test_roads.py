"""The contract of policies on roads."""

from __future__ import annotations

from tests.conformance.contract import contract_on

test_contract = contract_on("town", "town_relational", "town_graph")
