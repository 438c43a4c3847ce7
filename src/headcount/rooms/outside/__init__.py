"""Outside: families that do not speak transformers' attention interface, a row each."""

#: What it adds; see `headcount.plugins`.
ADDS = {"parts": {"outside": "outside"}}
