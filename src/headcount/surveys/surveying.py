"""The survey: what every head of a model looks at, over a corpus, in one table.

The corpora are read, options become a plan (which tallies look at which corpus, which trials are
run), the plan is run on the model and on its random twins, and roles judge the table.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from headcount.errors import InputError, UsageError, check_convention
from headcount.models import Subject
from headcount.records import (
    STACKS,
    Column,
    Engine,
    EngineOptions,
    HeadTable,
    InnerPath,
    Progress,
    engine_of,
)
from headcount.rooms.coreference import PASSAGE, CoreferenceTally, PronounChoice
from headcount.rooms.features import FeatureTally
from headcount.rooms.patterns import PATTERN, Judge, Patterns, with_pattern
from headcount.surveys.passes import (
    Pass,
    PassOptions,
    StageProgress,
    SurveyPlan,
    add_control,
    batches_of,
    check_control,
    trials_for,
    twin_tables,
)
from headcount.surveys.roles.catalogue import all_roles, judged
from headcount.surveys.roles.linguistic import Syntactic
from headcount.surveys.roles.role import TRIALS, Role, verdict_frame, with_roles
from headcount.surveys.shards import ShardWork
from headcount.surveys.tallies.counts import RelationTest
from headcount.surveys.tallies.links import ArgumentTally, Links
from headcount.surveys.tallies.offsets import OffsetMass, Offsets
from headcount.surveys.tallies.rarity import (
    Frequencies,
    Rarity,
    corpus_frequencies,
    frequencies_of,
    training_frequencies,
)
from headcount.surveys.tallies.relations import Relations
from headcount.surveys.tallies.rest_by_relation import RestByRelation
from headcount.surveys.tallies.surface import (
    Confidence,
    Entropy,
    Neighbours,
    SeparatorRow,
    Specials,
)
from headcount.surveys.tally import Tally
from headcount.surveys.trials.noop import NoOpTrial
from headcount.surveys.trials.trial import Trial
from headcount.text import (
    Corpus,
    Long,
    Ready,
    Rows,
    Sentence,
    is_ready,
    read_corpus,
    sentences_of,
    texts_of,
)

# --- The corpora of a survey --------------------------------------------------------------------


@dataclass(frozen=True)
class Corpora:
    """What is read; one corpus may serve for several, and is then gone through once."""

    text: Corpus | Ready
    treebank: Corpus | None = None
    coref: Corpus | None = None
    arguments: Corpus | None = None

    @property
    def text_is_annotated(self) -> bool:
        """Whether the text is one of the annotated corpora."""
        return any(self.text is one for one in (self.treebank, self.coref, self.arguments))


def read_corpora(
    corpus: Any,
    *,
    treebank: Any = None,
    coref: Any = None,
    arguments: Any = None,
    parser: Any = None,
    limit: int | None = None,
    seed: int | None = None,
) -> Corpora:
    """Read what was given; without a text of its own, an annotated corpus serves as text.

    A text that has trees is the treebank, where there is no other.
    """
    read = partial(read_corpus, limit=limit, seed=seed)
    if parser is not None:
        if treebank is not None:
            raise UsageError(
                "Both a treebank and a parser were given; a parser makes a treebank of the text, "
                "so leave one of them out."
            )
        if corpus is None or is_ready(corpus):
            raise UsageError("A parser was given and no text to parse; give one (--text).")
        corpus = treebank = read(corpus, parser=parser)
    trees = None if treebank is None else _having(read(treebank), _tree, _NO_TREE)
    clusters = None if coref is None else _coreference(coref, trees, read)
    predicates = None if arguments is None else _having(read(arguments), _predicate, _NO_PREDICATE)
    given = next((one for one in (trees, clusters, predicates) if one is not None), None)
    if corpus is not None and corpus is not treebank:
        text = read(corpus)
        own = text if trees is None and _any(text, _tree) else trees
        return Corpora(text, own, clusters, predicates)
    if given is None:
        raise UsageError("There is nothing to read: give a corpus, or a treebank in its place.")
    return Corpora(given, trees, clusters, predicates)


def ready_corpora(corpus: Any, stacks: Sequence[str], inputs: PassOptions, **texts: Any) -> Corpora:
    """Ready inputs, for which the settings of texts mean nothing.

    All stacks of the model say which side an input is, whichever of them are looked at.
    """
    settings = {name: getattr(inputs, name) for name in ("max_length", "long", "chat")}
    for name, value in {**texts, **settings}.items():
        if value not in (None, False, "window"):
            raise UsageError(
                f"{name} is {value!r}, but these are ready inputs and no text; leave it out."
            )
    return Corpora(Ready(corpus, stacks))


def _coreference(coref: Any, trees: Corpus | None, read: Callable[..., Corpus]) -> Corpus:
    """Passages with clusters; a treebank of the same documents lends them its trees."""
    passage = PASSAGE if isinstance(coref, str | Path) and ".conll" in Path(coref).name else None
    found = None
    if trees is not None and not trees.paired:
        found = read(coref, trees=trees, passage=passage)
    if found is None or not _any(found, _tree):  # of other documents: then none of it counts
        found = read(coref, passage=passage)
    return _having(found, _cluster, _NO_CLUSTER)


def _having(corpus: Corpus, has: Callable[[Sentence], bool], why: str) -> Corpus:
    """The corpus, if any of its sentences has what it is read for."""
    if _any(corpus, has):
        return corpus
    raise InputError(why.format(corpus.name))


def _any(corpus: Corpus, has: Callable[[Sentence], bool]) -> bool:
    return corpus.annotated and any(
        sentence is not None and has(sentence) for item in corpus for sentence in sentences_of(item)
    )


def _tree(sentence: Sentence) -> bool:
    return any(word.head is not None for word in sentence.words or ())


def _cluster(sentence: Sentence) -> bool:
    return any(len(mentions) > 1 for mentions in sentence.clusters)


def _predicate(sentence: Sentence) -> bool:
    return any(predicate.arguments for predicate in sentence.predicates)


_NO_TREE = (
    "{} has no trees: no word has a HEAD; give a treebank (.conllu), or give it as text with a "
    "parser (--text, --parser)."
)
_NO_CLUSTER = (
    "{} has no coreference: no two mentions mean the same; give .jsonl with sents and clusters, "
    ".conllu with Entity=, or GAP's .tsv."
)
_NO_PREDICATE = (
    "{} has no predicate with an argument; give .jsonl with tokens and preds (see the how-to page "
    "on surveys)."
)


# --- The columns that every survey has ----------------------------------------------------------

#: Columns every survey has, in the order of the table.
COLUMNS: tuple[Column, ...] = (
    *Confidence.columns,
    *Entropy.columns,
    *Neighbours.columns,
    *Specials.columns,
    *Offsets.columns,
)

#: Columns whose authors published no program: nothing to reproduce under `code`.
_TEXT_ONLY = {column.name for column in (*Confidence.columns, *Offsets.columns)}


def no_author_code(convention: str) -> dict[str, str]:
    """Columns that do not exist under a convention, with the reason."""
    if convention != "code":
        return {}
    why = "the authors published no program for it; use the convention headcount or paper"
    return {name: why for name in (c.name for c in COLUMNS) if name in _TEXT_ONLY}


def left_out_of_confidence(without: str | None, convention: str) -> str:
    """What confidence leaves out: as asked, else all special tokens, or what the paper does."""
    if without is None:
        return "separator" if convention == "paper" else "special"
    check_convention(convention, "Column 'confidence' does")
    return without


def chosen_tallies(
    columns: Sequence[str] | None, convention: str, confidence_without: str | None = None
) -> list[Tally]:
    """The tallies that fill the columns asked for, or all of them."""
    check_convention(convention)
    without = left_out_of_confidence(confidence_without, convention)
    for name in columns or ():
        known = [column.name for column in COLUMNS]
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}."
            raise UsageError(f"There is no column '{name}'; {hint}")
        if name in _TEXT_ONLY:
            check_convention(convention, f"Column '{name}' does")
    every: list[Tally] = [
        Confidence.without(without),
        Entropy(convention),
        Neighbours(convention),
        Specials(convention),
        Offsets(),
    ]
    named = [column.name for column in COLUMNS] if columns is None else columns
    wanted = set(named) - set(no_author_code(convention))
    return [tally for tally in every if wanted & {column.name for column in tally.columns}]


# --- Options become a plan ----------------------------------------------------------------------

#: As many texts are enough for gradients.
_GRADIENTS = 64


@dataclass(frozen=True)
class SurveyOptions:
    """What a survey measures, and how texts are given to the model."""

    inputs: PassOptions
    convention: str = "headcount"
    columns: Sequence[str] | None = None
    tallies: Sequence[Tally] = ()
    offset_mass: bool = False
    #: What the roles that heads are judged by read; nothing where no head is judged.
    reads: frozenset[str] = frozenset()
    word_rows: Rows | None = None
    relations: Sequence[str] | None = None
    #: None: those of the model's training text where they are known, else of the text itself.
    frequencies: Frequencies | None = None
    #: What confidence leaves out; None: as the convention has it.
    confidence_without: str | None = None
    seed: int | None = None
    limit: int | None = None
    #: Whether arcs are kept whole, for the ladder of nulls.
    nulls: bool = False

    def facts(self) -> dict[str, Any]:
        """What the provenance keeps."""
        settings = {**self.inputs.to_dict(), "limit": self.limit}
        if self.convention != "code":
            without = left_out_of_confidence(self.confidence_without, self.convention)
            settings["confidence_without"] = without
        whose = None if self.frequencies is None else self.frequencies.name
        asked = {"word_rows": self.word_rows, "relations": self.relations, "frequencies": whose}
        settings |= {name: value for name, value in asked.items() if value is not None}
        return {"convention": self.convention, "seed": self.seed, "settings": settings}

    def for_annotated(self, subject: Subject, corpus: Corpus | Ready) -> SurveyOptions:
        """The options for an annotated corpus: without targets only an encoder can be run."""
        if "cross" not in subject.anatomy.stacks or not isinstance(corpus, Corpus) or corpus.paired:
            return self
        stacks = tuple(stack for stack in self.inputs.stacks if stack == "enc")
        return replace(self, inputs=replace(self.inputs, stacks=stacks))


def plan_survey(subject: Subject, corpora: Corpora, options: SurveyOptions) -> SurveyPlan:
    """The text with the tallies of every survey, then each annotated corpus, then the trials."""
    passes = [_text_pass(subject, corpora, options)]
    if not options.reads:
        return SurveyPlan(tuple(passes))
    for name, corpus, tallies in (
        ("Following relations", corpora.treebank, _tree_tallies(options)),
        ("Following mentions", corpora.coref, _mention_tallies(options)),
        ("Following arguments", corpora.arguments, [ArgumentTally(options.convention)]),
    ):
        if corpus is not None:
            _add_pass(passes, name, corpus, tallies, options.for_annotated(subject, corpus))
    return SurveyPlan(tuple(passes), tuple(_trials(subject, corpora.text, options)))


def _text_pass(subject: Subject, corpora: Corpora, options: SurveyOptions) -> Pass:
    """The columns of every survey, those of the caller's tallies, and how rare tokens fare."""
    if options.reads and corpora.text_is_annotated:
        options = options.for_annotated(subject, corpora.text)
    given = {column.name for tally in options.tallies for column in tally.columns}
    given |= {column.name for column in Rarity.columns}  # of which the frequencies must be known
    columns = options.columns
    ours = None if columns is None else [name for name in columns if name not in given]
    tallies = chosen_tallies(ours, options.convention, options.confidence_without)
    own = {column.name: column for tally in tallies for column in tally.columns}
    tallies += options.tallies
    tallies += [OffsetMass()] if options.offset_mass else []
    more = _for_roles(subject, corpora.text, options)
    described = [
        own.get(one.name, one) for one in COLUMNS if columns is None or one.name in columns
    ]
    described += [column for tally in (*options.tallies, *more) for column in tally.columns]
    missing = no_author_code(options.convention) if columns is None else {}
    return Pass(
        "Surveying",
        corpora.text,
        (*tallies, *more),
        options.inputs,
        tuple(described),
        missing,
        options.facts(),
    )


def _for_roles(subject: Subject, text: Corpus | Ready, options: SurveyOptions) -> list[Tally]:
    """What roles read of plain text besides the columns of every survey."""
    resting: list[Tally] = [SeparatorRow()] if "separator" in options.reads else []
    unread = options.reads.isdisjoint(("rarity", *(column.name for column in Rarity.columns)))
    if unread or options.convention == "code" or isinstance(text, Ready):
        return resting  # of rare tokens there is no program of the authors
    known = options.frequencies or training_frequencies(subject.tokenizer)
    known = known or corpus_frequencies(batches_of(subject, text, options.inputs))
    return [*resting, Rarity(known)]


def _tree_tallies(options: SurveyOptions) -> list[Tally]:
    """Relations, what kinds of words are looked at, and where a head rests without a relation."""
    from headcount.rooms.nulls import PointingRelations

    relations = PointingRelations if options.nulls else Relations
    test = RelationTest(relations=options.relations)
    return [
        relations(options.convention, rows=options.word_rows, test=test),
        FeatureTally(options.convention),
        Links(options.convention),
        RestByRelation(),
    ]


def _mention_tallies(options: SurveyOptions) -> list[Tally]:
    """Antecedents, and pronouns between two names; the authors published no program for them."""
    if options.convention == "code":
        return []
    rows = options.word_rows or "mean"
    return [CoreferenceTally(options.convention, rows=rows), PronounChoice(rows=rows)]


def _add_pass(
    passes: list[Pass], name: str, corpus: Corpus, tallies: Sequence[Tally], options: SurveyOptions
) -> None:
    """Put more tallies on the pass over the same corpus, or on one more."""
    columns: list[Column] = [column for tally in tallies for column in tally.columns]
    for place, one in enumerate(passes):
        if one.source is corpus:
            passes[place] = replace(
                one, tallies=(*one.tallies, *tallies), columns=(*one.columns, *columns)
            )
            return
    passes.append(
        Pass(name, corpus, tuple(tallies), options.inputs, tuple(columns), facts=options.facts())
    )


def _trials(subject: Subject, text: Corpus | Ready, options: SurveyOptions) -> list[Trial]:
    """Those that fit the model, on the text; ready inputs are no text to make trials of.

    How much the loss notices a head that rests is measured on a few texts: it runs backwards.
    """
    if isinstance(text, Ready):
        return []
    found = trials_for(subject, text, seed=options.seed or 0) if TRIALS in options.reads else []
    fits = options.convention != "code" and text.paired == ("cross" in subject.anatomy.stacks)
    if "separator" in options.reads and fits:
        texts = [texts_of(item) for item in text.limit(_GRADIENTS)]
        trial = NoOpTrial(
            texts if text.paired else [one for (one,) in texts], convention=options.convention
        )
        found += [trial] if trial.unfit(subject) is None else []
    return found


# --- The survey ---------------------------------------------------------------------------------


def survey(
    subject: Subject,
    corpus: Any = None,
    *,
    treebank: Any = None,
    coref: Any = None,
    arguments: Any = None,
    parser: Any = None,
    roles: Sequence[Role] | bool | None = None,
    control: str | None = None,
    control_seeds: Sequence[int] = (0,),
    nulls: bool | None = None,
    word_rows: Rows | None = None,
    relations: Sequence[str] | None = None,
    frequencies: Frequencies | Mapping[str, float] | str | Path | None = None,
    confidence_without: str | None = None,
    convention: str = "headcount",
    columns: Sequence[str] | None = None,
    stacks: Collection[str] | None = None,
    batch_size: int | None = None,
    max_length: int | None = None,
    long: Long = "window",
    chat: bool = False,
    segments: bool = True,
    rows: int | None = None,
    limit: int | None = None,
    seed: int | None = None,
    offset_mass: bool = False,
    patterns: bool | Judge = False,
    tallies: Sequence[Tally] = (),
    engine: Engine | EngineOptions | str | None = None,
    journal: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    telling: StageProgress | None = None,
) -> HeadTable:
    """Measure where every head looks, and with annotated text what it does there.

    `corpus` is a list of sentences or pairs, a path (.txt, .tsv, .conllu), or, for models that
    read no text, a list of ready model inputs. `convention` is "headcount", "paper" or
    "code"; `columns` chooses some of the columns, `stacks` some of the stacks, `tallies` adds
    your own. Long sentences are cut into windows and counted. `batch_size` texts go through the
    model at once; without it as many as keep the device busy, by their tokens. `segments=False`
    gives both texts of a pair the segment 0, as Clark's extraction did; `rows` reads so many
    queries of each longer text, drawn by `seed`, in place of all; `offset_mass` adds the whole
    distribution of mass by offset to `table.details`. `confidence_without` says which tokens the
    column `confidence` leaves out as query and as key: "special" ([CLS], [SEP], starts and ends;
    the default), "separator" (as the paper has it: ends alone) or "nothing". `patterns` adds the
    shares of Kovaleva et al.'s five patterns, as seen by the bundled network (True, "network") or
    by the "rule", and the column `pattern`. Nothing of the model is changed.

    A `treebank`, `coref` (coreference) or `arguments` (predicates with theirs) is a corpus with
    words, read next to the text, or in its place where there is none; `parser` makes a treebank of
    the text. Then, or with `roles=True` or a list of roles, heads are judged:
    `table.details["roles"]` has a row for each verdict, `table.details["relations"]` one for each
    head, relation and direction.
    `control="random-init"` runs everything on randomly initialised twins as well, one for each
    of `control_seeds`. `word_rows`, `relations` and `frequencies` say how a word's pieces
    become one, which relations count, and how rare a token is.

    Heads that follow a relation climb a ladder of nulls, each as far as it gets: the nearest word
    of a part of speech, a logistic choice, a random model as sharp (`details["ladder"]`, and `rung`
    in the roles). `nulls=True` measures all rungs for every head and role, `nulls=False` none.

    The corpus is gone through in shards, by an `engine`: this process, "ray", or a
    `RayEngine(address, workers, gpus_per_worker)`, with the same numbers. `journal` is a folder in
    which every finished shard is kept: after a kill the same call goes on from there.

    >>> from headcount.models.loading import load
    >>> table = survey(load("minilm"), ["The cat sat on the mat."])    # doctest: +SKIP
    """
    _check_call(subject, columns, tallies)
    check_control(control, control_seeds)
    columns, patterned = _patterns(columns, patterns, convention)
    # A sample of rows has the first one and at least one of the others.
    if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 2):
        raise UsageError(
            f"rows is {rows!r}; give how many queries stand for a longer text, 2 or more, e.g. "
            "2048, or leave it out to read all of them."
        )
    inputs = PassOptions(
        stacks_of(subject, stacks), batch_size, max_length, long, chat, segments, rows, seed or 0
    )
    texts = {
        "treebank": treebank, "coref": coref, "arguments": arguments, "parser": parser,
    }  # fmt: skip
    given = control is not None or any(one is not None for one in texts.values())
    texts |= {"limit": limit, "seed": seed}
    if is_ready(corpus):
        corpora = ready_corpora(corpus, subject.anatomy.stacks, inputs, **texts)
    else:
        corpora = read_corpora(corpus, **texts)
    judging = _roles(roles, given)
    options = SurveyOptions(
        inputs,
        convention,
        columns,
        [*patterned, *tallies],
        offset_mass,
        reads=frozenset(name for role in judging for name in role.reads)
        | {column.name for column in Rarity.columns if column.name in (columns or ())},
        word_rows=word_rows,
        relations=relations,
        frequencies=frequencies_of(frequencies),
        confidence_without=confidence_without,
        seed=seed,
        limit=limit,
        nulls=nulls is not False and bool(judging),
    )
    plan = plan_survey(subject, corpora, options)
    unused = plan.again()
    work = ShardWork(engine_of(engine), None if journal is None else InnerPath.of(journal))
    table = plan.run(subject, telling or _bar_of(progress), work=work)
    if patterned:
        table = with_pattern(table)
    if judging:
        twins = []
        if control:
            twins = twin_tables(subject, unused, control, control_seeds, telling, work)
        add_control(table, twins)
        found = judged(table, judging, twins)
        _note_few_arcs(table, judging, corpora.treebank)
        table.details["roles"] = verdict_frame(v for v in found if v.head.stack in inputs.stacks)
        if nulls is not False:
            from headcount.rooms.nulls import Twins, add_rungs

            sharp = Twins(subject, unused, telling or _bar_of(progress), work)
            margin = next((one.margin for one in judging if isinstance(one, Syntactic)), 0.0)
            add_rungs(table, plan, sharp, judging, margin=margin, every=bool(nulls))
        table = with_roles(table)
    return table


def _note_few_arcs(table: HeadTable, roles: Sequence[Role], treebank: Corpus | None) -> None:
    """Say with the treebank where its arcs are too few for syntactic roles."""
    for role in roles:
        if isinstance(role, Syntactic) and treebank is not None and "relations" in table.details:
            about = table.provenance["corpora"][treebank.name]
            few = role.too_few(table.details["relations"], about["counts"]["sentences"])
            about["remarks"] = [*about["remarks"], *filter(None, [few])]


def _check_call(subject: Any, columns: Any, tallies: Any) -> None:
    """Name the slips that Python would report as something else."""
    if not isinstance(subject, Subject):
        raise UsageError(
            f"survey takes a Subject, not {subject!r}; make one with hc.load(name) or "
            "hc.Subject(model, tokenizer)."
        )
    if isinstance(columns, str):
        raise UsageError(f"columns is the text '{columns}'; give a list, e.g. ['{columns}'].")
    if not isinstance(tallies, list | tuple) or any(isinstance(one, type) for one in tallies):
        raise UsageError(f"tallies is {tallies!r}; give a list of tallies, e.g. [MyTally()].")


def _patterns(
    columns: Sequence[str] | None, patterns: bool | Judge, convention: str
) -> tuple[list[str] | None, list[Tally]]:
    """The columns without the most frequent pattern, and the tally of patterns."""
    known = {PATTERN.name, *(column.name for column in Patterns.columns)}
    wanted = bool(patterns) or not known.isdisjoint(columns or ())
    by: Judge = "network" if isinstance(patterns, bool) else patterns
    left = None if columns is None else [name for name in columns if name != PATTERN.name]
    return left, [Patterns(by, convention)] if wanted else []


def stacks_of(subject: Subject, stacks: Collection[str] | None) -> tuple[str, ...]:
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


def _roles(roles: Sequence[Role] | bool | None, implied: bool) -> list[Role]:
    """The roles to judge: as given, else all of them where anything was given to judge them by."""
    if roles is None:
        roles = implied
    if isinstance(roles, str | type):
        raise UsageError(f"roles is {roles!r}; give a list of roles, e.g. [Positional()], or True.")
    if isinstance(roles, bool):
        return all_roles() if roles else []
    return list(roles)


def _bar_of(progress: Progress | None) -> StageProgress | None:
    """The same callable for every stage."""
    return None if progress is None else lambda name, unit: nullcontext(progress)
