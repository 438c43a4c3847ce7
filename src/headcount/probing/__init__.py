"""Probing: what syntax can be read off the attention maps of a model."""
