"""What a survey does with a model: passes over corpora, and trials."""

from __future__ import annotations

import gc
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import partial, reduce
from operator import or_
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from headcount import plugins
from headcount.bundle import sample
from headcount.errors import InputError, UsageError
from headcount.models import Subject, enough_memory, out_of_memory, refuse_nan, subject_facts
from headcount.records import Column, HeadTable, provenance, working
from headcount.surveys.roles.role import TRIALS
from headcount.surveys.shards import ShardWork, Told, run_shards
from headcount.surveys.tally import Reading, SumsTally, Tally, readings_of, receivers, tabulate
from headcount.surveys.trial import Trial, TrialPlan, TrialTexts, trial_table
from headcount.text import (
    Batch,
    BatchSize,
    Corpus,
    Encoded,
    EncodeReport,
    Long,
    Pair,
    Ready,
    encode,
    intake_of,
    read_corpus,
    texts_of,
)
from headcount.wiring import TILE, Needs, halve_tiles, tap

# --- One pass -----------------------------------------------------------------------------------

_SMALLER = "--batch-size (batch_size=) or --reading max-length= (max_length=)"


@dataclass(frozen=True)
class PassOptions:
    """How texts are given to the model, and which of its stacks are looked at."""

    stacks: tuple[str, ...]
    #: Texts of one forward; None: as many as make a batch of `TOKENS`.
    batch_size: int | None = None
    max_length: int | None = None
    long: Long = "window"
    chat: bool = False
    #: False puts both texts of a pair in segment 0, as Clark's extraction did.
    segments: bool = True
    #: So many queries stand for all of a longer text; None: all of them are read.
    rows: int | None = None
    #: For the draw of the rows.
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The settings that a run keeps; numbers do not depend on the size of batches."""
        kept = {**asdict(self), "stacks": list(self.stacks)}
        unused = {"batch_size"} | ({"rows", "seed"} if self.rows is None else set())
        return {name: value for name, value in kept.items() if name not in unused}


def run_pass(
    subject: Subject,
    source: Corpus | Ready,
    tallies: Sequence[Tally],
    inputs: PassOptions,
    title: str = "Surveying",
) -> EncodeReport:
    """Run a corpus and update the tallies; the report says what was read, truncated and skipped."""
    with working(title, len(source)) as shown:
        report = run_part(subject, source, tallies, shown.to, inputs=inputs)
    check_pass(subject, source, tallies, report)
    return report


def run_part(
    subject: Subject,
    source: Corpus | Ready,
    tallies: Sequence[Tally],
    told: Told,
    *,
    inputs: PassOptions,
) -> EncodeReport:
    """The same for a corpus, or a part of one, of which what it came to is checked later.

    Where memory runs out, the part is begun anew in batches of half the size, then in smaller
    tiles; what fitted is remembered for the model.
    """
    fresh, smaller = deepcopy(tuple(tallies)), 0
    while True:
        try:
            report = _run_part(subject, source, tallies, told, inputs)
        except Exception as error:
            if not out_of_memory(error):
                raise
            if not _make_smaller(subject, source, inputs):
                with enough_memory(subject, _SMALLER):
                    raise
            smaller += 1
            for tally, clean in zip(tallies, deepcopy(fresh), strict=True):
                vars(tally).clear()
                vars(tally).update(vars(clean))
        else:
            report.smaller += smaller
            return report


#: The tokens of one batch, padding included, by the kind of device; a GPU is given rows whose
#: widths are multiples of `_STEP`, which its kernels like.
TOKENS = {"cpu": 2**9, "cuda": 2**14}
_STEP = 8

#: How many times batches were halved, by model, once memory has run out.
_HALVED: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()


def _batch_size(subject: Subject, inputs: PassOptions) -> BatchSize:
    """As much as fitted before."""
    part, kind = 2 ** _HALVED.get(subject.model, 0), subject.device.type
    if inputs.batch_size is not None:
        return BatchSize(rows=max(1, inputs.batch_size // part) if part > 1 else inputs.batch_size)
    if kind == "cpu":
        return BatchSize(tokens=TOKENS["cpu"] // part)
    return BatchSize(tokens=TOKENS["cuda"] // part, step=_STEP)


def _make_smaller(subject: Subject, source: Corpus | Ready, inputs: PassOptions) -> bool:
    """Halve what is done at once, and remember it; False where it is as small as can be."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    size = _batch_size(subject, inputs)
    if (size.rows or size.tokens or 1) > 1 and not isinstance(source, Ready):
        _HALVED[subject.model] = _HALVED.get(subject.model, 0) + 1
        return True
    return halve_tiles(subject.device)


def _run_part(
    subject: Subject,
    source: Corpus | Ready,
    tallies: Sequence[Tally],
    told: Told,
    inputs: PassOptions,
) -> EncodeReport:
    needs = reduce(or_, (tally.needs for tally in tallies), Needs())
    maps = needs.maps or needs.tiles
    batches, done = batches_of(subject, source, inputs, maps=maps), 0
    shown = receivers(tallies)
    # A map between words is of all rows.
    rows = None if maps else inputs.rows
    with tap(subject, needs, stacks=inputs.stacks, rows=rows, seed=inputs.seed) as watch:
        for batch in batches:
            watch(batch if inputs.segments else _one_segment(batch), **shown)
            if not done and not getattr(source, "first", 0):
                # Broken weights show at once, not after an hour.
                watch.flush()
                suspects = [one for one in tallies if not _is_sound(one)]
                check_numbers(subject, readings_of(suspects))
            done += batch.window.count(0)
            told(done)
    report = batches.report
    report.paths += watch.paths
    report.sampled += watch.sampled
    report.unsampled += done if rows is None and inputs.rows is not None else 0
    return report


def _is_sound(tally: Tally) -> bool:
    """Whether all that a tally summed up are numbers; False where it says so in its readings."""
    return isinstance(tally, SumsTally) and not tally.sums.broken


def check_pass(
    subject: Subject, source: Corpus | Ready, tallies: Sequence[Tally], report: EncodeReport
) -> list[Reading]:
    """What the tallies say of a whole corpus; refused where it is no number, or nothing at all."""
    readings = readings_of(tallies)
    check_numbers(subject, readings)
    if not report.rows:
        raise InputError(
            f"No sentence of {source.name} has a token for this tokenizer; give other text."
        )
    return readings


def batches_of(
    subject: Subject, source: Corpus | Ready, inputs: PassOptions, maps: bool = False
) -> Encoded | Ready:
    """The batches of a corpus for this model; with `maps`, of texts whose maps fit in memory."""
    if isinstance(source, Ready):
        return source
    heads = max(site.heads for site in subject.anatomy.sites)
    size = _batch_size(subject, inputs)
    return encode(
        source,
        subject.tokenizer,
        stacks=inputs.stacks,
        intake=intake_of(subject.model, subject.tokenizer),
        batch_size=replace(size, cells=TILE["kept"] // heads if maps else None),
        max_length=inputs.max_length,
        long=inputs.long,
        chat=inputs.chat,
    )


def check_numbers(subject: Subject, readings: Sequence[Reading]) -> None:
    """Stop at attention that is not a number, rather than print NA for it."""
    for reading in readings:
        if not reading.note and np.isnan(reading.value).any():
            refuse_nan(subject, f"{reading.site.stack}.{reading.site.layer}")


def _one_segment(batch: Batch) -> Batch:
    """The batch with all tokens in segment 0."""
    if "token_type_ids" not in batch.inputs:
        return batch
    zeros = torch.zeros_like(batch.inputs["token_type_ids"])
    return replace(batch, inputs=batch.inputs | {"token_type_ids": zeros})


# --- Which trials make sense for a model, and all of them run in one call -----------------------

#: No trial reads more of a corpus than this.
_MOST = 2_500


def trials_for(subject: Subject, corpus: Any = None, *, seed: int = 0) -> list[Trial]:
    """The trials that mean something for a subject, on a corpus or on the bundled sample.

    Decoders read repeated random tokens, natural text and needles in haystacks; encoder-decoders
    random tokens and the corpus' pairs; encoders random tokens.
    """
    texts, pairs = texts_and_pairs(corpus)
    return chosen_trials(subject, TrialTexts(texts, pairs, seed), {TRIALS})


def chosen_trials(subject: Subject, given: TrialTexts, reads: Collection[str]) -> list[Trial]:
    """The trials of the registry that these reads ask for and that fit a subject."""
    made = [_trial_plan(one) for one in plugins.every("trials").values()]
    made.sort(key=lambda plan: plan.read_by != TRIALS)
    trials = [plan.make(given) for plan in made if plan.read_by in reads]
    return [trial for trial in trials if trial is not None and trial.unfit(subject) is None]


def _trial_plan(found: Any) -> TrialPlan:
    return found if isinstance(found, TrialPlan) else TrialPlan(lambda given: found())


def run_trials(
    subject: Subject,
    corpus: Any = None,
    *,
    trials: Sequence[Trial] | None = None,
    seed: int = 0,
    lenient: bool | None = None,
    title: str = "Trials",
) -> HeadTable:
    """Run trials on a model; their columns are ready to be joined to a survey's table.

    `corpus` is what a survey takes (sentences, pairs, a path); without one the bundled English
    sample is read, and no pairs. `trials` are those of `trials_for`, or your own choice:
    ``[Repeats(length=64)]``. `table.details["trials"]` has each head's chance and p values,
    `table.details["trial_models"]` what the model itself does. A trial of `trials_for` that the
    corpus is too short for is left out, and the provenance says so; one of your own raises,
    unless `lenient`.
    """
    chosen = trials_for(subject, corpus, seed=seed) if trials is None else list(trials)
    found, left_out = [], {}
    with working(title, len(chosen)) as shown:
        for trial in chosen:
            try:
                why = trial.unfit(subject)
                if why is not None:
                    raise UsageError(
                        f"The trial '{trial.name}' means nothing for {subject.name}: {why}; leave "
                        "it out."
                    )
                found.append(trial(subject))
            except (InputError, UsageError) as error:
                if not (trials is None if lenient is None else lenient):
                    raise
                left_out[trial.name] = str(error)
            shown()
    table = trial_table(subject, found)
    table.provenance = provenance.collect(
        **subject_facts(subject),
        seed=seed,
        trials={trial.name: _settings(trial) for trial in chosen},
        remarks=[f"the trial '{name}' was left out: {why}" for name, why in left_out.items()],
    )
    return table


def texts_and_pairs(corpus: Any) -> tuple[list[str], list[tuple[str, str]]]:
    """The corpus' texts (the sources, where it has pairs) and its pairs, the first so many."""
    if corpus is None:
        return sample.sentences(), []
    read = corpus if isinstance(corpus, Corpus) else read_corpus(corpus)
    items = list(read.limit(_MOST) if len(read) > _MOST else read)
    pairs = [(item.source, item.target) for item in items if isinstance(item, Pair)]
    return [texts_of(item)[0] for item in items], pairs


def _settings(trial: Trial) -> dict[str, Any]:
    """A trial's sizes, and the hash of its texts, which are not kept themselves."""
    kept = {
        name: value for name, value in vars(trial).items() if name not in ("columns", "repeats")
    }
    for texts in [kept.pop(name) for name in ("texts", "pairs") if name in kept]:
        parts = [(text,) if isinstance(text, str) else text for text in texts]
        kept["data"] = provenance.hash_strings([line for part in parts for line in part])
    if "aligner" in kept:
        kept["aligner"] = vars(kept["aligner"])
    return kept


# --- What a survey does with a model ------------------------------------------------------------


@dataclass(frozen=True)
class Pass:
    """A corpus and the tallies that look at it."""

    #: What is shown while it runs: "Surveying".
    name: str
    source: Corpus | Ready
    tallies: tuple[Tally, ...]
    inputs: PassOptions
    #: The columns that it fills, in the order of the table.
    columns: tuple[Column, ...] = ()
    #: Column to the reason why no tally fills it.
    missing: Mapping[str, str] = field(default_factory=dict)
    #: What the provenance says besides: convention, seed, limit.
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """What the corpus is counted in."""
        return "pairs" if getattr(self.source, "paired", False) else "sentences"

    def run(
        self,
        subject: Subject,
        of: str = "",
        work: ShardWork = ShardWork(),  # noqa: B008 - a frozen value
    ) -> HeadTable:
        """Go through the corpus, in shards, and tabulate."""
        report, set_aside = run_shards(
            subject,
            self.source,
            self.tallies,
            partial(run_part, inputs=self.inputs),
            work=work.of(self.name + of),
            settings=self.inputs.to_dict(),
            title=self.name + of,
        )
        readings = check_pass(subject, self.source, self.tallies, report)
        table = tabulate(subject.anatomy, readings, self.columns, dict(self.missing))
        for tally in self.tallies:
            table.details.update(tally.details())
        # Say of the stacks that nobody looked at that they are NA for this reason.
        left_out = [
            f"{stack}: not surveyed" for stack in table.stacks if stack not in self.inputs.stacks
        ]
        for name in table.names if left_out else ():
            table.notes[name] = "; ".join([*filter(None, [table.notes.get(name)]), *left_out])
        table.provenance = self._provenance(subject, report, set_aside)
        return table

    def _provenance(
        self, subject: Subject, report: EncodeReport, set_aside: Sequence[str]
    ) -> dict[str, Any]:
        """Where the numbers come from."""
        source = self.source
        remarks = [remark for tally in self.tallies for remark in getattr(tally, "remarks", ())]
        return provenance.collect(
            **subject_facts(subject),
            corpus=source.name,
            data=source.hash,
            unit=self.unit,
            counts=_counts(report) | {"skipped": dict(source.skipped)},
            attention=sorted(report.paths),
            remarks=[*report.sentences_in_words(), *set_aside, *remarks],
            **({"set_aside": len(set_aside)} if set_aside else {}),
            **self.facts,
        )


def _counts(report: EncodeReport) -> dict[str, Any]:
    """What was read, as a run keeps it; how it was read says nothing of the corpus."""
    found = {name: count for name, count in vars(report).items() if name != "paths"}
    return found | {"tokens": dict(report.tokens)}


@dataclass(frozen=True)
class SurveyPlan:
    """Passes and trials, in their order; the first pass gives the table its provenance."""

    passes: tuple[Pass, ...]
    trials: tuple[Trial, ...] = ()

    def run(
        self,
        subject: Subject,
        of: str = "",
        work: ShardWork = ShardWork(),  # noqa: B008 - a frozen value
    ) -> HeadTable:
        """Do all of it; `of` is put behind the name of each stage that is shown."""
        table: HeadTable | None = None
        for one in self.passes:
            table = _joined(table, one.run(subject, of, work))
        if self.trials:
            title = "Trials" + of
            found = run_trials(subject, trials=self.trials, lenient=True, title=title)
            table = _joined(table, found)
        return HeadTable.of(subject.heads, {}) if table is None else table

    def again(self) -> SurveyPlan:
        """The same with fresh tallies, to be run on another model; copy before the first run."""
        passes = [replace(one, tallies=deepcopy(one.tallies)) for one in self.passes]
        return replace(self, passes=tuple(passes))


def _joined(table: HeadTable | None, more: HeadTable) -> HeadTable:
    """Both; what an earlier stage measured stays, and the provenance names each corpus."""
    about = more.provenance
    corpora = {} if table is None else dict(table.provenance.get("corpora", {}))
    if "data" in about:
        kept = ("data", "unit", "counts", "attention", "remarks")
        corpora[about["corpus"]] = {name: about[name] for name in kept}
    if table is None:
        joined = more
    else:
        shared = [name for name in more.names if name in table.names]
        joined = table.join(more.without(shared) if shared else more)
    joined.provenance = {**joined.provenance, "corpora": corpora}
    if "trials" in about:
        joined.provenance["trials"] = {name: about[name] for name in ("trials", "remarks")}
    return joined
