"""What was found with headcount, measured again by command: a study a folder, results as JSON.

The package and its tests never import it.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
#: The JSON of every study, and the documentation's pages and figures of them.
RESULTS, DOCS = ROOT / "research" / "results", ROOT / "docs" / "results"


def pages_of(results: Path) -> Path:
    """Where pages and figures of these results stand: beside them, where they are only tried."""
    return DOCS if results == RESULTS else results
