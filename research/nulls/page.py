"""The table of the page: verdicts that survive each rung."""

from __future__ import annotations

import json
from typing import Any

from research import RESULTS

FILE = "nulls.json"


def ladder_table(results: Any = RESULTS) -> str:
    """A line for each model and treebank: verdicts, and how many clear each rung."""
    file = results / FILE
    surveys = json.loads(file.read_text(encoding="utf8"))["surveys"] if file.exists() else {}
    lines = [
        "| model, treebank | beyond the offset | beyond part of speech | above it at all, without "
        "the margin | beyond the logistic choice | beyond a random model as sharp |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, one in surveys.items():
        counts = one["surviving"]
        cells = [counts["1"], counts["2"], one["above_zero"], counts["3"], counts["4"]]
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)
