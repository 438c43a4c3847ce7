"""Trials: made-up or chosen inputs that show what a head does."""
