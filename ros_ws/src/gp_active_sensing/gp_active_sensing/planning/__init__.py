"""Belief + topology -> Plan; the table below is all that is built in."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning.bal import Bal
from gp_active_sensing.planning.bandits.ei import ExpectedImprovement
from gp_active_sensing.planning.bandits.est import Est
from gp_active_sensing.planning.bandits.gp_ucb import GpUcb
from gp_active_sensing.planning.bandits.mean_only import MeanOnly
from gp_active_sensing.planning.bandits.pi import ProbabilityOfImprovement
from gp_active_sensing.planning.bandits.thompson import Thompson
from gp_active_sensing.planning.bandits.variance_only import VarianceOnly
from gp_active_sensing.planning.base import Policy, PolicyState
from gp_active_sensing.planning.batches.dpp_max import EstDppMax, UcbDppMax
from gp_active_sensing.planning.batches.dpp_sample import EstDppSample, UcbDppSample
from gp_active_sensing.planning.batches.hallucination import BEst, GpBucb
from gp_active_sensing.planning.batches.lp_ucb import LpUcb
from gp_active_sensing.planning.changing.r_gp_ucb import RGpUcb
from gp_active_sensing.planning.changing.sparq_gp_ucb import SparqGpUcb
from gp_active_sensing.planning.changing.sw_gp_ucb import SwGpUcb
from gp_active_sensing.planning.changing.tv_gp_ucb import TvGpUcb
from gp_active_sensing.planning.changing.w_gp_ucb import WGpUcb
from gp_active_sensing.planning.explicit_exploration import ExplicitExploration
from gp_active_sensing.planning.greedy import Apgd, MaxEntropy
from gp_active_sensing.planning.implicit_exploration import ImplicitExploration
from gp_active_sensing.planning.mutual_information import MutualInformation
from gp_active_sensing.planning.random import RandomChoice
from gp_active_sensing.registry import Registry

__all__ = ["Policy", "PolicyState", "build_policy", "policies"]


def _policy_problem(plugin: Any) -> str:
    """Return what is wrong with a plug-in's object, "" when it can be a policy."""
    if not (isinstance(plugin, type) and dataclasses.is_dataclass(plugin)):
        return "expected a frozen dataclass whose fields are the policy's configuration"
    return "" if callable(getattr(plugin, "plan", None)) else "expected a method `plan`"


policies: Registry[Policy] = Registry(
    "policy", group="gp_active_sensing.policies", check=_policy_problem
)
policies.add("apgd", Apgd)
policies.add("b_est", BEst)
policies.add("bal", Bal)
policies.add("ei", ExpectedImprovement)
policies.add("est", Est)
policies.add("est_dpp_max", EstDppMax)
policies.add("est_dpp_sample", EstDppSample)
policies.add("gp_bucb", GpBucb)
policies.add("gp_ucb", GpUcb)
policies.add("ie", ImplicitExploration)
policies.add("ite", ExplicitExploration)
policies.add("lp_ucb", LpUcb)
policies.add("max_entropy", MaxEntropy)
policies.add("mean_only", MeanOnly)
policies.add("mutual_information", MutualInformation)
policies.add("pi", ProbabilityOfImprovement)
policies.add("r_gp_ucb", RGpUcb)
policies.add("random", RandomChoice)
policies.add("sparq_gp_ucb", SparqGpUcb)
policies.add("sw_gp_ucb", SwGpUcb)
policies.add("thompson", Thompson)
policies.add("tv_gp_ucb", TvGpUcb)
policies.add("ucb_dpp_max", UcbDppMax)
policies.add("ucb_dpp_sample", UcbDppSample)
policies.add("ucb_pe", UcbDppMax)
policies.add("variance_only", VarianceOnly)
policies.add("w_gp_ucb", WGpUcb)


def build_policy(mapping: Mapping[str, Any], *, path: str = "policy") -> Policy:
    """Return the policy named by ``mapping["name"]``, configured by the other keys.

    Raises:
        ConfigError: no name, an unknown name, or wrong values (all of them at once).
    """
    if not isinstance(mapping, Mapping) or "name" not in mapping:
        msg = f"{path}.name: is required and missing (one of {', '.join(policies.names())})"
        raise ConfigError(msg)
    cls = policies.factory(mapping["name"])
    values = {k: v for k, v in mapping.items() if k != "name"}
    return from_mapping(cls, values, path=path)  # type: ignore[arg-type]
