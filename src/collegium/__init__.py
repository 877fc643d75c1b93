"""Independently trained classifiers decide together at test time: one number, a few rounds, neighbours only.

Names are loaded when they are first used, so that `import collegium` is quick and brings in no compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from collegium import (
        agents,
        corruption,
        data,
        diagnostics,
        errors,
        fusion,
        links,
        planner,
        policy,
        protocol,
        schedule,
        theory,
        topology,
        trust,
        tuning,
    )
    from collegium._util.views import Views
    from collegium.checks import (
        check_codec,
        check_combine,
        check_links,
        check_mailbox,
        check_model,
        check_policy,
        check_rule,
        check_schedule,
        check_transport,
        check_trigger,
    )
    from collegium.errors import CollegiumError
    from collegium.network import Run, Sweep, collaborate, sweep
    from collegium.policy import Policy
    from collegium.team import Team
    from collegium.topology import Graph

_HOMES = {
    "CollegiumError": "errors",
    "Graph": "topology",
    "Policy": "policy",
    "Run": "network",
    "Sweep": "network",
    "Team": "team",
    "Views": "_util.views",
    "check_codec": "checks",
    "check_combine": "checks",
    "check_links": "checks",
    "check_mailbox": "checks",
    "check_model": "checks",
    "check_policy": "checks",
    "check_rule": "checks",
    "check_schedule": "checks",
    "check_transport": "checks",
    "check_trigger": "checks",
    "collaborate": "network",
    "sweep": "network",
}
_MODULES = (
    "agents",
    "checks",
    "corruption",
    "data",
    "diagnostics",
    "errors",
    "fusion",
    "links",
    "network",
    "planner",
    "policy",
    "protocol",
    "schedule",
    "theory",
    "topology",
    "trust",
    "tuning",
)

__all__ = [
    "CollegiumError",
    "Graph",
    "Policy",
    "Run",
    "Sweep",
    "Team",
    "Views",
    "agents",
    "check_codec",
    "check_combine",
    "check_links",
    "check_mailbox",
    "check_model",
    "check_policy",
    "check_rule",
    "check_schedule",
    "check_transport",
    "check_trigger",
    "collaborate",
    "corruption",
    "data",
    "diagnostics",
    "errors",
    "fusion",
    "links",
    "planner",
    "policy",
    "protocol",
    "schedule",
    "sweep",
    "theory",
    "topology",
    "trust",
    "tuning",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"collegium.{_HOMES[name]}"), name)
    elif name == "randomness":
        value = import_module("collegium._util.randomness")
    elif name in _MODULES:
        value = import_module(f"collegium.{name}")
    else:
        raise AttributeError(f"module 'collegium' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
