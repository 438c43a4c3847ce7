"""What gates free in the bundled translator: a digest of docs/results/pruning-gates.json.

    python scripts/bundled_gates.py

writes ``src/headcount/bundle/translator/gates.json``. The page shows it beside the curve of a
story of the bundled translator, since gates take longer than the story's five minutes.
"""

from __future__ import annotations

import json
from pathlib import Path

import headcount as hc

ROOT = Path(__file__).parents[1]
RUNS = ("enc-17", "enc-10", "all-48")


def main() -> None:
    """Write the digest."""
    found = json.loads((ROOT / "docs/results/pruning-gates.json").read_text(encoding="utf8"))
    translator = hc.load("translator", device="cpu")
    heads = [str(head) for head in translator.heads]
    rows = []
    for name in RUNS:
        run = found["curve"]["runs"][name]
        test = run["test"]
        figures = {
            key: test[key] for key in ("bleu", "delta", "delta_low", "delta_high", "untouched")
        }
        rows.append({"gone": [head for head in heads if head not in run["kept"]], **figures})
    kept = {
        "weights": translator.weights_hash,
        "metric": "bleu",
        "n": found["sentences"]["test"],
        "steps": found["curve"]["steps"],
        "whole": found["curve"]["runs"]["base"]["test"]["bleu"],
        "rows": rows,
    }
    place = ROOT / "src/headcount/bundle/translator/gates.json"
    place.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
