"""Scores divided by the l2 norm of their layer (Molchanov et al. 2017, section 2.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from headcount import stats
from headcount.errors import UsageError
from headcount.importance.sweeps.interventions import ExampleRows, check_any_left, picked
from headcount.models import Site, Subject, subject_facts
from headcount.records import (
    Column,
    Engine,
    EngineOptions,
    Head,
    HeadTable,
    Journal,
    Ledger,
    Piece,
    Steps,
    Worker,
    engine_of,
    provenance,
    working,
)
from headcount.stats import Floats, Interval
from headcount.tasks import Task
from headcount.text import Batch

#: The question that scores answer, in the table's menus.
GROUP = "How much it matters"

# --- Work that goes batch by batch, each batch a unit of the journal ----------------------------

Arrays = dict[str, np.ndarray]


Measure = Callable[[Batch], Arrays]
#: Some rows of a batch and what was measured on them: all of it, unless an example was set aside.
Measured = list[tuple[list[int], Arrays]]


@dataclass
class BatchWork:
    """A measure taken batch by batch, here or on an engine."""

    name: str
    subject: Subject
    #: Makes the measure of a model, within the block.
    opened: Callable[[Subject], AbstractContextManager[Measure]]
    total: int
    settings: Mapping[str, Any]
    journal: Journal | None = None
    engine: Engine | EngineOptions | str | None = None
    #: Examples that the model breaks on, with a sentence each.
    set_aside: dict[int, str] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)
    _steps: Steps = field(default_factory=Steps)

    def walk(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Arrays]]:
        """Each batch with what was measured on it, now or before the work was broken off.

        The batches must be the same every time: other `settings` than those of the journal are
        refused. Units are called by the score and the batch's number: "gradient 0". Close the
        walk where it is broken off: nothing may stay on the model.
        """
        done = Ledger(self.journal, self.name)
        done.begin(self.settings)
        where, turn, numbered = engine_of(self.engine), 0, enumerate(batches)
        kept: dict[int, Batch] = {}

        def pieces(first: dict[int, Batch]) -> Iterator[Piece]:
            for number, batch in chain(first.items(), numbered):
                kept[number] = batch
                if str(number) not in done:
                    yield Piece(number, ExampleRows(batch, range(len(batch))))

        def ready() -> Iterator[tuple[Batch, Arrays]]:
            nonlocal turn
            while turn in kept and str(turn) in done:
                yield from self._told(kept.pop(turn), **done[str(turn)])
                turn += 1

        with working(f"Scoring by {self.name}", self.total) as self._steps:
            for number, batch in numbered:
                kept[number] = batch
                if str(number) not in done:
                    break
                yield from ready()
            make = partial(_measuring, where.pack(self.subject), self.opened)
            with closing(where.run(make, pieces(dict(kept)))) as answers:  # type: ignore[type-var]
                for answer in answers:
                    rows = [
                        (list(range(start, start + count)), arrays)
                        for start, count, arrays in answer.results
                    ]
                    aside = {str(lost.place): lost.why for lost in answer.lost}
                    done[str(answer.number)] = {"rows": rows, "set_aside": aside}
                    yield from ready()
            yield from ready()

    def _told(
        self, batch: Batch, rows: Measured, set_aside: Mapping[str, str]
    ) -> Iterator[tuple[Batch, Arrays]]:
        """What a batch came to, in its turn."""
        for row, why in set_aside.items():
            example = batch.index[int(row)]
            self.set_aside[example] = f"Example {example + 1} was set aside: {why}"
        self._seen.update(batch.index)
        self._steps.to(len(self._seen))
        for some, arrays in rows:
            yield picked(batch, some), arrays


@contextmanager
def _measuring(
    subject_of: Callable[[], Subject],
    opened: Callable[[Subject], AbstractContextManager[Measure]],
) -> Iterator[Worker]:
    """Holds the model, and measures batches."""
    with opened(subject_of()) as measure:

        def work(part: Any) -> Arrays:
            return measure(picked(part.of, part.rows))

        yield work


# --- Ctrl-C in the middle of a score: what was measured so far goes along -----------------------


class Interrupted(KeyboardInterrupt):
    """The user broke a score off; `table` holds what there is, and its notes say how much.

    >>> from headcount.records.heads import Head
    >>> table = HeadTable.of([Head("enc", 0, 0)], {"gradient": [0.5]})
    >>> Interrupted(table).table.names
    ['gradient']
    """

    def __init__(self, table: HeadTable, message: str = "") -> None:
        super().__init__(message)
        self.table = table


# --- Where a score comes from: the model, the task, and how it was asked ------------------------


def origin(
    subject: Subject,
    task: Task,
    *,
    convention: str = "headcount",
    seed: int | None = None,
    settings: dict[str, Any] | None = None,
    remarks: Sequence[str] = (),
    examples: int | None = None,
) -> dict[str, Any]:
    """A score's provenance, in the words of `headcount.records.provenance`.

    `examples` were used; by default all of the task's.
    """
    return provenance.collect(
        **subject_facts(subject),
        task=task.describe(),
        corpus=task.name,
        data=task.hash,
        convention=convention,
        seed=seed,
        settings=settings or {},
        counts={"examples": len(task) if examples is None else examples},
        remarks=list(remarks),
    )


# --- What every example adds to each head's score -----------------------------------------------


class ExampleSums:
    """A ratio of sums for each head, Σx / Σn over examples; rows of one example add up first.

    >>> sums = ExampleSums()
    >>> sums.add([0, 1, 1], np.array([[3.0], [-2.0], [1.0]]), np.array([[1.0], [1.0], [0.0]]))
    >>> sums.interval(absolute=True).value.tolist()
    [2.0]
    """

    def __init__(self) -> None:
        self._index: list[int] = []
        self._x: list[np.ndarray] = []
        self._n: list[np.ndarray] = []

    def add(self, index: Sequence[int], x: np.ndarray, n: np.ndarray) -> None:
        """Add a batch, ``[row, head]`` twice; `index` says which example each row belongs to."""
        self._index += index
        self._x.append(x)
        self._n.append(np.broadcast_to(n, x.shape))

    def statistics(self, absolute: bool) -> Floats:
        """x and n of each example, ``[example, head, 2]``; `absolute` drops the sign of x."""
        _, place = np.unique(self._index, return_inverse=True)
        parts = []
        for rows in (self._x, self._n):
            added = np.zeros((place.max() + 1, rows[0].shape[1]))
            np.add.at(added, place, np.concatenate(rows))
            parts.append(added)
        return np.stack([np.abs(parts[0]) if absolute else parts[0], parts[1]], axis=-1)

    def interval(self, absolute: bool) -> Interval:
        """The score of each head with its 95% interval; scores are never below 0."""
        both = self.statistics(absolute)
        x, n = both[..., 0], both[..., 1]
        xs, ns, xx, xn, nn = (part.sum(axis=0) for part in (x, n, x * x, x * n, n * n))
        return stats.ratio_interval(xs, ns, xx, xn, nn, len(both), bounds=(0, np.inf))


# --- A score under way --------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoreOptions:
    """What every score is computed with."""

    convention: str = "headcount"
    batch_size: int = 16
    seed: int | None = None
    journal: Journal | None = None
    engine: Engine | EngineOptions | str | None = None
    #: Those options of `hc.score` that are this score's own: `Score.takes`.
    own: Mapping[str, Any] = field(default_factory=dict)

    def shared(self, *names: str) -> dict[str, Any]:
        """Some of these by name, with the score's own."""
        return {name: getattr(self, name) for name in names} | dict(self.own)


class Score:
    """A measure of how much heads matter to a task: a name, what it takes, and how it is computed.

    Higher is more important. It comes in through the registry (`headcount.plugins`).

    >>> class Size(Score):
    ...     column = Column("size", meaning="The size of a head.", more="larger")
    ...     def compute(self, subject, task, options):
    ...         sizes = [float(s.head_dim) for s in subject.anatomy.sites for _ in range(s.heads)]
    ...         return HeadTable.of(subject.heads, {"size": sizes}, [self.column])
    >>> Size().filled({})
    'size'
    """

    #: The column that it fills; its name is what the score is asked for by.
    column: ClassVar[Column]
    #: The keywords of `hc.score` that are its own.
    takes: ClassVar[tuple[str, ...]] = ()
    #: Its words of `per`, of which several scores have some.
    per: ClassVar[tuple[str, ...]] = ()

    def filled(self, own: Mapping[str, Any]) -> str:
        """The column that is filled under these options of its own."""
        return self.column.name

    def compute(self, subject: Subject, task: Task, options: ScoreOptions) -> HeadTable:
        """The table with the column, a value for every head."""
        raise UsageError(f"The score {type(self).__name__} has no compute(); write one.")


@dataclass
class ScoreWork(ABC):
    """The running sums of a score that is measured batch by batch."""

    subject: Subject
    task: Task
    convention: str
    sums: ExampleSums = field(default_factory=ExampleSums, init=False)
    seen: set[int] = field(default_factory=set, init=False)
    set_aside: dict[int, str] = field(default_factory=dict, init=False)

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """How it is measured, as provenance and journal keep it."""

    @abstractmethod
    def add(self, number: int, batch: Batch, found: Arrays) -> None:
        """Take in one batch."""

    @abstractmethod
    def table(self) -> HeadTable:
        """What has been found so far."""

    def run(self, done: BatchWork, batches: Iterable[Batch]) -> HeadTable:
        """Measure all batches; Ctrl-C gives what was found until then."""
        self.set_aside = done.set_aside
        try:
            with closing(done.walk(batches)) as walk:  # type: ignore[type-var]
                for number, (batch, found) in enumerate(walk):
                    self.add(number, batch, found)
        except KeyboardInterrupt as stop:
            raise (Interrupted(self.table()) if self.seen else stop) from None
        check_any_left(self.seen, self.set_aside, self.task)
        return self.table()

    def column_table(
        self,
        column: Column,
        found: Sequence[Floats],
        remarks: Sequence[str] = (),
        notes: Sequence[str] = (),
        **more: Any,
    ) -> HeadTable:
        """The table of one column, from its values and the ends of their intervals."""
        name, wanted = column.name, len(self.task) - len(self.set_aside)
        parts = [*notes]
        if len(self.seen) < wanted:
            parts.append(f"interrupted after {len(self.seen):,} of {wanted:,} examples")
        value, low, high = ({name: part} for part in found)
        about = origin(
            self.subject,
            self.task,
            convention=self.convention,
            settings=self.settings,
            examples=len(self.seen),
            remarks=[*remarks, *self.set_aside.values()],
        )
        told = {name: "; ".join(parts)} if parts else {}
        heads = self.subject.heads
        return HeadTable.of(
            heads, value, [column], low=low, high=high, notes=told, provenance=about, **more
        )


# --- How many tokens a score per token is divided by, for every example and head ----------------


def real_tokens(stack: str, batch: Batch) -> Tensor:
    """Which positions of a stack's queries are tokens, `[row, query]`."""
    side = batch.query(stack)
    if side is None:
        raise UsageError(
            f"per='token' needs to know which positions of {stack} are tokens, and this task does "
            "not say; use per='example'."
        )
    return side.real


def token_counts(subject: Subject, batch: Batch) -> np.ndarray:
    """The tokens that ask in each head's stack, ``[example, head]``."""
    return tokens_by_head(subject, batch, lambda site, real: real.sum(1))


def tokens_by_head(
    subject: Subject, batch: Batch, count: Callable[[Site, Tensor], Tensor]
) -> np.ndarray:
    """A count of each row, added up over the rows of an example, for every head of every site."""
    columns = []
    for site in subject.anatomy.sites:
        rows = count(site, real_tokens(site.stack, batch))
        examples = rows.view(len(batch), -1).sum(1)
        columns.append(examples[:, None].expand(-1, site.heads))
    return torch.cat(columns, dim=1).cpu().numpy()


# --- Scores divided by the l2 norm of their layer (Molchanov et al. 2017 ------------------------


def over_layer_norm(heads: Sequence[Head], value: Floats, *bounds: Floats) -> tuple[Floats, ...]:
    """Each head's score over the l2 norm of its layer's scores; bounds over the same norm.

    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1), Head("enc", 1, 0)]
    >>> over_layer_norm(heads, np.array([3.0, 4.0, 2.0]))[0].tolist()
    [0.6, 0.8, 1.0]
    """
    layers = [(head.stack, head.layer) for head in heads]
    norms = {
        layer: np.linalg.norm(value[[place == layer for place in layers]]) for layer in set(layers)
    }
    # A layer of zeros stays one; Michel et al.'s program adds the same small number.
    norm = np.array([norms[layer] for layer in layers]) + 1e-20
    return tuple(part / norm for part in (value, *bounds))
