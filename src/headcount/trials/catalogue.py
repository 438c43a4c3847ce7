"""Which trials make sense for a model, and all of them run in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headcount import provenance
from headcount.bundle import sample
from headcount.errors import InputError, UsageError
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.text.corpus import Corpus, read_corpus
from headcount.text.sentence import Pair, texts_of
from headcount.trials.answer import answers
from headcount.trials.copying import Copying
from headcount.trials.needle import Needle
from headcount.trials.pairs import Pairs
from headcount.trials.question import Findings, Trial
from headcount.trials.repeats import Repeats
from headcount.trials.sink import Sink

__all__ = ["run_trials", "trials_for"]

#: Called before each trial with the trials done, their number and the name of the next.
Progress = Callable[[int, int, str], None]

#: No trial reads more of a corpus than this.
_MOST = 2_500


def trials_for(subject: Subject, corpus: Any = None, *, seed: int = 0) -> list[Trial]:
    """The trials that mean something for a subject, on a corpus or on the bundled sample.

    Decoders are asked on random tokens said twice, on natural text and on needles in haystacks;
    encoder-decoders on random tokens and on the corpus' pairs; encoders on random tokens.
    """
    texts, pairs = _texts(corpus)
    repeats = Repeats(seed=seed)
    every: list[Trial] = [
        repeats,
        Copying(repeats),
        Sink(texts),
        Needle(texts, seed=seed),
        Pairs(pairs),
    ]
    return [trial for trial in every if trial.unfit(subject) is None]


def run_trials(
    subject: Subject,
    corpus: Any = None,
    *,
    trials: Sequence[Trial] | None = None,
    seed: int = 0,
    lenient: bool | None = None,
    progress: Progress | None = None,
) -> HeadTable:
    """Run trials on a model: a column a question, ready to be joined to a survey's table.

    `corpus` is what a survey takes (sentences, pairs, a path); without one the bundled English
    sample is read, and no pairs. `trials` are those of `trials_for`, or your own choice:
    ``[Repeats(length=64)]``. `table.details["trials"]` has each head's chance and p values,
    `table.details["trial_models"]` what the model itself does. A trial of `trials_for` that the
    corpus is too short for is left out, and the provenance says so; one of your own raises,
    unless `lenient`.
    """
    chosen = trials_for(subject, corpus, seed=seed) if trials is None else list(trials)
    found, left_out = [], {}
    for place, trial in enumerate(chosen):
        if progress is not None:
            progress(place, len(chosen), trial.name)
        try:
            found.append(_run(subject, trial))
        except (InputError, UsageError) as error:
            if not (trials is None if lenient is None else lenient):
                raise
            left_out[trial.name] = str(error)
    table = answers(subject, found)
    table.provenance = _provenance(subject, chosen, left_out, seed)
    return table


def _run(subject: Subject, trial: Trial) -> Findings:
    why = trial.unfit(subject)
    if why is not None:
        raise UsageError(
            f"The trial '{trial.name}' means nothing for {subject.name}: {why}; leave it out."
        )
    return trial(subject)


def _texts(corpus: Any) -> tuple[list[str], list[tuple[str, str]]]:
    """The corpus' texts (the sources, where it has pairs) and its pairs, the first so many."""
    if corpus is None:
        return sample.sentences(), []
    read = corpus if isinstance(corpus, Corpus) else read_corpus(corpus)
    items = list(read.limit(_MOST) if len(read) > _MOST else read)
    pairs = [(item.source, item.target) for item in items if isinstance(item, Pair)]
    return [texts_of(item)[0] for item in items], pairs


def _provenance(
    subject: Subject, trials: Sequence[Trial], left_out: dict[str, str], seed: int
) -> dict[str, Any]:
    """Where the numbers come from; the texts themselves are not kept, only their hash."""
    about = subject.describe()
    return provenance.collect(
        model=subject.name,
        revision=subject.revision,
        weights=about["weights_hash"],
        subject=about,
        seed=seed,
        trials={trial.name: _settings(trial) for trial in trials},
        remarks=[f"the trial '{name}' was left out: {why}" for name, why in left_out.items()],
    )


def _settings(trial: Trial) -> dict[str, Any]:
    """A trial's sizes, and the hash of its texts."""
    kept = {
        name: value for name, value in vars(trial).items() if name not in ("columns", "repeats")
    }
    for name in ("texts", "pairs"):
        if name in kept:
            lines = [
                part
                for text in kept.pop(name)
                for part in ((text,) if isinstance(text, str) else text)
            ]
            kept["data"] = provenance.hash_strings(lines)
    if "aligner" in kept:
        kept["aligner"] = vars(kept["aligner"])
    return kept
