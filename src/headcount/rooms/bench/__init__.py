"""Bench: how fast a model runs before and after heads are removed."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {"bench": "command:bench_command"},
    "stages": {"bench": "sizes:STAGE"},
    "views": {"strip": "sizes:strip_part"},
    "parts": {"costs": "costs:both_costs", "verify": "engines:verifier"},
}
