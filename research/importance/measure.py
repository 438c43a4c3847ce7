"""Score every head of a case; run directories are kept, so that a broken-off experiment goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import headcount as hc
from headcount.importance.scoring import stacks_read
from headcount.records.heads import parse_head

from .cases import SCORES, Case

#: Ablation has more examples than these.
OTHERS = tuple(name for name in SCORES if name != "ablation")


class Measured(NamedTuple):
    """The tables of one case."""

    #: Gradient, contribution and confidence; None where they are known.
    scores: hc.HeadTable | None
    #: Every head ablated, judged by the loss, on more examples where the case says so.
    ablated: hc.HeadTable
    #: Every head as the only one of its layer, judged by the loss; None where that is known.
    alone: hc.HeadTable | None
    #: Ablation and best single heads by the task's own metric, where that was asked for.
    judged: hc.HeadTable | None
    judged_alone: hc.HeadTable | None


def measured(
    case: Case, data: Path, classifiers: Path | None, work: Path, *, again: bool = False
) -> Measured:
    """All tables of a case, measured now or before; `again`: the loss without each head alone."""
    place = work / case.group / case.name
    subject = cache(lambda: case.subject(classifiers))  # a finished table needs no model

    def table(name: str, count: int, **how: Any) -> hc.HeadTable | None:
        return made(name, count, **how) if count else None

    def made(name: str, count: int, **how: Any) -> hc.HeadTable:
        def measure() -> hc.HeadTable:
            task = case.task(data, count)
            if "confidence" in how["by"]:
                how["table"] = _paper_confidence(subject(), task, case.batch_size)
            return hc.score(
                subject(),
                task,
                run=place / name,
                batch_size=case.batch_size,
                seed=case.seed,
                **how,
            )

        return _kept(place / name, measure)

    judged = 0 if again else case.judged
    return Measured(
        scores=table("scores", 0 if again else case.examples, by=OTHERS, predictions="all"),
        ablated=made("ablated", case.ablated, by="ablation"),
        alone=table("alone", 0 if again else case.examples, by="ablation", unit="others"),
        judged=table("judged", judged, by="ablation", metric="task"),
        judged_alone=table(
            "judged-alone",
            judged if case.group == "classifiers" else 0,
            by="ablation",
            metric="task",
            unit="others",
        ),
    )


def of_json(case: dict[str, Any]) -> hc.HeadTable:
    """The scores of a case as importance.json has them."""
    heads = [parse_head(name) for name in case["scores"]["contribution"]]
    values = {
        name: [np.nan if own.get(str(head)) is None else own[str(head)] for head in heads]
        for name, own in case["scores"].items()
    }
    columns = [hc.Column("ablation", title="Loss added"), hc.Column("confidence", more="sharper")]
    return hc.HeadTable.of(heads, values, columns)


def _paper_confidence(subject: hc.Subject, task: Any, batch_size: int) -> hc.HeadTable:
    """Confidence as Voita et al. have it: only ends of sentence are left out."""
    stacks = stacks_read(task, subject)
    return hc.survey(
        subject,
        task.texts(),
        columns=["confidence"],
        reading=hc.ReadingOptions(
            confidence_without="separator", stacks=stacks, batch_size=batch_size
        ),
    )


def _kept(place: Path, measure: Callable[[], hc.HeadTable]) -> hc.HeadTable:
    """What the run has; measured where it is not finished."""
    done = place / "run.json"
    if done.exists() and not (place / "journal.jsonl").exists():
        return hc.HeadTable.load(place)
    return measure()
