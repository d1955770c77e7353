"""Policies that plan from belief and topology, and the table of the built-in policies."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning.base import Policy, PolicyState
from gp_active_sensing.registry import Registry

__all__ = ["DEFAULT_POLICY", "Policy", "PolicyState", "build_policy", "policies"]

DEFAULT_POLICY: Mapping[str, Any] = MappingProxyType({"name": "tour"})
"""Default policy; docs/choosing.md gives the reasons."""


def _policy_problem(plugin: Any) -> str:
    if not (isinstance(plugin, type) and dataclasses.is_dataclass(plugin)):
        return "expected a frozen dataclass whose fields are the policy's configuration"
    method = getattr(plugin, "plan", None)
    if not callable(method):
        return "expected a method `plan`"
    signature = inspect.signature(method)
    try:
        signature.bind(None, None, None)
    except TypeError:
        return f"expected `plan(self, request, state)`, got `plan{signature}`: docs/architecture.md"
    return ""


policies: Registry[Policy] = Registry(
    "policy", group="gp_active_sensing.policies", check=_policy_problem
)
policies.add("apgd", "gp_active_sensing.planning.greedy:Apgd")
policies.add("b_est", "gp_active_sensing.planning.bandits.sequential_batch:BEst")
policies.add("bal", "gp_active_sensing.planning.bal.policy:Bal")
policies.add("ei", "gp_active_sensing.planning.bandits.acquisition:ExpectedImprovement")
policies.add("est", "gp_active_sensing.planning.bandits.acquisition:Est")
policies.add("est_dpp_max", "gp_active_sensing.planning.bandits.dpp_batch:EstDppMax")
policies.add("est_dpp_sample", "gp_active_sensing.planning.bandits.dpp_batch:EstDppSample")
policies.add("external", "gp_active_sensing.planning.external:External")
policies.add("gp_bucb", "gp_active_sensing.planning.bandits.sequential_batch:GpBucb")
policies.add("gp_ucb", "gp_active_sensing.planning.bandits.gp_ucb:GpUcb")
policies.add("ie", "gp_active_sensing.planning.ie:ImplicitExploration")
policies.add("integrated_variance", "gp_active_sensing.planning.greedy:IntegratedVariance")
policies.add("ite", "gp_active_sensing.planning.ite:ExplicitExploration")
policies.add("lawnmower", "gp_active_sensing.planning.lawnmower:Lawnmower")
policies.add("lp_ucb", "gp_active_sensing.planning.bandits.sequential_batch:LpUcb")
policies.add("max_entropy", "gp_active_sensing.planning.greedy:MaxEntropy")
policies.add("mean_only", "gp_active_sensing.planning.bandits.acquisition:MeanOnly")
policies.add("mutual_information", "gp_active_sensing.planning.greedy:MutualInformation")
policies.add("pi", "gp_active_sensing.planning.bandits.acquisition:ProbabilityOfImprovement")
policies.add("r_gp_ucb", "gp_active_sensing.planning.bandits.nonstationary:RGpUcb")
policies.add("random", "gp_active_sensing.planning.greedy:RandomChoice")
policies.add("sparq_gp_ucb", "gp_active_sensing.planning.bandits.nonstationary:SparqGpUcb")
policies.add("spread", "gp_active_sensing.planning.spread:Spread")
policies.add("sw_gp_ucb", "gp_active_sensing.planning.bandits.nonstationary:SwGpUcb")
policies.add("thompson", "gp_active_sensing.planning.bandits.acquisition:Thompson")
policies.add("tour", "gp_active_sensing.planning.tour:Tour")
policies.add("tv_gp_ucb", "gp_active_sensing.planning.bandits.nonstationary:TvGpUcb")
policies.add("ucb_dpp_max", "gp_active_sensing.planning.bandits.dpp_batch:UcbDppMax")
policies.add("ucb_dpp_sample", "gp_active_sensing.planning.bandits.dpp_batch:UcbDppSample")
policies.add("ucb_pe", "gp_active_sensing.planning.bandits.dpp_batch:UcbDppMax")
policies.add("variance_only", "gp_active_sensing.planning.bandits.acquisition:VarianceOnly")
policies.add("w_gp_ucb", "gp_active_sensing.planning.bandits.nonstationary:WGpUcb")


def build_policy(mapping: Mapping[str, Any]) -> Policy:
    """Return the policy with the name ``mapping["name"]``; the other keys configure the policy.

    Raises:
        ConfigError: the name is missing or unknown, or values are wrong. The error lists all
            problems.
    """
    if not isinstance(mapping, Mapping) or "name" not in mapping:
        msg = f"policy.name: is required and missing, such as {DEFAULT_POLICY['name']} or bal "
        msg += f"(one of {', '.join(policies.names())})"
        raise ConfigError(msg)
    cls = policies.factory(mapping["name"])
    if problem := _policy_problem(cls):
        msg = f"policy.name: {mapping['name']} cannot be used: {problem}"
        raise ConfigError(msg)
    values = {k: v for k, v in mapping.items() if k != "name"}
    return from_mapping(cls, values, path="policy")  # type: ignore[arg-type]
