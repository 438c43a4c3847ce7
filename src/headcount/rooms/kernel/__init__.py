"""Kernel: sums of attention maps on a GPU, without the maps."""
