"""Ray: work on a cluster, or on all cores of a machine."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "names": {"RayEngine": "engine:RayEngine"},
    "engines": {"ray": "engine:RayEngine"},
}
