"""Every guarantee of the paper as a function: numbers in, a `Bound` out; violated assumptions are named."""

from collegium.theory import margins, rademacher
from collegium.theory.bound import Bound
from collegium.theory.centering import CenteringEffect, PairwiseCentering, centering_effect, pairwise_centering
from collegium.theory.certificate import Certificate, certify
from collegium.theory.finite_precision import coarseness, finite_precision
from collegium.theory.finite_round import finite_round, rounds_needed
from collegium.theory.losses import Exponential, Hinge, Logistic, Loss
from collegium.theory.margin_training import against_central, delta_max, edge, edge_raw, margin_training, root
from collegium.theory.pac import margin_loss, pac
from collegium.theory.social_learning import social_learning
from collegium.theory.sufficient import sufficient
from collegium.theory.tensorisation import tensorisation

__all__ = [
    "Bound",
    "CenteringEffect",
    "Certificate",
    "Exponential",
    "Hinge",
    "Logistic",
    "Loss",
    "PairwiseCentering",
    "against_central",
    "centering_effect",
    "certify",
    "coarseness",
    "delta_max",
    "edge",
    "edge_raw",
    "finite_precision",
    "finite_round",
    "margin_loss",
    "margin_training",
    "margins",
    "pac",
    "pairwise_centering",
    "rademacher",
    "root",
    "rounds_needed",
    "social_learning",
    "sufficient",
    "tensorisation",
]
