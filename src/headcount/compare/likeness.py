"""How alike two models' maps of the same text are, head by head: cosine and divergence.

Kovaleva et al., EMNLP 2019, section 4.3: the cosine of the flattened maps before and after
fine-tuning, averaged over texts. Their notebook flattens maps padded to 200 tokens, rows of padding
and all; by default maps are cut to the text here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount import stats
from headcount.errors import InputError, StatsError, UsageError
from headcount.models import Anatomy, Site, Subject
from headcount.records import Head
from headcount.stats import jackknife_interval
from headcount.survey import SMOOTHING, Tally
from headcount.text import Batch, Long, Side, encode, intake_of
from headcount.wiring import Sighting

# --- Which heads of two models answer to each other ---------------------------------------------


@dataclass(frozen=True)
class Matched:
    """A layer of both models, and where the heads that both have lie side by side in each."""

    first: Site
    second: Site
    heads: tuple[Head, ...]
    first_rows: tuple[int, ...]
    second_rows: tuple[int, ...]


def match_sites(first: Subject, second: Subject, stacks: Collection[str]) -> list[Matched]:
    """Every layer's common heads; other numbers of layers or heads are refused.

    Heads keep their names for life, so a pruned model is matched by name, and heads that one of
    the two has lost are left out.
    """
    for stack in stacks:
        _check_same_shape(first, second, stack)
    ours = {(site.stack, site.layer): site for site in first.anatomy.sites}
    theirs = {(site.stack, site.layer): site for site in second.anatomy.sites}
    found = [
        _matched(site, theirs[place])
        for place, site in ours.items()
        if place in theirs and site.stack in stacks
    ]
    found = [one for one in found if one.heads]
    if not found:
        raise UsageError(
            f"{first.name} and {second.name} have no head of the same name; compare a model with "
            "one that came from it."
        )
    return found


def _matched(first: Site, second: Site) -> Matched:
    common = [head for head in first.names if head in set(second.names)]
    return Matched(
        first,
        second,
        tuple(common),
        tuple(first.names.index(head) for head in common),
        tuple(second.names.index(head) for head in common),
    )


def _check_same_shape(first: Subject, second: Subject, stack: str) -> None:
    """Refuse what cannot be the same model before and after: only heads may be lost on the way."""
    one, other = (_sizes(subject, stack) for subject in (first, second))
    if _has_gaps(first) or _has_gaps(second):
        return
    if len(one) != len(other):
        raise UsageError(
            f"{first.name} has {_count(len(one), 'layer')} in {stack} and {second.name} has "
            f"{len(other)}, so their heads do not answer to each other; compare models of the "
            "same shape."
        )
    for layer, heads in one.items():
        if heads != other.get(layer):
            raise UsageError(
                f"{stack}.{layer} has {_count(heads, 'head')} in {first.name} and "
                f"{other.get(layer, 0)} in {second.name}, so they do not answer to each other; "
                "compare models of the same shape, or a pruned model saved by headcount."
            )


def _sizes(subject: Subject, stack: str) -> dict[int, int]:
    return {site.layer: site.heads for site in subject.anatomy.sites if site.stack == stack}


def _has_gaps(subject: Subject) -> bool:
    """Whether heads were removed, and the others kept their names."""
    return any(site.numbers is not None for site in subject.anatomy.sites)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


# --- How alike two models' maps of the same text are, head by head ------------------------------

Key = tuple[str, int]
Sums = NDArray[np.float64]


@dataclass
class Likeness:
    """The cosine and the mean divergence of rows, for every text and head that both models have.

    A text that was cut into windows stays one text: its windows' maps are flattened one after
    another, and all its rows count alike.
    """

    #: By layer and figure: the texts' numbers, and the sums `[part, text, head]` it is made of.
    _kept: dict[tuple[Key, str], list[tuple[Sequence[int], Sums]]] = field(
        default_factory=lambda: defaultdict(list), init=False, repr=False
    )

    def add(
        self, match: Matched, first: Sighting, second: Sighting, numbers: Sequence[int]
    ) -> None:
        """Take in one layer of one batch; `numbers` tell which rows are of one text."""
        ours, theirs = _common(match, first, second)
        queries, keys = first.queries.real, first.keys.real
        there = queries[:, None, :, None] & keys[:, None, None, :]
        ours, theirs = ours.masked_fill(~there, 0), theirs.masked_fill(~there, 0)
        self._keep(match, "cosine", numbers, _products(ours, theirs))
        self._keep(match, "js", numbers, _divergence_sums(ours, theirs, queries, keys))

    def add_padded(
        self, match: Matched, first: Sighting, second: Sighting, numbers: Sequence[int]
    ) -> None:
        """Take in the cosine of maps as wide as they come, padding and all."""
        ours, theirs = _common(match, first, second)
        self._keep(match, "padded cosine", numbers, _products(ours, theirs))

    def texts(self, match: Matched, name: str) -> NDArray[np.float64]:
        """`cosine` or `js` of every text and head of a layer, `[text, head]`.

        The cosine is that of padded maps where those were taken in.
        """
        place = match.first.stack, match.first.layer
        kept = self._kept.get((place, f"padded {name}")) or self._kept[place, name]
        sums = _by_text(kept)
        return sums[0] / (np.sqrt(sums[1] * sums[2]) if name == "cosine" else sums[1])

    def _keep(self, match: Matched, name: str, numbers: Sequence[int], sums: Tensor) -> None:
        place = match.first.stack, match.first.layer
        self._kept[place, name].append((tuple(numbers), sums.cpu().numpy()))


def _by_text(kept: Sequence[tuple[Sequence[int], Sums]]) -> Sums:
    """Sums of rows of the same number put together, in the order of the numbers' first rows."""
    numbers = [number for some, _ in kept for number in some]
    spots = {number: spot for spot, number in enumerate(dict.fromkeys(numbers))}
    rows = np.concatenate([sums for _, sums in kept], axis=1).swapaxes(0, 1)
    found = np.zeros((len(spots), *rows.shape[1:]))
    np.add.at(found, np.array([spots[number] for number in numbers]), rows)
    return found.swapaxes(0, 1)


def _common(match: Matched, first: Sighting, second: Sighting) -> tuple[Tensor, Tensor]:
    """The maps of the heads that both have, in one place."""
    assert first.maps is not None
    assert second.maps is not None
    ours = first.maps[:, list(match.first_rows)]
    return ours, second.maps.to(ours.device, ours.dtype)[:, list(match.second_rows)]


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """The cosine of flattened maps `[text, head, query, key]`, for each text and head.

    >>> float(cosines(torch.eye(3)[None, None], torch.full((1, 1, 3, 3), 1 / 3))[0, 0])
    0.577...
    """
    product, one, other = _products(first, second)
    return product / (one * other).sqrt()


def divergences(first: Tensor, second: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """The mean Jensen-Shannon divergence of a text's rows `[text, head]`, smoothed as Clark's."""
    total, rows = _divergence_sums(first, second, queries, keys)
    return total / rows.clamp_min(1)


def _products(first: Tensor, second: Tensor) -> Tensor:
    """What a cosine is made of `[3, text, head]`: the maps' product, and each with itself."""
    one, other = first.flatten(2), second.flatten(2)
    pairs = ((one, other), (one, one), (other, other))
    return torch.stack([(a * b).sum(-1, dtype=torch.float64) for a, b in pairs])


def _divergence_sums(first: Tensor, second: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """The sum of the rows' divergences, and how many rows there are, `[2, text, head]`."""
    there = keys[:, None, None, :]
    share = SMOOTHING / keys.sum(-1).clamp_min(1)[:, None, None, None]
    p, q = (torch.where(there, (1 - SMOOTHING) * maps + share, 1.0) for maps in (first, second))
    middle = (p + q) / 2
    each = (p * (p / middle).log() + q * (q / middle).log()) / 2
    total = (each.sum(-1, dtype=torch.float64) * queries[:, None, :]).sum(-1)
    return torch.stack([total, queries.sum(-1).double()[:, None].expand_as(total)])


# --- Columns of two models on the same texts, and how sure their difference is ------------------
# Texts go to folds in turn; every fold has tallies of its own for both models. What is said of all
# folds but one, for each of them, gives the interval of a difference (a jackknife over groups).

#: As many groups of texts, where there are as many texts.
FOLDS = 20

#: A place is no size, and what depends on the texts alone cannot change.
_NO_DIFFERENCE = {"best_offset", "entropy_uniform"}

Array = NDArray[np.float64]
Tallies = Sequence[Tally]


@dataclass(frozen=True)
class Folds:
    """The tallies of one model, fold by fold, and how to make fresh ones."""

    anatomy: Anatomy
    fresh: Callable[[], list[Tally]]
    parts: Sequence[Tallies]

    @property
    def names(self) -> list[str]:
        """The columns that can change."""
        columns = [column.name for tally in self.fresh() for column in tally.columns]
        return [name for name in columns if name not in _NO_DIFFERENCE]

    def merged(self, parts: Sequence[Tallies] | None = None) -> list[Tally]:
        """The tallies of some folds put together, or of all; the folds stay as they are."""
        total = self.fresh()
        for part in self.parts if parts is None else parts:
            for mine, other in zip(total, part, strict=True):
                mine.merge(other)
        return total

    def values(self, tallies: Tallies, heads: Sequence[Head]) -> Array:
        """What the tallies say of some heads, `[head, column]`."""
        names = {name: place for place, name in enumerate(self.names)}
        found = np.full((len(self.anatomy.heads), len(names)), np.nan)
        for tally in tallies:
            for reading in tally.compute():
                if reading.column in names:
                    span = self.anatomy.spans[reading.site]
                    found[span, names[reading.column]] = reading.value
        row = {head: place for place, head in enumerate(self.anatomy.heads)}
        return found[[row[head] for head in heads]]

    def without_each(self, heads: Sequence[Head]) -> Iterator[Array]:
        """What is said without each fold: what comes before it with what comes after."""
        after: list[Tallies] = [self.fresh()]
        for part in reversed(self.parts[1:]):
            after.insert(0, self.merged([part, after[0]]))
        before: Tallies = self.fresh()
        for part, rest in zip(self.parts, after, strict=True):
            yield self.values(self.merged([before, rest]), heads)
            before = self.merged([before, part])

    def changes(self, other: Folds, heads: Sequence[Head]) -> pd.DataFrame:
        """For each column: the other's value less ours, its interval, and both values."""
        before, after = (one.values(one.merged(), heads) for one in (self, other))
        low, high = np.full_like(before, np.nan), np.full_like(before, np.nan)
        if len(self.parts) > 1:
            sides = zip(self.without_each(heads), other.without_each(heads), strict=True)
            left = np.stack([theirs - ours for ours, theirs in sides])
            _, low, high = jackknife_interval(after - before, left)
        columns: dict[str, Array] = {}
        for place, name in enumerate(self.names):
            told = {"": after - before, "_low": low, "_high": high}
            told |= {"_before": before, "_after": after}
            if not np.isnan(told[""][:, place]).all():
                columns |= {name + end: values[:, place] for end, values in told.items()}
        index = pd.MultiIndex.from_tuples(list(heads), names=["stack", "layer", "head"])
        return pd.DataFrame(columns, index=index)


# --- The same texts for two models, token by token ----------------------------------------------


def batches_of_both(
    first: Subject,
    second: Subject,
    texts: Sequence[Any],
    *,
    stacks: tuple[str, ...],
    batch_size: int = 16,
    max_length: int | None = None,
    long: Long = "window",
) -> Iterator[tuple[Batch, Batch]]:
    """The same batch as each model takes it."""
    longest = max_length or _longest(first, second)
    made = [
        encode(
            texts,
            subject.tokenizer,
            stacks=stacks,
            intake=intake_of(subject.model, subject.tokenizer),
            batch_size=batch_size,
            max_length=longest,
            long=long,
        )
        for subject in (first, second)
    ]
    for ours, theirs in zip(*made, strict=False):
        _check_same(first, second, ours, theirs)
        yield ours, theirs


def _longest(first: Subject, second: Subject) -> int | None:
    """The limit that both keep, where they have different ones."""
    limits = [
        (intake.source_limit, intake.target_limit)
        for intake in (intake_of(one.model, one.tokenizer) for one in (first, second))
    ]
    known = [limit for pair in limits for limit in pair if limit is not None]
    return min(known) if limits[0] != limits[1] and known else None


def _check_same(first: Subject, second: Subject, ours: Batch, theirs: Batch) -> None:
    for name, side in ours.sides.items():
        other = theirs.sides.get(name)
        if other is not None and ours.index == theirs.index and side.tokens == other.tokens:
            continue
        raise InputError(
            f"{first.name} and {second.name} cut the texts into different tokens"
            f"{_shown(side, other)}, so their attention cannot be laid side by side; "
            "compare models of one tokenizer."
        )


def _shown(side: Side, other: Side | None) -> str:
    """The first place where they differ."""
    if other is None:
        return ""
    for ours, theirs in zip(side.tokens, other.tokens, strict=False):
        for one, another in zip(ours, theirs, strict=False):
            if one != another:
                return f" ('{one}' and '{another}')"
    return ""


def pad_to_width(batch: Batch, width: int, pad_id: int) -> Batch:
    """The batch with all rows padded to a width, as Kovaleva et al.'s notebook has them."""
    there = batch.inputs["input_ids"].shape[1]
    if there > width:
        raise UsageError(
            f"A text has {there} tokens, and maps are padded to {width}; pad to more (--pad-to)."
        )
    inputs = {
        name: _wide(tensor, width, pad_id if name == "input_ids" else 0)
        for name, tensor in batch.inputs.items()
    }
    sides = {name: _wide_side(side, width, pad_id) for name, side in batch.sides.items()}
    return replace(batch, inputs=inputs, sides=sides)


def _wide(tensor: Tensor, width: int, fill: int) -> Tensor:
    more = width - tensor.shape[1]
    return torch.nn.functional.pad(tensor, (0, more), value=fill)


def _wide_side(side: Side, width: int, pad_id: int) -> Side:
    names = ("real", "special", "separator", "punctuation", "stops")
    flags: dict[str, Any] = {name: _wide(getattr(side, name), width, 0) for name in names}
    return replace(side, ids=_wide(side.ids, width, pad_id), words=None, **flags)


# --- Which layers change most: each against the others, text by text ----------------------------

_COLUMNS = [
    "stack", "layer", "heads", "texts", "cosine", "cosine_low", "cosine_high", "js", "js_low",
    "js_high", "more", "p", "p_adjusted",
]  # fmt: skip


def layer_changes(matches: Sequence[Matched], found: Likeness) -> pd.DataFrame:
    """A row a layer: mean cosine and divergence of its heads, with intervals over texts.

    `more` is 1 - cosine less the mean of the stack's other layers: above 0, the layer changes more
    than they do. `p` is of a sign-flip test over texts, `p_adjusted` corrected over a stack's
    layers (Holm).
    """
    rows: list[dict[str, Any]] = []
    for stack in dict.fromkeys(match.first.stack for match in matches):
        rows += _of_stack([match for match in matches if match.first.stack == stack], found)
    return pd.DataFrame(rows, columns=_COLUMNS)


def _of_stack(matches: Sequence[Matched], found: Likeness) -> list[dict[str, Any]]:
    means = {
        name: np.stack([found.texts(match, name).mean(1) for match in matches], axis=1)
        for name in ("cosine", "js")
    }
    tested = _against_others(1 - means["cosine"])
    told = []
    for place, match in enumerate(matches):
        row: dict[str, Any] = {"stack": match.first.stack, "layer": match.first.layer}
        row |= {"heads": len(match.heads), "texts": len(means["js"])}
        for name, values in means.items():
            one = values[:, place]
            ends = stats.mean_interval(one.sum(), (one**2).sum(), len(one))
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), map(float, ends), strict=True))
        told.append(row | {name: float(values[place]) for name, values in tested.items()})
    return told


def _against_others(changes: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """How much more each layer changes than the mean of the others, and how sure that is."""
    layers = changes.shape[1]
    nothing = np.full(layers, np.nan)
    if layers < 2:
        return {"more": nothing, "p": nothing, "p_adjusted": nothing}
    others = (changes.sum(1, keepdims=True) - changes) / (layers - 1)
    apart = changes - others
    try:
        tested = stats.sign_flip(apart)
    except StatsError:  # too few texts for a test; the figure itself stands
        return {"more": apart.mean(0), "p": nothing, "p_adjusted": nothing}
    return {"more": apart.mean(0), "p": tested.p, "p_adjusted": tested.p_adjusted}
