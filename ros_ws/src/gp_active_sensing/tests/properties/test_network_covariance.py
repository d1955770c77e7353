"""Whatever the graph: covariances that know the network are positive definite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st

from gp_active_sensing.belief import FeatureCovariance, HyperParameters
from gp_active_sensing.belief.graph_covariance import GraphCovariance, laplacian_spectrum
from gp_active_sensing.kernels import build_kernel, kernels
from gp_active_sensing.kernels.base import GraphMatern
from gp_active_sensing.topology import Roads, load_roads
from gp_active_sensing.topology.roads import embed, join_parts, manhattan_weights
from gp_active_sensing.topology.segments import Links
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.resources import find_resource, list_resources
from tests.cases import for_each

ROUNDING = -1e-9


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Links, FloatArray, FloatArray]:
    """Any graph, in one part or many, with features some of which are constant; positions."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from((25, 40, 12, 6, 3, 2, 1)))
    density = draw(st.sampled_from((1.5, 0.7, 4.0, 0.0)))
    spread = draw(st.sampled_from((10.0, 1.0, 1e4)))
    ends = rng.integers(0, n, size=(round(density * n), 2))
    metres = np.exp(rng.uniform(0.0, np.log(spread), len(ends)))
    pairs = zip(ends[:, 0].tolist(), ends[:, 1].tolist(), metres.tolist(), strict=True)
    links = Links.between(n, [(i, j, m, float(rng.uniform(0.1, 1.0)) / m) for i, j, m in pairs])
    features = rng.choice([1.0, 2.0, 3.0], size=(n, 3))
    features[:, draw(st.integers(0, 2))] = 7.0
    return links, features, rng.uniform(0.0, 100.0, size=(n, 2))


def least(K: FloatArray) -> float:
    return float(np.linalg.eigvalsh(K).min())


@given(
    graphs(), st.sampled_from((0.5, 1.5, 2.5, 7.3)), st.floats(-2.0, 4.0), st.integers(0, 2**32 - 1)
)
def test_graph_matern(
    graph: tuple[Links, FloatArray, FloatArray], smoothness: float, log_scale: float, seed: int
) -> None:
    links = graph[0]
    spectrum = laplacian_spectrum(links)
    one = [HyperParameters((10.0**log_scale,), 1.0, 1.0)]
    covariance = GraphCovariance(GraphMatern(smoothness), spectrum, one)
    everything = np.arange(links.n)
    K = covariance.between(everything, everything)[0]
    assert np.isfinite(K).all()
    np.testing.assert_array_equal(np.diag(K), 1.0)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    assert least(K) > ROUNDING
    some = np.random.default_rng(seed).permutation(links.n)[: max(1, links.n // 2)]
    np.testing.assert_allclose(covariance.between(some, some)[0], K[np.ix_(some, some)])
    assert least(K[np.ix_(some, some)]) > ROUNDING
    apart = links.parts[:, None] != links.parts
    np.testing.assert_allclose(K[apart], 0.0, atol=1e-9)


@given(
    graphs(), st.sampled_from(("se", "matern12", "matern32", "matern52")), st.floats(-1.5, 1.5),
    st.sampled_from((0.5, 0.95)),
)  # fmt: skip
def test_relational(
    graph: tuple[Links, FloatArray, FloatArray], kernel: str, log_scale: float, share: float
) -> None:
    links, features, positions = graph
    weights = manhattan_weights(links, features, np.zeros((links.n, 0)))
    assert (weights > 0.0).all()
    points = embed(*join_parts(links, weights, positions), share=share)[0]
    assert np.isfinite(points).all()
    one = [HyperParameters((10.0**log_scale,), 1.0, 1.0)]
    everything = np.arange(links.n)
    K = FeatureCovariance(build_kernel(kernel), points, one).between(everything, everything)[0]
    assert least(K) > ROUNDING


def check_map(path: Path, anchors: tuple[float, ...] = (0.5, 1.0)) -> None:
    """Both covariances of a map, at several length-scales, on the whole map or a part of it."""
    road_map = load_roads(path)
    for anchor in anchors:
        roads = Roads(road_map, anchor=anchor)
        some = np.random.default_rng(7).permutation(roads.n)[:600]
        spectrum = laplacian_spectrum(roads.links)
        candidates = [
            HyperParameters((factor * spectrum.spacing,), 1.0, 1.0) for factor in (0.3, 3.0, 100.0)
        ]
        K = GraphCovariance(GraphMatern(), spectrum, candidates).between(some, some)
        assert np.linalg.eigvalsh(K).min() > ROUNDING
    relational = Roads(road_map, features=("relational",))
    extent = float(np.ptp(relational.features, axis=0).max())
    candidates = [HyperParameters((extent * f,), 1.0, 1.0) for f in (0.01, 0.1, 1.0)]
    for name in kernels.names():
        covariance = FeatureCovariance(build_kernel(name), relational.features, candidates)
        assert np.linalg.eigvalsh(covariance.between(some, some)).min() > ROUNDING


@for_each("name", [n for n in list_resources("maps") if n.endswith(".geojson")])
def test_shipped_maps(name: str) -> None:
    check_map(find_resource("maps", name))


@pytest.mark.parametrize("name", ["tampines", pytest.param("monaco", marks=pytest.mark.slow)])
def test_maps_of_real_places(shared_data: Path, name: str) -> None:
    check_map(shared_data / "sumo" / f"{name}.net.xml.gz", (0.5,))
