"""Interventions: which heads are ablated together, and rows of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from headcount import plugins, wiring
from headcount.errors import ModelError, UsageError
from headcount.models import Anatomy, Site, Subject
from headcount.records import Head, check_heads, parse_heads
from headcount.stats import Floats
from headcount.tasks import Custom, Task
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


# --- A way to run a task with heads ablated -------------------------------------------------------

# --- A way to run a task with heads ablated -----------------------------------------------------


@dataclass(frozen=True)
class Group:
    """Interventions that are run on a batch in one go, and journaled together."""

    name: str
    members: tuple[Intervention, ...]
    #: The first site that any of them touches, where that matters.
    site: Site | None = None


class LongWay:
    """Every ablation is a whole run; small batches are shared by several."""

    name = "long"
    #: Whether a run gives what later ones need, so that wholes and ablations go together.
    keeps = False

    def __init__(self, subject: Subject, task: Task, rows: int) -> None:
        self.subject = subject
        self.task = task
        #: How many examples a forward may have, all ablations together.
        self._rows = rows

    def groups(self, interventions: Sequence[Intervention], batch: Batch) -> list[Group]:
        """As many as fit into one run; a task of the caller's own runs the model itself."""
        size = 1 if isinstance(self.task, Custom) else max(1, self._rows // len(batch))
        return [
            Group(interventions[start].name, tuple(interventions[start : start + size]))
            for start in range(0, len(interventions), size)
        ]

    def whole(self, batch: Batch, instead: wiring.Instead) -> Floats:
        """One plain evaluation."""
        return marked(self.task, self.subject, batch, 1)[0]

    def prepare(self, batch: Batch, instead: wiring.Instead) -> None:
        """Nothing is needed for a run of its own."""

    def opened(self) -> AbstractContextManager[Any]:
        """Nothing hangs on the model between runs."""
        return nullcontext()

    def without(self, group: Group, batch: Batch, instead: wiring.Instead) -> Floats:
        """One evaluation of as many copies of the batch as there are ablations."""
        chosen = chosen_by(group.members, self.subject)
        copies = repeat_batch(batch, len(chosen))
        by_row = chosen[0]
        if len(chosen) > 1:
            rows = len(next(iter(copies.inputs.values())))
            by_row = chosen.repeat_interleave(rows // len(chosen), dim=0)
        with wiring.ablated(self.subject, by_row, instead):
            return marked(self.task, self.subject, copies, len(chosen), group.members)


def marked(
    task: Task, subject: Subject, batch: Batch, copies: int, members: Sequence[Intervention] = ()
) -> Floats:
    """What the metric counts in the model's answers, `[copy, row, column]`."""
    marks = task.mark(task.answer(subject, batch), batch)
    try:
        task.check_numbers(marks, batch, subject)
    except ModelError as error:
        if not members:
            raise
        names = ", ".join(one.name for one in members)
        raise ModelError(f"With heads ablated ({names}): {error}") from error
    return marks.statistics.reshape(copies, -1, marks.statistics.shape[1])


def chosen_by(members: Sequence[Intervention], subject: Subject) -> Tensor:
    """True for every head that an intervention ablates, `[intervention, head]`."""
    return torch.stack([wiring.chosen_heads(one.heads, subject.heads) for one in members])


# --- Which way a sweep goes ---------------------------------------------------------------------


def choose_way(
    subject: Subject, task: Task, trials: Iterable[Trial], *, rows: int, fast: bool
) -> tuple[LongWay, list[str]]:
    """The way, and a note why it is not the short one; it is tried on the first trial that runs.

    Where a model generates token by token, or a task runs the model itself, everything is run.
    """
    short = plugins.part("short way")
    if not fast or isinstance(task, Custom) or short is None:
        return LongWay(subject, task, rows), []
    way, why = short(subject, task, trials, rows)
    note = f"Every ablation ran the whole of {subject.name}: {why}."
    return (way, []) if way is not None else (LongWay(subject, task, rows), [note])


#: A few rows, and what makes their stand-in.
Trial = tuple[Batch, Callable[[], wiring.Instead]]
# --- Modes of ablation --------------------------------------------------------------------------

#: What stands in the place of heads: given a batch's number, some of its rows, and these alone.
StandIn = Callable[[int, Sequence[int], Batch], wiring.Instead]


def stand_in(mode: Mode, *how: Any) -> StandIn:
    """What stands in the place of heads, by the batch that is run; all but nothing is a room's."""
    if mode == "zero":
        return lambda *_: wiring.zero
    made: StandIn = plugins.get("parts", "stand-ins")(mode, *how)
    return made
