"""Prepared: batches as a model takes them are a task too."""

#: What it adds; see `headcount.plugins`.
ADDS = {"tasks": {"batches": "batches:batches"}}
