"""Why the rule `ding` keeps totals: the paper's text alone overflows on a real model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from headcount import tasks
from headcount.bundle import sample
from headcount.models.loading import load
from headcount.rooms.relevance import rules
from headcount.rooms.relevance.propagate import traced
from headcount.rooms.relevance.rule import Attending, Dense, Rule, over
from headcount.rooms.relevance.rules import Ding, rule_named
from headcount.rooms.relevance.score import explaining


class Text(Ding):
    """Voita et al. 2019, appendix A, to the letter: nothing is made positive or rescaled."""

    def dense(self, layer: Dense, relevance: Tensor) -> Tensor:
        return rules.ding_dense(layer.x, layer.weight, relevance)

    def settle(self, flow: Tensor, total: Tensor) -> Tensor:
        return flow

    def add(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        share = over(relevance, a + b)
        return a * share, b * share

    def attention(self, call: Attending, relevance: Tensor) -> Sequence[Tensor | None]:
        return rules.ding_attention(call, relevance)


def worst(rule: Rule) -> float:
    """How far the sum at some cut is from what was sent, in float64."""
    subject = load("translator", device="cpu")
    subject.model.double()
    task = tasks.translation(sample.pairs()[:1], metric="loss")
    (batch,) = task.batches(subject)
    with traced(subject, rule) as tracing, explaining(subject, task) as explain:
        start = explain(tracing, batch)
        flow = tracing.back(start.output, start.starts[:1], start.ledger).flow
    return float((flow.through - flow.sent[..., None]).abs().nan_to_num(torch.inf).max())


@pytest.mark.parametrize(("rule", "keeps"), [(Text(), False), (rule_named("ding"), True)])
def test_the_text_alone_keeps_no_sum(rule: Rule, keeps: bool) -> None:
    assert (worst(rule) < 1e-3) is keeps
