"""Relevance: the share of a prediction that each head carries, by layer-wise propagation.

Voita et al., ACL 2019, section 4 and appendix A: from the top-1 logit of every prediction back to
what each head gave, as a share of its layer, then the mean over predictions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headcount.columns import Column
from headcount.errors import UsageError
from headcount.importance.by_batch import Arrays, by_batch
from headcount.importance.example_sums import ExampleSums
from headcount.importance.head_shares import head_shares
from headcount.importance.interrupted import Interrupted
from headcount.importance.natural_task import natural_task
from headcount.importance.origin import origin
from headcount.importance.predictions import Explain, Per, check_per, explained, explaining
from headcount.importance.relevance_flow import FlowSums, flow_arrays
from headcount.journal import Journal
from headcount.lrp.composite import rule_named
from headcount.lrp.propagate import Tracing, traced
from headcount.models.memory import enough_memory
from headcount.progress import Progress
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.tasks.task import Task
from headcount.text.batch import Batch
from headcount.wiring.ids import check_ids

__all__ = ["RELEVANCE", "relevance"]

RELEVANCE = Column(
    "relevance",
    meaning="The head's share of what its layer adds to a prediction, by relevance propagation.",
    paper="Voita et al. 2019, section 4",
    range=(0, 1),
    direction="higher",
    more="more relevant",
    group="How much it matters",
    format=".3f",
)

#: The rule of each convention; the program of 2021 is the rule "alpha-beta".
RULE_OF = {"headcount": "default", "paper": "ding", "code": "z+"}


def relevance(
    subject: Subject,
    task: Any,
    *,
    rule: str | None = None,
    per: str = "step",
    convention: str = "headcount",
    batch_size: int = 16,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> HeadTable:
    """Score every head by its share of the relevance of its layer, with an interval over examples.

    Shares of one layer of a stack sum to 1. `task` may also be a corpus, which is then translated,
    gone on with, filled in or compared in pairs, whatever the model does. `rule` is "default"
    (ours, for any block), "ding" (the paper's text), "z+" (the authors' program of 2019) or
    "alpha-beta" (of 2021); without one the convention chooses. `per="step"` explains every
    prediction by itself, as the paper does; "sentence" sends one backward from the sum of a text's
    predictions, which is an approximation. `details["relevance_flow"]` and a remark tell how much
    relevance was kept on the way.

    >>> from headcount import tasks
    >>> from headcount.models.load import load
    >>> task = tasks.translation([("Rain fell.", "Regen fiel."), ("It rained.", "Es regnete.")])
    >>> relevance(load("translator", device="cpu"), task)
    HeadTable(144 heads: enc 48, dec 48, cross 48; 1 column: relevance)
    """
    task = natural_task(subject, task)
    work = _Work(subject, task, _rule_name(rule, convention), check_per(per), convention)
    explained(task)
    task.check(subject)
    batches = task.batches(subject, batch_size)
    try:
        with (
            enough_memory(subject),
            traced(subject, rule_named(work.rule)) as tracing,
            explaining(subject, task) as explain,
        ):
            walk = by_batch(
                "relevance",
                batches,
                lambda batch: work.measure(batch, tracing, explain),
                len(task),
                {"convention": convention, "batch_size": batch_size, **work.settings},
                journal,
                progress,
            )
            for batch, found in walk:
                work.add(batch, found)
    except KeyboardInterrupt as stop:
        raise (Interrupted(work.table()) if work.seen else stop) from None
    return work.table()


def _rule_name(rule: str | None, convention: str) -> str:
    if convention not in RULE_OF:
        raise UsageError(f"There is no convention '{convention}'; choose {', '.join(RULE_OF)}.")
    return rule_named(rule).name if rule is not None else RULE_OF[convention]


@dataclass
class _Work:
    """A relevance score under way."""

    subject: Subject
    task: Task
    rule: str
    per: Per
    convention: str
    sums: ExampleSums = field(default_factory=ExampleSums)
    flow: FlowSums = field(default_factory=FlowSums)
    seen: set[int] = field(default_factory=set)

    @property
    def settings(self) -> dict[str, str]:
        """What the figures depend on."""
        return {"rule": self.rule, "per": self.per}

    def measure(self, batch: Batch, tracing: Tracing, explain: Explain) -> Arrays:
        """Shares and flow of one batch."""
        check_ids(self.subject, batch.inputs)
        start = explain(tracing, batch)
        start = start if self.per == "step" else start.together()
        found = tracing.back(start.output, start.starts, start.ledger)
        return head_shares(self.subject, found, start) | flow_arrays(found.flow, start)

    def add(self, batch: Batch, found: Arrays) -> None:
        """Take in one batch."""
        self.seen.update(batch.index)
        self.sums.add(batch.index, found["shares"], found["counts"])
        self.flow.add(found)

    def table(self) -> HeadTable:
        """What has been found so far."""
        value, low, high = self.sums.interval(absolute=False)
        return HeadTable.of(
            self.subject.heads,
            {"relevance": value},
            [RELEVANCE],
            low={"relevance": low},
            high={"relevance": np.minimum(high, 1)},
            notes=self._notes(value),
            provenance=origin(
                self.subject,
                self.task,
                convention=self.convention,
                settings=self.settings,
                remarks=self._remarks(),
            ),
            details={"relevance_flow": self.flow.frame()},
        )

    def _remarks(self) -> list[str]:
        said = [f"Explained is {explained(self.task)}."]
        if self.per == "sentence":
            said.append(
                "One backward a text, from the sum of its predictions: an approximation of one "
                "backward a prediction."
            )
        return [*said, self.flow.in_words(rule_named(self.rule).promise)]

    def _notes(self, value: np.ndarray) -> dict[str, str]:
        missing = {
            head.stack
            for head, share in zip(self.subject.heads, value, strict=True)
            if np.isnan(share)
        }
        parts = [f"{stack}: no relevance reaches it in this task" for stack in sorted(missing)]
        if len(self.seen) < len(self.task):
            parts.append(f"interrupted after {len(self.seen):,} of {len(self.task):,} examples")
        return {"relevance": "; ".join(parts)} if parts else {}
