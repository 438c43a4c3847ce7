"""Compare two models head by head: what fine-tuning, pruning or more training did to attention."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import pandas as pd

from headcount import stats
from headcount.errors import UsageError
from headcount.models import Subject, check_finite, refuse_nan
from headcount.records import STACKS, Head, HeadTable, old_keywords, provenance, working
from headcount.rooms.compare.likeness import (
    FOLDS,
    MATCHES,
    Folds,
    Likeness,
    Matched,
    batches_of_both,
    layer_changes,
    match_by_maps,
    match_by_name,
    pad_to_width,
    stack_cosines,
)
from headcount.rooms.compare.runs import Changes, role_changes
from headcount.rooms.features import FeatureTally
from headcount.rooms.relations import Links
from headcount.surveys import ReadingOptions, Tally, chosen_tallies, readings_of, survey, tabulate
from headcount.text import Corpus, Long, intake_of, read_corpus
from headcount.wiring import Needs, Sighting, tap

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
    (ours, theirs), found = work.run(items)
    pairs = work.pairs
    heads = _frame(work, found, ours.changes(theirs, list(pairs), list(pairs.values())))
    layers = layer_changes(work.matches, found)
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
        found = Likeness()
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
                    self._add(found, seen, numbers)
                    if self.convention == "code":
                        tokenizer: Any = self.first.tokenizer
                        fill = tokenizer.pad_token_id or 0
                        wide = [pad_to_width(batch, self.pad_to, fill) for batch in batches]
                        seen = [watch(batch) for watch, batch in zip(watches, wide, strict=True)]
                        self._add(found, seen, numbers, padded=True)
                    done += batches[0].window.count(0)
                    shown.to(done)
                folds.append(sides)
        for match in self.matches:
            if np.isnan(found.texts(match, "js")).any():
                check_finite(self.first)
                refuse_nan(self.second, "{}.{}".format(*match.place))
        ours, theirs = (
            Folds(one.anatomy, self._tallies, [fold[side] for fold in folds])
            for side, one in enumerate((self.first, self.second))
        )
        return (ours, theirs), found

    def _tallies(self) -> list[Tally]:
        more: list[Tally] = (
            [FeatureTally(self.convention), Links(self.convention)] if self.annotated else []
        )
        return [*chosen_tallies(None, self.convention), *more]

    def _add(
        self,
        found: Likeness,
        seen: Sequence[list[Sighting]],
        numbers: Sequence[int],
        padded: bool = False,
    ) -> None:
        """Compare the maps of one batch, layer by layer."""
        ours, theirs = ({(s.site.stack, s.site.layer): s for s in one} for one in seen)
        for match in self.matches:
            found.add(match, ours[match.place], theirs, numbers, padded)


def _check(first: Any, second: Any, corpus: Any, treebank: Any) -> None:
    for one in (first, second):
        if not isinstance(one, Subject):
            raise UsageError(
                f"compare takes two Subjects, not {one!r}; make them with hc.load(name), or "
                "compare two run directories: headcount compare RUN RUN."
            )
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


def _frame(work: _Work, found: Likeness, columns: pd.DataFrame) -> pd.DataFrame:
    """Cosine and divergence with intervals over texts, then the columns."""
    parts: dict[str, list[np.ndarray]] = {}
    for match in work.matches:
        for name in ("cosine", "js"):
            values = found.texts(match, name)
            ends = stats.mean_interval(values.sum(0), (values**2).sum(0), len(values))
            for end, part in zip(("", "_low", "_high"), ends, strict=True):
                parts.setdefault(name + end, []).append(np.asarray(part))
    heads = [head for match in work.matches for head in match.heads]
    index = pd.MultiIndex.from_tuples(heads, names=["stack", "layer", "head"])
    alike = pd.DataFrame({name: np.concatenate(part) for name, part in parts.items()}, index=index)
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
