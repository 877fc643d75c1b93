"""Pictures of networks, errors, comparisons, certificates and plans, drawn with matplotlib."""

from collegium.plots.figures import (
    BLUE,
    MANY,
    ORANGE,
    certificate_figure,
    check_name,
    comparison_figure,
    error_figure,
    gains_figure,
    network_figure,
    panels,
    plan_figure,
    save,
    statistic_figure,
    to_bytes,
)

__all__ = [
    "BLUE",
    "MANY",
    "ORANGE",
    "certificate_figure",
    "check_name",
    "comparison_figure",
    "error_figure",
    "gains_figure",
    "network_figure",
    "panels",
    "plan_figure",
    "save",
    "statistic_figure",
    "to_bytes",
]
