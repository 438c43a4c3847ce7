"""`python -m research.confidence`: confidence with [CLS] kept, and without special tokens.

Every model is surveyed on the bundled sample under each choice of what confidence leaves out;
Spearman's and Pearson's correlation over heads tell how far the choices rank heads alike, and the
correlation with the mass on the first token how far each is a measure of resting there.

With `--relevance` instead: how relevance of `importance.json` goes with each choice on the same
examples (Voita et al., figures 1 and 2), for the translator and the classifiers of `--classifiers
DIR`. What either does not measure stays in the JSON.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import pearsonr

import headcount as hc
from headcount.bundle import sample
from headcount.importance.scoring import stacks_read
from headcount.records import provenance
from headcount.rooms.agreement.ranks import rank_agreement
from research import RESULTS
from research.importance.cases import read_cases

COMMAND = "python -m research.confidence"
MODELS = ("translator", "minilm", "e5-small", "smollm2")
CHOICES = ("separator", "special")


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.confidence", description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--relevance", action="store_true", help="how relevance goes with both")
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--classifiers", type=Path, help="what research.models trained")
    parser.add_argument("--only", nargs="+", help="names of cases of research.importance")
    parser.add_argument("--limit", type=int, help="so many examples at most, for a trial")
    parser.add_argument("--out", type=Path, default=RESULTS / "confidence.json")
    given = parser.parse_args()
    found: dict[str, Any] = {"command": COMMAND, "text": "the bundled sample", "models": {}}
    if given.out.exists():
        found = json.loads(given.out.read_text(encoding="utf8"))
    for name, told in _with_relevance(given) if given.relevance else _by_model(given):
        found.setdefault("with relevance" if given.relevance else "models", {})[name] = told
        print(name, json.dumps(told), flush=True)
        if not given.relevance:
            found["provenance"] = provenance.collect() | {"command": COMMAND}
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")


def _by_model(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, measured(name)) for name in given.models)


def _with_relevance(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    if given.data is None:
        raise SystemExit("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    return with_relevance(Path(given.data), given.classifiers, given.only, given.limit)


def measured(name: str) -> dict[str, Any]:
    """Each stack: both choices, how they agree, and what they have to do with the first token."""
    subject = hc.load(name, device="cpu")
    texts: Any = sample.pairs() if "cross" in subject.anatomy.stacks else sample.path("sample.txt")
    tables = {
        choice: hc.survey(
            subject,
            texts,
            columns=["confidence", "first"],
            reading=hc.ReadingOptions(confidence_without=choice, batch_size=8),
        )
        for choice in CHOICES
    }
    return {stack: _of_stack(tables, stack) for stack in subject.anatomy.stacks}


def with_relevance(
    data: Path, classifiers: Path | None, only: list[str] | None, limit: int | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Spearman of relevance and confidence under each choice, by stack, for cases at hand."""
    known = json.loads((RESULTS / "importance.json").read_text(encoding="utf8"))["cases"]
    for case in read_cases(limit)[1]:
        there = case.group == "translator" or (classifiers and (classifiers / case.model).is_dir())
        if not there or (only and case.name not in only):
            continue
        subject, task = case.subject(classifiers), case.task(data, case.examples)
        relevance = known[case.name]["scores"]["contribution"]
        told: dict[str, Any] = {
            "examples": len(task),
            "the model of importance.json": subject.weights_hash
            == known[case.name]["about"]["weights"],
        }
        for choice in CHOICES:
            table = hc.survey(
                subject,
                task.texts(),
                columns=["confidence"],
                reading=hc.ReadingOptions(
                    confidence_without=choice,
                    stacks=stacks_read(task, subject),
                    batch_size=case.batch_size,
                ),
            )
            for stack in dict.fromkeys(head.stack for head in table.heads):
                own = table.stack(stack)
                scores = [relevance[str(head)] for head in own.heads]
                found = rank_agreement(scores, own.numbers("confidence"))
                ends = [round(float(v), 3) for v in (found.value, found.low, found.high)]
                told.setdefault(stack, {})[choice] = ends
        yield case.name, told


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
