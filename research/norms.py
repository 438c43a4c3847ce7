"""`python -m research.norms`: how many heads named for a place move something from there.

Kobayashi et al., EMNLP 2020. For every head with the role sink or separator in a survey of the
bundled sample: the attention that the place gets, and its share of what the head moves. A verdict
survives where that share, with the lower end of its interval, is at least the line of Gu et al.
(0.3), fixed before this was measured. Writes `research/results/norms.json` and
`docs/results/norms.md`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import headcount as hc
from headcount.bundle import sample
from headcount.records import provenance
from headcount.rooms.resting.norms import LINE, PLACES, NormTrial
from headcount.surveys.passes import run_trials
from research import DOCS, RESULTS

MODELS = ("minilm", "e5-small", "smollm2", "translator")
#: The role that names a place, by the column of the place.
ROLES = {"first": "sink", "separator": "separator"}
TEXTS = 64


HEAD = f"""\
# Attention by norm

*Written by `python -m research.norms`; the figures lie in `research/results/norms.json`.*

A head adds the vector sum of a·v·W_O to a token. A large weight on a short vector moves little
(Kobayashi et al. 2020). For heads that are named for a place, the table shows the attention that
the place gets and its share of what the head moves. A verdict survives where the whole 95%
interval of that share is at least {LINE}. {TEXTS} texts of the bundled sample.

| model | role | heads | survive | attention, mean | share of what is moved, mean |
|---|---|--:|--:|--:|--:|"""
TAIL = (
    "`hc.norms(subject, texts)` measures the columns on your texts: "
    + "; ".join(f"`moved_{key}`, {words}" for key, words in PLACES.items())
    + "."
)


def measured(name: str) -> dict[str, Any]:
    """The heads of a model that are named for a place, with attention and share by norm."""
    subject = hc.load(name, device="cpu")
    pairs = "cross" in subject.anatomy.stacks
    texts: Any = sample.pairs() if pairs else sample.sentences()
    table = hc.survey(subject, texts[:TEXTS], roles=hc.RoleOptions(roles=True, nulls=False))
    moved = run_trials(subject, trials=[NormTrial(texts, most=TEXTS)])
    roles, trials = table.details["roles"], moved.details["trials"]
    keys = ["stack", "layer", "head"]
    rows = []
    for place, role in ROLES.items():
        own = roles[roles["role"] == role][keys].drop_duplicates()
        found = own.merge(trials[trials["column"] == f"moved_{place}"], on=keys)
        for _, row in found.iterrows():
            rows.append(
                {
                    "head": f"{row['stack']}.{row['layer']}.{row['head']}",
                    "role": role,
                    "attention": round(float(row["baseline"]), 4),
                    "moved": [round(float(row[key]), 4) for key in ("value", "low", "high")],
                    "survives": bool(row["low"] >= LINE),
                }
            )
    return {"texts": TEXTS, "heads": len(table.frame), "rows": rows}


def page(results: dict[str, Any]) -> str:
    """The table of the page."""
    lines = [HEAD]
    for name, one in results.items():
        frame = pd.DataFrame(
            one["rows"], columns=["head", "role", "attention", "moved", "survives"]
        )
        for role in ROLES.values():
            own = frame[frame["role"] == role]
            means = (
                ("–", "–")
                if own.empty
                else (
                    f"{own['attention'].mean():.2f}",
                    f"{np.mean([m[0] for m in own['moved']]):.2f}",
                )
            )
            counts = len(own), int(own["survives"].sum())
            lines.append("| " + " | ".join(map(str, (name, role, *counts, *means))) + " |")
    lines += ["", TAIL, ""]
    return "\n".join(lines)


def main() -> int:
    """Measure the models that are asked for and write JSON and page."""
    parser = argparse.ArgumentParser(prog="research.norms", description=__doc__)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--page", type=Path, default=DOCS / "norms.md")
    given = parser.parse_args()
    path = RESULTS / "norms.json"
    results = json.loads(path.read_text("utf8"))["models"] if path.exists() else {}
    for name in given.models:
        results[name] = measured(name)
        about = provenance.versions()
        whole = {
            "command": "python -m research.norms",
            "line": LINE,
            "versions": about,
            "models": results,
        }
        path.write_text(json.dumps(whole, indent=1) + "\n", "utf8")
        print(name, len(results[name]["rows"]), flush=True)
    given.page.write_text(page(results), "utf8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
