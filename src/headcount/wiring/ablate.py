"""Ablate heads: something else stands in the place of what they give.

Zero is Michel et al.'s mask (NeurIPS 2019, section 2.1): the head's share of the output
projection's input is 0, its bias and the residual stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.heads import Head, check_heads, parse_heads
from headcount.models.alone import alone
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.wiring.projection import scaled_projections
from headcount.wiring.seam import Attended, Turns, attached

__all__ = ["Ablation", "Instead", "ablated", "chosen_heads", "hung", "replaced", "zero"]

#: What stands in the place of a site's heads, to be broadcast to `[row, query, head, dim]`.
Instead = Callable[[Site, Attended], Tensor]


def zero(site: Site, attended: Attended) -> Tensor:
    """Nothing."""
    return attended.output.new_zeros(())


@contextmanager
def ablated(
    subject: Subject, heads: str | Iterable[str | Head] | Tensor, instead: Instead = zero
) -> Iterator[Ablation]:
    """Ablate heads within the block; the model is exactly as before on any exit.

    `heads` are names (`"enc.0.3,enc.1.2"` or a list), or true and false for each head,
    `[head]` or `[row, head]` in the order of `subject.heads`. `instead` is `zero`, `uniform`, or
    what `means_of` and `donors_of` make.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> subject = Subject(BertModel(config).eval())
    >>> ids = torch.tensor([[1, 2, 3]])
    >>> whole = subject.model(ids).last_hidden_state
    >>> with ablated(subject, "enc.0.1,enc.0.2"):
    ...     torch.equal(subject.model(ids).last_hidden_state, whole)
    False
    """
    turns = Turns(subject.model, subject.anatomy)
    work = Ablation(subject, heads, instead, turns)
    with turns.counted(subject.model), hung(subject, work):
        yield work


@contextmanager
def hung(subject: Subject, work: Ablation) -> Iterator[None]:
    """Hang an ablation on the seam and on the projections of families outside it."""
    with ExitStack() as stack:
        stack.enter_context(alone(subject.model))
        stack.enter_context(attached(subject.model, subject.anatomy, work))
        stack.enter_context(scaled_projections(subject.model, subject.anatomy, work.entering))
        yield


class Sites(Protocol):
    """Knows which site an attention call is."""

    def next(self, module: nn.Module) -> Site:
        """The site of this call."""


class Ablation:
    """An ablation at work; `chosen` may be replaced between forwards."""

    def __init__(
        self,
        subject: Subject,
        heads: str | Iterable[str | Head] | Tensor,
        instead: Instead,
        turns: Sites,
    ) -> None:
        self.chosen = chosen_heads(heads, subject.heads)
        self.instead = instead
        self.turns = turns
        self._spans = subject.anatomy.spans

    def __call__(self, module: nn.Module, attended: Attended) -> Tensor:
        """The part on the seam."""
        site = self.turns.next(module)
        chosen = self.chosen[..., self._spans[site]]
        if not chosen.any():
            return attended.output
        return replaced(attended.output, chosen, self.instead(site, attended))

    def entering(self, module: nn.Module, heads: Tensor) -> Tensor:
        """The same before an output projection, for families outside the interface."""
        return self(module, Attended(heads, None, None))


def replaced(output: Tensor, chosen: Tensor, instead: Tensor) -> Tensor:
    """Head outputs `[row, query, head, dim]` with the chosen ones exchanged.

    `chosen` is `[head]`, or `[row, head]`; beams of one row share its choice.
    """
    chosen = chosen.to(output.device)
    if chosen.dim() == 2:
        rows, examples = output.shape[0], chosen.shape[0]
        if rows % examples:
            raise UsageError(
                f"Heads were chosen for {examples} rows, but the model was called on {rows}; "
                "choose for as many as the batch has, or once for all."
            )
        chosen = chosen.repeat_interleave(rows // examples, dim=0)[:, None, :, None]
    else:
        chosen = chosen[None, None, :, None]
    return torch.where(chosen, instead, output)


def chosen_heads(heads: str | Iterable[str | Head] | Tensor, known: list[Head]) -> Tensor:
    """True for every head that was chosen, `[head]` or `[row, head]`.

    >>> chosen_heads("enc.0.1", [Head("enc", 0, 0), Head("enc", 0, 1)])
    tensor([False,  True])
    """
    if isinstance(heads, Tensor):
        if heads.dtype != torch.bool or heads.dim() not in (1, 2) or heads.shape[-1] != len(known):
            raise UsageError(
                f"A tensor of heads is true or false for each of the {len(known)}, [head] or "
                f"[row, head]; this one is {heads.dtype} of shape {tuple(heads.shape)}."
            )
        return heads
    wanted = set(parse_heads(heads))
    check_heads(sorted(wanted), known)
    return torch.tensor([head in wanted for head in known])
