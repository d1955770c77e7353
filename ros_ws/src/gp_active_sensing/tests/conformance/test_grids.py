"""The contract of policies on grids with moves."""

from __future__ import annotations

from tests.conformance.contract import contract_on

test_contract = contract_on("grid", "grid_kernels")
