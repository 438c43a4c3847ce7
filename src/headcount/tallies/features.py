"""How much each head looks at nouns, verbs, pronouns, subjects, objects, negation, [CLS], [SEP].

Kovaleva et al., EMNLP 2019, section 4.3: for every head, the attention that a feature's token gets
from all tokens divided by their number; the largest where there are several; averaged over the
texts that have one. And figure 7: the same for the row of [CLS] alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

import pandas as pd
import torch
from torch import Tensor

from headcount.columns import Column
from headcount.errors import UsageError
from headcount.models.site import Site
from headcount.tallies.choices import units_of
from headcount.tallies.feature import FEATURES, Feature
from headcount.tallies.feature_masks import FeatureMasks, feature_masks
from headcount.tallies.paired_means import Compared, PairedMeans, chosen_texts
from headcount.tallies.same_places import SamePlaces
from headcount.tallies.tally import CONVENTIONS, Reading
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = ["FROM_ALL", "FROM_FIRST", "Features"]

#: Whose attention is measured: every token's, or that of [CLS] alone.
FROM_ALL, FROM_FIRST = "all", "first"
_SEPARATOR = " from "
#: What attention to a kind of word is compared with, by convention; the code has nothing.
AGAINST = {"headcount": "any word in such a place", "paper": "as many random pieces"}

_NONE = "no text has words with such a tag or relation"


@dataclass
class Features:
    """Mean of the largest attention that a word of each kind gets, text by text.

    - `headcount`: attention to a word is the sum over its pieces; texts without the feature are
      left out. Compared is the mean over a text's words of the kind, with any words that stand
      alike in the text (see `standings`); a word that starts the text is not compared.
    - `paper`: a piece at a time; compared is the largest, with that of as many random pieces.
    - `code`: every piece of the text that is spelled like one of a feature's counts too, texts
      without the feature count as 0, but for negation: there a text is left out unless a
      negating word occurs in it, be it inside another ("nor" in "ignored").
    """

    convention: str = "headcount"
    features: Sequence[Feature] = FEATURES
    #: Whether the pieces of a word are added up or stand alone; by convention where None.
    pieces: Literal["sum", "each"] | None = None
    seed: int = 0
    means: PairedMeans = field(default_factory=PairedMeans, init=False, repr=False, compare=False)
    places: SamePlaces = field(default_factory=SamePlaces, init=False, repr=False, compare=False)

    needs = Needs(maps=True)

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if self.convention not in CONVENTIONS:
            raise UsageError(
                f"There is no convention '{self.convention}'; choose {', '.join(CONVENTIONS)}."
            )
        if self.pieces not in (None, "sum", "each"):
            raise UsageError(f"pieces is '{self.pieces}'; choose sum or each.")
        names = [feature.name for feature in self.features]
        if len(set(names)) < len(names) or {"first", "separator"} & set(names):
            raise UsageError(
                f"The features are {', '.join(names)}; give each its own name, other than first "
                "and separator."
            )
        self._silent: set[Site] = set()
        self._last: tuple[object, dict[str, FeatureMasks]] = (None, {})

    @property
    def columns(self) -> tuple[Column, ...]:
        """One column a feature, then [CLS] and [SEP]."""
        return tuple(_column(name) for name in self._names)

    @property
    def _names(self) -> list[str]:
        return [*(feature.name for feature in self.features), "first", "separator"]

    def update(self, sighting: Sighting) -> None:
        """Add what each text's features get; silent where the words are not known."""
        words = sighting.keys.words
        if words is None or not words.there.numel() or sighting.maps is None:
            self._silent.add(sighting.site)
            return
        masks = self._masks(sighting)
        for origin, received in _received(sighting).items():
            found = self._compared(received, masks, origin)
            names = [name + _SEPARATOR + origin for name in self._names]
            self.means.add(sighting.site, names, found, masks.chosen)
            if self.convention == "headcount":
                summed = received @ masks.pieces.transpose(1, 2)
                kinds = names[: len(self.features)]
                self.places.add(sighting.site, origin, kinds, summed, masks.kinds)

    def merge(self, other: Self) -> None:
        """Add the other's sums."""
        self.means.merge(other.means)
        self.places.merge(other.places)
        self._silent |= other._silent

    def compute(self) -> list[Reading]:
        """The mean over texts of attention from all tokens, a reading for each feature."""
        told = [self._read(site, name) for site in self.means for name in self._names]
        quiet = [site for site in self._silent if site not in set(self.means)]
        return told + [
            Reading.missing(_column(name).name, site, _NONE)
            for site in quiet
            for name in self._names
        ]

    def details(self) -> dict[str, pd.DataFrame]:
        """`features`: a row for each head, feature, origin (all tokens or [CLS]) and split."""
        if not any(self.means.questions(site) for site in self.means):
            return {}
        compared = {site: self.places.compared(site) for site in self.means}
        frame = self.means.beside(compared).frame("feature")
        parts = frame["feature"].str.partition(_SEPARATOR)
        against = AGAINST.get(self.convention)
        return {"features": frame.assign(feature=parts[0], origin=parts[2], against=against)}

    def _read(self, site: Site, name: str) -> Reading:
        column, question = _column(name).name, name + _SEPARATOR + FROM_ALL
        if question not in self.means.questions(site):
            return Reading.missing(column, site, _NONE)
        if self.means.broken(site):
            return Reading.broken(column, site)
        return Reading(column, site, *self.means.mean(site, question))

    @property
    def _summed(self) -> bool:
        return (self.pieces or ("sum" if self.convention == "headcount" else "each")) == "sum"

    def _masks(self, sighting: Sighting) -> FeatureMasks:
        """Which tokens and words have which feature; the same for every layer of a stack."""
        batch, made = self._last
        if batch is not sighting.batch:
            made = {}
            self._last = (sighting.batch, made)
        stack, words = sighting.site.stack, sighting.keys.words
        if stack not in made:
            assert words is not None
            units = units_of(words, sighting.batch.index)
            chosen = chosen_texts(units, words.there.device, self.seed)
            made[stack] = feature_masks(
                sighting.keys, self.features, code=self.convention == "code", summed=self._summed,
                chosen=chosen,
            )  # fmt: skip
        return made[stack]

    def _compared(self, received: Tensor, masks: FeatureMasks, origin: str) -> Compared:
        """What each feature gets; in the paper's way beside random places."""
        levels = [(masks.tokens, received)]
        if masks.words is not None:
            levels.insert(0, (masks.words, received @ masks.pieces.transpose(1, 2)))
        value = torch.cat([level.largest(weights) for level, weights in levels], dim=-1)
        asked = masks.asked if origin == FROM_ALL else masks.asked_from_first
        if self.convention != "paper":  # compared elsewhere, or not at all
            return Compared(value, asked, torch.zeros_like(value), torch.zeros_like(asked))
        baseline = torch.cat([level.drawn(weights) for level, weights in levels], dim=-1)
        known = torch.cat([level.known for level, _ in levels], dim=1)
        return Compared(value, asked, baseline, known)


def _received(sighting: Sighting) -> dict[str, Tensor]:
    """Attention that each key gets, ``[batch, head, key]``: the mean of all rows, and of [CLS]."""
    assert sighting.maps is not None
    rows = sighting.queries.real
    kept = sighting.maps.masked_fill(~rows[:, None, :, None], 0)
    mean = kept.sum(2) / rows.sum(-1).clamp_min(1)[:, None, None]
    if sighting.site.stack != "enc":
        return {FROM_ALL: mean}
    first = rows.int().argmax(-1)
    return {FROM_ALL: mean, FROM_FIRST: sighting.maps[torch.arange(len(first)), :, first]}


def _column(name: str) -> Column:
    article = "an" if name[0] in "aeiou" else "a"
    said = "the first token ([CLS])" if name == "first" else f"{article} {name}"
    return Column(
        f"to_{name}",
        title=f"To {name}",
        meaning=f"Mean attention that {said} gets, the largest where there are several.",
        paper="Kovaleva et al. 2019, section 4.3",
        range=(0, 1),
        group="What it looks at",
    )
