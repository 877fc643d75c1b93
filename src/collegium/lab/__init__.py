"""The laboratory: every figure and table of the paper, from real data, on one machine or a Ray cluster."""
