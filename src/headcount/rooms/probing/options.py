"""How a probe learns, as a value that library and command line share; nothing heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from headcount.records import WorkOptions, option

_training = partial(option, panel="Training", key_of="training")


@dataclass(frozen=True)
class ProbeOptions(WorkOptions):
    """How a probe learns; None for what `convention` says.

    >>> ProbeOptions(epochs=3).seeds
    1
    """

    seeds: int = _training(
        1, "N", "Train so often, with seeds counting up; the first is kept.", least=1
    )
    learning_rate: float | None = _training(None, "X", "Adam's step.")
    epochs: int | None = _training(None, "N", "Passes over the treebank.", least=1)
    train_batch: int | None = _training(None, "N", "Sentences per training step.", least=1)
    word_rows: Literal["mean", "first", "max"] | None = _training(
        None,
        "HOW",
        "How the rows of a word's pieces become one: mean, first or max; by default what "
        "--convention says.",
        choices=("mean", "first", "max"),
        reads=str,
    )


def old_rate(known: dict[str, Any], value: Any) -> str:
    """Put the keyword `rate` of before where it belongs."""
    given = known.get("learning") or ProbeOptions()
    known["learning"] = replace(given, learning_rate=value)
    return "learning=hc.ProbeOptions(learning_rate=...)"
