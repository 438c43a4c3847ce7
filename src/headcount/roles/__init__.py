"""Roles: a head's numbers read as a verdict with its evidence; no model is run here."""
