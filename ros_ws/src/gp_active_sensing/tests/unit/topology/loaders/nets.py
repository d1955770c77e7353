"""A small SUMO network, in parts that tests may change."""

from __future__ import annotations

import gzip
from pathlib import Path

LOCATION = '<location netOffset="0.00,0.00" convBoundary="0,0,200,100" projParameter="!"/>'
EDGES = """
<edge id=":b_0" function="internal">
  <lane id=":b_0_0" index="0" speed="5" length="3" shape="0,0 1,1"/>
</edge>
<edge id="ab" from="a" to="b" priority="1" type="local" name="High Street">
  <lane id="ab_0" index="0" disallow="passenger" speed="3" length="100.00" shape="0,-3 100,-3"/>
  <lane id="ab_1" index="1" speed="13.89" length="100.00" shape="0,0 50,1 100,0"/>
  <lane id="ab_2" index="2" speed="13.89" length="100.00" shape="0,3 50,5 100,3"/>
</edge>
<edge id="ba" from="b" to="a">
  <lane id="ba_0" index="0" speed="8.3" length="99.5" shape="100,6 0,6"/>
</edge>
<edge id="bc" from="b" to="c">
  <lane id="bc_0" index="0" allow="bus passenger" speed="8.3" length="80" shape="100,0 180,0"/>
</edge>
<edge id="rail" from="a" to="c">
  <lane id="r_0" index="0" allow="rail" speed="30" length="9" shape="0,0 9,9"/>
</edge>
"""
CONNECTIONS = """
<connection from=":b_0" to="bc" fromLane="0" toLane="0"/>
<connection from="ab" to="bc" fromLane="1" toLane="0" via=":b_0_0"/>
<connection from="ab" to="ba" fromLane="2" toLane="0"/>
<connection from="ba" to="ab" fromLane="0" toLane="0"/>
<connection from="ba" to="rail" fromLane="0" toLane="0"/>
"""


def net(edges: str = EDGES, connections: str = CONNECTIONS, location: str = LOCATION) -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<net version="1.20">\n{location}{edges}'
        f"{connections}</net>\n"
    )


def write_net(folder: Path, text: str, name: str = "small.net.xml") -> Path:
    """Write a network, compressed when its name says so."""
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path
