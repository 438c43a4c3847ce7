"""Rebuilding the trained models that pages of docs/results were measured on."""
