"""Another program chooses the next place; it speaks lines of JSON (docs/extending.md)."""

from gp_active_sensing.planning.external.policy import External
from gp_active_sensing.planning.external.process import PlannerProgram, ProgramError

__all__ = ["External", "PlannerProgram", "ProgramError"]
