"""The survey: what every head of a model looks at, over a corpus, in one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import torch

from headcount import provenance
from headcount.errors import InputError, UsageError
from headcount.heads import STACKS
from headcount.models.finite import refuse_nan
from headcount.models.memory import enough_memory
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.tallies.catalogue import COLUMNS, chosen_tallies, no_author_code
from headcount.tallies.offset_mass import OffsetMass
from headcount.tallies.tabulate import tabulate
from headcount.tallies.tally import Tally
from headcount.text import Batch, Corpus, EncodeReport, encode, intake_of, read_corpus
from headcount.text.encode import Encoded, Long
from headcount.text.ready import Ready, is_ready
from headcount.wiring import Needs, Sighting, tap

__all__ = ["Progress", "survey"]

#: Called after each batch with the sentences done and their total.
Progress = Callable[[int, int], None]

_SMALLER = "--batch-size (batch_size=) or --max-length (max_length=)"


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
    "code"; `columns` chooses some of the columns, `stacks` some of the stacks, `tallies` adds
    your own. Long sentences are cut into windows and counted. `segments=False` gives both texts
    of a pair the segment 0, as Clark's extraction did; `offset_mass` adds the whole distribution
    of mass by offset to `table.details`. Nothing of the model is changed.

    >>> from headcount.models.load import load
    >>> table = survey(load("minilm"), ["The cat sat on the mat."])    # doctest: +SKIP
    """
    _check_call(subject, columns, tallies)
    own = {column.name for tally in tallies for column in tally.columns}
    ours = None if columns is None else [name for name in columns if name not in own]
    counting = [*chosen_tallies(ours, convention), *tallies]
    counting += [OffsetMass()] if offset_mass else []
    wanted = _stacks(subject, stacks)
    settings: dict[str, Any] = {"max_length": max_length, "long": long, "chat": chat}
    source = _source(corpus, subject.anatomy.stacks, limit, seed, settings)
    batches = _batches(source, subject, wanted, batch_size, settings)
    _count(subject, _segmented(batches, segments), counting, wanted, len(source), progress)
    _check_any(source.name, batches.report)
    table = _table(subject, counting, columns, tallies, convention)
    _note_left_out(table, wanted)
    settings |= {"stacks": list(wanted), "segments": segments, "limit": limit}
    table.provenance = _provenance(subject, source, batches.report, convention, seed, settings)
    return table


def _check_call(subject: Any, columns: Any, tallies: Any) -> None:
    """Tell the slips that Python would tell as something else."""
    if not isinstance(subject, Subject):
        raise UsageError(
            f"survey takes a Subject, not {subject!r}; make one with hc.load(name) or "
            "hc.Subject(model, tokenizer)."
        )
    if isinstance(columns, str):
        raise UsageError(f"columns is the text '{columns}'; give a list, e.g. ['{columns}'].")
    if not isinstance(tallies, list | tuple) or any(isinstance(one, type) for one in tallies):
        raise UsageError(f"tallies is {tallies!r}; give a list of tallies, e.g. [MyTally()].")


def _stacks(subject: Subject, stacks: Collection[str] | None) -> tuple[str, ...]:
    """The stacks to look at, in their order; those that were asked for must be there."""
    there = subject.anatomy.stacks
    if stacks is None:
        return there
    for stack in stacks:
        if stack not in there:
            raise UsageError(f"{subject.name} has no stack '{stack}'; it has {', '.join(there)}.")
    if not stacks:
        raise UsageError(f"No stack was asked for; {subject.name} has {', '.join(there)}.")
    return tuple(stack for stack in STACKS if stack in stacks)


def _source(
    corpus: Any,
    stacks: Sequence[str],
    limit: int | None,
    seed: int | None,
    settings: dict[str, Any],
) -> Corpus | Ready:
    """Texts, read; or ready inputs, for which the settings of texts mean nothing.

    All stacks of the model say which side an input is, whichever of them are looked at.
    """
    if not is_ready(corpus):
        return read_corpus(corpus, limit=limit, seed=seed)
    for name, value in {"limit": limit, **settings}.items():
        if value not in (None, False, "window"):
            raise UsageError(
                f"{name} is {value!r}, but these are ready inputs and no text; leave it out."
            )
    return Ready(corpus, stacks)


def _batches(
    source: Corpus | Ready,
    subject: Subject,
    stacks: Sequence[str],
    batch_size: int,
    settings: dict[str, Any],
) -> Encoded | Ready:
    if isinstance(source, Ready):
        return source
    intake = intake_of(subject.model, subject.tokenizer)
    return encode(
        source, subject.tokenizer, stacks=stacks, intake=intake, batch_size=batch_size, **settings
    )


def _segmented(batches: Iterable[Batch], segments: bool) -> Iterator[Batch]:
    """Batches as they are, or with all tokens in segment 0."""
    for batch in batches:
        if segments or "token_type_ids" not in batch.inputs:
            yield batch
            continue
        zeros = torch.zeros_like(batch.inputs["token_type_ids"])
        yield replace(batch, inputs=batch.inputs | {"token_type_ids": zeros})


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

    done = 0
    needs = reduce(or_, (tally.needs for tally in tallies), Needs())
    with tap(subject, needs, stacks=stacks) as watch, enough_memory(subject, _SMALLER):
        for batch in batches:
            watch(batch, receive=receive)
            if not done:  # broken weights show at once, not after an hour
                _check_numbers(subject, tallies)
            done += batch.window.count(0)
            if progress is not None:
                progress(done, total)
    _check_numbers(subject, tallies)


def _check_numbers(subject: Subject, tallies: Sequence[Tally]) -> None:
    """Stop at attention that is not a number, rather than print NA for it."""
    for tally in tallies:
        for reading in tally.compute():
            if not reading.note and np.isnan(reading.value).any():
                refuse_nan(subject, f"{reading.site.stack}.{reading.site.layer}")


def _check_any(name: str, report: EncodeReport) -> None:
    if not report.rows:
        raise InputError(f"No sentence of {name} has a token for this tokenizer; give other text.")


def _table(
    subject: Subject,
    counting: Sequence[Tally],
    columns: Sequence[str] | None,
    tallies: Sequence[Tally],
    convention: str,
) -> HeadTable:
    """The tallies' columns, those that were asked for, in the order of the table."""
    described = [column for column in COLUMNS if columns is None or column.name in columns]
    described += [column for tally in tallies for column in tally.columns]
    missing = {n: why for n, why in no_author_code(convention).items() if columns is None}
    table = tabulate(subject.anatomy, counting, described, missing)
    table.details = {name: frame for tally in counting for name, frame in tally.details().items()}
    return table


def _note_left_out(table: HeadTable, stacks: Collection[str]) -> None:
    """Say of the stacks that nobody looked at that they are NA for this reason."""
    left_out = [f"{stack}: not surveyed" for stack in table.stacks if stack not in stacks]
    for name in table.names if left_out else ():
        table.notes[name] = "; ".join([*filter(None, [table.notes.get(name)]), *left_out])


def _provenance(
    subject: Subject,
    source: Corpus | Ready,
    report: EncodeReport,
    convention: str,
    seed: int | None,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Where the numbers come from."""
    about = subject.describe()
    return provenance.collect(
        model=subject.name,
        revision=subject.revision,
        weights=about["weights_hash"],
        subject=about,
        corpus=source.name,
        data=source.hash,
        convention=convention,
        seed=seed,
        settings=settings,
        counts=vars(report) | {"tokens": dict(report.tokens), "skipped": dict(source.skipped)},
        remarks=report.sentences_in_words(),
    )
