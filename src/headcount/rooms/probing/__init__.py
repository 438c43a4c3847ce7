"""Probing: what syntax can be read off the attention maps of a model."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.probing.probing import Probe, probe_file, probe_summary

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {"probe": "command:probe_command"},
    "names": {
        "probe": "probing:probe",
        "Probe": "probing:Probe",
        "ProbeOptions": "options:ProbeOptions",
    },
}

open_door(__name__)
