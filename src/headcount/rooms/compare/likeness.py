"""How alike two models are on the same texts: matched heads, their maps, columns and layers.

Kovaleva et al., EMNLP 2019, section 4.3: the cosine of the flattened maps before and after
fine-tuning, averaged over texts. Their notebook flattens maps padded to 200 tokens, rows of padding
and all; by default maps are cut to the text here. The Jensen-Shannon divergence of rows is smoothed
as Clark et al. 2019 smooth it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount import stats
from headcount.errors import InputError, StatsError, UsageError
from headcount.models import Anatomy, Subject
from headcount.records import Head
from headcount.rooms.families import SMOOTHING
from headcount.stats import jackknife_interval
from headcount.surveys import Tally
from headcount.text import Batch, BatchSize, Long, Side, encode, intake_of
from headcount.wiring import TILE, Sighting, tiles_of

Array = NDArray[np.float64]
#: A stack and a layer.
Place = tuple[str, int]

# --- Which heads of two models are the same -----------------------------------------------------


#: How heads of two models are matched.
MATCHES = {
    "name": "by name",
    "depth": "one to one by their maps, within layers of the same relative depth",
    "maps": "one to one by their maps, within a stack",
}


@dataclass(frozen=True)
class Matched:
    """A layer of the first model: its heads that have a partner, the partners, where they are."""

    place: Place
    heads: tuple[Head, ...]
    partners: tuple[Head, ...]
    first_rows: list[int]
    second_rows: list[tuple[Place, int]]


def match_by_name(first: Subject, second: Subject, stacks: Collection[str]) -> list[Matched]:
    """Every layer's common heads; other numbers of layers or heads are refused.

    Heads keep their names for life, so a pruned model is matched by name, and heads that one of
    the two has lost are left out.
    """
    for stack in stacks:
        _check_same_shape(first, second, stack)
    theirs = set(second.heads)
    common = {head: head for head in first.heads if head in theirs and head.stack in stacks}
    if not common:
        raise UsageError(
            f"{first.name} and {second.name} have no head of the same name; compare a model with "
            "one that came from it."
        )
    return _matches(first, second, common)


def match_by_maps(
    first: Subject, second: Subject, alike: Mapping[str, Array], depth: bool
) -> list[Matched]:
    """Heads paired so that their maps are as alike as can be: the largest total cosine.

    `alike` has the cosines of each stack, `[head, other head]`. With `depth` a layer is only
    matched with the other model's layer of the nearest relative depth, which may serve several.
    """
    from scipy.optimize import linear_sum_assignment

    pairs: dict[Head, Head] = {}
    for stack, cosines in alike.items():
        ours, theirs = (
            [head for head in one.heads if head.stack == stack] for one in (first, second)
        )
        groups = [(list(range(len(ours))), list(range(len(theirs))))]
        if depth:
            layers, others = (sorted({head.layer for head in one}) for one in (ours, theirs))
            partner = dict(zip(layers, _same_depth(layers, others), strict=True))
            groups = [
                (
                    [place for place, head in enumerate(ours) if head.layer == layer],
                    [place for place, head in enumerate(theirs) if head.layer == partner[layer]],
                )
                for layer in layers
            ]
        for rows, columns in groups:
            best = linear_sum_assignment(cosines[np.ix_(rows, columns)], maximize=True)
            pairs |= {ours[rows[a]]: theirs[columns[b]] for a, b in zip(*best, strict=True)}
    return _matches(first, second, pairs)


def _same_depth(layers: Sequence[int], others: Sequence[int]) -> list[int]:
    """For each layer the other model's of the nearest depth: the first is 0, the last 1.

    >>> _same_depth(range(3), range(6))
    [0, 2, 5]
    """
    last = max(1, len(layers) - 1)
    # Half a layer goes down: the middle of three is the third of six.
    places = [ceil(place * (len(others) - 1) / last - 0.5) for place in range(len(layers))]
    return [others[place] for place in places]


def _matches(first: Subject, second: Subject, pairs: Mapping[Head, Head]) -> list[Matched]:
    """Pairs of heads by the first model's layers."""
    where = {
        head: ((site.stack, site.layer), row)
        for site in second.anatomy.sites
        for row, head in enumerate(site.names)
    }
    found = []
    for site in first.anatomy.sites:
        heads = tuple(head for head in site.names if head in pairs)
        if heads:
            partners = tuple(pairs[head] for head in heads)
            rows = [site.names.index(head) for head in heads]
            places = [where[head] for head in partners]
            found.append(Matched((site.stack, site.layer), heads, partners, rows, places))
    return found


def _check_same_shape(first: Subject, second: Subject, stack: str) -> None:
    """Refuse what cannot be the same model before and after: only heads may be lost on the way."""
    if any(site.numbers is not None for one in (first, second) for site in one.anatomy.sites):
        return  # heads were removed, and the others kept their names
    one, other = (
        {site.layer: site.heads for site in subject.anatomy.sites if site.stack == stack}
        for subject in (first, second)
    )
    if len(one) != len(other):
        raise UsageError(
            f"{first.name} has {_count(len(one), 'layer')} in {stack} and {second.name} has "
            f"{len(other)}, so heads of the same name are not the same; match them by relative "
            "depth (--match depth) or by their maps alone (--match maps)."
        )
    for layer, heads in one.items():
        if heads != other.get(layer):
            raise UsageError(
                f"{stack}.{layer} has {_count(heads, 'head')} in {first.name} and "
                f"{other.get(layer, 0)} in {second.name}, so heads of the same name are not the "
                "same; match them by relative depth (--match depth) or by their maps alone "
                "(--match maps), or compare with a pruned model saved by headcount."
            )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


# --- How alike two models' maps of the same text are --------------------------------------------


@dataclass
class Likeness:
    """The cosine and the mean divergence of rows, for every text and head that both models have.

    A text that was cut into windows stays one text: its windows' maps are flattened one after
    another, and all its rows count alike.
    """

    #: By layer and figure: the texts' numbers, and the sums `[part, text, head]` it is made of.
    _kept: dict[tuple[Place, str], list[tuple[Sequence[int], Array]]] = field(
        default_factory=lambda: defaultdict(list), init=False, repr=False
    )

    def add(
        self,
        match: Matched,
        first: Sighting,
        second: Mapping[Place, Sighting],
        numbers: Sequence[int],
        padded: bool = False,
    ) -> None:
        """Add one layer of one batch; `numbers` tell which rows are of one text.

        `padded` maps are compared as wide as they come, padding and all, by their cosine only.
        """
        sums: dict[str, Any] = defaultdict(float)
        others = {place: second[place] for place, _ in match.second_rows}
        for own in tiles_of([first, *others.values()]):
            ours = first.rows_at(own)[:, match.first_rows]
            rows = {place: one.rows_at(own.to(one.device)) for place, one in others.items()}
            theirs = torch.stack([rows[place][:, row] for place, row in match.second_rows], dim=1)
            theirs = theirs.to(ours.device, ours.dtype)
            if padded:
                sums["padded cosine"] += cosine_sums(ours, theirs)
                continue
            queries, keys = first.queries.real[:, own], first.keys.real
            there = queries[:, None, :, None] & keys[:, None, None, :]
            ours, theirs = ours.masked_fill(~there, 0), theirs.masked_fill(~there, 0)
            sums["cosine"] += cosine_sums(ours, theirs)
            sums["js"] += divergence_sums(ours, theirs, queries, keys)
        for name, values in sums.items():
            self._kept[match.place, name].append((numbers, values.cpu().numpy()))

    def texts(self, match: Matched, name: str) -> Array:
        """`cosine` or `js` of every text and head of a layer, `[text, head]`.

        The cosine is that of padded maps where those were added.
        """
        kept = self._kept.get((match.place, f"padded {name}")) or self._kept[match.place, name]
        # Rows of one text are summed, in the order of the texts' first rows.
        numbers = [number for some, _ in kept for number in some]
        spots = {number: spot for spot, number in enumerate(dict.fromkeys(numbers))}
        rows = np.concatenate([sums for _, sums in kept], axis=1).swapaxes(0, 1)
        found = np.zeros((len(spots), *rows.shape[1:]))
        np.add.at(found, np.array([spots[number] for number in numbers]), rows)
        sums = found.swapaxes(0, 1)
        return sums[0] / (np.sqrt(sums[1] * sums[2]) if name == "cosine" else sums[1])


def stack_cosines(first: Sequence[Sighting], second: Sequence[Sighting]) -> Array:
    """The cosine of every two heads' maps of one batch, summed over texts, `[head, other]`."""
    products, squares = torch.zeros(()), [torch.zeros(())] * 2
    for own in tiles_of([*first, *second]):
        flat = []
        for at, side in enumerate((first, second)):
            places = own.to(side[0].device)
            maps = torch.cat([one.rows_at(places) for one in side], dim=1)
            queries, keys = side[0].queries.real[:, places], side[0].keys.real
            there = queries[:, None, :, None] & keys[:, None, None, :]
            flat.append(maps.masked_fill(~there, 0).flatten(2).double().cpu())
            squares[at] = squares[at] + flat[at].square().sum(-1)
        products = products + flat[0] @ flat[1].transpose(1, 2)
    lengths = [one.sqrt() for one in squares]
    found: Array = (products / (lengths[0][:, :, None] * lengths[1][:, None])).sum(0).numpy()
    return found


def cosine_sums(first: Tensor, second: Tensor) -> Tensor:
    """What a cosine is made of `[3, text, head]`: the maps' product, and each with itself.

    >>> product, one, other = cosine_sums(torch.eye(3)[None, None], torch.ones(1, 1, 3, 3) / 3)
    >>> float(product / (one * other).sqrt())
    0.577...
    """
    one, other = first.flatten(2), second.flatten(2)
    pairs = ((one, other), (one, one), (other, other))
    return torch.stack([(a * b).sum(-1, dtype=torch.float64) for a, b in pairs])


def divergence_sums(first: Tensor, second: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """The sum of the rows' divergences, and how many rows there are, `[2, text, head]`."""
    there = keys[:, None, None, :]
    share = SMOOTHING / keys.sum(-1).clamp_min(1)[:, None, None, None]
    p, q = (torch.where(there, (1 - SMOOTHING) * maps + share, 1.0) for maps in (first, second))
    middle = (p + q) / 2
    each = (p * (p / middle).log() + q * (q / middle).log()) / 2
    total = (each.sum(-1, dtype=torch.float64) * queries[:, None, :]).sum(-1)
    return torch.stack([total, queries.sum(-1).double()[:, None].expand_as(total)])


# --- Columns of two models on the same texts, and how sure their difference is ------------------
# Texts go to folds in turn; every fold has tallies of its own for both models. The values without
# each fold give the interval of a difference (a jackknife over groups).

#: As many groups of texts, where there are as many texts.
FOLDS = 20

#: A place is no size, and what depends on the texts only cannot change.
_NO_DIFFERENCE = {"best_offset", "entropy_uniform"}

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
        """The columns of some heads, `[head, column]`."""
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
        """The values without each fold: what comes before it with what comes after."""
        after: list[Tallies] = [self.fresh()]
        for part in reversed(self.parts[1:]):
            after.insert(0, self.merged([part, after[0]]))
        before: Tallies = self.fresh()
        for part, rest in zip(self.parts, after, strict=True):
            yield self.values(self.merged([before, rest]), heads)
            before = self.merged([before, part])

    def changes(
        self, other: Folds, heads: Sequence[Head], partners: Sequence[Head]
    ) -> pd.DataFrame:
        """For each column: the other's value less ours, its interval, and both values."""
        before = self.values(self.merged(), heads)
        after = other.values(other.merged(), partners)
        low, high = np.full_like(before, np.nan), np.full_like(before, np.nan)
        if len(self.parts) > 1:
            sides = zip(self.without_each(heads), other.without_each(partners), strict=True)
            left = np.stack([theirs - ours for ours, theirs in sides])
            _, low, high = jackknife_interval(after - before, left)
        columns: dict[str, Array] = {}
        for place, name in enumerate(self.names):
            parts = {"": after - before, "_low": low, "_high": high}
            parts |= {"_before": before, "_after": after}
            if not np.isnan(parts[""][:, place]).all():
                columns |= {name + end: values[:, place] for end, values in parts.items()}
        index = pd.MultiIndex.from_tuples(list(heads), names=["stack", "layer", "head"])
        return pd.DataFrame(columns, index=index)


# --- The same texts for two models, token by token ----------------------------------------------


#: The maps of all layers of both models may have so many times the cells of those that a tap
#: keeps: 1 GB in float32.
_KEPT = 4


def batches_of_both(
    first: Subject,
    second: Subject,
    texts: Sequence[Any],
    *,
    stacks: tuple[str, ...],
    batch_size: int = 16,
    max_length: int | None = None,
    long: Long = "window",
    pad_to: int | None = None,
) -> Iterator[tuple[Batch, Batch]]:
    """The same batch as each model takes it, with as many texts as memory has room for.

    Maps of all layers of both are held at once; those that are padded to `pad_to` too.
    """
    sites = [site for one in (first, second) for site in one.anatomy.sites if site.stack in stacks]
    most = _KEPT * TILE["kept"] // sum(site.heads for site in sites)
    if pad_to:
        batch_size = min(batch_size, max(1, most // pad_to**2))
    intakes = [intake_of(one.model, one.tokenizer) for one in (first, second)]
    limits = [(intake.source_limit, intake.target_limit) for intake in intakes]
    known = [limit for pair in limits for limit in pair if limit is not None]
    if not max_length and limits[0] != limits[1] and known:
        max_length = min(known)
    made = [
        encode(
            texts,
            subject.tokenizer,
            stacks=stacks,
            intake=intake,
            batch_size=BatchSize(rows=batch_size, cells=most),
            max_length=max_length,
            long=long,
        )
        for subject, intake in zip((first, second), intakes, strict=True)
    ]
    for ours, theirs in zip(*made, strict=False):
        for name, side in ours.sides.items():
            other = theirs.sides.get(name)
            if other is None or ours.index != theirs.index or side.tokens != other.tokens:
                raise InputError(
                    f"{first.name} and {second.name} cut the texts into different tokens"
                    f"{_first_difference(side, other)}, so their attention cannot be compared; "
                    "compare models of one tokenizer."
                )
        yield ours, theirs


def _first_difference(side: Side, other: Side | None) -> str:
    rows = [] if other is None else zip(side.tokens, other.tokens, strict=False)
    pairs = (pair for row in rows for pair in zip(*row, strict=False))
    return next((f" ('{one}' and '{another}')" for one, another in pairs if one != another), "")


def pad_to_width(batch: Batch, width: int, pad_id: int) -> Batch:
    """The batch with all rows padded to a width, as Kovaleva et al.'s notebook has them."""
    there = batch.inputs["input_ids"].shape[1]
    if there > width:
        raise UsageError(
            f"A text has {there} tokens, and maps are padded to {width}; pad to more (pad_to=)."
        )

    def wide(tensor: Tensor, fill: int = 0) -> Tensor:
        return torch.nn.functional.pad(tensor, (0, width - tensor.shape[1]), value=fill)

    def wide_side(side: Side) -> Side:
        names = ("real", "special", "separator", "punctuation", "stops")
        flags: dict[str, Any] = {name: wide(getattr(side, name)) for name in names}
        return replace(side, ids=wide(side.ids, pad_id), words=None, **flags)

    inputs = {
        name: wide(tensor, pad_id if name == "input_ids" else 0)
        for name, tensor in batch.inputs.items()
    }
    sides = {name: wide_side(side) for name, side in batch.sides.items()}
    return replace(batch, inputs=inputs, sides=sides)


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
    for stack in dict.fromkeys(match.place[0] for match in matches):
        rows += _of_stack([match for match in matches if match.place[0] == stack], found)
    return pd.DataFrame(rows, columns=_COLUMNS)


def _of_stack(matches: Sequence[Matched], found: Likeness) -> list[dict[str, Any]]:
    means = {
        name: np.stack([found.texts(match, name).mean(1) for match in matches], axis=1)
        for name in ("cosine", "js")
    }
    tested = _against_others(1 - means["cosine"])
    rows = []
    for place, match in enumerate(matches):
        row: dict[str, Any] = dict(zip(("stack", "layer"), match.place, strict=True))
        row |= {"heads": len(match.heads), "texts": len(means["js"])}
        for name, values in means.items():
            one = values[:, place]
            ends = stats.mean_interval(one.sum(), (one**2).sum(), len(one))
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), map(float, ends), strict=True))
        rows.append(row | {name: float(values[place]) for name, values in tested.items()})
    return rows


def _against_others(changes: Array) -> dict[str, Array]:
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
