"""Work that goes batch by batch, each batch a unit of the journal: a killed score goes on."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from headcount.journal import Journal
from headcount.progress import Progress
from headcount.sweeps.ledger import Ledger
from headcount.text.batch import Batch

__all__ = ["Arrays", "by_batch"]

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
    Ledger(journal, name).begin(settings)
    seen: set[int] = set()
    for number, batch in enumerate(batches):
        unit = f"{name} {number}"
        if journal is None:
            found = measure(batch)
        else:
            if unit not in journal.done:
                journal.append(unit, {key: packed(a) for key, a in measure(batch).items()})
            found = {key: unpacked(text) for key, text in journal.done[unit].items()}
        seen.update(batch.index)
        if progress is not None:
            progress(len(seen), total)
        yield batch, found


def packed(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON can hold it, bit by bit and a third the length of its digits.

    >>> packed(np.array([1.0], dtype=np.float32))
    {'dtype': 'float32', 'shape': [1], 'base64': 'AACAPw=='}
    """
    raw = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    text = base64.b64encode(raw.tobytes()).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "base64": text}


def unpacked(text: Mapping[str, Any]) -> np.ndarray:
    """The array that was packed.

    >>> unpacked(packed(np.arange(4).reshape(2, 2))).tolist()
    [[0, 1], [2, 3]]
    """
    kind = np.dtype(text["dtype"]).newbyteorder("<")
    flat = np.frombuffer(base64.b64decode(text["base64"]), dtype=kind)
    return flat.reshape(text["shape"])
