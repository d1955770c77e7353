"""What rows tell about the inducing variables: a weight is so many rows of the same."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")


@for_each("whitened", [True, False])
def test_a_row_with_a_weight_is_so_many_rows(whitened: bool) -> None:
    """Of all three sums, the trace among them, which two inducing inputs leave large."""
    import torch

    from gp_active_sensing_learning.kernel_selection.covariances import Covariances
    from gp_active_sensing_learning.kernel_selection.local_elbo import collapsed, sums

    kernel = Composite(parse("SE"), 1)
    covariances = Covariances([kernel], torch.device("cpu"))
    rng = np.random.default_rng(0)
    theta = torch.from_numpy(kernel.prior[0][None].copy())
    X, y = (torch.from_numpy(rng.normal(size=shape)) for shape in ((7, 1), (7,)))
    Z = torch.tensor([[[-1.0], [1.0]]], dtype=torch.float64)

    def of(rows: int, weight: float):  # type: ignore[no-untyped-def]
        return sums(
            covariances, theta, Z, X.repeat(rows, 1), y.repeat(rows),
            weight=weight, floor=0.1, whitened=whitened,
        )  # fmt: skip

    one, many = of(1, 3.0), of(3, 1.0)
    for name in ("precision", "linear", "rest"):
        a, b = getattr(one, name), getattr(many, name)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, err_msg=name)
    assert collapsed(one).item() == pytest.approx(collapsed(many).item(), rel=1e-12)
