"""Conformance suites for parts of one's own: a rule, its parts, a schedule, links, a policy, a model, a transport.

`check_rule(MyRule())` tries everything and raises one `CheckError` that names every promise that is broken.
`rule_checks(MyRule())` yields the same as named checks, to be run one by one: each is a test for pytest.
"""

from collegium.checks.base import Check
from collegium.checks.codec import check_codec, codec_checks
from collegium.checks.combine import check_combine, combine_checks
from collegium.checks.links import check_links, links_checks
from collegium.checks.mailbox import check_mailbox, mailbox_checks
from collegium.checks.model import check_model, model_checks
from collegium.checks.policy import check_policy, policy_checks
from collegium.checks.rule import check_rule, rule_checks
from collegium.checks.schedule import check_schedule, schedule_checks
from collegium.checks.transport import check_transport, transport_checks
from collegium.checks.trigger import check_trigger, trigger_checks

__all__ = [
    "Check",
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
    "codec_checks",
    "combine_checks",
    "links_checks",
    "mailbox_checks",
    "model_checks",
    "policy_checks",
    "rule_checks",
    "schedule_checks",
    "transport_checks",
    "trigger_checks",
]
