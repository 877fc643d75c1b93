"""A study of one's own with a rule of one's own: what a share of the first opinion costs.

collegium study run study.py:Stubbornness --out results
"""

from typing import ClassVar

from collegium import collaborate, policy, topology
from collegium.lab.figures import curve, finish
from collegium.lab.job import Job
from collegium.lab.study import Study, repetitions
from collegium.plots import panels
from collegium.protocol.registry import rule_from_text

SHARES = (0.0, 0.1, 0.3)
ROUNDS = 10


class Stubbornness(Study):
    name = "stubbornness"
    title = "What a share of one's first opinion costs"
    figures = "none of the paper"
    factors: ClassVar = {"share": float}

    def jobs(self, options):
        return [Job("digits", 100, r, "L", options.seed) for r in range(repetitions(options, 5))]

    def evaluate(self, job, record, options):
        s = record.scores
        c = s.statistics("test")
        ring = policy.uniform(topology.ring(c.shape[1]))
        for share in SHARES:
            errors = collaborate(c, ring, ROUNDS, rule_from_text(f"stubborn:{share}")).errors(s.y_test)
            for t, error in enumerate(errors.mean(axis=1)):
                yield self.row(job, "error", error, method="Ours", round=t, share=share)

    def draw(self, table):
        figure, (axes,) = panels(1)
        for style, share in enumerate(SHARES):
            curve(axes, table[table["share"] == share], "round", f"share {share}", style, scale=100)
        finish(axes, "communication round", "error (%)")
        return {self.name: figure}
