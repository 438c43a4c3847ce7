"""Scores divided by the l2 norm of their layer (Molchanov et al. 2017, section 2.2)."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount import stats
from headcount.errors import HeadcountError, ModelError, UsageError
from headcount.importance.sweeps.interventions import one_by_one, picked
from headcount.models import Site, Subject, carried, subject_facts
from headcount.records import (
    Column,
    Engine,
    EngineOptions,
    Head,
    HeadTable,
    Journal,
    JournaledCounts,
    MakeWorker,
    Piece,
    Progress,
    Worker,
    engine_of,
    provenance,
)
from headcount.stats import Floats, Interval
from headcount.tasks import Task
from headcount.text import Batch

# --- Work that goes batch by batch, each batch a unit of the journal ----------------------------

Arrays = dict[str, np.ndarray]


Measure = Callable[[Batch], Arrays]
#: Some rows of a batch and what was measured on them: all of it, unless an example was set aside.
Measured = list[tuple[list[int], Arrays]]


@dataclass
class BatchWork:
    """What goes batch by batch: the same measure on all of them, here or on an engine."""

    name: str
    subject: Subject
    #: Makes the measure of a model, within the block.
    opened: Callable[[Subject], AbstractContextManager[Measure]]
    total: int
    settings: Mapping[str, Any]
    journal: Journal | None = None
    engine: Engine | EngineOptions | str | None = None
    progress: Progress | None = None
    #: Examples that the model breaks on, with a sentence each.
    set_aside: dict[int, str] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    def walk(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Arrays]]:
        """Each batch with what was measured on it, now or before the work was broken off.

        The batches must be the same every time: other `settings` than those of the journal are
        refused. Units are called by the score and the batch's number: "gradient 0". Close the
        walk where it is broken off: nothing may stay on the model.
        """
        JournaledCounts(self.journal, self.name).begin(self.settings)
        where = engine_of(self.engine)
        numbered: Iterator[tuple[int, Batch]] = enumerate(batches)
        kept: dict[int, Batch] = {}
        turn = 0

        def left() -> Iterator[Piece]:
            for number, batch in numbered:
                kept[number] = batch
                if self._unit(number) not in self._done:
                    yield Piece(number, [batch])

        for number, batch in numbered:
            if self._unit(number) not in self._done:
                numbered = chain([(number, batch)], numbered)
                break
            yield from self._told(batch, _unpacked(self._done[self._unit(number)], len(batch)))
            turn = number + 1
        make = partial(_measuring, carried(self.subject, where), self.opened)
        found: dict[int, tuple[Measured, dict[int, str]]] = {}
        lost: dict[int, str] = {}

        def ready() -> Iterator[tuple[Batch, Arrays]]:
            nonlocal turn
            while turn in kept and (turn in found or self._unit(turn) in self._done):
                batch = kept.pop(turn)
                if turn not in found:
                    found[turn] = _unpacked(self._done[self._unit(turn)], len(batch))
                yield from self._told(batch, found.pop(turn))
                turn += 1

        with closing(where.run(make, left())) as answers:  # type: ignore[type-var]
            for answer in answers:
                if answer.lost:
                    lost[answer.number] = answer.lost[0].why
                    continue
                batch = kept[answer.number]
                found[answer.number] = self._kept(answer.number, answer.results[0][2], batch)
                yield from ready()
        for number, why in sorted(lost.items()):
            measured = self._survivors(where, make, kept[number], why)
            found[number] = self._kept(number, measured, kept[number])
        yield from ready()

    def _survivors(
        self, engine: Engine, make: MakeWorker, batch: Batch, why: str
    ) -> tuple[Measured, dict[int, str]]:
        """The rows of a batch that workers survive by themselves, and those that they do not."""
        rows = [Piece(row, [picked(batch, [row])]) for row in range(len(batch))]
        answers = sorted(engine.run(make, rows), key=lambda one: one.number)
        aside = {one.number: one.lost[0].why for one in answers if one.lost}
        if not aside or len(aside) == len(batch):
            numbers = ", ".join(str(number + 1) for number in batch.index)
            raise ModelError(
                f"No worker survives the batch of the examples {numbers} ({why}); leave the one to "
                "blame out. The rest is safe."
            )
        sound = [one for one in answers if not one.lost]
        return [([one.number], one.results[0][2][0][0][1]) for one in sound], aside

    def _told(
        self, batch: Batch, found: tuple[Measured, dict[int, str]]
    ) -> Iterator[tuple[Batch, Arrays]]:
        """What a batch came to, in its turn."""
        measured, aside = found
        for row, why in aside.items():
            example = batch.index[row]
            self.set_aside[example] = f"Example {example + 1} was set aside: {why}"
        self._seen.update(batch.index)
        if self.progress is not None:
            self.progress(len(self._seen), self.total)
        for rows, arrays in measured:
            yield (batch if len(rows) == len(batch) else picked(batch, rows)), arrays

    @property
    def _done(self) -> Mapping[str, Any]:
        return {} if self.journal is None else self.journal.done

    def _unit(self, number: int) -> str:
        return f"{self.name} {number}"

    def _kept(
        self, number: int, found: tuple[Measured, dict[int, str]], batch: Batch
    ) -> tuple[Measured, dict[int, str]]:
        """What a batch came to, after it is on the disk."""
        if self.journal is None:
            return found
        self.journal.append(self._unit(number), _packed(*found))
        return _unpacked(self._done[self._unit(number)], len(batch))


@contextmanager
def _measuring(
    subject_of: Callable[[], Subject],
    opened: Callable[[Subject], AbstractContextManager[Measure]],
) -> Iterator[Worker]:
    """Holds the model, and measures batches; row by row where one of them breaks it."""
    with opened(subject_of()) as measure:

        def work(parts: Sequence[Batch]) -> tuple[Measured, dict[int, str]]:
            (batch,) = parts
            try:
                return [(list(range(len(batch))), measure(batch))], {}
            except HeadcountError:
                raise
            except Exception:
                found, aside = one_by_one(measure, batch)
                if not found or not aside:
                    raise  # no single example is to blame
                return [([row], arrays) for row, arrays in found], aside

        yield work


def _packed(measured: Measured, aside: Mapping[int, str]) -> dict[str, Any]:
    """A unit of the journal: the arrays, or where rows were set aside, those of each other row."""
    if not aside:
        ((_, arrays),) = measured
        return {key: array_to_text(array) for key, array in arrays.items()}
    texts = [
        (rows, {key: array_to_text(array) for key, array in arrays.items()})
        for rows, arrays in measured
    ]
    return {"rows": texts, "set_aside": {str(row): why for row, why in aside.items()}}


def _unpacked(unit: Any, size: int) -> tuple[Measured, dict[int, str]]:
    if "set_aside" not in unit:
        arrays = {key: array_from_text(text) for key, text in unit.items()}
        return [(list(range(size)), arrays)], {}
    measured = [
        (list(rows), {key: array_from_text(text) for key, text in arrays.items()})
        for rows, arrays in unit["rows"]
    ]
    return measured, {int(row): why for row, why in unit["set_aside"].items()}


def array_to_text(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON can hold it, bit by bit and a third the length of its digits.

    >>> array_to_text(np.array([1.0], dtype=np.float32))
    {'dtype': 'float32', 'shape': [1], 'base64': 'AACAPw=='}
    """
    raw = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    text = base64.b64encode(raw.tobytes()).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "base64": text}


def array_from_text(text: Mapping[str, Any]) -> np.ndarray:
    """The array that was packed.

    >>> array_from_text(array_to_text(np.arange(4).reshape(2, 2))).tolist()
    [[0, 1], [2, 3]]
    """
    kind = np.dtype(text["dtype"]).newbyteorder("<")
    flat = np.frombuffer(base64.b64decode(text["base64"]), dtype=kind)
    return flat.reshape(text["shape"])


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


@dataclass
class ScoreWork(ABC):
    """A score that goes batch by batch, under way: what its examples add up to."""

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
    return _by_head(subject, batch, lambda site, real: real.sum(1))


def michels_counts(subject: Subject, batch: Batch) -> np.ndarray:
    """What Michel et al.'s programs divide by, ``[example, head]``.

    For a classifier the tokens, but 1 an example in the last layer, where [CLS] alone has a
    gradient; for a translator the source's tokens, and all positions of the decoder, also padded.
    """
    last = max(site.layer for site in subject.anatomy.sites if site.stack == "enc")

    def count(site: Site, real: Tensor) -> Tensor:
        if site.stack != "enc":
            return torch.full_like(real[:, 0], real.shape[1], dtype=torch.long)
        by_example = subject.kind == "enc" and site.layer == last
        return real.any(1).long() if by_example else real.sum(1)

    return _by_head(subject, batch, count)


def _by_head(subject: Subject, batch: Batch, count: Callable[[Site, Tensor], Tensor]) -> np.ndarray:
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
