"""What was asked for becomes a programme: which tallies look at which corpus, which trials fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headcount.columns import Column
from headcount.stages.corpora import Corpora
from headcount.stages.passing import Manner, batches_of
from headcount.stages.programme import Pass, Programme
from headcount.subject import Subject
from headcount.tallies.catalogue import COLUMNS, chosen_tallies, no_author_code
from headcount.tallies.frequencies import Frequencies, corpus_frequencies
from headcount.tallies.offset_mass import OffsetMass
from headcount.tallies.rarity import Rarity
from headcount.tallies.separator_row import SeparatorRow
from headcount.tallies.tally import Tally
from headcount.tallies.word_tallies import argument_tallies, mention_tallies, tree_tallies
from headcount.text import Corpus, texts_of
from headcount.text.ready import Ready
from headcount.text.words import Rows
from headcount.trials.answer import ANSWERS
from headcount.trials.catalogue import trials_for
from headcount.trials.noop import NoOp
from headcount.trials.question import Trial

__all__ = ["Wishes", "planned"]

#: As many texts are enough for gradients.
_GRADIENTS = 64


@dataclass(frozen=True)
class Wishes:
    """What a survey was asked for besides its corpora."""

    convention: str = "headcount"
    columns: Sequence[str] | None = None
    tallies: Sequence[Tally] = ()
    offset_mass: bool = False
    #: What the roles that heads are judged by read; nothing where no head is judged.
    reads: frozenset[str] = frozenset()
    word_rows: Rows | None = None
    relations: Sequence[str] | None = None
    #: None: those of the text itself.
    frequencies: Frequencies | None = None
    #: What the provenance keeps: seed and limit.
    facts: Mapping[str, Any] = field(default_factory=dict)


def planned(subject: Subject, corpora: Corpora, manner: Manner, wishes: Wishes) -> Programme:
    """The text with the tallies of every survey, then each annotated corpus, then the trials."""
    passes = [_text_pass(subject, corpora, manner, wishes)]
    if not wishes.reads:
        return Programme(tuple(passes))
    for name, corpus, tallies in (
        ("Following relations", corpora.treebank, tree_tallies),
        ("Following mentions", corpora.coref, mention_tallies),
        ("Following arguments", corpora.arguments, argument_tallies),
    ):
        if corpus is not None:
            chosen = tallies(wishes.convention, wishes.word_rows, wishes.relations)
            passes = _with(passes, name, corpus, chosen, _for(subject, corpus, manner), wishes)
    return Programme(tuple(passes), tuple(_trials(subject, corpora.text, wishes)))


def _text_pass(subject: Subject, corpora: Corpora, manner: Manner, wishes: Wishes) -> Pass:
    """The columns of every survey, those of the caller's tallies, and how rare tokens fare."""
    own = {column.name for tally in wishes.tallies for column in tally.columns}
    columns = wishes.columns
    ours = None if columns is None else [name for name in columns if name not in own]
    if wishes.reads and corpora.text_is_annotated:
        manner = _for(subject, corpora.text, manner)
    tallies = [*chosen_tallies(ours, wishes.convention), *wishes.tallies]
    tallies += [OffsetMass()] if wishes.offset_mass else []
    more = _for_roles(subject, corpora.text, manner, wishes)
    described = [column for column in COLUMNS if columns is None or column.name in columns]
    described += [column for tally in (*wishes.tallies, *more) for column in tally.columns]
    missing = no_author_code(wishes.convention) if columns is None else {}
    return Pass(
        "Surveying",
        corpora.text,
        (*tallies, *more),
        manner,
        tuple(described),
        missing,
        _facts(manner, wishes),
    )


def _for_roles(
    subject: Subject, text: Corpus | Ready, manner: Manner, wishes: Wishes
) -> list[Tally]:
    """What roles read of plain text besides the columns of every survey."""
    resting: list[Tally] = [SeparatorRow()] if "separator" in wishes.reads else []
    unread = wishes.reads.isdisjoint(("rarity", *(column.name for column in Rarity.columns)))
    if unread or wishes.convention == "code" or isinstance(text, Ready):
        return resting  # of rare tokens there is no program of the authors
    known = wishes.frequencies or corpus_frequencies(batches_of(subject, text, manner))
    return [*resting, Rarity(known)]


def _trials(subject: Subject, text: Corpus | Ready, wishes: Wishes) -> list[Trial]:
    """Those that fit the model, on the text; ready inputs are no text to make trials of."""
    if isinstance(text, Ready):
        return []
    seed = wishes.facts.get("seed") or 0
    asked = trials_for(subject, text, seed=seed) if ANSWERS in wishes.reads else []
    return [*asked, *_gradients(subject, text, wishes)]


def _gradients(subject: Subject, text: Corpus, wishes: Wishes) -> list[Trial]:
    """How much the loss notices a head that rests; on a few texts, since it runs backwards."""
    told = wishes.convention != "code" and text.paired == ("cross" in subject.anatomy.stacks)
    if "separator" not in wishes.reads or not told:
        return []
    texts = [texts_of(item) for item in text.limit(_GRADIENTS)]
    trial = NoOp(texts if text.paired else [one for (one,) in texts], convention=wishes.convention)
    return [trial] if trial.unfit(subject) is None else []


def _with(
    passes: Sequence[Pass],
    name: str,
    corpus: Corpus,
    tallies: Sequence[Tally],
    manner: Manner,
    wishes: Wishes,
) -> list[Pass]:
    """The passes with more tallies: on a pass over the same corpus, or on one more."""
    columns: list[Column] = [column for tally in tallies for column in tally.columns]
    for place, one in enumerate(passes):
        if one.source is corpus:
            wider = replace(one, tallies=(*one.tallies, *tallies), columns=(*one.columns, *columns))
            return [*passes[:place], wider, *passes[place + 1 :]]
    facts = _facts(manner, wishes)
    return [*passes, Pass(name, corpus, tuple(tallies), manner, tuple(columns), facts=facts)]


def _for(subject: Subject, corpus: Corpus | Ready, manner: Manner) -> Manner:
    """The manner for an annotated corpus: without targets only an encoder can be looked at."""
    if "cross" not in subject.anatomy.stacks or not isinstance(corpus, Corpus) or corpus.paired:
        return manner
    return replace(manner, stacks=tuple(stack for stack in manner.stacks if stack == "enc"))


def _facts(manner: Manner, wishes: Wishes) -> dict[str, Any]:
    settings = {**manner.to_dict(), "limit": wishes.facts.get("limit")}
    return {
        "convention": wishes.convention,
        "seed": wishes.facts.get("seed"),
        "settings": settings,
    }
