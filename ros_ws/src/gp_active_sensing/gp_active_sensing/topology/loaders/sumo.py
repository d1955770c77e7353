"""Road maps from SUMO networks (``.net.xml``, ``.net.xml.gz``).

A segment is an edge for passenger cars, drawn in the middle of its open lanes. Connections of SUMO
become successors. Coordinates stay those of the network, so that a map fits the simulation.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gp_active_sensing.errors import MapError, MissingDependencyError
from gp_active_sensing.topology.loaders import fault, number_of
from gp_active_sensing.topology.loaders.drafts import Draft, Drafts
from gp_active_sensing.topology.projection import LOCAL, LONLAT, frame_error, geographic_of
from gp_active_sensing.topology.segments import Point, RoadMap, length_of
from gp_active_sensing.util.xml_files import elements, tag_of

CAR = "passenger"
_TRUE_ENOUGH = 1.0
"""Error [m] up to which the network's coordinates are used as local metres."""


def load(path: Path) -> RoadMap:
    """Read a network. Raises MapError if there is no edge for cars."""
    net = _Net(path)
    for element in elements(path, ("location", "edge", "connection"), root="net"):
        if (tag := tag_of(element)) == "location":
            net.place = dict(element.attrib)
        else:
            (net.edge if tag == "edge" else net.connection)(element)
    return net.finish()


class _Lane(NamedTuple):
    """Lane for cars; the rightmost lane has the `number` 0."""

    number: int
    shape: tuple[Point, ...]
    length: float  # [m]
    speed: float  # [m/s]


class _Net:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.drafts = Drafts(path)
        self.place: dict[str, str] = {}
        self._edges: dict[str, tuple[Draft, set[int]]] = {}
        self._follows: dict[str, set[str]] = defaultdict(set)
        self._links: list[tuple[str, str, str, str, str]] = []
        self._connected = False
        self._closed = set[str]()  # lanes inside junctions that are closed to cars

    def connection(self, element: ET.Element) -> None:
        keys = ("from", "fromLane", "to", "toLane", "via")
        first, first_lane, second, second_lane, via = (element.get(key, "") for key in keys)
        if not first.startswith(":"):
            self._connected = True
            if _open_to_cars(element):
                self._links.append((first, first_lane, second, second_lane, via))

    def edge(self, element: ET.Element) -> None:
        identity = element.get("id")
        if element.get("function", "normal") != "normal":
            inner = element.iter("lane")
            self._closed |= {lane.get("id", "") for lane in inner if not _open_to_cars(lane)}
            return
        where = f"edge {identity!r}"
        before = len(self.drafts.problems)
        lanes = self._lanes(element, where)
        if len(self.drafts.problems) > before:
            return
        if not lanes:
            self.drafts.ignore("edges closed to passenger cars")
            return
        text = self.drafts.text
        draft = Draft(
            text(identity, "id", where),
            text(element.get("from"), "from", where),
            text(element.get("to"), "to", where),
            _middle([lane.shape for lane in lanes]),
            length=lanes[0].length,
            lanes=float(len(lanes)),
            speed_limit=max(lane.speed for lane in lanes),
            name=element.get("name", ""),
            road_class=element.get("type", ""),
            where=where,
        )
        if draft.id in self._edges:
            self.drafts.problems.append(f"{where}: there is another edge of this id")
        elif len(self.drafts.problems) == before:
            self._edges[draft.id] = draft, {lane.number for lane in lanes}

    def _lanes(self, element: ET.Element, where: str) -> list[_Lane]:
        found: list[_Lane] = []
        for index, lane in enumerate(element.iter("lane")):
            if not _open_to_cars(lane):
                continue
            here = f"{where}, lane {index}"
            length, speed = (self._number(lane, key, here) for key in ("length", "speed"))
            shape = _shape(lane.get("shape") or element.get("shape") or "")
            if len(shape) < 2:
                self.drafts.problems.append(
                    f"{here}: expected a shape of 2 or more points, got {lane.get('shape')!r:.60}"
                )
            own = lane.get("index", "")
            number = int(own) if _is_index(own) else index
            found.append(_Lane(number, shape, length, speed))
        return found

    def _number(self, lane: ET.Element, key: str, where: str) -> float:
        value = number_of(lane.get(key))
        if value is None or not 0.0 < value < math.inf:
            self.drafts.problems.append(
                f"{where}: {key}: expected a number above 0, got {lane.get(key)!r}"
            )
        return value or math.nan

    def finish(self) -> RoadMap:
        for first, first_lane, second, second_lane, via in self._links:
            if first in self._edges and second in self._edges and via not in self._closed:
                lanes = self._edges[first][1], self._edges[second][1]
                if _one_of(first_lane, lanes[0]) and _one_of(second_lane, lanes[1]):
                    self._follows[first].add(second)
        if self._edges and not self._connected:
            self.drafts.notes.append(
                "the network has no connections; every edge that leaves a junction may follow"
            )
        for identity, (draft, _) in self._edges.items():
            follows = tuple(sorted(self._follows[identity])) if self._connected else None
            self.drafts.add(replace(draft, successors=follows))
        datum = self._datum()
        return self.drafts.finish(
            LOCAL, datum=datum, allow_small=True, nothing="expected an edge that cars may use"
        )

    def _datum(self) -> Point | None:
        """Return the datum of the network's origin; None = unknown, or no axes east and north."""
        projection = self.place.get("projParameter", "!")
        offset = _shape(self.place.get("netOffset", ""))
        if projection == "!" or not offset or not self._edges:
            return None
        if projection == "-":  # never projected: the coordinates are degrees
            raise fault(
                self.path,
                "the network is in longitude and latitude (projParameter '-'); "
                "convert it with `netconvert --proj.utm` first",
            )
        (dx, dy) = offset[0]
        xs, ys = zip(*(p for draft, _ in self._edges.values() for p in draft.line), strict=True)
        shifted = [(x - dx, y - dy) for x in (min(xs), max(xs)) for y in (min(ys), max(ys))]
        where = str(self.path)
        try:
            lonlat = geographic_of([(-dx, -dy)], projection, where=where)
            error = frame_error(shifted, projection, (-dx, -dy), where=where)
        except (MapError, MissingDependencyError) as problem:
            self.drafts.notes.append(f"where the network lies is not known: {problem}")
            return None
        origin = round(float(lonlat[0, 0]), 6), round(float(lonlat[0, 1]), 6)
        if error <= _TRUE_ENOUGH:
            return origin
        self.drafts.notes.append(
            f"the origin lies at longitude {origin[0]}, latitude {origin[1]} ({LONLAT}), but the "
            f"network's axes do not point east and north there (its projection is {projection!r}): "
            f"positions from a satellite receiver would be up to {error:.0f} m off, so no datum is "
            "given; for such a probe import the streets from OpenStreetMap"
        )
        return None


def _open_to_cars(lane: ET.Element) -> bool:
    allow, disallow = (lane.get(key, "").split() for key in ("allow", "disallow"))
    if allow:
        return CAR in allow or "all" in allow
    return CAR not in disallow and "all" not in disallow


def _one_of(lane: str, lanes: set[int]) -> bool:
    return not _is_index(lane) or int(lane) in lanes


def _is_index(text: str) -> bool:
    return text.isdecimal() and len(text) < 5


def _shape(text: str) -> tuple[Point, ...]:
    """Return the points of a shape of SUMO; () if a number is missing, wrong or not finite."""
    words = (word.split(",") for word in text.split())
    try:
        points = tuple((float(x), float(y)) for x, y, *_ in words)
    except ValueError:
        return ()
    return points if all(math.isfinite(c) for point in points for c in point) else ()


def _middle(shapes: list[tuple[Point, ...]]) -> tuple[Point, ...]:
    """Return the middle of the outer lanes; the middle lane if their numbers of points differ."""
    first, last = shapes[0], shapes[-1]
    if len(first) != len(last):
        return shapes[len(shapes) // 2]
    line = tuple(((a + c) / 2.0, (b + d) / 2.0) for (a, b), (c, d) in zip(first, last, strict=True))
    return line if length_of(line) > 0.0 else first
