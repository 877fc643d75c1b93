"""A network as a file: links and weights, the rule, and the number of rounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from collegium._team_files.values import Malformed, decode, encode
from collegium._util.arguments import whole_number
from collegium._util.files import atomic_write
from collegium.errors import CollegiumError, InputFileError
from collegium.policy import Policy
from collegium.protocol import Rule, registry
from collegium.schedule import Schedule

FORMAT = "collegium network 1"


class NetworkFile(NamedTuple):
    """What a network file holds."""

    policy: Schedule
    """A `Policy`, or another schedule."""
    rule: Rule
    rounds: int
    about: str = ""
    """For people to read."""


def write_network(path: str | Path, network: NetworkFile) -> None:
    """Write a network as JSON: `links` lists [from, to, weight], an agent's weight for itself among them.

    A schedule that is no policy is written as `schedule` instead.
    """
    policy = network.policy
    told = policy.to_data() if isinstance(policy, Policy) else {"schedule": registry.to_data(policy)}
    content = {
        "format": FORMAT,
        "about": network.about,
        "agents": policy.size,
        "rounds": network.rounds,
        "rule": encode(network.rule, "the rule"),
    } | told
    text = json.dumps(content, indent=None, separators=(",", ": ")).replace(',"', ',\n"') + "\n"
    with atomic_write(path, parents=True) as file:
        file.write(text.encode())


def read_network(path: str | Path) -> NetworkFile:
    """Read a network back; weights and rule are checked like any others."""
    path = Path(path)
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None
    except ValueError:
        raise InputFileError(f"{path} is not a JSON file") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputFileError(f"{path} is not a network file of the form {FORMAT!r}, as collegium plan --save writes")
    try:
        K = whole_number(content["agents"], "agents", InputFileError, at_least=1)
        policy: Schedule
        if "schedule" in content:
            policy = registry.from_data(content["schedule"], "schedule")
        else:
            policy = Policy.from_data(content)
        if policy.size != K:
            raise Malformed(f"it says {K} agents, but its schedule has {policy.size}")
        rule = decode(content["rule"])
        if not isinstance(rule, Rule):
            raise Malformed("its rule is none")
        rounds = whole_number(content["rounds"], "rounds", InputFileError)
        return NetworkFile(policy, rule, rounds, str(content.get("about", "")))
    except (KeyError, TypeError, ValueError, CollegiumError) as problem:
        missing = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)
        raise InputFileError(f"{path} does not hold a network: {missing}") from None
