"""Experiments: a config in, JSON and figures out; the corpora are read by path."""
