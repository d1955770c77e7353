"""Node `active_sensing` that samples its own memory and thread times every second.

``python watched_node.py OUT.json --ros-args …`` writes the samples when the node ends.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from gp_active_sensing.ros.node_base import run_node

PERIOD = 1.0


class Watch:
    """Sampler of memory, thread times, and the delays from a reading's stamp to its callback."""

    def __init__(self, node: ActiveSensingNode) -> None:
        self._node = node
        self._main = threading.get_ident()
        self._ended = threading.Event()
        self._latencies: list[float] = []
        self._wrapped: Any = None
        self.samples: list[dict[str, float]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        began = time.monotonic()
        while not self._ended.wait(PERIOD):
            parts = self._node._parts
            if parts is not None:
                self._wrap(parts.mission.inbox)
                self.samples.append(self._sample(parts, time.monotonic() - began))

    def _wrap(self, inbox: Any) -> None:
        """Wrap the callback of readings to measure the delay since a reading's stamp."""
        if self._wrapped is inbox:
            return
        self._wrapped = inbox
        put, clock = inbox.put, self._node.get_clock()

        def timed(what: Any, received: float, probe: str = "") -> None:
            if hasattr(what, "value"):
                self._latencies.append(1e-6 * (clock.now().nanoseconds - what.stamp_ns))
            put(what, received, probe)

        inbox.put = timed

    def _sample(self, parts: Any, t: float) -> dict[str, float]:
        mission = parts.mission
        cpu = {"main": self._cpu(self._main), "mission": 0.0, "planner": 0.0}
        for thread in threading.enumerate():
            if thread.name in cpu and thread.ident is not None:
                cpu[thread.name] = self._cpu(thread.ident)
        took = self._latencies
        self._latencies = []
        return {
            "t": t,
            "rss_mb": _resident_mb(),
            "received": mission.inbox.received["readings"],
            "poses": mission.inbox.received["poses"],
            "used": sum(p.ingestion.pipeline.used for p in mission.probes.values()),
            "inbox": len(mission.inbox),
            "dropped": mission.inbox.dropped.total(),
            "stage": mission.decisions.stage,
            "observed": int(mission.loop.belief.observed.sum()),
            "callback_p50_ms": float(np.median(took)) if took else 0.0,
            "callback_p99_ms": float(np.percentile(took, 99)) if took else 0.0,
            **{f"cpu_{name}": seconds for name, seconds in cpu.items()},
        }

    @staticmethod
    def _cpu(ident: int) -> float:
        return time.clock_gettime(time.pthread_getcpuclockid(ident))

    def last_words(self) -> dict[str, Any]:
        self._ended.set()
        self._thread.join()
        return {"samples": self.samples}


def _resident_mb() -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024.0
    return float("nan")


def main() -> int:
    out = Path(sys.argv[1])
    found: dict[str, Any] = {}
    watches: list[Watch] = []

    class Watched(ActiveSensingNode):
        def release(self) -> None:
            if self._parts is not None:
                from gp_active_sensing.mission.recording import latencies

                mission = self._parts.mission
                found["latency"] = latencies(mission)
                found["rejected"] = dict(mission.rejected)
                found["dropped"] = dict(mission.inbox.dropped)
                found["received"] = dict(mission.inbox.received)
                found["stages"] = mission.decisions.stage
                ingestions = [probe.ingestion for probe in mission.probes.values()]
                found["used"] = sum(ingestion.pipeline.used for ingestion in ingestions)
                found["poses_used"] = sum(ingestion.poses for ingestion in ingestions)
                found["waiting"] = len(mission.inbox) + sum(
                    i.waiting + i.visits.waiting + len(i.pipeline.window) for i in ingestions
                )
                found["state"] = mission.state
            super().release()

    def factory() -> ActiveSensingNode:
        node = Watched()
        watches.append(Watch(node))
        return node

    code = run_node(factory, sys.argv)
    for watch in watches:
        found |= watch.last_words()
    out.write_text(json.dumps(found), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
