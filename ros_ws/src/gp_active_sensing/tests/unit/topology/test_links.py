"""How places are joined: by moves on a grid, at junctions on roads; the embedding of that graph."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

from gp_active_sensing.topology import make_grid, make_line
from gp_active_sensing.topology import roads as module
from gp_active_sensing.topology.roads import embed, join_parts, manhattan_weights
from gp_active_sensing.topology.segments import Links, Segment, move_links, segment_links


def pairs(links: Links) -> dict[tuple[int, int], float]:
    both = zip(links.first.tolist(), links.second.tolist(), strict=True)
    return dict(zip(both, links.metres.tolist(), strict=True))


def road(identity: str, start: str, end: str, length: float) -> Segment:
    return Segment(identity, start, end, ((0.0, 0.0), (length, 0.0)), length)


def test_moves_are_made_undirected() -> None:
    links = Links.between(
        4, [(1, 0, 5.0, 0.2), (0, 1, 4.0, 0.1), (2, 1, 3.0, 1.0), (2, 2, 9.0, 1.0)]
    )
    assert pairs(links) == {(0, 1): 4.0, (1, 2): 3.0}
    assert links.conductance.tolist() == [0.2, 1.0]
    assert links.mass.tolist() == [4.0, 3.5, 3.0, 1.0]
    assert links.parts.tolist() == [0, 0, 0, 1]


def test_pairs_that_cannot_be() -> None:
    for pair in ((0, 3, 1.0, 1.0), (-1, 0, 1.0, 1.0), (0, 1, 0.0, 1.0)):
        with pytest.raises(
            ValueError, match="expected places 0 … 2, metres and conductance above 0"
        ):
            Links.between(3, [pair])


def test_a_grid_and_a_line() -> None:
    assert pairs(make_grid(2, 2, 10.0).links) == dict.fromkeys(
        [(0, 1), (0, 2), (1, 3), (2, 3)], 10.0
    )
    line = make_line(4, 2.0, moves="adjacent").links
    assert pairs(line) == {(0, 1): 2.0, (1, 2): 2.0, (2, 3): 2.0}
    np.testing.assert_allclose(line.mass, 2.0)
    assert make_line(4, 2.0, moves="free").links is None


def test_a_crossing_is_a_star_of_wires() -> None:
    """The potentials of the mesh are those of the star with the junction kept."""
    arms = [road(str(k), str(k), "J", 10.0 * (k + 1)) for k in range(4)]
    links = segment_links(arms, [[], [], [], []])
    mesh = links.matrix(links.conductance).toarray()
    mesh = np.diag(mesh.sum(axis=1)) - mesh
    star = np.zeros((5, 5))
    for k in range(4):
        g = 1.0 / (5.0 * (k + 1))
        star[k, k] += g
        star[4, 4] += g
        star[k, 4] -= g
        star[4, k] -= g
    reduced = star[:4, :4] - np.outer(star[:4, 4], star[4, :4]) / star[4, 4]
    np.testing.assert_allclose(mesh, reduced, atol=1e-12)


def test_both_directions_of_a_road_are_joined_at_both_ends() -> None:
    links = segment_links([road("a", "0", "1", 10.0), road("-a", "1", "0", 10.0)], [[1], [0]])
    assert pairs(links) == {(0, 1): 10.0}
    assert links.conductance == pytest.approx([0.2])


def test_where_along_a_segment_its_value_belongs() -> None:
    """At their ends, segments that end at one junction are close, those after it far."""
    segments = [road("a", "0", "J", 100.0), road("b", "1", "J", 100.0), road("c", "J", "2", 60.0)]
    follow = [[2], [2], []]
    assert pairs(segment_links(segments, follow, 1.0)) == pytest.approx(
        {(0, 1): 2.0, (0, 2): 60.4, (1, 2): 60.4}
    )
    assert pairs(segment_links(segments, follow, 0.5)) == pytest.approx(
        {(0, 1): 100.0, (0, 2): 80.0, (1, 2): 80.0}
    )
    assert pairs(move_links(segments, follow, 0.5)) == {(0, 2): 80.0, (1, 2): 80.0}
    assert pairs(move_links(segments, follow, 1.0)) == pytest.approx({(0, 2): 60.4, (1, 2): 60.4})


def test_successors_without_a_junction_in_common() -> None:
    links = segment_links([road("a", "0", "1", 10.0), road("b", "x", "y", 30.0)], [[1], []])
    assert pairs(links) == {(0, 1): 20.0}
    assert links.conductance.tolist() == [0.05]


def test_a_junction_counts_more_than_a_listed_successor_and_the_nearest_one_most() -> None:
    """Segments that leave one junction; the map lists one as the other's successor."""
    leaving = [road("a", "J", "1", 10.0), road("b", "J", "2", 30.0)]
    links = segment_links(leaving, [[1], []], 0.8)
    assert pairs(links) == pytest.approx({(0, 1): 8.0 + 24.0})
    assert links.conductance.tolist() == pytest.approx([1.0 / 32.0])
    side_by_side = [road("a", "J", "K", 10.0), road("b", "J", "K", 30.0)]
    for anchor in (0.2, 0.8):  # the nearer junction is the first, the second
        assert pairs(segment_links(side_by_side, [[], []], anchor)) == pytest.approx({(0, 1): 8.0})


NONE = np.zeros((4, 0))


def chain(n: int) -> Links:
    return Links.between(n, [(i, i + 1, 1.0, 1.0) for i in range(n - 1)])


def random_links(n: int, rng: np.random.Generator) -> Links:
    tree = [(i, int(rng.integers(i))) for i in range(1, n)]
    more = [tuple(rng.integers(0, n, 2).tolist()) for _ in range(n)]
    return Links.between(n, [(i, j, float(m), 1.0 / m) for (i, j), m in zip(
        [*tree, *more], rng.uniform(1.0, 10.0, 2 * n), strict=False)])  # fmt: skip


def test_weights_are_range_normalised_manhattan_distances() -> None:
    columns = np.array([[0.0, 5.0], [10.0, 5.0], [20.0, 1.0], [40.0, 3.0]])
    found = manhattan_weights(chain(4), columns, NONE)
    np.testing.assert_allclose(found, [10 / 40, 10 / 40 + 4 / 4, 20 / 40 + 2 / 4])


def test_direction_is_an_angle() -> None:
    headings = np.radians([[-170.0], [170.0], [80.0], [80.0]])
    found = manhattan_weights(chain(4), NONE, headings)
    np.testing.assert_allclose(found, [20 / 180, 90 / 180, 0.01 * 55 / 180], rtol=1e-12)


def test_constant_columns_add_nothing_and_no_weight_is_zero() -> None:
    columns = np.array([[7.0, 0.0], [7.0, 1.0], [7.0, 1.0], [7.0, 3.0]])
    found = manhattan_weights(chain(4), columns, NONE)
    np.testing.assert_allclose(found, [1 / 3, 0.01 * 0.5, 2 / 3])
    np.testing.assert_allclose(manhattan_weights(chain(4), columns[:, :1], NONE), 1.0)


def test_paths_in_the_plane_come_back() -> None:
    """A complete graph of straight distances: scaling finds the plane."""
    points = np.random.default_rng(2).uniform(0, 100, size=(30, 2))
    i, j = np.triu_indices(30, 1)
    metres = pdist(points)
    links = Links.between(
        30, zip(i.tolist(), j.tolist(), metres.tolist(), 1.0 / metres, strict=True)
    )
    found, _ = embed(links, links.metres, share=0.999)
    assert found.shape[1] == 2
    np.testing.assert_allclose(cdist(found, found), cdist(points, points), atol=1e-9)


def test_landmarks_agree_with_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    points = rng.uniform(0, 1000, size=(400, 2))
    near = np.argsort(cdist(points, points), axis=1)[:, 1:8]
    metres = cdist(points, points)
    links = Links.between(
        400, [(i, int(j), metres[i, j], 1.0) for i in range(400) for j in near[i]]
    )
    links, weights = join_parts(links, links.metres, points)
    whole = embed(links, weights, share=0.9, exact=400)[0]
    for landmarks in (400, 60):
        monkeypatch.setattr(module, "LANDMARKS", landmarks)
        few = embed(links, weights, share=0.9, exact=100)[0]
        for other in (pdist(few), links.shortest_paths(weights)[np.triu_indices(400, 1)]):
            assert np.corrcoef(pdist(whole), other)[0, 1] > 0.99


def test_it_does_not_depend_on_the_library_s_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    links = random_links(40, np.random.default_rng(4))
    before = embed(links, links.metres)[0]
    eigh = np.linalg.eigh

    def other(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = eigh(matrix)
        return values, -vectors

    monkeypatch.setattr(np.linalg, "eigh", other)
    np.testing.assert_allclose(embed(links, links.metres)[0], before, atol=1e-9)


def test_parts_are_joined_where_they_come_nearest() -> None:
    links = Links.between(6, [(0, 1, 10.0, 0.1), (1, 2, 10.0, 0.1), (3, 4, 10.0, 0.1)])
    positions = np.array([[0, 0], [10, 0], [20, 0], [20, 50], [30, 50], [-5, 0]], dtype=float)
    joined, weights = join_parts(links, np.array([1.0, 1.0, 3.0]), positions)
    found = dict(zip(zip(joined.first.tolist(), joined.second.tolist(), strict=True),
                     weights.tolist(), strict=True))  # fmt: skip
    assert not joined.parts.any()
    # 50 m are five typical links; 5 m count as one.
    assert found == {(0, 1): 1.0, (1, 2): 1.0, (3, 4): 3.0, (2, 3): 5.0, (0, 5): 1.0}
    assert np.isfinite(joined.shortest_paths(weights)).all()
    assert embed(joined, weights)[0].shape[0] == 6


def test_no_links_at_all() -> None:
    alone = Links.between(3, [])
    links, weights = join_parts(alone, alone.metres, np.array([[0.0, 0.0], [3.0, 0.0], [9.0, 0.0]]))
    np.testing.assert_allclose(np.sort(links.shortest_paths(weights)[0]), [0.0, 1.0, 1.5])
    one = Links.between(1, [])
    assert embed(one, one.metres)[0].tolist() == [[0.0]]
