"""Show: a head's attention in the terminal or a notebook."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {"show": "command:show_command", "explain": "command:explain_command"},
    "names": {"show": "showing:show"},
}
