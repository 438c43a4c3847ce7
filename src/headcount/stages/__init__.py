"""Stages of a survey: a corpus is gone through, trials are run, a twin answers beside the model."""
