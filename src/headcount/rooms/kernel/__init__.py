"""Kernel: sums of attention maps on a GPU, without the maps."""

#: What it adds; see `headcount.plugins`.
ADDS = {"parts": {"kernel": "fused"}}
