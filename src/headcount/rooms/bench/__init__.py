"""Bench: how fast a model runs before and after heads are removed."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {"bench": "command:bench_command"},
    "stages": {"bench": "sizes:STAGE"},
    "parts": {"strip": "sizes:strip_part", "verify": "engines:verifier"},
}
