"""From one output of a model back to its heads: a forward that remembers, a backward by a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from headcount.errors import UnsupportedModel
from headcount.lrp.attention import attended_by
from headcount.lrp.conservation import Flow, flow_of
from headcount.lrp.layers import Entrances
from headcount.lrp.ledger import Ledger
from headcount.lrp.modules import met
from headcount.lrp.rule import Rule
from headcount.lrp.tracer import Tracer
from headcount.models.alone import alone
from headcount.models.rest import at_rest
from headcount.subject import Subject

__all__ = ["Relevance", "Tracing", "traced"]

T = TypeVar("T")

# So many numbers of a hidden state, over all starts of one backward; layers inside are wider.
_ROOM = 1 << 22


@dataclass(frozen=True)
class Relevance:
    """What came back from one or more starts; rows are those of the forward.

    `heads` is `[start, row, head]`, in the order of the subject's heads; `flow` says what
    reached each layer's entrance.
    """

    heads: Tensor
    flow: Flow


@contextmanager
def traced(subject: Subject, rule: Rule) -> Iterator[Tracing]:
    """Within the block forwards can be traced; the model is exactly as before on any exit."""
    _check_route(subject)
    tracing = Tracing(subject, rule)
    with ExitStack() as stack:
        stack.enter_context(alone(subject.model))
        stack.enter_context(at_rest(subject.model))
        stack.enter_context(_frozen(subject.model))
        stack.enter_context(met(subject.model, rule))
        stack.enter_context(tracing.entrances.watched())
        stack.enter_context(attended_by(subject, tracing))
        yield tracing


class Tracing:
    """An open block of `traced`."""

    def __init__(self, subject: Subject, rule: Rule) -> None:
        self.subject = subject
        self.rule = rule
        self.entrances = Entrances(subject.model, subject.anatomy)
        self.tracer: Tracer | None = None

    def forward(self, run: Callable[[], T], rows: int) -> tuple[T, Ledger]:
        """Run something that calls the model once on so many rows, and remember how."""
        ledger = Ledger(rows)
        self.entrances.begin(ledger)
        self.tracer = Tracer(self.rule, ledger, self.subject.name)
        try:
            with torch.inference_mode(False), torch.enable_grad(), self.tracer:
                return run(), ledger
        finally:
            self.tracer = None
            self.entrances.begin(None)

    @property
    def ledger(self) -> Ledger:
        """The counters of the forward under way."""
        assert self.tracer is not None  # asked for within `forward` only
        return self.tracer.ledger

    def back(self, output: Tensor, starts: Tensor, ledger: Ledger) -> Relevance:
        """Send each of the starts `[start, *output]` back to the heads.

        Where the rule settles totals, what counts of a start is its absolute value.
        """
        starts = starts.abs() if self.rule.settles else starts
        counters = [*ledger.heads.values(), *_flow_counters(ledger)]
        found = _gradients(output, counters, starts, _ROOM // max(1, ledger.size) or 1)
        heads = dict(zip(ledger.heads, found, strict=False))
        by_site = [heads[site] for site in self.subject.anatomy.sites]
        flow = flow_of(ledger, found[len(heads) :], starts.flatten(2).sum(dim=2))
        return Relevance(torch.cat(by_site, dim=-1), flow)


def _gradients(output: Tensor, inputs: list[Tensor], starts: Tensor, at_once: int) -> list[Tensor]:
    """What arrives at each input from each start, `[start, *input]`."""
    found: list[list[Tensor]] = []
    for first in range(0, len(starts), at_once):
        some = starts[first : first + at_once]
        last = first + at_once >= len(starts)
        found.append(_batched(output, inputs, some, keep=not last))
    return [torch.cat(parts) for parts in zip(*found, strict=True)]


def _batched(output: Tensor, inputs: list[Tensor], starts: Tensor, keep: bool) -> list[Tensor]:
    def back(start: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(
            output, inputs, start, retain_graph=keep, allow_unused=True, materialize_grads=True
        )

    if len(starts) == 1:  # spares the vectorised backward, whose bookkeeping costs
        return [gradient[None] for gradient in back(starts[0])]
    return list(torch.func.vmap(back)(starts))


def _flow_counters(ledger: Ledger) -> list[Tensor]:
    cuts = [counter for cut in ledger.cuts for counter in (cut.through, *cut.beside)]
    return [*cuts, *ledger.biases]


@contextmanager
def _frozen(model: nn.Module) -> Iterator[None]:
    """Within the block no weight asks for a gradient, so that whatever does carries relevance."""
    asking = [weight for weight in model.parameters() if weight.requires_grad]
    try:
        for weight in asking:
            weight.requires_grad_(False)
        yield
    finally:
        for weight in asking:
            weight.requires_grad_(True)


def _check_route(subject: Subject) -> None:
    if any(site.route != "interface" for site in subject.anatomy.sites):
        raise UnsupportedModel(
            f"{subject.name} ({type(subject.inner).__name__}) does not speak transformers' "
            "attention interface, and relevance needs it; use another score, e.g. gradient."
        )
