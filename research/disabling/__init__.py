"""Heads and layers disabled, uniform and zero: Kovaleva et al., EMNLP 2019, figures 8 and 9."""
