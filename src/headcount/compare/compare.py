"""Compare two models head by head: what fine-tuning, pruning or more training did to attention."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import pandas as pd

from headcount import stats
from headcount.compare.likeness import (
    FOLDS,
    Folds,
    Likeness,
    Matched,
    batches_of_both,
    layer_changes,
    match_sites,
    pad_to_width,
)
from headcount.compare.runs import Changes, role_changes
from headcount.errors import UsageError
from headcount.models import Subject, check_finite, refuse_nan
from headcount.records import STACKS, HeadTable, Progress, provenance
from headcount.survey import FeatureTally, Links, Tally, chosen_tallies, survey, tabulate
from headcount.text import Corpus, Long, intake_of, read_corpus
from headcount.wiring import Needs, Sighting, tap

#: What Kovaleva et al.'s notebook pads to.
PAD_TO = 200


def compare(
    first: Subject,
    second: Subject,
    corpus: Any = None,
    *,
    treebank: Any = None,
    roles: bool | None = None,
    convention: str = "headcount",
    pad_to: int = PAD_TO,
    stacks: Collection[str] | None = None,
    batch_size: int = 16,
    max_length: int | None = None,
    long: Long = "window",
    limit: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Changes:
    """How each head of `second` differs from the same head of `first`, on the same texts.

    Kovaleva et al. 2019, section 4.3: cosine of the maps; also the Jensen-Shannon divergence of
    rows, and what became of every column of a survey. With a `treebank` also attention to kinds
    of words, from word to word, and (unless `roles=False`) the roles won and lost. Under
    `convention="code"` maps are padded to `pad_to` tokens before the cosine is taken.

    Models must have the same layers and heads, or one of them be the other with heads removed, and
    cut texts into the same tokens. Both run over each batch in one pass.

    >>> from headcount.models.load import load
    >>> compare(load("minilm"), load("my-minilm"), ["A cat sat."]).heads    # doctest: +SKIP
    """
    _check(first, second, corpus, treebank)
    texts = read_corpus(treebank if corpus is None else corpus, limit=limit, seed=seed)
    wanted = _stacks(first, second, stacks, texts)
    if convention == "code":
        _check_padding(first, second, pad_to)
    work = _Work(
        first, second, match_sites(first, second, wanted), wanted, convention, pad_to,
        {"batch_size": batch_size, "max_length": max_length, "long": long}, texts.annotated,
    )  # fmt: skip
    (ours, theirs), found = work.run(texts, progress)
    names = [head for match in work.matches for head in match.heads]
    heads = _frame(work, found, ours.changes(theirs, names))
    layers = layer_changes(work.matches, found)
    if convention == "paper":  # which has no cosine, nor what rests on it
        layers[["cosine", "cosine_low", "cosine_high", "more", "p", "p_adjusted"]] = np.nan
    judged = None
    if texts.annotated and roles is not False:
        options: Any = {"convention": convention, "batch_size": batch_size}
        tables = [survey(one, treebank=texts, **options) for one in (first, second)]
        judged = role_changes(*(table.details["roles"] for table in tables))
    return Changes(
        first.name,
        second.name,
        heads,
        layers,
        judged,
        _table(work, texts, ours.merged()),
        _provenance(work, texts, limit, seed),
        _notes(work),
    )


@dataclass
class _Work:
    """Two models, and how texts are fed to them."""

    first: Subject
    second: Subject
    matches: list[Matched]
    stacks: tuple[str, ...]
    convention: str
    pad_to: int
    settings: dict[str, Any]
    annotated: bool

    def run(self, texts: Corpus, progress: Progress | None) -> tuple[tuple[Folds, Folds], Likeness]:
        """Go through the texts fold by fold; both models see every batch before the next."""
        items = list(texts)
        folds: list[tuple[list[Tally], list[Tally]]] = []
        found = Likeness()
        done, count = 0, min(FOLDS, len(items))
        with ExitStack() as open_taps:
            needs = reduce(or_, (tally.needs for tally in self._tallies()), Needs(maps=True))
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
                    if progress is not None:
                        progress(done, len(items))
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
            found.add(match, ours[match.place], theirs[match.place], numbers, padded)


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
                "fewer (--pad-to)."
            )


def _stacks(
    first: Subject, second: Subject, stacks: Collection[str] | None, texts: Corpus
) -> tuple[str, ...]:
    """The stacks that both have and the texts can show, in their order."""
    there = [stack for stack in STACKS if stack in first.anatomy.stacks]
    if set(there) != set(second.anatomy.stacks):
        raise UsageError(
            f"{first.name} has the stacks {', '.join(there)} and {second.name} has "
            f"{', '.join(second.anatomy.stacks)}; compare models of the same kind."
        )
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
    return alike.join(columns)


def _table(work: _Work, texts: Corpus, tallies: Sequence[Tally]) -> HeadTable:
    """What the first model's heads do on these texts."""
    columns = [column for tally in tallies for column in tally.columns]
    table = tabulate(work.first.anatomy, tallies, columns)
    table.provenance = provenance.collect(
        model=work.first.name,
        revision=work.first.revision,
        weights=work.first.weights_hash,
        corpus=texts.name,
        data=texts.hash,
        convention=work.convention,
        settings={"stacks": list(work.stacks)},
    )
    return table


def _provenance(work: _Work, texts: Corpus, limit: int | None, seed: int | None) -> dict[str, Any]:
    return provenance.collect(
        model=work.first.name,
        weights=work.first.weights_hash,
        after=work.second.name,
        after_weights=work.second.weights_hash,
        corpus=texts.name,
        data=texts.hash,
        texts=len(texts),
        convention=work.convention,
        pad_to=work.pad_to if work.convention == "code" else None,
        limit=limit,
        seed=seed,
    )


def _notes(work: _Work) -> list[str]:
    notes = []
    common = sum(len(match.heads) for match in work.matches)
    most = max(
        sum(site.heads for site in one.anatomy.sites if site.stack in work.stacks)
        for one in (work.first, work.second)
    )
    if common < most:
        notes.append(f"{most - common} heads are in one model only and were left out.")
    if work.convention == "paper":
        notes.append("cosine: the paper's text does not say what of padding counts; see headcount.")
    return notes
