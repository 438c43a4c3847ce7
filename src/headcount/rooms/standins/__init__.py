"""Stand-ins: what an ablation puts in a head's place besides nothing: a mean, uniform attention,
another example."""

#: What it adds; see `headcount.plugins`.
ADDS = {"parts": {"stand-ins": "standins:prepared"}}
