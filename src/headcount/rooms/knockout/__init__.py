"""Whole jobs taken away: all heads of a role off together, against as many other heads."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "names": {"knockout": "whole_jobs:knockout"},
    "parts": {"knockout": "command:knock_out"},
    "stages": {"knockout": "stage:STAGE", "own-metric": "stage:OWN_METRIC"},
    "views": {"jobs": "stage:job_part"},
}
