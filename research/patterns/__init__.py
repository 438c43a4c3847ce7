"""The five patterns of Kovaleva et al., EMNLP 2019, section 4.1: labels, training, results."""
