"""Gates: one learned valve a head, and a model that runs through them.

Voita et al. 2019 (eq. 4 and 5): every head's output is multiplied by a gate, one scalar that
does not depend on the input, drawn anew for every batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.pruning.concrete import is_open, p_open, test_gate, train_gate
from headcount.subject import Subject
from headcount.wiring.valves import valve

__all__ = ["Gates", "check_convention", "gate_places", "gated"]

_CONVENTIONS = ("headcount", "paper", "code")


class Gates(nn.Module):
    """Gates on some heads of a model; the other heads stay as they are.

    They start as the authors' program starts them, uniform between plus and minus
    sqrt(3 / heads of a layer), or at `start`: at 2.4 and above a converged model begins whole.
    A `spread` around it lets gates of equal worth close one after another, not all at once. Heads
    that can only go together (`units`) share one gate.

    In evaluation a gate is 0 or 1, whichever is likelier, so that the model is the one that is
    left when closed heads go; under the convention "code" it may lie between, as in the authors'
    program, and a head is closed where its gate is exactly 0.

    >>> gates = Gates([Head("enc", 0, 0), Head("enc", 0, 1)], start=3.0)
    >>> gates.closed(), gates.expected().item() > 1.9
    ([], True)
    """

    unit: Tensor

    def __init__(
        self,
        heads: Sequence[Head],
        *,
        start: float | None = None,
        spread: float = 0.0,
        seed: int = 0,
        units: Sequence[Sequence[Head]] = (),
        convention: str = "headcount",
    ) -> None:
        super().__init__()
        check_convention(convention)
        if not heads:
            raise UsageError("There is no head to put a gate on; name heads of the model.")
        self.heads, self.convention = tuple(heads), convention
        numbers = _numbers(self.heads, units)
        self.shared = len(set(numbers)) < len(numbers)
        self.register_buffer("unit", torch.tensor(numbers), persistent=False)
        firsts = [self.heads[numbers.index(number)] for number in range(max(numbers) + 1)]
        self.log_a = nn.Parameter(_first(firsts, start, spread, seed))

    def forward(self, noise: Tensor | None = None) -> Tensor:
        """One number a head `[head]`: drawn in training, certain in evaluation.

        `noise`, uniform and one a gate, makes the draw repeatable; else it is drawn here.
        """
        if not self.training:
            return self.tested()
        drawn = torch.rand_like(self.log_a) if noise is None else noise.to(self.log_a)
        return self._each(train_gate(self.log_a, drawn))

    def tested(self) -> Tensor:
        """The gates at test time, `[head]`: 0 or 1, or under "code" anything between."""
        if self.convention == "code":
            return self._each(test_gate(self.log_a))
        return self.open().to(self.log_a)

    def expected(self) -> Tensor:
        """How many heads are expected to stay: the L0 penalty of the paper."""
        return self._each(p_open(self.log_a)).sum()

    def open(self) -> Tensor:
        """Whether each head stays, `[head]`: its gate is likelier 1 than 0; in "code" not 0."""
        log_a = self.log_a.detach()
        return self._each(test_gate(log_a) > 0 if self.convention == "code" else is_open(log_a))

    def kept(self, count: int | None = None) -> list[Head]:
        """The heads whose gate is open, or the `count` most open ones, in the model's order.

        Where heads share a gate there may be fewer than `count`, never more.
        """
        if count is None:
            there = self.open().tolist()
        else:
            _check_count(count, len(self.heads))
            best = self._best(count)
            there = [number in best for number in self.unit.tolist()]
        return [head for head, open_ in zip(self.heads, there, strict=True) if open_]

    def closed(self, count: int | None = None) -> list[Head]:
        """The heads that would go: all gated ones but `kept(count)`."""
        kept = set(self.kept(count))
        return [head for head in self.heads if head not in kept]

    def staying(self, heads: Iterable[Head]) -> list[Head]:
        """Those of a model's heads that stay: without a gate, or with one that is open."""
        gone = set(self.closed())
        return [head for head in heads if head not in gone]

    def _each(self, values: Tensor) -> Tensor:
        """A gate's value for each of its heads."""
        return values[self.unit] if self.shared else values

    def _best(self, count: int) -> set[int]:
        """The most open gates whose heads are `count` or fewer in all."""
        sizes = torch.bincount(self.unit).tolist()
        best: set[int] = set()
        for number in self.log_a.detach().argsort(descending=True, stable=True).tolist():
            if sizes[number] <= count:
                best.add(number)
                count -= sizes[number]
        return best


@contextmanager
def gated(subject: Subject, gates: Gates) -> Iterator[None]:
    """Run the model through its gates within the block; one draw for each forward of the model."""
    places = gate_places(subject, gates)
    ones = torch.ones(len(subject.heads), device=gates.log_a.device)
    with valve(subject, ones) as opened:

        def draw(*_: object) -> None:
            opened.scales = ones.index_copy(0, places, gates())

        handle = subject.model.register_forward_pre_hook(draw)
        try:
            yield
        finally:
            handle.remove()


def gate_places(subject: Subject, gates: Gates) -> Tensor:
    """Where the gated heads stand among all heads."""
    order = {head: place for place, head in enumerate(subject.heads)}
    for head in gates.heads:
        if head not in order:
            raise UsageError(f"{subject.name} has no head {head}, but there is a gate for it.")
    return torch.tensor([order[head] for head in gates.heads], device=gates.log_a.device)


def check_convention(convention: str) -> None:
    """Refuse a convention that is none.

    >>> check_convention("coda")
    Traceback (most recent call last):
    headcount.errors.UsageError: There is no convention 'coda'; choose headcount, paper, code.
    """
    if convention not in _CONVENTIONS:
        raise UsageError(
            f"There is no convention '{convention}'; choose {', '.join(_CONVENTIONS)}."
        )


def _numbers(heads: Sequence[Head], units: Sequence[Sequence[Head]]) -> list[int]:
    """The number of each head's gate; a head in no unit has one of its own."""
    leaders = {head: unit[0] for unit in units for head in unit}
    numbers: dict[Head, int] = {}
    return [numbers.setdefault(leaders.get(head, head), len(numbers)) for head in heads]


def _first(heads: Sequence[Head], start: float | None, spread: float, seed: int) -> Tensor:
    dice = torch.Generator().manual_seed(seed)
    around = torch.rand(len(heads), generator=dice) * 2 - 1
    if start is not None:
        return start + around * spread
    sizes: dict[tuple[str, int], int] = {}
    for head in heads:
        sizes[head.stack, head.layer] = sizes.get((head.stack, head.layer), 0) + 1
    limits = torch.tensor([(3 / sizes[head.stack, head.layer]) ** 0.5 for head in heads])
    return around * limits


def _check_count(count: int, most: int) -> None:
    if not 0 <= count <= most:
        raise UsageError(f"{count} heads cannot be kept; give a number from 0 to {most}.")
