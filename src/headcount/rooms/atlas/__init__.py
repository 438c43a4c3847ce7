"""Atlas: one page over many runs."""

#: What it adds; see `headcount.plugins`.
ADDS = {"commands": {"atlas": "command:atlas_command"}}
