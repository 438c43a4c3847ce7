"""Chat: what an instruct model's template makes of texts, and what such a model answers."""

#: What it adds; see `headcount.plugins`.
ADDS = {"parts": {"chat turns": "chat:framed_turns", "continuations": "chat:continuations"}}
