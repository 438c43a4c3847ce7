"""Gates: one learned valve a head, and a model that runs through them.

Voita et al. 2019 (eq. 4 and 5): every head's output is multiplied by a gate, one scalar that
does not depend on the input, drawn anew for every batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.pruning.concrete import is_open, p_open, test_gate, train_gate
from headcount.subject import Subject
from headcount.wiring.valves import valve

__all__ = ["Gates", "gated"]


class Gates(nn.Module):
    """Gates on some heads of a model; the other heads stay as they are.

    They start as the authors' program starts them, uniform between plus and minus
    sqrt(3 / heads of a layer), or all at `start`: at 2.4 and above a converged model begins whole.

    >>> gates = Gates([Head("enc", 0, 0), Head("enc", 0, 1)], start=3.0)
    >>> gates.closed(), gates.expected().item() > 1.9
    ([], True)
    """

    def __init__(self, heads: Sequence[Head], *, start: float | None = None, seed: int = 0) -> None:
        super().__init__()
        if not heads:
            raise UsageError("There is no head to put a gate on; name heads of the model.")
        self.heads = tuple(heads)
        self.log_a = nn.Parameter(_first(self.heads, start, seed))

    def forward(self) -> Tensor:
        """The gates of one batch `[gate]`: drawn in training, certain in evaluation."""
        if not self.training:
            return test_gate(self.log_a)
        return train_gate(self.log_a, torch.rand_like(self.log_a))

    def expected(self) -> Tensor:
        """How many gates are expected to be open: the L0 penalty of the paper."""
        return p_open(self.log_a).sum()

    def kept(self, count: int | None = None) -> list[Head]:
        """The heads whose gate is open, or the `count` most open ones, in the model's order."""
        if count is None:
            there = is_open(self.log_a.detach()).tolist()
        else:
            _check_count(count, len(self.heads))
            best = set(torch.topk(self.log_a.detach(), count).indices.tolist())
            there = [place in best for place in range(len(self.heads))]
        return [head for head, open_ in zip(self.heads, there, strict=True) if open_]

    def closed(self, count: int | None = None) -> list[Head]:
        """The heads that would go: all gated ones but `kept(count)`."""
        kept = set(self.kept(count))
        return [head for head in self.heads if head not in kept]


@contextmanager
def gated(subject: Subject, gates: Gates) -> Iterator[None]:
    """Run the model through its gates within the block; one draw for each forward of the model."""
    places = _places(subject, gates)
    ones = torch.ones(len(subject.heads), device=gates.log_a.device)
    with valve(subject, ones) as opened:

        def draw(*_: object) -> None:
            opened.scales = ones.index_copy(0, places, gates())

        handle = subject.model.register_forward_pre_hook(draw)
        try:
            yield
        finally:
            handle.remove()


def _places(subject: Subject, gates: Gates) -> Tensor:
    """Where the gated heads stand among all heads."""
    order = {head: place for place, head in enumerate(subject.heads)}
    for head in gates.heads:
        if head not in order:
            raise UsageError(f"{subject.name} has no head {head}, but there is a gate for it.")
    return torch.tensor([order[head] for head in gates.heads], device=gates.log_a.device)


def _first(heads: Sequence[Head], start: float | None, seed: int) -> Tensor:
    if start is not None:
        return torch.full((len(heads),), float(start))
    sizes: dict[tuple[str, int], int] = {}
    for head in heads:
        sizes[head.stack, head.layer] = sizes.get((head.stack, head.layer), 0) + 1
    limits = torch.tensor([(3 / sizes[head.stack, head.layer]) ** 0.5 for head in heads])
    dice = torch.Generator().manual_seed(seed)
    return (torch.rand(len(heads), generator=dice) * 2 - 1) * limits


def _check_count(count: int, most: int) -> None:
    if not 0 <= count <= most:
        raise UsageError(f"{count} heads cannot be kept; give a number from 0 to {most}.")
