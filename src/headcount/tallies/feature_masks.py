"""Which tokens and words of a batch have which feature, by the rules of a convention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from headcount.tallies.feature import Feature
from headcount.tallies.random_words import expected_largest, largest_shares
from headcount.tallies.same_places import Kinds, kinds_of
from headcount.tallies.standings import compared_words, standings
from headcount.text.sentence import Sentence
from headcount.text.side import Side
from headcount.text.words import Words

__all__ = ["FeatureMasks", "Level", "feature_masks"]


@dataclass(frozen=True)
class Level:
    """Places of one kind, words or tokens: which have which feature."""

    #: Bool ``[batch, feature, place]``.
    places: Tensor
    #: The places that random words are drawn from, bool ``[batch, place]``.
    pool: Tensor

    def largest(self, weights: Tensor) -> Tensor:
        """The largest weight of each feature, ``[batch, head, feature]``; 0 where it is not."""
        hidden = weights[:, :, None].masked_fill(~self.places[:, None], -torch.inf).amax(-1)
        return torch.where(self.places.any(-1)[:, None], hidden, 0.0)

    def drawn(self, weights: Tensor) -> Tensor:
        """What the largest of as many random places would get, ``[batch, head, feature]``."""
        return expected_largest(weights, self.pool, self._shares)

    @cached_property
    def known(self) -> Tensor:
        """Whether a draw says anything: the feature's places all lie in the pool."""
        return (self._count > 0) & (self._count == self.places.sum(-1))

    @cached_property
    def _count(self) -> Tensor:
        return (self.places & self.pool[:, None]).sum(-1)

    @cached_property
    def _shares(self) -> Tensor:
        return largest_shares(self.pool, self._count)


@dataclass(frozen=True)
class FeatureMasks:
    """A batch's features, laid out once for all layers; the last two are [CLS] and [SEP]."""

    #: Features of words, where pieces are added up.
    words: Level | None
    #: [CLS] and [SEP], and in front of them the features where pieces stand alone.
    tokens: Level
    #: The tokens of each word, ``[batch, word, token]``, as numbers.
    pieces: Tensor
    #: Which texts count for a feature, bool ``[batch, feature]``.
    asked: Tensor
    #: Which texts have it, and a special token before them to ask from.
    asked_from_first: Tensor
    #: Which texts belong to the split `select`.
    chosen: Tensor
    #: The words of each feature by where they stand.
    kinds: Kinds


def feature_masks(
    keys: Side, features: Sequence[Feature], *, code: bool, summed: bool, chosen: Tensor
) -> FeatureMasks:
    """The masks of one side of a batch; `code` follows the authors' notebook."""
    words = keys.words
    assert words is not None
    of_words = _word_masks(words, features)
    of_tokens = _of_pieces(of_words, words.pieces)
    if code:
        of_tokens = _spelled_alike(keys, of_tokens)
    specials = _specials(keys)
    there = torch.cat([of_tokens, specials], dim=1).any(-1)
    known = torch.tensor([s is not None for s in words.sentences], device=keys.real.device)
    asked = _asked_in_code(words, features, there) if code else there
    levels = (of_words, specials) if summed else (None, torch.cat([of_tokens, specials], dim=1))
    return FeatureMasks(
        words=None if levels[0] is None else Level(levels[0], words.there),
        tokens=Level(levels[1], words.pieces.any(1)),
        pieces=words.pieces.to(torch.float32),
        asked=asked & known[:, None],
        asked_from_first=there & known[:, None] & specials[:, 0].any(-1, keepdim=True),
        chosen=chosen,
        kinds=_kinds(keys, of_words, known, chosen),
    )


def _kinds(keys: Side, of_words: Tensor, known: Tensor, chosen: Tensor) -> Kinds:
    """The words that are compared with words that stand alike."""
    words = keys.words
    assert words is not None
    stand = standings(words.there, words.pieces.sum(-1))
    return kinds_of(of_words, compared_words(keys) & known[:, None], stand, chosen)


def _specials(keys: Side) -> Tensor:
    """[CLS] and [SEP], bool ``[batch, 2, token]``; a first token of the text itself is no [CLS]."""
    first = keys.real & (keys.real.cumsum(-1) == 1) & keys.special
    return torch.stack([first, keys.separator & keys.real], dim=1)


def _word_masks(words: Words, features: Sequence[Feature]) -> Tensor:
    """Bool ``[batch, feature, word]``; a word that is not there has no feature."""
    found = torch.zeros(len(words), len(features), words.there.shape[1], dtype=torch.bool)
    for row, sentence in enumerate(words.sentences):
        for number, feature in enumerate(features if sentence is not None else ()):
            assert sentence is not None
            found[row, number, feature.places(sentence)] = True
    return found.to(words.there.device) & words.there[:, None]


def _of_pieces(words: Tensor, pieces: Tensor) -> Tensor:
    return (words.float() @ pieces.float()) > 0


def _spelled_alike(keys: Side, tokens: Tensor) -> Tensor:
    """Every token of a text that has the id of one of the feature's tokens.

    In the authors' notebook feature words are looked up among the pieces by their spelling.
    """
    alike = keys.ids[:, :, None] == keys.ids[:, None, :]
    alike &= (keys.real & ~keys.special)[:, :, None]
    return (tokens.float() @ alike.float().transpose(1, 2)) > 0


def _asked_in_code(words: Words, features: Sequence[Feature], there: Tensor) -> Tensor:
    """All texts count, without the feature as 0; for forms (negation) by a test of substrings."""
    asked = torch.ones(there.shape, dtype=torch.bool)
    for row, sentence in enumerate(words.sentences):
        for number, feature in enumerate(features if sentence is not None else ()):
            if feature.forms:
                assert sentence is not None
                asked[row, number] = _contains(sentence, feature)
    return asked.to(there.device)


def _contains(sentence: Sentence, feature: Feature) -> bool:
    text = sentence.text.lower()
    return any(form in text for form in feature.forms)
