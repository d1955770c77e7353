"""A run that was begun: is it one of this scenario, and which model did its belief have?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from gp_active_sensing.belief import as_begun, with_mark
from gp_active_sensing.config import to_mapping
from gp_active_sensing.errors import RunError
from gp_active_sensing.records.run_directory import CONFIG, RunDirectory
from gp_active_sensing.sim.scenario import Scenario, scenario_from_mapping
from gp_active_sensing.util.files import differences

__all__ = ["check_same", "with_model_of"]


def check_same(run: RunDirectory, scenario: Scenario) -> None:
    """See that a directory holds a run of a scenario.

    Raises:
        RunError: it holds one of another.
    """
    stored = scenario_from_mapping(run.config, source=str(run.path / CONFIG))
    different = sorted(differences(to_mapping(stored), scenario.to_mapping()))
    if different:
        msg = (
            f"{run.path} holds a run of another configuration; different: {', '.join(different)}. "
            "Resume it with the same options, or name another directory with --out"
        )
        raise RunError(msg)


def with_model_of(scenario: Scenario, run_dir: Path | None) -> Scenario:
    """Return the scenario with what its belief's model holds, of a run that goes on that of then.

    Args:
        scenario: as given.
        run_dir: of a run that may go on, None = a new one.

    Raises:
        ConfigError: a model that is not there.
        RunError: a run directory that cannot be read.
    """
    belief = scenario.belief
    if belief.model is None:
        return scenario
    if run_dir is not None and (run_dir / CONFIG).is_file():
        stored = RunDirectory.open(run_dir).config.get("belief")
        belief = as_begun(belief, stored if isinstance(stored, Mapping) else {}, run_dir)
    return dataclasses.replace(scenario, belief=with_mark(belief, run_dir))
