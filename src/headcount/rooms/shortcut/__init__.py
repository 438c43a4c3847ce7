"""Shortcut: sweeps run again only what an ablation changes, where that gives the same."""

#: What it adds; see `headcount.plugins`.
ADDS = {"parts": {"short way": "shortcut:short_way"}}
