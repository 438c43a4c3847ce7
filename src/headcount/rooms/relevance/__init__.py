"""Relevance: layer-wise relevance propagation: rules, the trace of a forward, and its way back."""

#: What it adds; see `headcount.plugins`.
ADDS = {"scores": {"relevance": "score:RelevanceScore"}, "stages": {"relevance": "stage:STAGE"}}
