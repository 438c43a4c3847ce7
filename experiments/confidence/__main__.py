"""`python -m experiments.confidence`: confidence with [CLS] kept, and without special tokens.

Every model is surveyed on the bundled sample under each choice of what confidence leaves out;
Spearman's and Pearson's correlation over heads tell how far the choices rank heads alike, and the
correlation with the mass on the first token how far each is a measure of resting there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import pearsonr

import headcount as hc
from headcount.bundle import sample
from headcount.records import provenance
from headcount.stats import rank_agreement

OUT = Path(__file__).parents[2] / "docs" / "results" / "confidence.json"
COMMAND = "python -m experiments.confidence"
MODELS = ("translator", "minilm", "e5-small", "smollm2")
CHOICES = ("separator", "special")


def main() -> None:
    parser = argparse.ArgumentParser(prog="experiments.confidence", description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    given = parser.parse_args()
    found: dict[str, Any] = {"command": COMMAND, "text": "the bundled sample", "models": {}}
    for name in given.models:
        found["models"][name] = measured(name)
        print(name, json.dumps(found["models"][name]), flush=True)
    found["provenance"] = provenance.collect()
    OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")


def measured(name: str) -> dict[str, Any]:
    """Each stack: both choices, how they agree, and what they have to do with the first token."""
    subject = hc.load(name, device="cpu")
    texts: Any = sample.pairs() if "cross" in subject.anatomy.stacks else sample.path("sample.txt")
    tables = {
        choice: hc.survey(
            subject, texts, columns=["confidence", "first"], confidence_without=choice, batch_size=8
        )
        for choice in CHOICES
    }
    return {stack: _of_stack(tables, stack) for stack in subject.anatomy.stacks}


def _of_stack(tables: dict[str, hc.HeadTable], stack: str) -> dict[str, Any]:
    values = {choice: table.stack(stack).numbers("confidence") for choice, table in tables.items()}
    first = tables["special"].stack(stack).numbers("first")
    one, two = values.values()
    agreement = rank_agreement(one, two)
    return {
        "heads": len(one),
        "spearman": [round(float(v), 3) for v in (agreement.value, agreement.low, agreement.high)],
        "pearson": round(float(pearsonr(one, two).statistic), 3),
        "mean": {choice: round(float(v.mean()), 3) for choice, v in values.items()},
        "above 0.5": {choice: int((v > 0.5).sum()) for choice, v in values.items()},
        "with the mass on the first token": {
            choice: round(float(rank_agreement(v, first).value), 3) for choice, v in values.items()
        },
        "largest change": round(float(np.abs(one - two).max()), 3),
    }


if __name__ == "__main__":
    main()
