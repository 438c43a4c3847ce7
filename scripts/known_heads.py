"""What is known of the bundled translator's heads, so that its pages can show it at once.

    headcount report --run RUN
    python scripts/known_heads.py RUN

writes ``src/headcount/bundle/translator/known.json``: each head's first role and its cost alone
from a run, and what gates and healing gave, from research/results (they take longer than the five
minutes of a story).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import headcount as hc
from headcount.reports import read_source, role_part

ROOT = Path(__file__).parents[1]
RUNS = ("enc-17", "all-48", "all-28")


def main(run: str) -> None:
    """Write the digest."""
    found = json.loads((ROOT / "research/results/pruning-gates.json").read_text(encoding="utf8"))
    whole = json.loads((ROOT / "research/results/translator.json").read_text(encoding="utf8"))
    table = hc.HeadTable.load(run)
    heads = [str(head) for head in table.heads]
    costs = {
        head: round(float(cost), 4)
        for head, cost in zip(heads, table.numbers("ablation"), strict=True)
    }
    verdicts = role_part(read_source(run, exhibits=False)) or []
    offsets = {
        head: found[0]["dir"]
        for head, found in zip(heads, verdicts, strict=True)
        if found and "dir" in found[0]
    }
    named = zip(heads, table.frame["role"].tolist(), strict=True)
    rows = []
    for name in RUNS:
        test = found["curve"]["runs"][name]["test"]
        figures = ("bleu", "delta", "delta_low", "delta_high", "untouched")
        kept = found["curve"]["runs"][name]["kept"]
        rows.append({"kept": kept, **{key: test[key] for key in figures}})
    known = {
        "weights": table.provenance["weights"],
        "offsets": offsets,
        "roles": {head: role for head, role in named if isinstance(role, str)},
        "ablation": costs,
        "gates": {
            "metric": "bleu",
            "n": found["sentences"]["test"],
            "steps": found["curve"]["steps"],
            "whole": found["curve"]["runs"]["base"]["test"]["bleu"],
            "untouched": whole["tatoeba test"]["bleu"],
            "rows": rows,
        },
    }
    place = ROOT / "src/headcount/bundle/translator/known.json"
    place.write_text(json.dumps(known) + "\n", encoding="utf8")


if __name__ == "__main__":
    main(sys.argv[1])
