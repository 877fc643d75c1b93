"""What the paper says of its figures, statement by statement, and by which claims of ours each is judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from collegium.lab.claims import Claim


class Statement(NamedTuple):
    """A statement of the paper."""

    where: str
    """Its figure, in the paper's numbering."""
    says: str
    """In the paper's words, shortened."""
    study: str
    claims: tuple[str, ...]
    """How the claims of that study begin by which it is judged."""
    picture: str = ""
    """The picture to look at; the study's own if empty."""


def _of(study: str, *rows: tuple[str, str, tuple[str, ...]], picture: str = "") -> tuple[Statement, ...]:
    return tuple(Statement(where, says, study, claims, picture) for where, says, claims in rows)


_APART = "from every N_0 to the next the class means"
_COOLER = "from every N_0 to the next temperatures"
_MARGINS = ("the mean statistic of class +1 rises", "the mean statistic of class -1 falls")
STATEMENTS: tuple[Statement, ...] = (
    *_of(
        "bounds",
        ("Thm 1", "cooperation has the better bound whenever τ Σπ² < 1", ("the bound of the aggregate",)),
        ("Thm 2", "the bound converges to that of sufficient communication", ("Thm 2 tends to",)),
        ("Thm 3", "it need not improve monotonically with the rounds", ("the bound of Thm 3",)),
        ("Thm 3", "V^q decays as 2^(-2b), and the cost grows linearly with b", ("V of Thm 3", "bits sent grow")),
        ("Thm 3", "as b grows the guarantee converges to that of finite rounds", ("Thm 3 tends to",)),
        ("Prop. F.1", "social learning's bound converges to the same", ("the bound of social learning",)),
    ),
    *_of(
        "cifar-main",
        ("Fig. 2a", "as N_0 increases the statistics of the two classes move farther from zero", (*_MARGINS, _APART)),
        (
            "Fig. 2b",
            "the probability of error decreases as N_0 increases",
            ("the error of every method falls", "from every N_0 to the next the error of every"),
        ),
        ("Fig. 2b", "ours consistently improves upon non-cooperative prediction", ("ours is below non-coop",)),
        ("Fig. 2b", "it remains competitive with the stronger fusion baselines", ("ours is competitive",)),
        ("Fig. 2b", "VFL-JT achieves lower error over the tested range", ("VFL-JT is below ours",)),
        ("Fig. 2b", "with and without centering similar performance", ("centred and raw",)),
        ("Fig. 2c", "the mean error decreases over the rounds before stabilizing", ("the error falls in each",)),
    ),
    *_of(
        "cifar-graphs",
        ("Fig. 2b", "ours consistently improves upon non-cooperative prediction", ("ours is below non-coop",)),
        ("Fig. 2b", "it remains competitive with the stronger fusion baselines", ("ours is competitive",)),
        ("Fig. 2b", "VFL-JT achieves lower error over the tested range", ("VFL-JT is below ours",)),
        ("Fig. 2b", "with and without centering similar performance", ("centred and raw",)),
        ("Fig. 2c", "the mean error decreases over the rounds before stabilizing", ("the error falls and then",)),
    ),
    *_of(
        "cifar-cmi",
        ("Fig. 3", "conditional mutual information is clearly nonzero for many pairs", ("it is clearly above zero",)),
        (
            "Fig. 3",
            "it is strongest among spatially related patches",
            ("adjacent patches share more", "the largest entries of a row"),
        ),
        ("App. H.1", "other dimensions, neighbours and the testing split agree", ("dimensions 10 to 30",)),
    ),
    *_of(
        "cifar-hetero-gain",
        ("Fig. 4", "collaboration is beneficial across all three families", ("collaboration helps all three",)),
        ("Fig. 4", "and across all patch locations", ("it helps each family at all nine",)),
        (
            "Fig. 4",
            "the improvement varies with family and position",
            ("the gain varies with", "it varies with the place"),
        ),
    ),
    *_of(
        "cifar-hetero-main",
        ("Fig. 5a", "margins become more separated as N_0 increases", (*_MARGINS, _APART)),
        (
            "Fig. 5b",
            "the collaborative classifier improves over non-cooperative inference",
            ("ours is below non-coop",),
        ),
        ("Fig. 5c", "most of the gain is realized within the first few rounds", ("most of the gain",)),
    ),
    *_of(
        "modelnet-main",
        ("Fig. 7a", "the class statistics remain separated across N_0", ("the class means stay apart",)),
        ("Fig. 7a", "larger margins are attained at larger N_0", _MARGINS),
        (
            "Fig. 7a",
            "their variation is milder than on CIFAR-10 and fluctuates more",
            ("the margin varies less", "and fluctuates more"),
        ),
        ("Fig. 7b", "errors decrease overall as N_0 increases", ("the error of every method falls",)),
        ("Fig. 7b", "the improvement is more limited at smaller N_0", ("the gain is more limited",)),
        ("Fig. 7b", "there some agents have lower error alone", ("at small N_0 some agents",)),
        (
            "Fig. 7b",
            "the ordering of the score-fusion baselines is more sensitive",
            ("the order of the fusion methods",),
        ),
        ("Fig. 7b", "the gap to Avg-stat: the choice of A has a visible effect", ("Avg-stat and ours are more",)),
        ("Fig. 7c", "most of the gain is achieved within the first few rounds", ("most of the gain",)),
    ),
    *_of(
        "modelnet-temperature",
        ("Fig. 8a", "the class statistics are more clearly separated after calibration", ("they widen the margin on",)),
        ("Fig. 8b", "the error of ours is slightly improved over most of the N_0", ("they lower the error",)),
    ),
    *_of(
        "modelnet-temperature",
        ("Fig. H.2", "temperatures are generally greater than one", ("temperatures are above one",)),
        ("Fig. H.2", "their average level decreases with N_0", ("temperatures shrink", _COOLER)),
        (
            "Fig. H.2",
            "their variability across agents decreases with N_0",
            ("their spread over agents", "from every N_0 to the next their spread"),
        ),
        ("App. H.2", "calibration is most critical in data-constrained regimes", ("their effect on the error",)),
        picture="modelnet-temperature-diagnostics",
    ),
    *_of(
        "cifar-temperature",
        ("Fig. H.3", "temperatures are larger at smaller N_0", ("temperatures shrink",)),
        ("Fig. H.3", "and more variable", ("their spread over agents",)),
        ("Fig. H.3", "they move closer to one", ("they move closer to one",)),
        picture="cifar-temperature-diagnostics",
    ),
    *_of(
        "cifar-temperature",
        ("Fig. H.4a", "temperature scaling tends to increase the margin", ("they widen the margin on",)),
        ("Fig. H.4b", "it slightly lowers the error", ("they lower the error of ours on",)),
        ("Fig. H.4b", "most visibly at smaller N_0", ("their effect on the error",)),
    ),
    *_of(
        "modelnet-correlation",
        (
            "Fig. 9a",
            "both correlations increase with r",
            ("both correlations rise", "from every r to the next the corr"),
        ),
        ("Fig. 9b", "the gain decreases with r", ("the gain falls", "from every r to the next the gain")),
        ("Fig. 9b", "gradually: measurable gains over a broad range", ("some gain is left",)),
    ),
    *_of(
        "modelnet-correlation",
        ("Fig. H.5", "the non-cooperative error hardly changes with r", ("the error alone stays",)),
        ("Fig. H.5", "the collaborative error rises with r", ("the error together rises",)),
        ("Fig. H.5", "the overall error levels rise with σ", ("the errors, alone and together,",)),
        picture="modelnet-correlation-errors",
    ),
    *_of(
        "topology",
        ("Fig. 10", "all settings benefit from communication in the early rounds", ("all settings gain",)),
        ("Fig. 10", "8 bits are practically indistinguishable from full precision", ("8 bits are like",)),
        ("Fig. 10", "6 bits produce a modest intermediate degradation", ("6 bits lie between",)),
        ("Fig. 10", "4 bits produce the largest loss", ("4 bits lose",)),
        (
            "Fig. 10",
            "the random graph is more sensitive to policy and precision",
            ("the random graph is more sensitive",),
        ),
        ("Fig. 10", "the grid generally attains the lowest error", ("the grid ends below",)),
        ("Fig. 10", "the ring also performs competitively", ("the ring is competitive",)),
    ),
    *_of(
        "topology",
        (
            "Fig. H.7a",
            "on the ring the two rules generate the same matrix and trajectories",
            ("on the ring both rules",),
        ),
        ("Fig. H.7b", "on the grid uniform averaging performs better", ("on the grid uniform",)),
        ("Fig. H.7b", "the gap becomes small with 4 bits", ("there the gap is smaller",)),
        picture="topology-by-topology",
    ),
    *_of(
        "topology",
        ("Fig. H.8", "σ_A: ring, then grid, then random graph", ("σ_A: ring above grid",)),
        ("Fig. H.8", "the ring approaches its limit more slowly", ("the ring nears its limit",)),
        picture="topology-by-rule",
    ),
    *_of(
        "topology",
        ("Fig. H.9a", "Metropolis on ring and grid: nearly the same long-run error", ("Metropolis ring and grid",)),
        picture="topology-by-precision",
    ),
    *_of(
        "graphs",
        ("Fig. 7", "ours improves upon non-cooperative prediction", ("ours is below non-cooperative at the largest",)),
        ("Fig. 10", "the grid generally attains the lowest error", ("the grid is below",)),
        ("Fig. 7b", "the gap to Avg-stat: the choice of A has a visible effect", ("Avg-stat and ours",)),
        ("Fig. 7c", "most of the gain is achieved within the first few rounds", ("most of the gain",)),
        ("Fig. 10", "all settings benefit from communication in the early rounds", ("the random graph gains",)),
        ("Fig. 10", "the random graph is more sensitive to policy and precision", ("the random graph is more",)),
        ("Fig. H.7c", "on the random graph uniform averaging performs better", ("on the random graph uniform",)),
        ("Fig. H.8", "σ_A of the random graph is the smallest", ("σ_A of the random",)),
        ("Fig. H.9", "the ring attains a lower long-run error than the random graph", ("the ring ends below",)),
    ),
    *_of(
        "stopping",
        ("Fig. 11", "both families exhibit a communication–accuracy trade-off", ("both families trade",)),
        ("Fig. 11", "label stability generally has the better front", ("label stability beats it at most",)),
        ("Fig. 11", "especially where little is sent", ("label stability beats the",)),
        ("Fig. 11", "communication can often end well before the budget", ("the best point sends",)),
    ),
    *_of(
        "robustness",
        (
            "Fig. 12",
            "the excess error increases with the number of corrupted agents",
            ("the excess error grows with",),
        ),
        ("Fig. 12", "and with the severity", ("it grows from every severity",)),
        ("Fig. 12", "scaled sign flips are the most damaging", ("sign flips of size 1",)),
        ("Fig. 12", "noise and faults degrade more gradually", ("noise and faults degrade",)),
    ),
    *_of(
        "communication-cost",
        ("Tab. H.1", "VFL-JT sends K E (2 N_tr + N_val) in training, and K per item", ("VFL-JT sends",)),
        ("Tab. H.1", "the proposed scheme sends t E_off(A) per item, nothing in training", ("t rounds of the",)),
    ),
)
"""In the paper's order."""


def judged(statement: Statement, claims: Iterable[Claim]) -> list[Claim]:
    """The claims by which a statement is judged, of those that there are."""
    return [one for one in claims if one.study == statement.study and one.claim.startswith(statement.claims)]


def overall(found: Sequence[Claim]) -> str:
    """One verdict of several: what is shared, or each with its number."""
    verdicts = [one.verdict for one in found]
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    return ", ".join(
        verdict if len(counts) == 1 else f"{verdict} ({n} of {len(found)})" for verdict, n in counts.items()
    )


def table(claims: Sequence[Claim]) -> list[str]:
    """Statement, verdict and figure, as lines of a Markdown table; only what these claims judge."""
    rows = []
    for one in STATEMENTS:
        found = judged(one, claims)
        if found:
            picture = one.picture or one.study
            rows.append(f"| {one.where} | {one.says} | {overall(found)} | [{one.study}]({picture}.png) |")
    return ["| paper | it says | here | figure |", "|---|---|---|---|", *rows] if rows else []
