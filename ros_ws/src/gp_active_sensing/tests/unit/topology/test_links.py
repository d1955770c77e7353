"""How places are joined: by moves on a grid, at junctions on roads."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.topology import Roads, load_roads, make_grid, make_line
from gp_active_sensing.topology.links import Links, move_links, segment_links
from gp_active_sensing.topology.segments import Segment
from tests.unit.topology.road_maps import street, write


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


@pytest.mark.parametrize("pair", [(0, 3, 1.0, 1.0), (-1, 0, 1.0, 1.0), (0, 1, 0.0, 1.0)])
def test_pairs_that_cannot_be(pair: tuple[int, int, float, float]) -> None:
    with pytest.raises(ValueError, match="expected places 0 … 2, metres and conductance above 0"):
        Links.between(3, [pair])


def test_a_grid_and_a_line() -> None:
    assert pairs(make_grid(2, 2, 10.0).links) == dict.fromkeys(
        [(0, 1), (0, 2), (1, 3), (2, 3)], 10.0
    )
    line = make_line(4, 2.0, moves="adjacent").links
    assert pairs(line) == {(0, 1): 2.0, (1, 2): 2.0, (2, 3): 2.0}
    np.testing.assert_allclose(line.mass, 2.0)
    assert make_line(4, 2.0, moves="free").links is None


def test_a_road_without_crossings_is_a_chain() -> None:
    chain = [road("a", "0", "1", 10.0), road("b", "1", "2", 30.0), road("c", "2", "3", 20.0)]
    links = segment_links(chain, [[1], [2], []])
    assert pairs(links) == {(0, 1): 20.0, (1, 2): 25.0}
    np.testing.assert_allclose(links.conductance, 1.0 / links.metres)
    assert links.mass.tolist() == [10.0, 30.0, 20.0]


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


def test_segments_that_nothing_joins() -> None:
    links = segment_links([road("a", "0", "1", 10.0), road("b", "2", "3", 30.0)], [[], []])
    assert (len(links.metres), links.parts.tolist()) == (0, [0, 1])


def test_a_road_map_has_them(tmp_path) -> None:
    roads = Roads(load_roads(write(tmp_path / "street.geojson", street())))
    assert roads.links.n == roads.n
    assert roads.links.parts.tolist() == [0] * roads.n
    assert roads.links.mass == pytest.approx([s.length for s in roads.segments])
