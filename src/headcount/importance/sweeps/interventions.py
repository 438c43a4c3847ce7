"""Who lends to whom: every example gets another one as its donor, whatever the batches are."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from headcount.errors import ModelError, UsageError
from headcount.models import Anatomy
from headcount.records import Head, check_heads, parse_heads
from headcount.tasks import Task
from headcount.text import Batch, Side

# --- An intervention ----------------------------------------------------------------------------

Mode = Literal["zero", "mean", "uniform", "resample"]
MODES: tuple[str, ...] = get_args(Mode)


def check_mode(mode: str) -> Mode:
    """The mode, if there is one of that name.

    >>> check_mode("shuffle")
    Traceback (most recent call last):
    headcount.errors.UsageError: There is no mode 'shuffle' of ablation; choose zero, mean, uniform
    or resample.
    """
    if mode not in MODES:
        raise UsageError(
            f"There is no mode '{mode}' of ablation; choose {', '.join(MODES[:-1])} or {MODES[-1]}."
        )
    return mode  # type: ignore[return-value]


@dataclass(frozen=True)
class Intervention:
    """Heads that are ablated together; none at all is the model as it is.

    >>> Intervention("enc.0.1,enc.0.0").heads
    (Head(stack='enc', layer=0, index=0), Head(stack='enc', layer=0, index=1))
    """

    heads: tuple[Head, ...]
    mode: Mode = "zero"
    #: What messages and journals call it, unlike any other of its sweep.
    name: str = field(default="")

    def __init__(
        self, heads: str | Iterable[str | Head], mode: Mode = "zero", name: str = ""
    ) -> None:
        """Take heads or their names, in any order."""
        chosen = tuple(sorted(set(parse_heads(heads))))
        object.__setattr__(self, "heads", chosen)
        object.__setattr__(self, "mode", check_mode(mode))
        object.__setattr__(self, "name", name or _name(chosen, mode))


def single_heads(anatomy: Anatomy, mode: Mode = "zero") -> list[Intervention]:
    """Every head alone (Michel et al. 2019, section 3.2)."""
    return [Intervention([head], mode) for head in anatomy.heads]


def others(anatomy: Anatomy, mode: Mode = "zero") -> list[Intervention]:
    """For every head, all others of its layer (Michel et al. 2019, section 3.3)."""
    return [
        Intervention([other for other in site.names if other != head], mode, f"all but {head}")
        for site in anatomy.sites
        for head in site.names
    ]


def whole_layers(anatomy: Anatomy, mode: Mode = "zero") -> list[Intervention]:
    """Every layer of every stack (Kovaleva et al. 2019, section 4.5)."""
    return [
        Intervention(site.names, mode, f"layer {site.stack}.{site.layer}") for site in anatomy.sites
    ]


def sets(
    named: Mapping[str, str | Iterable[str | Head]], mode: Mode = "zero"
) -> list[Intervention]:
    """Any sets of heads, by name.

    >>> [one.name for one in sets({"ends": "enc.0.0,enc.5.0"})]
    ['ends']
    """
    return [Intervention(heads, mode, name) for name, heads in named.items()]


def check_interventions(interventions: Sequence[Intervention], known: list[Head]) -> None:
    """Refuse heads that do not exist, and two interventions of one name."""
    if not interventions:
        raise UsageError("There is nothing to ablate; give one intervention or more.")
    for one in interventions:
        check_heads(one.heads, known)
    names = [one.name for one in interventions]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"Two interventions are called '{twice}'; give each a name of its own.")


def _name(heads: Sequence[Head], mode: Mode) -> str:
    words = ",".join(map(str, heads)) or "no heads"
    return words if mode == "zero" else f"{words} {mode}"


# --- Rows of batches ----------------------------------------------------------------------------


def rows_an_example(batch: Batch) -> int:
    """How many rows of the model's input an example has: two where pairs are compared."""
    rows = next((len(tensor) for tensor in batch.inputs.values()), len(batch.index))
    return rows // max(1, len(batch.index))


def repeat_batch(batch: Batch, copies: int) -> Batch:
    """A batch so many times over, one below the other.

    >>> repeat_batch(Batch({"input_ids": torch.tensor([[5], [6]])}, {}, [0, 1]), 2).index
    [0, 1, 0, 1]
    """
    if copies == 1:
        return batch
    places = list(range(len(batch))) * copies
    return picked(batch, places)


def picked(batch: Batch, places: Sequence[int]) -> Batch:
    """Some examples of a batch, in the order of their places; padding stays as it is."""
    if list(places) == list(range(len(batch))):
        return batch
    each = rows_an_example(batch)
    rows = [place * each + part for place in places for part in range(each)]

    def pick(values: Any) -> Any:
        at = rows if len(values) == len(batch) * each else places
        if isinstance(values, Tensor):
            return values[torch.tensor(at, device=values.device)]
        return [values[place] for place in at]

    return replace(
        batch,
        inputs={name: pick(tensor) for name, tensor in batch.inputs.items()},
        sides={name: _picked_side(side, pick) for name, side in batch.sides.items()},
        index=[batch.index[place] for place in places],
        window=pick(batch.window) if batch.window else [],
        labels=None if batch.labels is None else pick(batch.labels),
    )


@dataclass(frozen=True)
class ExampleRows(Sequence["ExampleRows"]):
    """Rows of a batch as the parts of a piece: an engine that cuts it cuts between examples.

    So the engine finds the example that the model breaks on, and all others count.

    >>> ExampleRows("batch 3", range(4))[2:].rows
    (2, 3)
    """

    #: What they are rows of.
    of: Any
    rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: Any) -> Any:
        return ExampleRows(self.of, tuple(self.rows[which]))


def check_any_left(left: Sized, aside: Mapping[int, str], task: Task) -> None:
    """Refuse to continue without a single example."""
    if aside and not left:
        raise ModelError(f"No example of {task.name} can be measured. {next(iter(aside.values()))}")


def _picked_side(side: Side, pick: Callable[[Any], Any]) -> Side:
    """A side with some of its rows; words are not kept, since no task asks for them."""
    values = {field.name: getattr(side, field.name) for field in fields(side)}
    kept: dict[str, Any] = {
        name: pick(value) for name, value in values.items() if isinstance(value, Tensor | list)
    }
    return replace(side, words=None, **kept)


# --- Who lends to whom --------------------------------------------------------------------------


class Exchange:
    """A seeded ring of examples, each lending to the next; windows of long texts go in turn."""

    def __init__(self, batches: Sequence[Batch], seed: int) -> None:
        self._batches = batches
        #: Where each example lies: its batch and its place there, once for every window.
        self._places: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for number, batch in enumerate(batches):
            for place, example in enumerate(batch.index):
                self._places[example].append((number, place))
        for places in self._places.values():
            places.sort(key=self._window)
        self._donor = ring(sorted(self._places), seed)

    def lent(self, number: int, rows: Sequence[int]) -> list[tuple[Batch, list[int]]]:
        """The donors of some rows of a batch, and for each of their rows the row it is for."""
        chosen: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for place, row in enumerate(rows):
            example = self._batches[number].index[row]
            window = self._places[example].index((number, row))
            places = self._places[self._donor[example]]
            lender, at = places[window % len(places)]
            chosen[lender].append((at, place))
        return [self._batch(lender, pairs) for lender, pairs in chosen.items()]

    def _batch(self, lender: int, pairs: list[tuple[int, int]]) -> tuple[Batch, list[int]]:
        batch = self._batches[lender]
        each = rows_an_example(batch)
        rows = [place * each + part for _, place in pairs for part in range(each)]
        return picked(batch, [at for at, _ in pairs]), rows

    def _window(self, where: tuple[int, int]) -> int:
        batch, place = self._batches[where[0]], where[1]
        windows = batch.window[:: rows_an_example(batch)]
        return windows[place] if windows else 0


def ring(examples: Sequence[int], seed: int) -> dict[int, int]:
    """Each example's donor: the next in a random circle, so never the example itself.

    >>> ring([0, 1, 2], seed=0)
    {1: 2, 2: 0, 0: 1}
    """
    if len(examples) < 2:
        raise UsageError(
            "Resampling takes what a head gives on another example, and there is only one; give "
            "two examples or more, or use the mode zero or mean."
        )
    circle = random.Random(seed).sample(list(examples), len(examples))
    return dict(zip(circle, [*circle[1:], circle[0]], strict=True))
