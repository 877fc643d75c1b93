"""Every part to text and to plain data, and back; what cannot be read is named."""

import contextlib
import json
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import links, policy, protocol, schedule, topology
from collegium.errors import CollegiumError, RuleError
from collegium.protocol import Averaging, DeGroot, DeltaTrigger, LabelStability, Quantised, registry
from collegium.protocol.codec import Quantise
from collegium.protocol.trigger import Delta
from helpers import RULES, Stubborn

PARTS = [
    *(("rule", rule) for rule in RULES),
    ("rule", Averaging(trigger=Delta(0.25), codec=Quantise(8, 1.5))),
    ("mailbox", protocol.HoldLast("hold")),
    ("mailbox", protocol.Renormalise()),
    ("links", links.Lossy(0.3, 7)),
    ("links", links.Delayed(1, 3)),
    ("links", links.Cut([2, 5], 3, 9)),
    ("trigger", Delta(1e-17)),
]
SCHEDULES = [
    schedule.pairwise(topology.grid(2, 3), seed=5),
    schedule.alternating(
        [policy.uniform(topology.ring(4)), [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]]]
    ),
]


@pytest.mark.parametrize(("what", "part"), PARTS, ids=str)
def test_text_and_back(what, part):
    text = registry.to_text(part)
    back = registry.from_text(text, what)
    assert back == part
    assert type(back) is type(part)
    assert registry.to_text(back) == text


@pytest.mark.parametrize(("what", "part"), [*PARTS, *(("schedule", one) for one in SCHEDULES)], ids=str)
def test_plain_data_and_back(what, part):
    data = json.loads(json.dumps(registry.to_data(part)))
    assert registry.from_data(data, what) == part


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("degroot", DeGroot()),
        ("delta-trigger:0.1", DeltaTrigger(0.1)),
        ("label-stability:confidence=0.5,patience=2", LabelStability(2, 0.5)),
        ("quantised: (degroot), bits=4, bound=2", Quantised(DeGroot(), 4, 2.0)),
        ("averaging:trigger=(delta:0.1)", Averaging(trigger=Delta(0.1))),
        ("DeGroot", DeGroot()),  # as files of the first version call it
    ],
)
def test_what_people_write(text, rule):
    assert registry.rule_from_text(text) == rule


def test_files_of_the_first_version():
    old = {"Quantised": {"rule": {"DeltaTrigger": {"threshold": 0.2}}, "bits": 4, "bound": 2.0}}
    assert registry.rule_from_data(old) == Quantised(DeltaTrigger(0.2), 4, 2.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense", "there is no rule 'nonsense'; known are degroot, .*entry point in the group collegium.rules"),
        ("", "there is no rule ''"),
        ("delta-trigger", "delta-trigger takes threshold; given: none"),
        ("delta-trigger:1,2", "delta-trigger takes threshold; given: 1, 2"),
        ("delta-trigger:x=1", "delta-trigger takes threshold; given: x=1"),
        ("delta-trigger:much", "the threshold of a Δ-trigger must be a finite number, at least 0; got 'much'"),
        ("degroot:1", "degroot takes no settings; given: 1"),
        ("quantised:(degroot,4,2", "brackets or quotes do not match"),
        ("quantised:degroot),4,2", "brackets or quotes do not match"),
        ("always", r"'always' is no rule but a trigger: write averaging:trigger=\(always\)"),
        ("trimmed-mean:2", r"'trimmed-mean:2' is no rule but a combine: write averaging:combine=\(trimmed-mean:2\)"),
        ("quantised:(always),4,2", "wraps a rule"),
        ("averaging:(always)", "the combine of a rule must be a Combine"),
        ("delta-trigger:threshold=0.1,threshold=0.2", "gives threshold twice"),
        ("quantised:degroot,4,2", r"a part of quantised is written in brackets: \(degroot\)"),
        ("averaging:trigger=delta:0.1", r"written in brackets: \(delta:0.1\)"),
        ("graph", "'graph' is no rule"),
        ("quantised:(" * 25 + "degroot" + "),4,2" * 25, "more than 20 brackets within each other"),
        ("x" * 30_000, "a line of at most 20000 characters"),
    ],
)
def test_what_cannot_be_read_is_named(text, complaint):
    with pytest.raises(RuleError, match=complaint):
        registry.rule_from_text(text)


@given(st.text(alphabet='degroot-lta:0.1,=()[]"quaniswvp ', max_size=40))
@settings(deadline=None)
def test_no_text_is_a_traceback(text):
    with contextlib.suppress(CollegiumError):
        registry.rule_from_text(text)


@pytest.mark.parametrize("data", [{}, {"degroot": 1}, {"a": {}, "b": {}}, [], 5, {"degroot": {"x": 1}}, {"policy": {}}])
def test_data_that_is_no_rule_is_refused(data):
    with pytest.raises(CollegiumError):
        registry.rule_from_data(data)


@dataclass(frozen=True)
class Named(Stubborn):
    share: float = 0.5


def test_a_rule_of_ones_own_has_a_name_once_it_is_registered(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    with pytest.raises(RuleError, match=r"Named has no name to write it by: .* collegium\.protocol\.register"):
        registry.to_text(Named())
    protocol.register("named", Named)
    assert registry.to_text(Named(0.25)) == "named:0.25"
    assert registry.rule_from_text("named") == Named(0.5)
    assert "named" in registry.names()
    for name, kind, complaint in (
        ("degroot", Named, "is taken"),
        ("named", Stubborn, "is taken"),
        ("a b", Named, "letters, digits"),
        ("plain", int, "frozen dataclass"),
    ):
        with pytest.raises(RuleError, match=complaint):
            protocol.register(name, kind)


@dataclass(frozen=True)
class Odd(Stubborn):
    share: float = 0.5
    text: str = ""
    flag: bool = False
    later: float = field(default=0.0, kw_only=True)


@pytest.mark.parametrize("text", ["inf", "nan", "NaN", "Infinity", "true", 'one " quote, or (two', "1.5", "\\", "é"])
def test_any_text_comes_back(text, monkeypatch):
    monkeypatch.setattr(registry, "_registered", {"odd": Odd})
    part = Odd(0.25, text, np.bool_(True), later=2.0)
    assert registry.rule_from_text(registry.to_text(part)) == part
    assert registry.rule_from_data(registry.to_data(part)) == part


def test_names_of_the_first_version_are_taken():
    with pytest.raises(RuleError, match="is taken"):
        protocol.register("SocialLearning", Named)
    with pytest.raises(RuleError, match="the class itself"):
        protocol.register("instance", Named())


def test_schedules_have_a_text_too():
    for one in SCHEDULES:
        assert registry.from_text(registry.to_text(one), "schedule") == one


def test_descriptions_are_for_people():
    assert (
        registry.describe(Quantised(LabelStability(2, 1 / 3), 4, 2.0)) == "label-stability:2,0.3333, 4 bits within ±2"
    )
    assert registry.describe(Stubborn(0.5)) == "Stubborn(share=0.5)"


def test_eigenvalue_steps_are_described_by_their_number():
    """Their text has all numbers and comes back; what people read has not."""
    rule = schedule.eigenvalue_steps(policy.uniform(topology.ring(12))).rule
    assert registry.rule_from_text(registry.to_text(rule)) == rule
    assert (repr(rule), registry.describe(rule)) == ("Polynomial(6 steps)", "polynomial of 6 steps")
