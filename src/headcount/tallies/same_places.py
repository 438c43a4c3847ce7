"""What words of a kind get beside any words that stand alike in other texts; streaming sums.

A text's figure is the mean of what its words of the kind get; its baseline the mean, over the same
words, of what all words of the corpus get that stand where they stand. The baseline is known only
when everything was seen, so sums are kept by standing: they give mean and spread of the
differences between texts exactly, without a second pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from headcount.models.site import Site
from headcount.tallies.standings import STANDINGS

__all__ = ["Kinds", "SamePlaces", "kinds_of"]


@dataclass(frozen=True)
class Kinds:
    """A batch's words by kind and by standing, laid out once for all layers."""

    #: Which words stand where, ``[batch, word, standing]``; words that are not compared nowhere.
    stand: Tensor
    #: A word's share in its text's mean for a kind, ``[batch, kind, word]``.
    share: Tensor
    #: The shares by standing, ``[batch, kind, standing]``.
    standing: Tensor
    #: Which texts have a kind, in each split, ``[batch, kind, split]``.
    split: Tensor


def kinds_of(kinds: Tensor, compared: Tensor, standings: Tensor, chosen: Tensor) -> Kinds:
    """Lay out bool ``[batch, kind, word]``; `chosen` are the texts of the split `select`."""
    stand = torch.nn.functional.one_hot(standings, STANDINGS).double() * compared[..., None]
    found = (kinds & compared[:, None]).double()
    share = found / found.sum(-1, keepdim=True).clamp_min(1)
    split = torch.stack([chosen, ~chosen], dim=1).double()
    there = (found.sum(-1) > 0).double()
    return Kinds(stand, share, share @ stand, there[..., None] * split[:, None])


@dataclass
class _Sums:
    """The sums of one site and kind; the last axes are split, then head or standing or both."""

    texts: Tensor
    value: Tensor
    square: Tensor
    standing: Tensor
    value_standing: Tensor
    standing_standing: Tensor

    def __add__(self, other: _Sums) -> _Sums:
        names = [one.name for one in fields(self)]
        return _Sums(*(getattr(self, name) + getattr(other, name) for name in names))


class SamePlaces:
    """Sums by site and question, and of all words by site and origin; they merge by addition."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[Site, str], tuple[str, _Sums]] = {}
        self._words: dict[tuple[Site, str], Tensor] = {}

    def add(
        self, site: Site, origin: str, questions: Sequence[str], weights: Tensor, kinds: Kinds
    ) -> None:
        """Take in what each word gets ``[batch, head, word]`` from one origin."""
        weights = weights.double()
        total = torch.einsum("bhw,bws->hs", weights, kinds.stand)
        count = kinds.stand.sum((0, 1)).expand_as(total)
        self._add_words((site, origin), torch.stack([total, count]).cpu())
        value = torch.einsum("bhw,bkw->bkh", weights, kinds.share)
        for place, question in enumerate(questions):
            sums = _sums(value[:, place], kinds.standing[:, place], kinds.split[:, place])
            self._add_kind((site, question), origin, sums)

    def merge(self, other: SamePlaces) -> None:
        """Add the sums of another part of the corpus."""
        for key, words in other._words.items():
            self._add_words(key, words)
        for key, (origin, sums) in other._kinds.items():
            self._add_kind(key, origin, sums)

    def compared(self, site: Site) -> Mapping[str, Tensor]:
        """For each question ``[split, sum, head]``: texts, values, squares, baselines, differences.

        Of differences there are the sum and the sum of squares.
        """
        asked = {name: pair for (where, name), pair in self._kinds.items() if where == site}
        return {
            name: _compared(sums, self._usual(site, origin))
            for name, (origin, sums) in asked.items()
        }

    def _usual(self, site: Site, origin: str) -> Tensor:
        """What a word that stands so gets on average, ``[head, standing]``."""
        total, count = self._words[site, origin]
        return total / count.clamp_min(1)

    def _add_words(self, key: tuple[Site, str], words: Tensor) -> None:
        self._words[key] = self._words[key] + words if key in self._words else words.clone()

    def _add_kind(self, key: tuple[Site, str], origin: str, sums: _Sums) -> None:
        own = self._kinds.get(key)
        self._kinds[key] = (origin, sums if own is None else own[1] + sums)


def _sums(value: Tensor, standing: Tensor, split: Tensor) -> _Sums:
    """The sums over a batch of values ``[batch, head]`` and standings ``[batch, standing]``."""
    return _Sums(
        split.sum(0).cpu(),
        torch.einsum("bh,bc->ch", value, split).cpu(),
        torch.einsum("bh,bc->ch", value**2, split).cpu(),
        torch.einsum("bs,bc->cs", standing, split).cpu(),
        torch.einsum("bh,bs,bc->chs", value, standing, split).cpu(),
        torch.einsum("bs,bt,bc->cst", standing, standing, split).cpu(),
    )


def _compared(sums: _Sums, usual: Tensor) -> Tensor:
    """The difference of a text is v - m.u: its square is expanded, and the sums put in."""
    baseline = torch.einsum("cs,hs->ch", sums.standing, usual)
    crossed = torch.einsum("chs,hs->ch", sums.value_standing, usual)
    squared = torch.einsum("hs,cst,ht->ch", usual, sums.standing_standing, usual)
    spread = (sums.square - 2 * crossed + squared).clamp_min(0)
    texts = sums.texts[:, None].expand_as(baseline)
    parts = (texts, sums.value, sums.square, baseline, sums.value - baseline, spread)
    return torch.stack(parts, dim=1)
