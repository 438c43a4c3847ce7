"""The survey: what every head of a model looks at, over a corpus, in one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import torch

from headcount import provenance
from headcount.errors import ModelError, UsageError
from headcount.heads import STACKS
from headcount.models.finite import check_finite
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.tallies.catalogue import COLUMNS, chosen_tallies, no_author_code
from headcount.tallies.offset_mass import OffsetMass
from headcount.tallies.tabulate import tabulate
from headcount.tallies.tally import Tally
from headcount.text import Batch, Corpus, EncodeReport, encode, intake_of, read_corpus, ready_batch
from headcount.text.encode import Long
from headcount.wiring import Needs, Sighting, tap

__all__ = ["survey"]

#: Called after each batch with the sentences done and their total.
Progress = Callable[[int, int], None]


def survey(
    subject: Subject,
    corpus: Any,
    *,
    convention: str = "headcount",
    columns: Sequence[str] | None = None,
    stacks: Collection[str] | None = None,
    batch_size: int = 16,
    max_length: int | None = None,
    long: Long = "window",
    chat: bool = False,
    segments: bool = True,
    limit: int | None = None,
    seed: int | None = None,
    offset_mass: bool = False,
    tallies: Sequence[Tally] = (),
    progress: Progress | None = None,
) -> HeadTable:
    """Measure where every head looks: a row for each head, a column for each statistic.

    `corpus` is a list of sentences or pairs, a path (.txt, .tsv, .conllu), or, for models that
    read no text, a list of ready model inputs. `convention` is "headcount", "paper" or
    "code"; `columns` chooses some of the columns, `tallies` adds your own. Long sentences are
    cut into windows and counted. `segments=False` gives both texts of a pair the segment 0, as
    Clark's extraction did; `offset_mass` adds the whole distribution of mass by offset to
    `table.details`. Nothing of the model is changed.

    >>> from headcount.models.load import load
    >>> table = survey(load("minilm"), ["The cat sat on the mat."])    # doctest: +SKIP
    """
    counting = [*chosen_tallies(columns, convention), *tallies]
    counting += [OffsetMass()] if offset_mass else []
    wanted = _stacks(subject, stacks)
    source = (
        _Ready(corpus, wanted) if _is_ready(corpus) else read_corpus(corpus, limit=limit, seed=seed)
    )
    batches = (
        source
        if isinstance(source, _Ready)
        else encode(
            source,
            subject.tokenizer,
            stacks=wanted,
            intake=intake_of(subject.model, subject.tokenizer),
            batch_size=batch_size,
            max_length=max_length,
            long=long,
            chat=chat,
        )
    )
    _count(subject, _segmented(batches, segments), counting, wanted, len(source), progress)
    described = [column for column in COLUMNS if columns is None or column.name in columns]
    described += [column for tally in tallies for column in tally.columns]
    missing = {n: why for n, why in no_author_code(convention).items() if columns is None}
    table = tabulate(subject.anatomy, counting, described, missing)
    table.provenance = _provenance(subject, source, batches.report, convention, seed)
    table.details = {name: frame for tally in counting for name, frame in tally.details().items()}
    return table


def _count(
    subject: Subject,
    batches: Iterable[Batch],
    tallies: Sequence[Tally],
    stacks: Collection[str],
    total: int,
    progress: Progress | None,
) -> None:
    """Run every batch and let every tally see every site of it."""

    def receive(sighting: Sighting) -> None:
        for tally in tallies:
            tally.update(sighting)

    seen: set[int] = set()
    needs = reduce(or_, (tally.needs for tally in tallies), Needs())
    with tap(subject, needs, stacks=stacks) as watch:
        for batch in batches:
            watch(batch, receive=receive)
            if not seen:
                _check_numbers(subject, tallies)
            seen.update(batch.index)
            if progress is not None:
                progress(len(seen), total)
    _check_numbers(subject, tallies)


def _check_numbers(subject: Subject, tallies: Sequence[Tally]) -> None:
    """Stop at attention that is not a number, naming the weights to blame where there are any."""
    broken = [r for t in tallies for r in t.compute() if not r.note and _has_nan(r.value)]
    if not broken:
        return
    check_finite(subject)
    site = broken[0].site
    raise ModelError(
        f"The attention at {site.stack}.{site.layer} of {subject.name} is not a number, although "
        f"all weights are; {subject.dtype} may be too small: load it with dtype='float32'."
    )


def _has_nan(values: Any) -> bool:
    return bool(torch.isnan(torch.as_tensor(values)).any())


def _stacks(subject: Subject, stacks: Collection[str] | None) -> tuple[str, ...]:
    there = subject.anatomy.stacks
    if stacks is None:
        return there
    for stack in stacks:
        if stack not in there:
            raise UsageError(f"{subject.name} has no stack '{stack}'; it has {', '.join(there)}.")
    if not stacks:
        raise UsageError(f"No stack was asked for; {subject.name} has {', '.join(there)}.")
    return tuple(stack for stack in STACKS if stack in stacks)


def _segmented(batches: Iterable[Batch], segments: bool) -> Iterator[Batch]:
    """Batches as they are, or with all tokens in segment 0."""
    for batch in batches:
        if segments or "token_type_ids" not in batch.inputs:
            yield batch
            continue
        zeros = torch.zeros_like(batch.inputs["token_type_ids"])
        yield replace(batch, inputs=batch.inputs | {"token_type_ids": zeros})


def _is_ready(corpus: Any) -> bool:
    """Whether the corpus is model inputs rather than text."""
    return isinstance(corpus, list | tuple) and bool(corpus) and isinstance(corpus[0], Mapping)


class _Ready:
    """Inputs that the caller prepared: one mapping of tensors a batch."""

    name = "ready inputs"
    hash = None

    def __init__(
        self, inputs: Sequence[Mapping[str, torch.Tensor]], stacks: Collection[str]
    ) -> None:
        self._inputs, self._stacks = inputs, stacks
        self.report = EncodeReport()

    def __len__(self) -> int:
        return sum(len(next(iter(inputs.values()))) for inputs in self._inputs)

    def __iter__(self) -> Iterator[Batch]:
        first = 0
        for inputs in self._inputs:
            batch = ready_batch(inputs, self._stacks, first)
            first += len(batch)
            self.report.sentences += len(batch)
            self.report.rows += len(batch)
            yield batch


def _provenance(
    subject: Subject,
    corpus: Corpus | _Ready,
    report: EncodeReport,
    convention: str,
    seed: int | None,
) -> dict[str, Any]:
    """Where the numbers come from."""
    about = subject.describe()
    return provenance.collect(
        model=subject.name,
        revision=subject.revision,
        weights=about["weights_hash"],
        subject=about,
        corpus=corpus.name,
        data=corpus.hash,
        convention=convention,
        seed=seed,
        counts={
            "sentences": report.sentences,
            "rows": report.rows,
            "tokens": dict(report.tokens),
            "truncated": report.truncated,
            "windowed": report.windowed,
            "windows": report.windows,
            "empty": report.empty,
            "skipped": dict(getattr(corpus, "skipped", {})),
        },
        remarks=report.sentences_in_words(),
    )
