"""Every guarantee as a function: numbers in, a `Bound` out; violated assumptions are named.

What held-out items support, for any rule and any dependence of views: `held_out`, `paired`, `conformal`, `abstention`;
`empirical_bernstein` and `sub_gaussian` are between these and the paper's own bounds, which are all the others.
"""

from collegium.theory import margins, rademacher
from collegium.theory.bound import Bound
from collegium.theory.centering import CenteringEffect, PairwiseCentering, centering_effect, pairwise_centering
from collegium.theory.certificate import Certificate, certify
from collegium.theory.conformal import Abstention, Conformal, abstention, conformal
from collegium.theory.evidence import Evidence, evidence
from collegium.theory.finite_precision import finite_precision, quantiser_beta
from collegium.theory.finite_round import finite_round, rounds_needed
from collegium.theory.held_out import Comparison, held_out, paired
from collegium.theory.losses import Exponential, Hinge, Logistic, Loss
from collegium.theory.margin_training import against_central, delta_max, edge, edge_raw, margin_training, root
from collegium.theory.measured import empirical_bernstein, sub_gaussian
from collegium.theory.pac import margin_loss, pac
from collegium.theory.running_sums import running_sums_rate
from collegium.theory.social_learning import social_learning
from collegium.theory.sufficient import sufficient
from collegium.theory.tensorisation import tensorisation
from collegium.theory.trust import breakdown_point, laplace_error, laplace_variance, liar_margin, trimmed_guarantee
from collegium.theory.unconditional import (
    b_mix_bound,
    bounded_differences,
    dependence_penalty,
    half_sum,
    unconditional,
)

__all__ = [
    "Abstention",
    "Bound",
    "CenteringEffect",
    "Certificate",
    "Comparison",
    "Conformal",
    "Evidence",
    "Exponential",
    "Hinge",
    "Logistic",
    "Loss",
    "PairwiseCentering",
    "abstention",
    "against_central",
    "b_mix_bound",
    "bounded_differences",
    "breakdown_point",
    "centering_effect",
    "certify",
    "conformal",
    "delta_max",
    "dependence_penalty",
    "edge",
    "edge_raw",
    "empirical_bernstein",
    "evidence",
    "finite_precision",
    "finite_round",
    "half_sum",
    "held_out",
    "laplace_error",
    "laplace_variance",
    "liar_margin",
    "margin_loss",
    "margin_training",
    "margins",
    "pac",
    "paired",
    "pairwise_centering",
    "quantiser_beta",
    "rademacher",
    "root",
    "rounds_needed",
    "running_sums_rate",
    "social_learning",
    "sub_gaussian",
    "sufficient",
    "tensorisation",
    "trimmed_guarantee",
    "unconditional",
]
