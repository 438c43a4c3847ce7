"""Copying: what a head adds to the word that the repeat asks for.

Olsson et al. 2022 call a head inductive when it looks at what followed last time *and* raises the
logit of what it looks at. Looking is `induction`; raising is measured here on the same random
tokens said twice, as the derivative of the right word's log-probability with respect to the
head's valve: what the head adds to it, to first order, by every path through the model. One
backward pass answers for all heads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from headcount.columns import Column
from headcount.stats.results import Floats
from headcount.subject import Subject
from headcount.text.batch import Batch
from headcount.trials.answer import measure_of
from headcount.trials.layout import Layout
from headcount.trials.marks import Marks
from headcount.trials.question import Finding, Findings, Measure
from headcount.trials.repeats import Repeats
from headcount.trials.said import said, speaks
from headcount.wiring import Valve, valve

__all__ = ["INDUCTION_EFFECT", "Copying"]

INDUCTION_EFFECT = Column(
    "induction_effect",
    meaning="What the head adds to the log-probability of the right token of the repeat, to first "
    "order, in random tokens said twice.",
    paper="Olsson et al. 2022, copying; measured through the valve",
    unit="nats",
    direction="higher",
    more="copies more",
    diverging=True,
    format="+.3f",
    group="What it finds again",
)

_SILENT = {
    "enc": "the repeat is in the decoder's own text",
    "cross": "the repeat is in the decoder's own text",
}


@dataclass(frozen=True)
class Copying:
    """Random sequences said twice; answers `induction_effect`, and whether the model repeats."""

    repeats: Repeats = field(default_factory=Repeats)
    name = "copying"
    columns: tuple[Column, ...] = (INDUCTION_EFFECT,)

    def unfit(self, subject: Subject) -> str | None:
        """Models without a decoder, or whose decoder says nothing."""
        if "dec" not in subject.anatomy.stacks:
            return "the model has no decoder"
        if not speaks(subject):
            return "the model has no layer that predicts tokens"
        return self.repeats.unfit(subject)

    def __call__(self, subject: Subject) -> Findings:
        """Run the sequences forward and backward once."""
        finding = Finding(INDUCTION_EFFECT, "no effect", silent=dict(_SILENT))
        layout, told = self.repeats.layout(subject), []
        with valve(subject, torch.ones(len(subject.heads))) as opened:
            for batch in self.repeats.batches(subject):
                told.append(_mark(subject, opened, batch, layout, finding.marks))
        return Findings([finding], _measures(self.name, np.concatenate(told)))


def _mark(subject: Subject, opened: Valve, batch: Batch, layout: Layout, marks: Marks) -> Floats:
    """Mark the heads on one batch; the model's own figures ``[example, figure]``."""
    batch = batch.to(subject.device)
    opened.scales = torch.ones(len(batch), len(subject.heads), requires_grad=True)
    logits = said(subject, batch)
    chances = logits.float().log_softmax(-1)[:, :-1]
    following = batch.sides["target"].ids[:, 1:, None].to(chances.device)
    spoken = chances.gather(-1, following)[..., 0]
    asked = _asked(layout)
    (effect,) = torch.autograd.grad(spoken[:, asked].sum(), opened.scales)
    cells = torch.full((len(batch),), asked.stop - asked.start)
    for site, span in subject.anatomy.spans.items():
        if site.stack == "dec":
            marks.add(site, batch.index, effect[:, span], torch.zeros(len(batch)), cells)
    return _figures(chances, spoken, following[..., 0], layout)


def _asked(layout: Layout) -> slice:
    """The rows whose next token is known from the first time: all of the repeat but its last."""
    second = layout.second("target")
    return slice(second.start, second.stop - 1)


def _figures(chances: Tensor, spoken: Tensor, following: Tensor, layout: Layout) -> Floats:
    """Right words, and loss in the repeat and before it, of each example."""
    first, again = layout.first("target"), _asked(layout)
    before = slice(first.start, first.stop - 1)
    hits = (chances[:, again].argmax(-1) == following[:, again]).float().mean(-1)
    losses = [-spoken[:, rows].mean(-1) for rows in (again, before)]
    return torch.stack([hits, *losses], dim=-1).detach().double().cpu().numpy()


def _measures(trial: str, told: Floats) -> list[Measure]:
    names = ("right tokens of the repeat", "loss in the repeat", "loss before the repeat")
    tops = (1.0, np.inf, np.inf)
    return [
        measure_of(trial, name, told[:, place], np.ones(len(told)), (0, top))
        for place, (name, top) in enumerate(zip(names, tops, strict=True))
    ]
