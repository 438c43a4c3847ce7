"""Scores divided by the l2 norm of their layer (Molchanov et al. 2017, section 2.2)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount import stats
from headcount.errors import UsageError
from headcount.models import Site, Subject
from headcount.records import Head, HeadTable, Journal, JournaledCounts, Progress, provenance
from headcount.stats import Floats, Interval
from headcount.tasks import Task
from headcount.text import Batch

# --- Work that goes batch by batch, each batch a unit of the journal ----------------------------

Arrays = dict[str, np.ndarray]


def by_batch(
    name: str,
    batches: Iterable[Batch],
    measure: Callable[[Batch], Arrays],
    total: int,
    settings: Mapping[str, Any],
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[Batch, Arrays]]:
    """Each batch with what was measured on it, now or before the work was broken off.

    The batches must be the same every time: other `settings` than those of the journal are
    refused. Units are called by the score and the batch's number: "gradient 0".
    """
    JournaledCounts(journal, name).begin(settings)
    seen: set[int] = set()
    for number, batch in enumerate(batches):
        unit = f"{name} {number}"
        if journal is None:
            found = measure(batch)
        else:
            if unit not in journal.done:
                journal.append(unit, {key: array_to_text(a) for key, a in measure(batch).items()})
            found = {key: array_from_text(text) for key, text in journal.done[unit].items()}
        seen.update(batch.index)
        if progress is not None:
            progress(len(seen), total)
        yield batch, found


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
) -> dict[str, Any]:
    """A score's provenance, in the words of `headcount.records.provenance`."""
    about = subject.describe()
    return provenance.collect(
        model=subject.name,
        revision=subject.revision,
        weights=about["weights_hash"],
        subject=about,
        task=task.describe(),
        corpus=task.name,
        data=task.hash,
        convention=convention,
        seed=seed,
        settings=settings or {},
        counts={"examples": len(task)},
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
