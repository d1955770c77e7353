#!/usr/bin/env python3
"""Make the town: its road map and the traffic speeds on it, with fixed seeds.

Two steps, each of which can be run alone:

  sumo     make a network and run morning traffic on it (needs SUMO: pip install eclipse-sumo)
  convert  turn SUMO's network and edge speeds into town.geojson and town_speeds.csv, and pack the
           network and the trips for live traffic

``python make_town.py sumo WORK && python make_town.py convert WORK`` writes the shipped files
again, byte for byte with the version of SUMO named in README.md.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import shutil
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path
from typing import Any

from sumo_to_geojson import convert, parse_xml

logger = logging.getLogger("make_town")

SEED = 7
BEGIN, END, SLOT = 900, 4500, 900
"""Speeds are averaged over slots of 15 minutes, after 15 minutes of filling the streets [s]."""
VEHICLES = 9000
CLASSES = {  # share of the roads, lanes, limits [m/s] in the centres and elsewhere, SUMO priority
    "arterial": (0.12, 3, (8.33, 19.44), 9),
    "collector": (0.28, 2, (8.33, 16.67), 6),
    "local": (0.60, 1, (5.56, 13.89), 3),
}
CENTRES = ((0.35, 0.6, 800.0), (0.72, 0.25, 500.0))
"""Where most trips lead and limits are low: place as shares of the extent, radius [m]."""
ONE_WAY_SHARE = 0.08
"""Share of the local roads that lose one direction, where the town stays strongly connected."""


def main(arguments: list[str] | None = None) -> int:
    """Run the steps named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("sumo", "convert"))
    parser.add_argument("work", type=Path, help="folder of SUMO's files")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="for convert")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        if options.step == "sumo":
            simulate(options.work)
        else:
            convert(options.work, options.out)
    except (RuntimeError, OSError, ValueError) as error:
        logger.error("make_town: %s", error)
        return 1
    return 0


def simulate(work: Path) -> None:
    """Make the network and run the traffic; writes town.net.xml and town.edgedata.xml."""
    work.mkdir(parents=True, exist_ok=True)
    _run(
        work,
        "netgenerate",
        *("--rand", "--seed", str(SEED), "--rand.iterations", "250"),
        *("--rand.min-distance", "90", "--rand.max-distance", "300", "--rand.min-angle", "45"),
        *("--rand.connectivity", "0.98", "--plain-output-prefix", "raw", "-o", "raw.net.xml"),
    )
    nodes, roads = _read_plain(work)
    edges = _classify(nodes, roads)
    _write_edges(work / "town.edg.xml", edges)
    _run(
        work,
        "netconvert",
        *("--node-files", "raw.nod.xml", "--edge-files", "town.edg.xml", "-o", "town.net.xml"),
        *(
            "--no-turnarounds.except-deadend",
            "--tls.guess",
            "--tls.guess.threshold",
            "100",
            "--tls.default-type",
            "actuated",
        ),
    )
    _write_trips(work / "town.trips.xml", nodes, edges)
    (work / "town.add.xml").write_text(
        f'<additional><edgeData id="speeds" file="town.edgedata.xml" begin="{BEGIN}" '
        f'end="{END}" freq="{SLOT}"/></additional>\n',
        encoding="utf-8",
    )
    _run(
        work,
        "sumo",
        *("-n", "town.net.xml", "-r", "town.trips.xml", "-a", "town.add.xml", "--end", str(END)),
        *("--seed", str(SEED), "--device.rerouting.probability", "0.5", "--no-step-log"),
        *("--device.rerouting.period", "300", "--no-warnings", "--ignore-route-errors"),
    )


def _run(work: Path, tool: str, *arguments: str) -> None:
    """Run a SUMO tool in the work folder."""
    places = [os.environ.get("PATH", ""), sysconfig.get_path("scripts")]
    if "SUMO_HOME" in os.environ:
        places.append(str(Path(os.environ["SUMO_HOME"]) / "bin"))
    program = shutil.which(tool, path=os.pathsep.join(places))
    if program is None:
        message = f"{tool} not found; install SUMO with: pip install eclipse-sumo==1.28.0"
        raise RuntimeError(message)
    logger.info("running %s …", tool)
    done = subprocess.run(
        [program, *arguments], cwd=work, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        message = f"{tool} ended with {done.returncode}: {done.stderr.strip()[-500:]}"
        raise RuntimeError(message)


def _read_plain(work: Path) -> tuple[dict[str, tuple[float, float]], list[tuple[str, str]]]:
    """Return junction positions, and each road once, whatever its directions."""
    nodes = {
        str(n.get("id")): (float(n.get("x", "nan")), float(n.get("y", "nan")))
        for n in parse_xml(work / "raw.nod.xml").iter("node")
    }
    roads: set[tuple[str, str]] = set()
    for edge in parse_xml(work / "raw.edg.xml").iter("edge"):
        first, second = sorted((int(edge.get("from", "")), int(edge.get("to", ""))))
        roads.add((str(first), str(second)))
    return nodes, sorted(roads, key=lambda road: (int(road[0]), int(road[1])))


def _classify(
    nodes: dict[str, tuple[float, float]], roads: list[tuple[str, str]]
) -> list[dict[str, str]]:
    """Return directed edges: the roads that most shortest ways use become the wide ones."""
    import networkx as nx
    import numpy as np

    graph: nx.Graph[str] = nx.Graph()
    for a, b in roads:
        graph.add_edge(a, b, length=math.dist(nodes[a], nodes[b]))
    graph = graph.subgraph(max(nx.connected_components(graph), key=len))
    roads = [road for road in roads if graph.has_edge(*road)]
    usage = nx.edge_betweenness_centrality(graph, weight="length")
    ranked = sorted(roads, key=lambda r: (-round(usage.get(r, usage.get(r[::-1], 0.0)), 12), r))
    classes: dict[tuple[str, str], str] = {}
    done = 0
    for name, (share, *_) in CLASSES.items():
        count = len(ranked) - done if name == "local" else round(share * len(ranked))
        classes.update(dict.fromkeys(ranked[done : done + count], name))
        done += count
    directed = {*roads, *(road[::-1] for road in roads)}
    rng = np.random.default_rng([SEED, 1])
    local = [road for road in roads if classes[road] == "local"]
    wanted = round(ONE_WAY_SHARE * len(local))
    for k in rng.permutation(len(local)):
        a, b = local[k]
        if wanted == 0 or 1 in (graph.degree[a], graph.degree[b]):
            continue
        directed.remove((b, a))
        if _drivable(directed):
            wanted -= 1
        else:
            directed.add((b, a))
    edges = []
    calm = _distance_to_centres(nodes, roads)
    for k, (a, b) in enumerate(roads):
        _, lanes, limits, priority = CLASSES[classes[a, b]]
        limit = limits[0] if calm[k] < 1.0 else limits[1]
        for identity, start, end in ((str(k + 1), a, b), (f"-{k + 1}", b, a)):
            if (start, end) in directed:
                edges.append(
                    {
                        "id": identity,
                        "from": start,
                        "to": end,
                        "numLanes": str(lanes),
                        "speed": f"{limit:.2f}",
                        "priority": str(priority),
                        "type": classes[a, b],
                    }
                )
    return edges


def _drivable(directed: set[tuple[str, str]]) -> bool:
    """Whether every edge can be reached from every other without U-turns but at dead ends."""
    import networkx as nx

    leaving: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for edge in sorted(directed):
        leaving[edge[0]].append(edge)
    turns: nx.DiGraph[tuple[str, str]] = nx.DiGraph()
    turns.add_nodes_from(directed)
    for a, b in directed:
        onward = [edge for edge in leaving[b] if edge[1] != a] or leaving[b]
        turns.add_edges_from(((a, b), edge) for edge in onward)
    return bool(nx.is_strongly_connected(turns))


def _write_edges(path: Path, edges: list[dict[str, str]]) -> None:
    root = ET.Element("edges")
    for edge in edges:
        ET.SubElement(root, "edge", edge)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _distance_to_centres(
    nodes: dict[str, tuple[float, float]], roads: list[tuple[str, str]]
) -> Any:
    """(m,) distance of each road's middle to the nearest centre, in units of its radius."""
    import numpy as np

    middles = np.array([np.add(nodes[a], nodes[b]) / 2 for a, b in roads], dtype=np.float64)
    corners = np.array(list(nodes.values()), dtype=np.float64)
    low, high = corners.min(axis=0), corners.max(axis=0)
    return np.min(
        [
            np.linalg.norm(middles - low - np.array([u, v]) * (high - low), axis=1) / radius
            for u, v, radius in CENTRES
        ],
        axis=0,
    )


def _write_trips(
    path: Path, nodes: dict[str, tuple[float, float]], edges: list[dict[str, str]]
) -> None:
    """Write trips from everywhere, most of them towards two centres."""
    import numpy as np

    distance = _distance_to_centres(nodes, [(edge["from"], edge["to"]) for edge in edges])
    towards = 0.15 + np.exp(-0.5 * distance**2)
    rng = np.random.default_rng([SEED, 2])
    departs = np.sort(rng.uniform(0, END, VEHICLES))
    origins = rng.choice(len(edges), VEHICLES)
    goals = rng.choice(len(edges), VEHICLES, p=towards / towards.sum())
    root = ET.Element("routes")
    ET.SubElement(root, "vType", {"id": "car", "speedFactor": "normc(1,0.1,0.2,2)"})
    for k in range(VEHICLES):
        if origins[k] != goals[k]:
            ET.SubElement(
                root,
                "trip",
                {
                    "id": str(k),
                    "type": "car",
                    "depart": f"{departs[k]:.2f}",
                    "from": edges[origins[k]]["id"],
                    "to": edges[goals[k]]["id"],
                    "departLane": "best",
                    "departSpeed": "max",
                },
            )
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


if __name__ == "__main__":
    sys.exit(main())
