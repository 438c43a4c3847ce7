"""The rarest tokens of each sentence, as thresholds on frequency that every query can be held to.

A head points to the rarest token when the frequency of the token it points to is at most the
smallest one in sight: so ties count, and one threshold a query is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headcount.tallies.frequencies import Frequencies
from headcount.text.side import Side

__all__ = ["Rarest", "known_frequencies", "rarest"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rarest:
    """What counts as a hit, `[batch, place]`: after each key has come into sight.

    A causal query at place i sees the keys up to i; where all keys are in sight, the last
    place holds for every query.
    """

    #: The smallest frequency in sight, and that of the second rarest form.
    one: Floats
    two: Floats
    #: Whether the rarest form in sight is uncommon.
    eligible: NDArray[np.bool_]
    #: The chance that a pick among all keys in sight hits, for each of the two.
    chance_one: Floats
    chance_two: Floats
    #: The chance that a pick among the uncommon tokens in sight hits.
    uncommon_one: Floats
    uncommon_two: Floats


def known_frequencies(
    side: Side, frequencies: Frequencies
) -> tuple[Floats, NDArray[np.int64]] | None:
    """The frequency of each token, infinite where it is none of the text, and a number a form.

    A token has the frequency of its word where words are counted, and punctuation has none; None
    where the words are not known.
    """
    frequency = np.full(side.real.shape, np.inf)
    forms = np.full(side.real.shape, -1)
    numbers: dict[str, int] = {}
    if frequencies.by == "word" and side.words is None:
        return None
    for row in range(len(side)):
        for place, form in _forms(side, row, frequencies.by):
            found = frequencies.of(form)
            if found < frequency[row, place]:  # a token of two words has the rarer one's
                frequency[row, place] = found
                forms[row, place] = numbers.setdefault(form, len(numbers))
    return frequency, forms


def rarest(
    frequency: Floats, forms: NDArray[np.int64], keys: NDArray[np.bool_], border: float
) -> Rarest:
    """Go through the places of all rows side by side and keep the two smallest frequencies.

    >>> found = rarest(np.array([[9.0, 2, 5]]), np.array([[0, 1, 2]]), np.ones((1, 3)) > 0, 4)
    >>> found.one.tolist(), found.two.tolist(), found.eligible.tolist()
    ([[9.0, 2.0, 2.0]], [[9.0, 9.0, 5.0]], [[False, True, True]])
    """
    so_far, new = _Smallest(len(frequency)), _first_times(forms)
    told = []
    for place in range(frequency.shape[1]):
        so_far.take(frequency[:, place], new[:, place])
        told.append(so_far.told())
    one, two, hits_one, hits_two = np.stack(told, axis=-1)
    in_sight = np.maximum(keys.cumsum(-1), 1)
    uncommon = (frequency <= border).cumsum(-1)
    return Rarest(
        one=one,
        two=two,
        eligible=one <= border,
        chance_one=hits_one / in_sight,
        chance_two=hits_two / in_sight,
        uncommon_one=hits_one / np.maximum(uncommon, 1),
        # Where the second rarest form is a common one, every uncommon token is a hit.
        uncommon_two=np.minimum(hits_two, uncommon) / np.maximum(uncommon, 1),
    )


class _Smallest:
    """The two smallest frequencies so far, and how many tokens have each, for every row."""

    def __init__(self, rows: int) -> None:
        self.first, self.second = np.full(rows, np.inf), np.full(rows, np.inf)
        self.of_first, self.of_second = np.zeros(rows), np.zeros(rows)
        self.forms = np.zeros(rows)  # how many forms share the smallest frequency

    def take(self, frequency: Floats, new: NDArray[np.bool_]) -> None:
        """One more place of every row; infinite where there is no token of the text."""
        there = np.isfinite(frequency)
        lower = frequency < self.first
        middle = (frequency > self.first) & (frequency < self.second)
        self.second = np.where(lower, self.first, np.where(middle, frequency, self.second))
        self.of_second = np.where(lower, self.of_first, np.where(middle, 0, self.of_second))
        self.first = np.where(lower, frequency, self.first)
        self.of_first, self.forms = (np.where(lower, 0, x) for x in (self.of_first, self.forms))
        self.of_first = self.of_first + (there & (frequency == self.first))
        self.of_second = self.of_second + (there & (frequency == self.second))
        self.forms = self.forms + (there & (frequency == self.first) & new)

    def told(self) -> list[Floats]:
        """The two thresholds, and how many tokens are at most so frequent."""
        further = (self.forms < 2) & np.isfinite(self.second)
        two = np.where(further, self.second, self.first)
        return [self.first, two, self.of_first, self.of_first + further * self.of_second]


def _first_times(forms: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where a form stands for the first time in its row."""
    new = np.zeros(forms.shape, dtype=bool)
    for row, own in enumerate(forms):
        new[row, np.unique(own, return_index=True)[1]] = True
    return new


def _forms(side: Side, row: int, by: str) -> Iterator[tuple[int, str]]:
    """Places of a row with the form that stands there; special tokens have none."""
    own = (side.real[row] & ~side.special[row]).cpu().numpy()
    if by == "token":
        places = np.flatnonzero(side.real[row].cpu().numpy())
        tokens = zip(places.tolist(), side.tokens[row], strict=True)
        yield from ((place, token) for place, token in tokens if own[place])
        return
    assert side.words is not None
    sentence = side.words.sentences[row]
    words = () if sentence is None else sentence.words or ()
    for number, place in side.words.pieces[row].nonzero().tolist():
        form = words[number].form.lower()
        if any(letter.isalnum() for letter in form):  # lists of words do not count signs
            yield place, form
