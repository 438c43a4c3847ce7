"""Listing: what models, runs and plug-ins are there."""

#: What it adds; see `headcount.plugins`.
ADDS = {"commands": {"ls": "command:ls_command", "plugins": "command:plugins_command"}}
