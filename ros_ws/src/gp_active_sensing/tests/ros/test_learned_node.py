"""The node with a belief over kernels: what it publishes, and that it goes on without the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from lifecycle_msgs.msg import Transition
from std_msgs.msg import String

from gp_active_sensing.belief.from_kernel_model import OWN_SHARES, SCALES
from gp_active_sensing.kernel_model import model_mark, write_model
from gp_active_sensing.records.run_directory import MODEL
from gp_active_sensing.ros import qos
from tests.kernel_models import make_model, rows
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import GRID, Probe, sensing
from tests.ros.test_node_base import Lifecycle

pytestmark = pytest.mark.ros

MAP = tuple(word for word in GRID if not word.startswith("belief."))


def write(path: Path, seed: int = 0) -> Path:
    X, y = rows(seed)
    bounds = {"SE": 0.0, "LIN": -0.4, "PER+SE": -0.8}
    return write_model(path, make_model(tuple(bounds), 0.3 * X, y - 10.0, bounds=bounds))


def test_a_node_with_a_model_and_again_without_the_file(ros: Ros, tmp_path: Path) -> None:
    model = write(tmp_path / "yesterday.npz")
    mark = model_mark(model)
    run = tmp_path / "run"
    given = (*MAP, f"belief.model:={model}", f"run_dir:={run}")
    journal: list[String] = []
    ros.node("listener").create_subscription(
        String, "/active_sensing/journal", journal.append, qos.reliable(100, latched=True)
    )
    sensing(ros, given=given)
    probe = Probe(ros).connect()
    probe.pose(0.0)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    probe.reading(10.5)
    heard = probe.heard["length_scale_belief"]
    wait_until(lambda: len({tuple(m.data) for m in heard}) > 1, "the belief after the reading")
    weights = heard[-1]
    labels = [d.label.split()[0] for d in weights.layout.dim]
    each = len(OWN_SHARES)
    assert labels == [
        f"kernel={kernel}"
        for kernel in ("SE",) * SCALES + ("LIN",) + ("PER+SE",) * SCALES
        for _ in range(each)
    ]
    assert weights.layout.dim[0].label.split()[1].startswith("length_scale=")
    assert sum(weights.data) == pytest.approx(1.0)
    assert (run / MODEL).read_bytes() == model.read_bytes()
    wait_until(lambda: journal, "the journal")
    setup = json.loads(journal[0].data)[0]["setup"]
    assert setup["config"]["belief"]["model_mark"] == mark
    # The file is gone, the mission goes on: its directory has a copy.
    lifecycle = Lifecycle(ros, "active_sensing")
    assert lifecycle.do(Transition.TRANSITION_DEACTIVATE)
    assert lifecycle.do(Transition.TRANSITION_CLEANUP)
    model.unlink()
    before = len(heard)
    assert lifecycle.do(Transition.TRANSITION_CONFIGURE)
    assert lifecycle.do(Transition.TRANSITION_ACTIVATE)
    wait_until(lambda: len(heard) > before, "the belief again")
    again = heard[-1]
    assert [d.label for d in again.layout.dim] == [d.label for d in weights.layout.dim]
    assert list(again.data) == list(weights.data)
