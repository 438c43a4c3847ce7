"""How much each head looks at nouns, verbs, pronouns, subjects, objects, negation, [CLS], [SEP].

Kovaleva et al., EMNLP 2019, section 4.3: for every head, the attention that a feature's token gets
from all tokens divided by their number; the largest where there are several; averaged over the
texts that have one. And figure 7: the same for the row of [CLS] alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Literal, Self

import pandas as pd
import torch
from torch import Tensor

from headcount.errors import UsageError, check_convention
from headcount.models import Site
from headcount.records import Column
from headcount.rooms.words import (
    FEATURES,
    Compared,
    Feature,
    LayerSums,
    MeansTally,
    chosen_texts,
    one_group,
    resample_units,
)
from headcount.stats import Floats
from headcount.surveys import BatchCache, TallyPlan
from headcount.text import Side, Words
from headcount.wiring import Needs, Sighting

#: Whose attention is measured: every token's, or that of [CLS] alone.
FROM_ALL, FROM_FIRST = "all", "first"

# --- Where a word stands ------------------------------------------------------------------------
# Attention falls off with distance, early words of a causal model are seen by more rows than late
# ones, and a word of three pieces is given the sum of three weights. What kind of word it is must
# not be taken for any of that, so words are compared with words of the same bin.

#: Words before, words after, pieces: each is counted up to the next of these.
_BEFORE, _AFTER, _PIECES = (0, 1, 2, 3, 5, 9), (0, 1, 2, 5, 10), (1, 2)

#: How many bins there are.
BINS = len(_BEFORE) * len(_AFTER) * len(_PIECES)


def position_bins(there: Tensor, pieces: Tensor) -> Tensor:
    """The bin of each word, ``[batch, word]``; `pieces` is how many tokens it has.

    >>> there = torch.tensor([[True, True, True, False]])
    >>> position_bins(there, torch.tensor([[1, 1, 3, 0]])).tolist()
    [[4, 12, 21, 0]]
    """
    before = there.cumsum(-1) - 1
    after = there.sum(-1, keepdim=True) - 1 - before
    found = torch.zeros_like(before)
    for count, edges in ((before, _BEFORE), (after, _AFTER), (pieces, _PIECES)):
        bounds = torch.tensor(edges[1:], device=there.device)
        found = found * len(edges) + torch.bucketize(count, bounds, right=True)
    return found.masked_fill(~there, 0)


def compared_words(keys: Side) -> Tensor:
    """The words that are compared, bool ``[batch, word]``: not one that starts the text.

    Where no special token stands before it, the first token is where heads rest, whatever it says.
    """
    assert keys.words is not None
    first = keys.real & (keys.real.cumsum(-1) == 1) & ~keys.special
    return keys.words.there & ~(keys.words.pieces & first[:, None]).any(-1)


# --- What words of a kind get, against any words of the same bins -------------------------------
# A text's figure is the mean of what its words of the kind get; its baseline the mean, over the
# same words, of what all words of the corpus get that are in the same bin. The baseline is known
# only when everything was seen, so sums are kept by bin: they give mean and spread of the
# differences between texts exactly, without a second pass.


@dataclass(frozen=True)
class Kinds:
    """A batch's words by kind and by bin, laid out once for all layers."""

    #: The bin of each word, ``[batch, word, bin]``; words that are not compared are in none.
    in_bin: Tensor
    #: A word's share in its text's mean for a kind, ``[batch, kind, word]``.
    share: Tensor
    #: The shares by bin, ``[batch, kind, bin]``.
    bins: Tensor
    #: Which texts have a kind, in each split, ``[batch, kind, split]``.
    split: Tensor

    @cached_property
    def shared(self) -> tuple[Tensor, ...]:
        """What the sums of all heads have in common: words, texts, bins and bins by bins."""
        split = self.split.permute(1, 2, 0)  # [kind, split, batch]
        bins = self.bins.transpose(0, 1)[:, None]  # [kind, 1, batch, bin]
        squares = (bins * split[..., None]).transpose(-1, -2) @ bins
        return self.in_bin.sum((0, 1)), split.sum(-1), split @ bins[:, 0], squares

    @cached_property
    def factors(self) -> Tensor:
        """A text's splits, and its bins in each of them, ``[kind, batch, split, 1 + bin]``."""
        bins = torch.nn.functional.pad(self.bins, (1, 0), value=1.0)
        return (self.split[..., None] * bins[:, :, None]).transpose(0, 1).contiguous()


def kinds_of(kinds: Tensor, compared: Tensor, bins: Tensor, chosen: Tensor) -> Kinds:
    """Lay out bool ``[batch, kind, word]``; `chosen` are the texts of the split `select`."""
    in_bin = torch.nn.functional.one_hot(bins, BINS).double() * compared[..., None]
    found = (kinds & compared[:, None]).double()
    share = found / found.sum(-1, keepdim=True).clamp_min(1)
    split = torch.stack([chosen, ~chosen], dim=1).double()
    there = (found.sum(-1) > 0).double()
    return Kinds(in_bin, share, share @ in_bin, there[..., None] * split[:, None])


class BinnedMeans(LayerSums):
    """Sums by site and item, and of all words by site and origin; they merge by addition.

    Layers wait by stack, origin and items, each with what its words get and which they are.
    """

    def __init__(self) -> None:
        super().__init__()
        #: Where the attention of each item comes from.
        self._origins: dict[str, str] = {}

    def add(
        self, site: Site, origin: str, items: Sequence[str], weights: Tensor, kinds: Kinds
    ) -> None:
        """Take in what each word gets ``[batch, head, word]`` from one origin."""
        key = site.stack, origin, tuple(items)
        if key in self._held and self._held[key][0][2] is not kinds:
            self._settle(key)
        self._held.setdefault(key, []).append((site, weights, kinds))
        self._origins.update(dict.fromkeys(items, origin))

    def merge(self, other: BinnedMeans) -> None:
        """Add the sums of another part of the corpus."""
        self.sums.merge(other.sums)
        self._origins |= other._origins

    def _settle(self, key: Any) -> None:
        sites, layers, (kinds, *_) = zip(*self._held.pop(key), strict=True)
        _, origin, items = key
        weights, factors = torch.cat(layers, dim=1).double(), kinds.factors
        value = torch.einsum("bhw,bkw->khb", weights, kinds.share)
        # Values by kind, head, split and bin, in front of the bins bare; and their squares.
        crossed = (value @ factors.flatten(2)).unflatten(-1, factors.shape[2:])
        square = value.square() @ factors[..., 0]
        count, texts, bins, squares = kinds.shared
        of_heads = {f"{origin} words": torch.einsum("bhw,bws->hs", weights, kinds.in_bin)}
        of_all = {f"{origin} count": count}
        for n, item in enumerate(items):
            of_heads |= {f"{item} values": crossed[n], f"{item} squares": square[n]}
            parts = {"texts": texts, "bins": bins, "both": squares}
            of_all |= {f"{item} {name}": part[n] for name, part in parts.items()}
        self._sums.add(one_group(sites), of_heads, of_all)

    def compared(self) -> dict[tuple[Site, str], Floats]:
        """For each site and item ``[split, sum, head]``: texts, values, squares, baselines,
        differences, their squares.

        The difference of a text is v - m.u, where u is what a word of each bin gets on average: its
        square is expanded, and the sums put in.
        """
        found = {}
        for site, (item, origin) in product(self, self._origins.items()):
            if not self.sums.has(site, f"{item} values"):
                continue
            names = [f"{item} {part}" for part in ("values", "squares", "texts", "bins", "both")]
            values, squares, texts, bins, both = (self.sums.of(site, name) for name in names)
            total, count = (self.sums.of(site, f"{origin} {part}") for part in ("words", "count"))
            usual = total / count.clamp_min(1)
            value, square = values[..., 0].T, squares.T
            baseline = torch.einsum("cs,hs->ch", bins, usual)
            crossed = torch.einsum("hcs,hs->ch", values[..., 1:], usual)
            squared = torch.einsum("hs,cst,ht->ch", usual, both, usual)
            spread = (square - 2 * crossed + squared).clamp_min(0)
            parts = (texts[:, None].expand_as(baseline), value, square, baseline, value - baseline)
            found[site, item] = torch.stack([*parts, spread], dim=1).numpy()
        return found


# --- What words drawn at random would get -------------------------------------------------------


def largest_shares(pool: Tensor, drawn: Tensor) -> Tensor:
    """How likely each place in the order is the largest of a draw, ``[batch, draw, place]``.

    `pool` is bool ``[batch, place]``, `drawn` ``[batch, draw]`` says how many places are drawn, all
    subsets equally likely: the i-th smallest of m is the largest of k in C(i-1, k-1) of C(m, k).

    >>> pool = torch.tensor([[True, True, True, False]])
    >>> largest_shares(pool, torch.tensor([[1, 2]])).round(decimals=2).tolist()
    [[[0.33, 0.33, 0.33, 0.0], [0.0, 0.33, 0.67, 0.0]]]
    """
    rank = torch.arange(1, pool.shape[-1] + 1, device=pool.device, dtype=torch.float64)
    size, count = pool.sum(-1)[:, None, None].double(), drawn[..., None].double()
    share = (_choose(rank - 1, count - 1) - _choose(size, count)).exp()
    possible = (rank >= count) & (rank <= size) & (count > 0)
    return torch.where(possible, share, 0.0)


def expected_largest(weights: Tensor, pool: Tensor, shares: Tensor) -> Tensor:
    """The expected largest weight of each draw, ``[batch, head, draw]``; 0 where nothing is drawn.

    >>> weights, pool = torch.tensor([[[1.0, 2.0, 3.0]]]), torch.ones(1, 3, dtype=torch.bool)
    >>> expected_largest(weights, pool, largest_shares(pool, torch.tensor([[2]]))).tolist()
    [[[2.66...]]]
    """
    ordered = weights.masked_fill(~pool[:, None], torch.inf).sort(dim=-1).values
    known = ordered.masked_fill(ordered.isinf(), 0.0)
    return known @ shares.to(known.dtype).transpose(1, 2)


def _choose(n: Tensor, k: Tensor) -> Tensor:
    """The logarithm of n over k; of no meaning outside 0 <= k <= n."""
    return torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma((n - k).clamp_min(0) + 1)


# --- Which tokens and words of a batch have which feature ---------------------------------------


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
    #: [CLS] and [SEP], and in front of them the features where pieces count singly.
    tokens: Level
    #: The tokens of each word, ``[batch, word, token]``, as numbers.
    pieces: Tensor
    #: Which texts count for a feature, bool ``[batch, feature]``, by origin: all tokens, or [CLS].
    counts: dict[str, Tensor]
    #: Which texts belong to the split `select`.
    chosen: Tensor
    #: The words of each feature by bin.
    kinds: Kinds

    @cached_property
    def known(self) -> Tensor:
        """Whether a draw says anything of a feature, ``[batch, feature]``."""
        levels = [self.tokens] if self.words is None else [self.words, self.tokens]
        return torch.cat([level.known for level in levels], dim=1)

    @cached_property
    def nothing(self) -> Tensor:
        """No draw, ``[batch, feature]``."""
        return torch.zeros_like(self.counts[FROM_ALL])


def feature_masks(
    keys: Side, features: Sequence[Feature], *, code: bool, summed: bool, chosen: Tensor
) -> FeatureMasks:
    """The masks of one side of a batch; `code` follows the authors' notebook."""
    words = keys.words
    assert words is not None
    of_words = _word_masks(words, features)
    of_tokens = (of_words.float() @ words.pieces.float()) > 0
    if code:
        of_tokens = _spelled_alike(keys, of_tokens)
    specials = _specials(keys)
    together = torch.cat([of_tokens, specials], dim=1)
    there = together.any(-1)
    known = torch.tensor([s is not None for s in words.sentences], device=keys.real.device)[:, None]
    counts = _counts_in_code(words, features, there) if code else there
    bins = position_bins(words.there, words.pieces.sum(-1))
    return FeatureMasks(
        words=Level(of_words, words.there) if summed else None,
        tokens=Level(specials if summed else together, words.pieces.any(1)),
        pieces=words.pieces.to(torch.float32),
        counts={
            FROM_ALL: counts & known,
            FROM_FIRST: there & known & specials[:, 0].any(-1, keepdim=True),
        },
        chosen=chosen,
        kinds=kinds_of(of_words, compared_words(keys) & known, bins, chosen),
    )


def _specials(keys: Side) -> Tensor:
    """[CLS] and [SEP], bool ``[batch, 2, token]``; a first token of the text itself is no [CLS]."""
    first = keys.real & (keys.real.cumsum(-1) == 1) & keys.special
    return torch.stack([first, keys.separator & keys.real], dim=1)


def _word_masks(words: Words, features: Sequence[Feature]) -> Tensor:
    """Bool ``[batch, feature, word]``; a word that is not there has no feature."""
    found = torch.zeros(len(words), len(features), words.there.shape[1], dtype=torch.bool)
    for row, sentence in enumerate(words.sentences):
        if sentence is not None:
            for number, feature in enumerate(features):
                found[row, number, feature.places(sentence)] = True
    return found.to(words.there.device) & words.there[:, None]


def _spelled_alike(keys: Side, tokens: Tensor) -> Tensor:
    """Every token of a text that has the id of one of the feature's tokens.

    In the authors' notebook feature words are looked up among the pieces by their spelling.
    """
    alike = keys.ids[:, :, None] == keys.ids[:, None, :]
    alike &= (keys.real & ~keys.special)[:, :, None]
    return (tokens.float() @ alike.float().transpose(1, 2)) > 0


def _counts_in_code(words: Words, features: Sequence[Feature], there: Tensor) -> Tensor:
    """All texts count, without the feature as 0; for forms (negation) by a test of substrings."""
    counts = torch.ones(there.shape, dtype=torch.bool)
    for row, sentence in enumerate(words.sentences):
        for number, feature in enumerate(features):
            if feature.forms and sentence is not None:
                text = sentence.text.lower()
                counts[row, number] = any(form in text for form in feature.forms)
    return counts.to(there.device)


# --- How much each head looks at nouns ----------------------------------------------------------

_SEPARATOR = " from "
#: What attention to a kind of word is compared with, by convention; the code has nothing.
AGAINST = {"headcount": "any word in such a place", "paper": "as many random pieces"}


@dataclass
class FeatureTally(MeansTally):
    """Mean of the largest attention that a word of each kind gets, text by text.

    - `headcount`: attention to a word is the sum over its pieces; texts without the feature are
      left out. Compared is the mean over a text's words of the kind, with any words that stand
      alike in the text (see `position_bins`); a word that starts the text is not compared.
    - `paper`: a piece at a time; compared is the largest, with that of as many random pieces.
    - `code`: every piece of the text that is spelled like one of a feature's counts too, texts
      without the feature count as 0, but for negation: there a text is left out unless a
      negating word occurs in it, be it inside another ("nor" in "ignored").
    """

    convention: str = "headcount"
    features: Sequence[Feature] = FEATURES
    #: Whether the pieces of a word are added up or count singly; by convention where None.
    pieces: Literal["sum", "each"] | None = None
    seed: int = 0
    binned: BinnedMeans = field(default_factory=BinnedMeans, init=False, repr=False, compare=False)
    _batches: BatchCache[FeatureMasks] = field(
        default_factory=BatchCache, init=False, repr=False, compare=False
    )

    needs = Needs(tiles=True)
    kept = (*MeansTally.kept, BinnedMeans)
    none = "no text has words with such a tag or relation"

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        check_convention(self.convention)
        if self.pieces not in (None, "sum", "each"):
            raise UsageError(f"pieces is '{self.pieces}'; choose sum or each.")
        names = [feature.name for feature in self.features]
        if len(set(names)) < len(names) or {"first", "separator"} & set(names):
            raise UsageError(
                f"The features are {', '.join(names)}; give each its own name, other than first "
                "and separator."
            )

    def column_of(self) -> dict[str, Column]:
        """One column a feature, then [CLS] and [SEP]: attention from all tokens."""
        return {name + _SEPARATOR + FROM_ALL: _column(name) for name in self._names}

    @property
    def _names(self) -> list[str]:
        return [*(feature.name for feature in self.features), "first", "separator"]

    def update(self, sighting: Sighting) -> None:
        """Add what each text's features get; nothing where the words are not known."""
        site, words = sighting.site, sighting.keys.words
        if words is None or not words.there.numel() or not sighting.readable:
            self._skipped[site] = self.none
            return
        masks = self._batches.get(sighting.batch, site.stack, lambda: self._masks(sighting, words))
        for origin, received in _received(sighting).items():
            items = [name + _SEPARATOR + origin for name in self._names]
            found = self._compared(received, masks, origin)
            self.means.add(site, items, found, masks.chosen)
            if self.convention == "headcount":
                summed = received @ masks.pieces.transpose(1, 2)
                kinds = items[: len(self.features)]
                self.binned.add(site, origin, kinds, summed, masks.kinds)

    def merge(self, other: Self) -> None:
        """Add the other's sums."""
        super().merge(other)
        self.binned.merge(other.binned)

    def details(self) -> dict[str, pd.DataFrame]:
        """`features`: a row for each head, feature, origin (all tokens or [CLS]) and split."""
        if not any(self.means.items(site) for site in self.means):
            return {}
        frame = self.means.frame("feature", compared=self.binned.compared())
        parts = frame["feature"].str.partition(_SEPARATOR)
        against = AGAINST.get(self.convention)
        return {"features": frame.assign(feature=parts[0], origin=parts[2], against=against)}

    def _masks(self, sighting: Sighting, words: Words) -> FeatureMasks:
        """Which tokens and words have which feature; the same for every layer of a stack."""
        units = resample_units(words, sighting.batch.index)
        return feature_masks(
            sighting.keys,
            self.features,
            code=self.convention == "code",
            summed=(self.pieces or ("sum" if self.convention == "headcount" else "each")) == "sum",
            chosen=chosen_texts(units, words.there.device, self.seed),
        )

    def _compared(self, received: Tensor, masks: FeatureMasks, origin: str) -> Compared:
        """What each feature gets; in the paper's way against random places."""
        levels = [(masks.tokens, received)]
        if masks.words is not None:
            levels.insert(0, (masks.words, received @ masks.pieces.transpose(1, 2)))
        value = torch.cat([level.largest(weights) for level, weights in levels], dim=-1)
        counts = masks.counts[origin]
        if self.convention != "paper":  # compared elsewhere, or not at all
            return Compared(value, counts, torch.zeros_like(value), masks.nothing)
        baseline = torch.cat([level.drawn(weights) for level, weights in levels], dim=-1)
        return Compared(value, counts, baseline, masks.known)


def _received(sighting: Sighting) -> dict[str, Tensor]:
    """Attention that each key gets, ``[batch, head, key]``: the mean of all rows, and of [CLS]."""
    rows = sighting.queries.real
    parts = [
        sighting.rows_at(own).masked_fill(~rows[:, None, own, None], 0).sum(2)
        for own in sighting.tiles()
    ]
    mean = torch.stack(parts).sum(0) / rows.sum(-1).clamp_min(1)[:, None, None]
    if sighting.site.stack != "enc":
        return {FROM_ALL: mean}
    first, turn = rows.int().argmax(-1).unique(return_inverse=True)
    shown = sighting.rows_at(first)
    return {FROM_ALL: mean, FROM_FIRST: shown[torch.arange(len(turn)), :, turn]}


def _column(name: str) -> Column:
    article = "an" if name[0] in "aeiou" else "a"
    words = "the first token ([CLS])" if name == "first" else f"{article} {name}"
    return Column(
        f"to_{name}",
        title=f"To {name}",
        meaning=f"Mean attention that {words} gets, the largest where there are several.",
        paper="Kovaleva et al. 2019, section 4.3",
        range=(0, 1),
        group="What it looks at",
    )


#: It among the tallies of the registry.
PLAN = TallyPlan(lambda subject, corpus, options: FeatureTally(options.convention), "treebank")
