"""The pronouns of a batch as questions: which of two names does each of them look at more?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount.tallies.choices import DIRECTION, counted
from headcount.tallies.concord import PRONOUNS, Concord
from headcount.tallies.relation_counts import Ground, Small, Unit
from headcount.text.sentence import Sentence, Span
from headcount.text.words import Words

__all__ = ["PronounQuestions", "pronoun_questions"]

_GENDERS = {"f": "feminine", "m": "masculine", "n": "neuter"}


class _Choice(NamedTuple):
    """One pronoun; places are words of its row, those not there left out."""

    row: int
    gender: str
    pronoun: int
    right: list[int]
    wrong: list[int]
    baselines: list[bool]


@dataclass(frozen=True)
class PronounQuestions:
    """The pronouns of a batch and their two names, bool ``[question, word]``."""

    row: Tensor
    asked: Tensor
    right: Tensor
    wrong: Tensor
    cell: Tensor
    ground: Ground

    def hits(self, maps: Tensor) -> Small:
        """Pronouns that look more at the name that is meant, by cell and head."""
        weights = maps[self.row, :, self.asked]
        meant, other = (
            (weights * names[:, None].to(weights.dtype)).sum(-1)
            for names in (self.right, self.wrong)
        )
        return counted(self.cell, meant > other, len(self.ground.labels))


def pronoun_questions(words: Words, units: Sequence[Unit], *, causal: bool) -> PronounQuestions:
    """The pronoun of each text that has one to ask about."""
    there = words.there.cpu().numpy()
    asked = [
        question
        for row, sentence in enumerate(words.sentences)
        if sentence is not None
        for question in _questions(row, sentence, there[row], causal)
    ]
    return _laid_out(asked, int(there.sum(1).max(initial=0)), units, words.there.device)


def _questions(
    row: int, sentence: Sentence, there: NDArray[np.bool_], causal: bool
) -> Iterator[_Choice]:
    """The question of a text, if it has one: all its words are there, one name is meant."""
    found = _spans(sentence)
    if found is None:
        return
    pronoun, names, meant = found
    words = [pronoun, *(place for name in names for place in _within(name))]
    if not all(0 <= word < len(there) and there[word] for word in words):
        return
    if causal and max(words[1:]) > pronoun:
        return
    place = np.cumsum(there) - 1
    right, wrong = (place[list(_within(names[number]))].tolist() for number in (meant, 1 - meant))
    far = [min(abs(pronoun - name.first), abs(pronoun - name.last)) for name in names]
    baselines = [int(far[1] < far[0]) == meant, meant == 0]
    gender = _gender((sentence.words or ())[pronoun].form)
    yield _Choice(row, gender, int(place[pronoun]), right, wrong, baselines)


def _gender(form: str) -> str:
    known = PRONOUNS.get(form.lower(), Concord()).gender
    return _GENDERS.get(known or "", "other")


def _spans(sentence: Sentence) -> tuple[int, list[Span], int] | None:
    """The pronoun's word, the two names in their order, and which of them is meant."""
    told = sentence.comments
    if not {"pronoun", "A", "B", "A-coref", "B-coref"} <= set(told):
        return None
    meant = [told[f"{name}-coref"].upper() == "TRUE" for name in ("A", "B")]
    starts = {span.first: span for cluster in sentence.clusters for span in cluster}
    places = [int(told[name]) for name in ("A", "B")]
    if sum(meant) != 1 or not all(place in starts for place in places):
        return None
    names = [starts[place] for place in places]
    right = names[meant.index(True)]
    names.sort()
    return int(told["pronoun"]), names, names.index(right)


def _within(span: Span) -> range:
    return range(span.first, span.last + 1)


def _laid_out(
    asked: Sequence[_Choice],
    width: int,
    units: Sequence[Unit],
    device: torch.device,
) -> PronounQuestions:
    """The questions as tensors, and the cells they are counted in."""
    keys = [(choice.row, choice.gender) for choice in asked]
    cells = sorted(set(keys))
    cell = torch.tensor([cells.index(key) for key in keys], dtype=torch.long)
    hits = torch.tensor([choice.baselines for choice in asked], dtype=torch.bool).reshape(-1, 2)
    ground = Ground(
        units=tuple(units),
        unit=np.array([row for row, _ in cells], dtype=np.int16),
        labels=tuple(gender for _, gender in cells),
        arcs={DIRECTION: counted(cell, torch.ones(len(asked)), len(cells))},
        offsets={DIRECTION: counted(cell, hits, len(cells))},
    )
    right, wrong = (torch.zeros(len(asked), width, dtype=torch.bool) for _ in range(2))
    for number, choice in enumerate(asked):
        right[number, choice.right] = True
        wrong[number, choice.wrong] = True
    places = ([choice.row for choice in asked], [choice.pronoun for choice in asked])
    row, pronoun = (torch.tensor(part, dtype=torch.long, device=device) for part in places)
    return PronounQuestions(
        row, pronoun, right.to(device), wrong.to(device), cell.to(device), ground
    )
