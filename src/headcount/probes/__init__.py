"""Probes: how much syntax all heads carry together (Clark et al. 2019, section 5)."""
