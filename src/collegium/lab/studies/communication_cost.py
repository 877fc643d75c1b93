"""The communication cost of joint training and of the proposed scheme, counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from collegium.lab import study_networks
from collegium.lab.claims import Claim, exactly
from collegium.lab.figures import COLOURS, finish, log_sizes
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.main import SHOWN, CifarMain
from collegium.lab.study import Options, Study
from collegium.lab.table import Factors, StudyRow, Table
from collegium.network import collaborate
from collegium.plots import panels


class CommunicationCost(Study):
    """Table II: transmissions of VFL-JT in training and per item, and of t rounds of collaboration."""

    name = "communication-cost"
    title = "Communication cost of VFL-JT and of the proposed scheme"
    figures = "Tab. II"
    factors: ClassVar[Factors] = {"source": str}

    def jobs(self, options: Options) -> list[Job]:
        """The records of `cifar-main` in which VFL-JT took part."""
        return [job for job in CifarMain().jobs(options) if job.methods]

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """What was sent, and what the formulas say."""
        s, over, joint = record.scores, study_networks.of(record.scores.size), record.methods["VFL-JT"]
        formula = s.size * joint.epochs * (2 * len(s.train) + len(s.val))
        sent = collaborate(s.statistics("test")[:1], over, SHOWN).transmissions[0]
        rows = [
            ("in training", "VFL-JT", -1, "counted", joint.training_transmissions),
            ("in training", "VFL-JT", -1, "formula", formula),
            ("epochs", "VFL-JT", -1, "counted", joint.epochs),
            ("per item", "VFL-JT", -1, "counted", s.size),
            ("in training", "Ours", -1, "counted", 0),
            ("per item", "Ours", SHOWN, "counted", int(sent)),
            ("per item", "Ours", SHOWN, "formula", SHOWN * over.links),
        ]
        for quantity, method, t, source, value in rows:
            yield self.row(job, quantity, value, method=method, round=t, source=source)

    def draw(self, table: Table) -> dict[str, Any]:
        """After how many decided items the proposed scheme has sent as much as joint training."""
        figure, (axes,) = panels(1, width=5.5)
        counted = table[table["source"] == "counted"].groupby(["quantity", "method", "n0"])["value"].mean()
        training = counted["in training", "VFL-JT"]
        each = counted["per item", "Ours"].mean() - counted["per item", "VFL-JT"].mean()
        axes.plot(training.index, training / each, "o-", color=COLOURS[0])
        log_sizes(axes, training.index)
        axes.set_yscale("log")
        finish(
            axes,
            "$N_0$",
            "items",
            f"items decided ({SHOWN} rounds) before ours has sent as much as VFL-JT",
            legend=False,
        )
        return {self.name: figure}

    def claims(self, table: Table) -> list[Claim]:
        """Counted equals computed."""
        wide = table.pivot_table(index=["n0", "repetition"], columns=["method", "quantity", "source"], values="value")
        joint, ours = wide["VFL-JT"], wide["Ours"]
        epochs = joint["epochs", "counted"]
        said = [
            (
                "VFL-JT sends K·E·(2 N_tr + N_val) in training",
                exactly(
                    bool((joint["in training", "counted"] == joint["in training", "formula"]).all()),
                    f"{len(joint)} records, {epochs.min():.0f} to {epochs.max():.0f} epochs",
                ),
            ),
            (
                "t rounds of the proposed scheme send t·E_off per item and nothing in training",
                exactly(
                    bool((ours["per item", "counted"] == ours["per item", "formula"]).all()),
                    f"{ours['per item', 'counted'].iloc[0]:.0f} per item",
                ),
            ),
        ]
        return self.judged(said)
