"""The loss of every output word with heads switched off: one sweep, read place by place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from headcount import tasks
from headcount.errors import ModelError
from headcount.importance import Intervention, sweep
from headcount.models import Subject
from headcount.rooms.labels import MaskedLanguageModelling
from headcount.stats import Floats
from headcount.text import Batch, Item, Sentence, split_words

#: The sum of all losses; what is read is each of them.
LOSSES = tasks.Metric(
    "loss", ("losses",), lambda sums: sums.sum(axis=-1), higher_is_better=False, test="sign-flip"
)

# --- Tasks whose statistics are the losses of all places ------------------------------------------


def _by_place(answer: Tensor, batch: Batch, width: int) -> tasks.Marks:
    """The loss of each place of each row, and 0 where nothing is predicted, ``[row, place]``."""
    labels = tasks.labels_of(batch, answer)
    losses = cross_entropy(
        answer.float().flatten(0, 1), labels.flatten(), ignore_index=tasks.IGNORED, reduction="none"
    ).view_as(labels)
    found = np.zeros((len(labels), width))
    found[:, : labels.shape[1]] = losses.cpu().double().numpy()
    return tasks.Marks(found, [])


@dataclass(frozen=True, repr=False)
class _Translated(tasks.Translation):
    width: int = 0

    def mark(self, answer: Any, batch: Batch) -> tasks.Marks:
        """The loss of every target token."""
        return _by_place(answer, batch, self.width)


@dataclass(frozen=True, repr=False)
class _Continued(tasks.LanguageModelling):
    width: int = 0

    def mark(self, answer: Any, batch: Batch) -> tasks.Marks:
        """The loss of every token but the first."""
        return _by_place(answer, batch, self.width)


@dataclass(frozen=True, repr=False)
class _Hidden(MaskedLanguageModelling):
    """Each example hides the pieces of one word, which are predicted together."""

    width: int = 0
    #: The word that each example hides, counted from 0.
    places: tuple[int, ...] = ()

    def dress(self, batch: Batch, subject: Subject) -> Batch:
        """The batch with one word of each row behind the mask token."""
        side = batch.sides["source"]
        assert side.words is not None  # every example has words
        hidden = torch.stack(
            [side.words.pieces[row, self.places[index]] for row, index in enumerate(batch.index)]
        )
        labels = side.ids.masked_fill(~hidden, tasks.IGNORED)
        mask: Any = subject.tokenizer
        ids = side.ids.masked_fill(hidden, mask.mask_token_id)
        return replace(batch, inputs=batch.inputs | {"input_ids": ids}, labels=labels)

    def mark(self, answer: Any, batch: Batch) -> tasks.Marks:
        """The loss of the hidden pieces."""
        return _by_place(answer, batch, self.width)


# --- Losses of words ------------------------------------------------------------------------------


#: The number of the end of a translation, which is predicted too.
END = -1


class Place(NamedTuple):
    """An output word: its item, its number there (-1 for the end), and its pieces as one text."""

    item: int
    word: int
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class WordLosses:
    """What every output word costs in nats, with the whole model and with each set of heads off."""

    words: tuple[Place, ...]
    #: ``[word]``.
    whole: Floats
    #: ``[intervention, word]``.
    off: Floats
    #: Names of the interventions, in their order.
    names: tuple[str, ...] = field(default=())
    #: Why examples were set aside, or why the long way was taken.
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"WordLosses({len(self.words)} words, {len(self.names)} interventions)"

    @property
    def added(self) -> Floats:
        """How much less likely each word becomes, in nats, ``[intervention, word]``."""
        return np.asarray(self.off - self.whole)


def word_losses(
    subject: Subject,
    items: Sequence[Item],
    interventions: Sequence[Intervention],
    *,
    batch_size: int = 16,
) -> WordLosses:
    """The loss of every output word of items under every intervention.

    Translators are given pairs and predict the target, decoders the text itself but for its first
    token, masked models each word in turn from all others. Words are those of a treebank where they
    are known, else runs of letters.
    """
    dressed = [_with_words(item) for item in items]
    task, of = _TASKS[subject.kind](dressed)
    words, columns = _places(task, of, subject, batch_size)
    found = sweep(subject, task, interventions, batch_size=batch_size, name="words")
    if len(found.baseline) != len(task):
        raise ModelError(" ".join(found.notes))

    def of_words(outcome: tasks.Outcome) -> Floats:
        return np.array([outcome.statistics[row, own].sum() for row, own in columns])

    names = tuple(one.name for one in interventions)
    off = np.stack([of_words(outcome) for outcome in found.outcomes])
    return WordLosses(tuple(words), of_words(found.baseline), off, names, found.notes)


def _with_words(item: Item) -> Item:
    if isinstance(item, Sentence):
        return item if item.words else replace(item, words=split_words(item.text))
    source, target = item.annotated
    target = target or Sentence(item.target, split_words(item.target))
    return replace(item, annotated=(source, target))


#: The item and the word that each example of a task is about; no word where it is about all.
_About = list[tuple[int, int | None]]
#: Places of the longest text that is read.
_WIDTH = 1024


def _translated(items: Sequence[Item]) -> tuple[tasks.Task, _About]:
    pairs: Any = tuple(items)
    task = _Translated(pairs, LOSSES, "sentences", width=_WIDTH)
    return task, [(number, None) for number in range(len(items))]


def _continued(items: Sequence[Item]) -> tuple[tasks.Task, _About]:
    texts: Any = tuple(items)
    task = _Continued(texts, LOSSES, "sentences", "truncate", width=_WIDTH)
    return task, [(number, None) for number in range(len(items))]


def _hidden(items: Sequence[Item]) -> tuple[tasks.Task, _About]:
    """An example for each word that is hidden in an item."""
    about = [
        (number, word)
        for number, item in enumerate(items)
        for word in range(len(getattr(item, "words", None) or ()))
    ]
    copies: Any = tuple(items[number] for number, _ in about)
    places = tuple(word for _, word in about)
    task = _Hidden(copies, LOSSES, "sentences", long="truncate", width=_WIDTH, places=places)
    return task, list(about)


_TASKS = {"enc-dec": _translated, "dec": _continued, "enc": _hidden}


def _places(
    task: tasks.Task, about: _About, subject: Subject, batch_size: int
) -> tuple[list[Place], list[tuple[int, NDArray[np.intp]]]]:
    """The output words, and for each its example and the columns of its pieces' losses."""
    task.check(subject)
    found: list[tuple[Place, int, NDArray[np.intp]]] = []
    for batch in task.encode(subject, batch_size):
        side = batch.sides["target" if "target" in batch.sides else "source"]
        if side.words is None:
            raise ModelError(
                f"The tokenizer of {subject.name} does not give the places of its tokens in "
                "the text, so words cannot be found."
            )
        pieces, real = side.words.pieces.cpu().numpy(), side.real.cpu().numpy()
        for row, example in enumerate(batch.index):
            item, only = about[example]
            sentence = side.words.sentences[row]
            forms = [word.form for word in sentence.words or ()] if sentence else []
            for word in np.flatnonzero(side.words.there[row].cpu().numpy()):
                places = np.flatnonzero(pieces[row, word])
                if only is None:
                    places = places[places > 0] - 1  # a token is predicted one place before
                if len(places) and only in (None, word):
                    found.append((Place(item, int(word), forms[word]), example, places))
            if subject.kind == "enc-dec":
                end = np.array([int(real[row].sum()) - 1])
                found.append((Place(item, END, "(end)"), example, end))
    found.sort(key=lambda one: (one[0].item, one[0].word == END, one[0].word))
    return [place for place, _, _ in found], [(row, own) for _, row, own in found]
