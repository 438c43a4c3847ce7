"""Two models, or two runs, compared head by head."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {"compare": "command:compare_command"},
    "views": {"compare": "runs:compare_part"},
    "names": {"compare": "comparing:compare"},
}
