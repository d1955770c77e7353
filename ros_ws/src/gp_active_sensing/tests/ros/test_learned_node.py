"""The node with a belief over kernels: what it publishes, and that it goes on without the file."""

from __future__ import annotations

import json
from pathlib import Path

from lifecycle_msgs.msg import Transition
from std_msgs.msg import String

from gp_active_sensing.kernel_model.model_file import model_mark
from gp_active_sensing.records.run_directory import MODEL
from gp_active_sensing.ros import qos
from tests.kernel_models import write_three
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import GRID, started
from tests.ros.test_node_base import Lifecycle

MAP = tuple(word for word in GRID if not word.startswith("belief."))


def test_a_node_with_a_model_and_again_without_the_file(ros: Ros, tmp_path: Path) -> None:
    model = write_three(tmp_path / "yesterday.npz")
    mark = model_mark(model)
    run = tmp_path / "run"
    given = (*MAP, f"belief.model:={model}", f"run_dir:={run}")
    journal = ros.hear(String, "/active_sensing/journal", qos.reliable(100, latched=True))
    _, probe = started(ros, given=given)
    probe.reading(10.5)
    heard = probe.heard["length_scale_belief"]
    wait_until(lambda: len({tuple(m.data) for m in heard}) > 1, "the belief after the reading")
    weights = heard[-1]
    assert {d.label.split()[0] for d in weights.layout.dim} == {
        *("kernel=SE", "kernel=LIN", "kernel=PER+SE")
    }
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
