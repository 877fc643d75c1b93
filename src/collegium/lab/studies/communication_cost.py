"""The communication cost of joint training and of the proposed scheme, counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from collegium import schedule
from collegium.fusion import Tuned
from collegium.lab import study_networks
from collegium.lab.claims import Claim, all_of, below, exactly
from collegium.lab.figures import COLOURS, finish, log_sizes
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.main import SHOWN, CifarMain
from collegium.lab.study import Options, Study
from collegium.lab.table import Factors, StudyRow, Table
from collegium.network import collaborate
from collegium.plots import panels

EXACT = "Tuned (exact average)"
"""Tuned where any two agents may be linked: the fewest messages."""


class CommunicationCost(Study):
    """Table H.1: transmissions of VFL-JT in training and per item, and of t rounds of collaboration.

    Beyond the paper: those of tuning on the validation items, over the same network and by the exact average, and of
    joint training without a server.
    """

    name = "communication-cost"
    title = "Communication cost of VFL-JT and of the proposed scheme"
    figures = "Tab. H.1"
    factors: ClassVar[Factors] = {"source": str}
    only_trained = True

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
        exact = schedule.exact(s.size)
        for name, by in (("Tuned", over), (EXACT, exact)):
            tuning = Tuned(by, SHOWN if by is over else None).fit(s).tuning_
            if tuning is not None:  # None: too few items to learn from
                rows += [
                    ("in training", name, -1, "counted", tuning.transmissions),
                    ("bits in training", name, -1, "counted", tuning.bits),
                    ("conversations", name, -1, "counted", tuning.conversations),
                ]
        if (talked := record.methods.get("Tuned models")) is not None:  # records of earlier versions have none
            each = s.size * exact.rounds
            rows += [
                ("in training", "Tuned models", -1, "counted", talked.training_transmissions),
                ("in training", "Tuned models", -1, "formula", each * talked.epochs * (len(s.train) + len(s.val))),
                ("epochs", "Tuned models", -1, "counted", talked.epochs),
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

    def tabulate(self, table: Table) -> list[dict[str, str]]:
        """The formulas, and what was counted at each N_0."""
        counted = table[table["source"] == "counted"].groupby(["quantity", "method", "n0"])["value"].mean()
        formulas = {"VFL-JT": ("K E (2 N_tr + N_val)", "K"), "Ours": ("0", "t E_off(A)")}
        return [
            {"Method": method, "Training": training, "Inference per sample": each}
            | {f"training, N_0 = {n0}": f"{value:,.0f}" for n0, value in counted["in training", method].items()}
            | {f"per sample, t = {SHOWN}": f"{counted['per item', method].mean():.0f}"}
            for method, (training, each) in formulas.items()
        ]

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
        if EXACT in wide:
            share = wide[EXACT]["in training", "counted"] / joint["in training", "counted"]
            parts = [(f"N_0 = {n0}", below(part.dropna(), 0.1)) for n0, part in share.groupby("n0")]
            said.append(("tuning by the exact average sends at most a tenth of VFL-JT (our question)", all_of(parts)))
        if "Tuned models" in wide:
            talked = wide["Tuned models"]
            found = bool((talked["in training", "counted"] == talked["in training", "formula"]).all())
            claim = "joint training without a server sends K·⌈log₂ K⌉·E·(N_tr + N_val) (our question)"
            said.append((claim, exactly(found, f"{len(talked)} records")))
        return self.judged(said)
