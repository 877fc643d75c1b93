"""Independently trained classifiers decide together at test time: one number, a few rounds, neighbours only.

Names are loaded when they are first used, so that `import collegium` is quick and brings in no compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from collegium import corruption, errors, policy, protocol, topology
    from collegium.checks import check_policy, check_rule
    from collegium.errors import CollegiumError
    from collegium.network import Run, Sweep, collaborate, sweep
    from collegium.policy import Policy
    from collegium.topology import Graph

_HOMES = {
    "CollegiumError": "errors",
    "Graph": "topology",
    "Policy": "policy",
    "Run": "network",
    "Sweep": "network",
    "check_policy": "checks",
    "check_rule": "checks",
    "collaborate": "network",
    "sweep": "network",
}
_MODULES = ("checks", "corruption", "errors", "network", "policy", "protocol", "randomness", "topology")

__all__ = [
    "CollegiumError",
    "Graph",
    "Policy",
    "Run",
    "Sweep",
    "check_policy",
    "check_rule",
    "collaborate",
    "corruption",
    "errors",
    "policy",
    "protocol",
    "sweep",
    "topology",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"collegium.{_HOMES[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"collegium.{name}")
    else:
        raise AttributeError(f"module 'collegium' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
