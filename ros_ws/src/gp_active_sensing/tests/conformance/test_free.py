"""The contract of policies where any place may be next."""

from __future__ import annotations

from tests.conformance.contract import contract_on

test_contract = contract_on("line", "line_kernels", "line_linear")
