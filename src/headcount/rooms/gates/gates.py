"""Gates: one learned valve a head, the price of open ones, and the model without closed ones.

Voita et al. 2019 (eq. 4 to 7): every head's output is multiplied by a gate, one scalar that
does not depend on the input, drawn anew for every batch. Its distribution is the hard concrete of
Louizos et al. 2018.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from headcount.errors import UsageError, check_convention
from headcount.models import Subject, output_of
from headcount.pruning import prune
from headcount.records import Head
from headcount.wiring import hooked, valve

# --- The hard-concrete distribution of a gate ---------------------------------------------------
# Louizos et al. 2018 (eq. 10 to 12), with the constants of Voita et al. 2019 (section 5.1): a
# binary concrete variable, stretched to (-0.1, 1.1) and cut off at 0 and 1. `log_a` is what is
# learned: the higher, the more open.

TEMPERATURE = 0.33
STRETCH = (-0.1, 1.1)
EPSILON = 1e-6


def train_gate(log_a: Tensor, noise: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """A sample of the gate; `noise` is uniform on (0, 1), and the gradient flows to `log_a`.

    >>> train_gate(torch.zeros(3), torch.tensor([0.01, 0.5, 0.99]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    noise = noise.clamp(EPSILON, 1 - EPSILON)
    logistic = noise.log() - (-noise).log1p()
    return _stretched(torch.sigmoid((logistic + log_a) / temperature))


def test_gate(log_a: Tensor) -> Tensor:
    """The gate without noise and without temperature, as the authors' program tests it.

    >>> test_gate(torch.tensor([-2.4, 0.0, 2.4]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _stretched(torch.sigmoid(log_a))


# pytest would collect a function of this name wherever it is imported.
test_gate.__test__ = False  # type: ignore[attr-defined]


def p_open(log_a: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """The probability that the gate is not 0: what the L0 penalty sums (Voita et al., eq. 6).

    >>> p_open(torch.zeros(1))
    tensor([0.6881])
    """
    low, high = STRETCH
    return torch.sigmoid(log_a - temperature * math.log(-low / high)).clamp(EPSILON, 1 - EPSILON)


def p_one(log_a: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """The probability that the gate is exactly 1.

    >>> p_one(torch.zeros(1))
    tensor([0.3119])
    """
    low, high = STRETCH
    return torch.sigmoid(log_a - temperature * math.log((1 - low) / (high - 1)))


def is_open(log_a: Tensor) -> Tensor:
    """The gate as the paper tests it: 0 or 1, whichever is more likely; never in between.

    >>> is_open(torch.tensor([-0.1, 0.1]))
    tensor([False,  True])
    """
    return p_one(log_a) > 1 - p_open(log_a)


def _stretched(share: Tensor) -> Tensor:
    low, high = STRETCH
    return (share * (high - low) + low).clamp(0, 1)


# --- Gates: one learned valve a head, and a model that runs through them ------------------------


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
        # A head in no unit has a gate of its own.
        leaders = {head: unit[0] for unit in units for head in unit}
        gate_of: dict[Head, int] = {}
        numbers = [gate_of.setdefault(leaders.get(head, head), len(gate_of)) for head in heads]
        self.shared = len(set(numbers)) < len(numbers)
        self.register_buffer("unit", torch.tensor(numbers), persistent=False)
        firsts = [self.heads[numbers.index(number)] for number in range(max(numbers) + 1)]
        self.log_a = nn.Parameter(_initial(firsts, start, spread, seed))

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
            check_count(count, len(self.heads))
            sizes, best = torch.bincount(self.unit).tolist(), set()
            for number in self.log_a.detach().argsort(descending=True, stable=True).tolist():
                if sizes[number] <= count:
                    best.add(number)
                    count -= sizes[number]
            there = [number in best for number in self.unit.tolist()]
        return [head for head, open_ in zip(self.heads, there, strict=True) if open_]

    def closed(self, count: int | None = None) -> list[Head]:
        """The heads that would go: all gated ones but `kept(count)`."""
        kept = set(self.kept(count))
        return [head for head in self.heads if head not in kept]

    def _each(self, values: Tensor) -> Tensor:
        """A gate's value for each of its heads."""
        return values[self.unit] if self.shared else values


class GatedHeads:
    """Which heads of a model stay, by their gates."""

    subject: Subject
    gates: Gates

    @property
    def kept(self) -> list[Head]:
        """The heads that stay: those without a gate, and those whose gate is open."""
        gone = set(self.removed)
        return [head for head in self.subject.heads if head not in gone]

    @property
    def removed(self) -> list[Head]:
        """The heads whose gate is closed."""
        return self.gates.closed()


@contextmanager
def gate_valve(subject: Subject, gates: Gates) -> Iterator[Callable[[Tensor], None]]:
    """Put gates on a model's heads within the block; gives a function that sets their values."""
    order = {head: place for place, head in enumerate(subject.heads)}
    for head in gates.heads:
        if head not in order:
            raise UsageError(f"{subject.name} has no head {head}, but there is a gate for it.")
    device = gates.log_a.device
    places = torch.tensor([order[head] for head in gates.heads], device=device)
    ones = torch.ones(len(subject.heads), device=device)
    with valve(subject, ones) as opened:

        def set_gates(values: Tensor) -> None:
            opened.scales = ones.index_copy(0, places, values)

        yield set_gates


@contextmanager
def gated(
    subject: Subject, gates: Gates, draw: Callable[[], Tensor] | None = None
) -> Iterator[None]:
    """Run the model through its gates within the block; one `draw` for each forward of it."""
    values = gates if draw is None else draw
    with (
        gate_valve(subject, gates) as set_gates,
        hooked([subject.model], lambda *_: set_gates(values())),
    ):
        yield


def _initial(heads: Sequence[Head], start: float | None, spread: float, seed: int) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    around = torch.rand(len(heads), generator=draw) * 2 - 1
    if start is not None:
        return start + around * spread
    sizes = Counter(head[:2] for head in heads)
    return around * torch.tensor([(3 / sizes[head[:2]]) ** 0.5 for head in heads])


def check_count(count: int, most: int) -> None:
    """Refuse a number of heads to keep that there are not."""
    if not 0 <= count <= most:
        raise UsageError(f"{count} heads cannot be kept; give a number from 0 to {most}.")


# --- The price of open gates --------------------------------------------------------------------
# Voita et al. 2019 (eq. 7): loss + lambda * sum of P(open). A price that is set by hand gives a
# number of heads that nobody chose; `Target` sets the price so that the number comes out.


#: What is added to the loss per token, from the gates and the optimiser step, counted from 0.
Penalty = Callable[[Gates, Tensor | int], Tensor]


@dataclass
class Price:
    """The paper's penalty: lambda for every head that is expected to stay.

    `weight` is lambda, or a function that gives it for each step; `warmup` steps lead straight
    from 0 to it. Under the convention "code" the sums of the attention modules are averaged, not
    added, as the authors' program does: their `concrete_coef` is then lambda.
    """

    weight: float | Callable[[int], float]
    warmup: int = 0
    convention: str = "headcount"

    def __post_init__(self) -> None:
        """Refuse a convention that is none, and a price that would pay for open gates."""
        check_convention(self.convention)
        if not callable(self.weight) and not 0 <= self.weight < float("inf"):
            raise UsageError(f"The price of an open gate is {self.weight:g}; it must be 0 or more.")

    def __call__(self, gates: Gates, step: Tensor | int) -> Tensor:
        """Lambda times the expected number of open gates."""
        share = 1.0 if not self.warmup else _ramp(step, self.warmup, gates.log_a.device)
        weight = self.weight(int(step)) if callable(self.weight) else self.weight
        modules = len({head[:2] for head in gates.heads}) if self.convention == "code" else 1
        return weight * share * gates.expected() / modules


class Target(nn.Module):
    """A price that drives the expected number of open gates down to a target and holds it.

    The number wanted falls in a straight line from all gates to `count` over `steps` steps. The
    price is a Lagrange multiplier: it rises while more gates are open than wanted and falls
    when there are fewer (the gradient ascent of Wang et al. 2020, section 3.2), with a quadratic
    term that keeps it from swinging. With `hard` the gates that are open at test time count,
    not the expected number: gates that cannot decide do not count as a part of a head.
    """

    multiplier: Tensor

    def __init__(
        self,
        count: float,
        *,
        steps: int,
        rate: float = 1.0,
        stiffness: float = 20.0,
        hard: bool = False,
    ) -> None:
        super().__init__()
        if count < 0 or steps < 1:
            raise UsageError(
                f"A target of {count} heads in {steps} steps cannot be; give 0 or more heads and "
                "at least 1 step."
            )
        self.count, self.steps, self.rate, self.stiffness = count, steps, rate, stiffness
        self.hard = hard
        self.register_buffer("multiplier", torch.zeros(()))
        self._moved_at = -1

    def forward(self, gates: Gates, step: Tensor | int) -> Tensor:
        """Multiplier times the excess share, and its square.

        In training the multiplier moves, once a step however many batches the step has.
        """
        total = len(gates.heads)
        wanted = total + (self.count - total) * _ramp(step, self.steps, gates.log_a.device)
        there = gates.expected()
        if self.hard:  # the gradient is that of the expected number either way
            there = there + (gates.open().sum() - there).detach()
        excess = (there - wanted) / total
        if gates.training and int(step) != self._moved_at:
            self._moved_at = int(step)
            with torch.no_grad():
                self.multiplier.add_(self.rate * excess)
        return self.multiplier * excess + self.stiffness * excess.square()


def _ramp(step: Tensor | int, steps: int, device: torch.device) -> Tensor:
    """From 0 to 1 in so many steps."""
    return (torch.as_tensor(step, device=device) / steps).clamp(0, 1)


# --- Gates that ended between 0 and 1, multiplied into the weights ------------------------------
# Voita et al. 2019: in the paper a gate is 0 or 1 at test time; in the authors' program it may lie
# between, and the model that is left still has it.


def pruned_by(subject: Subject, gates: Gates, keep: int | None = None) -> Subject:
    """The model without the closed heads, or with the `keep` most open gated ones.

    The heads that stay give as much as their gates let through at test time.
    """
    gone = gates.closed(keep)
    if len(gone) == len(subject.heads):
        raise UsageError(
            f"All {len(gone)} gates are closed, so that no head would be left; lower the price of "
            "open gates (--training price=, penalty=), or say how many heads to keep."
        )
    away, between = set(gone), {}
    if gates.convention == "code":  # elsewhere a gate is 0 or 1
        values = zip(gates.heads, gates.tested().tolist(), strict=True)
        between = {head: value for head, value in values if head not in away and value != 1}
    whole = _scaled(subject, between) if between else subject
    return prune(whole, gone) if gone else whole


def _scaled(subject: Subject, scales: dict[Head, float]) -> Subject:
    """A copy whose output projections hold the scales of the heads before them."""
    model = deepcopy(subject.model)
    done = set()
    with torch.no_grad():
        for site in subject.anatomy.sites:
            place = output_of(model, site)
            if place.name in done:
                continue  # one module that serves several layers
            done.add(place.name)
            each = torch.tensor([scales.get(head, 1.0) for head in site.names])[place.owner]
            weight = model.get_parameter(place.name)
            weight.mul_((each if place.axis else each[:, None]).to(weight))
    return replace(subject, model=model, notes=list(subject.notes))
