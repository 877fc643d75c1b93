"""A study of one's own with a rule of one's own: what a share of the first opinion costs."""

from collegium import collaborate, policy, topology
from collegium.lab.figures import curve, finish
from collegium.lab.job import Job
from collegium.lab.study import Study, repetitions
from collegium.lab.table import StudyRow
from collegium.plots import panels
from collegium.protocol.registry import rule_from_text

RULES = ("degroot", "stubborn:0.1", "stubborn:0.3")
ROUNDS = 10


class Stubbornness(Study):
    name = "stubbornness"
    title = "What a share of one's first opinion costs"
    figures = "none of the paper"

    def jobs(self, options):
        return [Job("digits", 100, r, "B", options.seed) for r in range(repetitions(options, 5))]

    def evaluate(self, job, record, options):
        s = record.scores
        c = s.statistics("test")
        ring = policy.uniform(topology.ring(c.shape[1]))
        for written in RULES:
            errors = collaborate(c, ring, ROUNDS, rule_from_text(written)).errors(s.y_test)
            for t, error in enumerate(errors.mean(axis=1)):
                yield StudyRow(self.name, job.n0, job.repetition, "error", written, -1, t, float(error))

    def draw(self, table):
        figure, (axes,) = panels(1)
        for style, written in enumerate(RULES):
            curve(axes, table[table["method"] == written], "round", written, style, scale=100)
        finish(axes, "communication round", "error (%)")
        return {self.name: figure}
