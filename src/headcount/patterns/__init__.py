"""The five patterns of attention maps (Kovaleva et al., EMNLP 2019, section 4.1)."""
