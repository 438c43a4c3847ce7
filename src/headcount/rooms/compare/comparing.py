"""Compare two models head by head: what fine-tuning, pruning or more training did to attention.

How alike two models are on the same texts: matched heads, their maps, columns and layers.

Kovaleva et al., EMNLP 2019, section 4.3: the cosine of the flattened maps before and after
fine-tuning, averaged over texts. Their notebook flattens maps padded to 200 tokens, rows of padding
and all; by default maps are cut to the text here. The Jensen-Shannon divergence of rows is smoothed
as Clark et al. 2019 smooth it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import reduce
from math import ceil
from operator import or_
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit
from torch import Tensor

from headcount import stats
from headcount.errors import InputError, StatsError, UsageError
from headcount.models import Anatomy, Subject, check_finite, check_subject, refuse_nan
from headcount.records import STACKS, Head, HeadTable, old_keywords, provenance, working
from headcount.rooms.compare.runs import Changes, role_changes
from headcount.rooms.families import SMOOTHING
from headcount.rooms.features import FeatureTally
from headcount.rooms.relations import Links
from headcount.surveys import ReadingOptions, Tally, chosen_tallies, readings_of, survey, tabulate
from headcount.text import Batch, BatchSize, Corpus, Long, Side, encode, intake_of, read_corpus
from headcount.wiring import TILE, Needs, Sighting, tap, tiles_of

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
        sides = [[head for head in one.heads if head.stack == stack] for one in (first, second)]
        ours, theirs = (np.array([head.layer for head in side]) for side in sides)
        groups = [(ours >= 0, theirs >= 0)]
        if depth:
            layers = np.unique(ours).tolist()
            nearest = _same_depth(layers, np.unique(theirs).tolist())
            groups = [(ours == a, theirs == b) for a, b in zip(layers, nearest, strict=True)]
        for group in groups:
            rows, columns = map(np.flatnonzero, group)
            best = linear_sum_assignment(cosines[np.ix_(rows, columns)], maximize=True)
            pairs |= {sides[0][rows[a]]: sides[1][columns[b]] for a, b in zip(*best, strict=True)}
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
    matches = []
    for site in first.anatomy.sites:
        heads = tuple(head for head in site.names if head in pairs)
        if heads:
            partners = tuple(pairs[head] for head in heads)
            rows = [site.names.index(head) for head in heads]
            places = [where[head] for head in partners]
            matches.append(Matched((site.stack, site.layer), heads, partners, rows, places))
    return matches


def _check_same_shape(first: Subject, second: Subject, stack: str) -> None:
    """Refuse what cannot be the same model before and after: only heads may be lost on the way."""
    if any(site.numbers is not None for one in (first, second) for site in one.anatomy.sites):
        return  # heads were removed, and the others kept their names
    one, other = (
        {site.layer: site.heads for site in subject.anatomy.sites if site.stack == stack}
        for subject in (first, second)
    )
    differ = next((layer for layer in one if one[layer] != other.get(layer)), None)
    if len(one) != len(other):
        what = f"{first.name} has {_count(len(one), 'layer')} in {stack} and {second.name} has "
        what += str(len(other))
    elif differ is not None:
        what = f"{stack}.{differ} has {_count(one[differ], 'head')} in {first.name} and "
        what += f"{other.get(differ, 0)} in {second.name}"
    else:
        return
    raise UsageError(
        f"{what}, so heads of the same name are not the same; match them by relative depth "
        "(--match depth) or by their maps alone (--match maps), or compare with a pruned model "
        "saved by headcount."
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
        totals = np.zeros((len(spots), *rows.shape[1:]))
        np.add.at(totals, np.array([spots[number] for number in numbers]), rows)
        sums = totals.swapaxes(0, 1)
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
        values = np.full((len(self.anatomy.heads), len(names)), np.nan)
        for tally in tallies:
            for reading in tally.compute():
                if reading.column in names:
                    span = self.anatomy.spans[reading.site]
                    values[span, names[reading.column]] = reading.value
        row = {head: place for place, head in enumerate(self.anatomy.heads)}
        return values[[row[head] for head in heads]]

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
        index = pd.MultiIndex.from_tuples(list(heads), names=_KEY)
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

_KEY = ["stack", "layer", "head"]
_COLUMNS = [
    "stack", "layer", "heads", "texts", "cosine", "cosine_low", "cosine_high", "js", "js_low",
    "js_high", "more", "p", "p_adjusted",
]  # fmt: skip


def layer_changes(matches: Sequence[Matched], likeness: Likeness) -> pd.DataFrame:
    """A row a layer: mean cosine and divergence of its heads, with intervals over texts.

    `more` is 1 - cosine less the mean of the stack's other layers: above 0, the layer changes more
    than they do. `p` is of a sign-flip test over texts, `p_adjusted` corrected over a stack's
    layers (Holm).
    """
    rows: list[dict[str, Any]] = []
    for stack in dict.fromkeys(match.place[0] for match in matches):
        rows += _of_stack([match for match in matches if match.place[0] == stack], likeness)
    return pd.DataFrame(rows, columns=_COLUMNS)


def _of_stack(matches: Sequence[Matched], likeness: Likeness) -> list[dict[str, Any]]:
    means = {
        name: np.stack([likeness.texts(match, name).mean(1) for match in matches], axis=1)
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


#: What Kovaleva et al.'s notebook pads to.
PAD_TO = 200


@old_keywords()
def compare(
    first: Subject,
    second: Subject,
    corpus: Any = None,
    *,
    treebank: Any = None,
    roles: bool | None = None,
    match: str = "name",
    convention: str = "headcount",
    pad_to: int = PAD_TO,
    stacks: Collection[str] | None = None,
    batch_size: int = 16,
    max_length: int | None = None,
    long: Long = "window",
    limit: int | None = None,
    seed: int | None = None,
) -> Changes:
    """How each head of `second` differs from the same head of `first`, on the same texts.

    Kovaleva et al. 2019, section 4.3: cosine of the maps; also the Jensen-Shannon divergence of
    rows, and what became of every column of a survey. With a `treebank` also attention to kinds
    of words, from word to word, and (unless `roles=False`) the roles won and lost. Under
    `convention="code"` maps are padded to `pad_to` tokens before the cosine is taken.

    Heads are matched by name (`match="name"`): the models have the same layers and heads, or one
    is the other with heads removed. Other models are matched one to one by the cosine of their
    maps, within a stack ("maps") or within layers of the same relative depth ("depth"): on every
    other text, and compared on the rest. Both must cut texts into the same tokens.

    >>> from headcount.models.loading import load
    >>> compare(load("minilm"), load("my-minilm"), ["A cat sat."]).heads    # doctest: +SKIP
    """
    _check(first, second, corpus, treebank)
    texts = read_corpus(treebank if corpus is None else corpus, limit=limit, seed=seed)
    wanted = _stacks(first, second, stacks, texts)
    if convention == "code":
        _check_padding(first, second, pad_to)
    settings = {"batch_size": batch_size, "max_length": max_length, "long": long}
    settings["pad_to"] = pad_to if convention == "code" else None
    items, alike = list(texts), dict[str, Any]()
    if match == "name":
        matches = match_by_name(first, second, wanted)
    else:
        chosen, items = _halves(items, match)
        alike = _alike(first, second, chosen, wanted, settings)
        matches = match_by_maps(first, second, alike, match == "depth")
    work = _Work(
        first, second, match, matches, wanted, convention, pad_to, settings, texts.annotated
    )
    (ours, theirs), likeness = work.run(items)
    pairs = work.pairs
    heads = _frame(work, likeness, ours.changes(theirs, list(pairs), list(pairs.values())))
    layers = layer_changes(work.matches, likeness)
    if convention == "paper":  # which has no cosine, nor what rests on it
        layers[["cosine", "cosine_low", "cosine_high", "more", "p", "p_adjusted"]] = np.nan
    judged = None
    if texts.annotated and roles is not False:
        how = ReadingOptions(convention=convention, batch_size=batch_size, stacks=wanted)
        tables = [survey(one, treebank=texts, reading=how) for one in (first, second)]
        one, other = (table.details["roles"] for table in tables)
        judged = role_changes(one, other, None if match == "name" else pairs)
    about = _provenance(work, texts, limit, seed)
    return Changes(
        first.name,
        second.name,
        heads,
        layers,
        judged,
        _table(work, ours.merged(), about),
        about,
        [*_match_notes(work, heads, alike, len(texts) - len(items)), *_notes(work)],
    )


def _halves(items: list[Any], match: str) -> tuple[list[Any], list[Any]]:
    """The texts by which heads are matched, and those on which they are compared."""
    if match not in MATCHES:
        raise UsageError(f"There is no match '{match}'; choose {', '.join(MATCHES)}.")
    if len(items) < 2:
        raise UsageError(
            "There is one text, and matching heads by their maps takes two or more: one half "
            "tells the pairs, the other compares them."
        )
    return items[::2], items[1::2]


def _alike(
    first: Subject,
    second: Subject,
    items: list[Any],
    stacks: tuple[str, ...],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """The mean cosine of every two heads' maps, by stack."""
    sums, texts = dict[str, Any](), 0
    with ExitStack() as open_taps:
        watches = [
            open_taps.enter_context(tap(one, Needs(tiles=True), stacks=stacks))
            for one in (first, second)
        ]
        for batches in batches_of_both(first, second, items, stacks=stacks, **settings):
            seen = [watch(batch) for watch, batch in zip(watches, batches, strict=True)]
            for stack in stacks:
                sides = [[one for one in side if one.site.stack == stack] for side in seen]
                sums[stack] = sums.get(stack, 0) + stack_cosines(*sides)
            texts += len(batches[0].index)
    for stack, cosines in sums.items():
        if np.isnan(cosines).any():
            check_finite(first)
            refuse_nan(second, stack)
    return {stack: cosines / texts for stack, cosines in sums.items()}


@dataclass
class _Work:
    """Two models, and how texts are fed to them."""

    first: Subject
    second: Subject
    match: str
    matches: list[Matched]
    stacks: tuple[str, ...]
    convention: str
    pad_to: int
    settings: dict[str, Any]
    annotated: bool

    @property
    def pairs(self) -> dict[Head, Head]:
        """The heads that are compared, and each one's partner in the second model."""
        return {
            head: other
            for match in self.matches
            for head, other in zip(match.heads, match.partners, strict=True)
        }

    def run(self, items: Sequence[Any]) -> tuple[tuple[Folds, Folds], Likeness]:
        """Go through the texts fold by fold; both models see every batch before the next."""
        folds: list[tuple[list[Tally], list[Tally]]] = []
        likeness = Likeness()
        done, count = 0, min(FOLDS, len(items))
        with ExitStack() as open_taps, working("Comparing", len(items)) as shown:
            needs = reduce(or_, (tally.needs for tally in self._tallies()), Needs(tiles=True))
            watches = [
                open_taps.enter_context(tap(one, needs, stacks=self.stacks))
                for one in (self.first, self.second)
            ]
            for fold in range(count):
                sides = self._tallies(), self._tallies()
                for batches in batches_of_both(
                    self.first, self.second, items[fold::count], stacks=self.stacks, **self.settings
                ):
                    seen = [watch(batch) for watch, batch in zip(watches, batches, strict=True)]
                    numbers = [fold + count * item for item in batches[0].index]
                    for sightings, tallies in zip(seen, sides, strict=True):
                        for sighting in sightings:
                            for tally in tallies:
                                tally.update(sighting)
                    self._add(likeness, seen, numbers)
                    if self.convention == "code":
                        tokenizer: Any = self.first.tokenizer
                        fill = tokenizer.pad_token_id or 0
                        wide = [pad_to_width(batch, self.pad_to, fill) for batch in batches]
                        seen = [watch(batch) for watch, batch in zip(watches, wide, strict=True)]
                        self._add(likeness, seen, numbers, padded=True)
                    done += batches[0].window.count(0)
                    shown.to(done)
                folds.append(sides)
        for match in self.matches:
            if np.isnan(likeness.texts(match, "js")).any():
                check_finite(self.first)
                refuse_nan(self.second, "{}.{}".format(*match.place))
        ours, theirs = (
            Folds(one.anatomy, self._tallies, [fold[side] for fold in folds])
            for side, one in enumerate((self.first, self.second))
        )
        return (ours, theirs), likeness

    def _tallies(self) -> list[Tally]:
        more: list[Tally] = (
            [FeatureTally(self.convention), Links(self.convention)] if self.annotated else []
        )
        return [*chosen_tallies(None, self.convention), *more]

    def _add(
        self,
        likeness: Likeness,
        seen: Sequence[list[Sighting]],
        numbers: Sequence[int],
        padded: bool = False,
    ) -> None:
        """Compare the maps of one batch, layer by layer."""
        ours, theirs = ({(s.site.stack, s.site.layer): s for s in one} for one in seen)
        for match in self.matches:
            likeness.add(match, ours[match.place], theirs, numbers, padded)


def _check(first: Any, second: Any, corpus: Any, treebank: Any) -> None:
    check_subject(first, "compare(subject, other, texts)")
    check_subject(second, "compare(first, subject, texts)")
    if (corpus is None) == (treebank is None):
        which = "Neither a corpus nor" if corpus is None else "Both a corpus and"
        raise UsageError(f"{which} a treebank was given; give one of them (--text, --treebank).")


def _check_padding(first: Subject, second: Subject, pad_to: int) -> None:
    """Refuse a width that a model cannot take, and models that Kovaleva's notebook is not about."""
    for one in (first, second):
        if one.anatomy.stacks != ("enc",):
            raise UsageError(
                f"convention='code' pads the maps of an encoder, and {one.name} has the stacks "
                f"{', '.join(one.anatomy.stacks)}; use the convention headcount."
            )
        limit = intake_of(one.model, one.tokenizer).source_limit
        if limit is not None and pad_to > limit:
            raise UsageError(
                f"Maps shall be padded to {pad_to} tokens, and {one.name} takes {limit}; pad to "
                "fewer (pad_to=)."
            )


def _stacks(
    first: Subject, second: Subject, stacks: Collection[str] | None, texts: Corpus
) -> tuple[str, ...]:
    """The stacks that both have and the texts can show, in their order."""
    named = STACKS if stacks is None else stacks  # what was not asked for need not be there
    sides = [{*one.anatomy.stacks} for one in (first, second)]
    if (sides[0] ^ sides[1]) & {*named}:
        raise UsageError(
            f"{first.name} has the stacks {', '.join(first.anatomy.stacks)} and {second.name} has "
            f"{', '.join(second.anatomy.stacks)}; compare models of the same kind, or name the "
            "stacks that both have (--reading stacks=...)."
        )
    there = [stack for stack in STACKS if stack in sides[0] & sides[1]]
    if "cross" in there and not texts.paired:
        there = ["enc"]
    for stack in stacks or ():
        if stack not in there:
            raise UsageError(
                f"Stack '{stack}' cannot be compared here; choose among {', '.join(there)}."
            )
    return tuple(stack for stack in there if stacks is None or stack in stacks)


def _frame(work: _Work, likeness: Likeness, columns: pd.DataFrame) -> pd.DataFrame:
    """Cosine and divergence with intervals over texts, then the columns."""
    parts = []
    for match in work.matches:
        part = pd.DataFrame(index=pd.MultiIndex.from_tuples(match.heads, names=_KEY))
        for name in ("cosine", "js"):
            values = likeness.texts(match, name)
            ends = stats.mean_interval(values.sum(0), (values**2).sum(0), len(values))
            part[[name, f"{name}_low", f"{name}_high"]] = np.stack(ends, axis=1)
        parts.append(part)
    alike = pd.concat(parts)
    for name in ("cosine", "cosine_high"):
        alike[name] = alike[name].clip(upper=1.0)
    alike["js_low"] = alike["js_low"].clip(lower=0.0)
    if work.convention == "paper":
        alike[["cosine", "cosine_low", "cosine_high"]] = np.nan
    if work.match != "name":
        alike.insert(0, "partner", [str(other) for other in work.pairs.values()])
    return alike.join(columns)


def _table(work: _Work, tallies: Sequence[Tally], about: dict[str, Any]) -> HeadTable:
    """What the first model's heads do on these texts."""
    columns = [column for tally in tallies for column in tally.columns]
    table = tabulate(work.first.anatomy, readings_of(tallies), columns)
    table.provenance = {**about, "settings": {"stacks": list(work.stacks)}}
    return table


def _provenance(work: _Work, texts: Corpus, limit: int | None, seed: int | None) -> dict[str, Any]:
    return provenance.collect(
        model=work.first.name,
        revision=work.first.revision,
        weights=work.first.weights_hash,
        after=work.second.name,
        after_weights=work.second.weights_hash,
        corpus=texts.name,
        data=texts.hash,
        texts=len(texts),
        match=work.match,
        convention=work.convention,
        pad_to=work.pad_to if work.convention == "code" else None,
        limit=limit,
        seed=seed,
    )


def _match_notes(
    work: _Work, heads: pd.DataFrame, alike: Mapping[str, Any], texts: int
) -> list[str]:
    """How heads were matched, and how much more alike pairs are than heads at large."""
    if work.match == "name":
        return []
    notes = [
        f"Heads were matched {MATCHES[work.match]}, on {texts} of the texts; the others compare "
        "them. The column partner names the second model's head."
    ]
    if heads["cosine"].notna().any():
        chance = " and ".join(f"{cosines.mean():.2f} ({stack})" for stack, cosines in alike.items())
        notes.append(
            f"Matched heads have a mean cosine of {heads['cosine'].mean():.2f}; any two heads of "
            f"the two models have {chance}."
        )
    return notes


def _notes(work: _Work) -> list[str]:
    notes = []
    common = sum(len(match.heads) for match in work.matches)
    most = max(
        sum(site.heads for site in one.anatomy.sites if site.stack in work.stacks)
        for one in (work.first, work.second)
    )
    if work.match != "name":
        partners = len({*work.pairs.values()})
        left = [
            f"{sum(head.stack in work.stacks for head in one.heads) - number} of {one.name}"
            for one, number in ((work.first, common), (work.second, partners))
        ]
        notes.append(f"Heads without a partner: {left[0]}, {left[1]}.")
    elif common < most:
        notes.append(f"{most - common} heads are in one model only and were left out.")
    if work.convention == "paper":
        notes.append("cosine: the paper's text does not say what of padding counts; see headcount.")
    return notes


def jackknife_interval(value: ArrayLike, without: ArrayLike) -> stats.Interval:
    """A figure of all sentences, and its interval from the figures without each group.

    `without` is `[group, ...]`. Delete-a-group jackknife (Tukey 1958; Kott 2001) with Student's
    t. A difference between two models that read the same sentences is such a figure, so what
    sentences do to both cancels.

    >>> sample = np.array([3.0, 5.0, 4.0, 6.0])
    >>> left = [np.delete(sample, place).mean() for place in range(4)]
    >>> [round(float(number), 3) for number in jackknife_interval(sample.mean(), left)]
    [4.5, 2.446, 6.554]
    """
    figure, left = np.asarray(value, np.float64), np.asarray(without, np.float64)
    groups = len(left)
    if groups < 2:
        raise StatsError(f"There is {groups} group of sentences; a jackknife needs two or more.")
    spread = ((left - left.mean(0)) ** 2).sum(0) * (groups - 1) / groups
    half = np.sqrt(spread) * stdtrit(groups - 1, 0.975)
    return stats.Interval(figure, figure - half, figure + half)
