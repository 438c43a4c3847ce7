"""The survey: what every head of a model looks at, over a corpus, in one table.

The corpora are read, options become a plan (which tallies look at which corpus, which trials are
run), the plan is run on the model and on its random twins, and roles judge the table.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from headcount import plugins, tasks
from headcount.errors import InputError, UsageError, check_convention
from headcount.models import Subject, bare_table, check_subject
from headcount.records import (
    STACKS,
    Column,
    Engine,
    EngineOptions,
    HeadTable,
    InnerPath,
    Renamed,
    Run,
    Stage,
    as_value,
    engine_of,
    few_collected,
    old_keywords,
    writable_run,
)
from headcount.surveys.offsets import Offsets
from headcount.surveys.options import SAMPLE, ReadingOptions, RoleOptions
from headcount.surveys.passes import (
    Pass,
    PassOptions,
    SurveyPlan,
    chosen_trials,
    texts_and_pairs,
)
from headcount.surveys.roles.role import TRIALS, Role, all_roles, judged, verdict_frame, with_roles
from headcount.surveys.shards import ShardWork
from headcount.surveys.surface import Confidence, Entropy, Neighbours, Specials
from headcount.surveys.tally import Tally, TallyPlan
from headcount.surveys.trial import Trial, TrialTexts
from headcount.text import (
    PASSAGE,
    Corpus,
    Ready,
    Rows,
    Sentence,
    is_ready,
    read_corpus,
    read_sample,
    sentences_of,
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
                "Both a treebank (--treebank) and a parser were given; a parser makes a treebank "
                "of the text, so leave one of them out."
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
    "parser (--text, --judging parser=)."
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
    """The tallies that fill the chosen columns, or all of them."""
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


@dataclass(frozen=True)
class SurveyOptions:
    """What a survey measures, and how texts are given to the model."""

    inputs: PassOptions
    convention: str = "headcount"
    columns: Sequence[str] | None = None
    tallies: Sequence[Tally] = ()
    #: What the roles that heads are judged by read; nothing where no head is judged.
    reads: frozenset[str] = frozenset()
    word_rows: Rows | None = None
    relations: Sequence[str] | None = None
    #: None: those of the model's training text where they are known, else of the text itself.
    frequencies: Any = None
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
    for kind, name in ANNOTATED.items():
        corpus = getattr(corpora, kind)
        if corpus is not None:
            tallies = _of_rooms(subject, corpus, options, kind)
            _add_pass(passes, name, corpus, tallies, options.for_annotated(subject, corpus))
    return SurveyPlan(tuple(passes), tuple(_trials(subject, corpora.text, options)))


#: What an annotated corpus is gone through for.
ANNOTATED = {
    "treebank": "Following relations",
    "coref": "Following mentions",
    "arguments": "Following arguments",
}


def _tally_plans(kind: str) -> list[TallyPlan]:
    """The tallies of rooms and packages that look at such a corpus."""
    plans = [
        one
        if isinstance(one, TallyPlan)
        else TallyPlan(lambda *_, one=one: one(), columns=one.columns)
        for one in plugins.every("tallies").values()
    ]
    return [plan for plan in plans if plan.corpus == kind]


def tally_columns() -> list[str]:
    """The columns that rooms and packages add to surveys of text."""
    return [column.name for plan in _tally_plans("text") for column in plan.columns]


def _of_rooms(
    subject: Subject, corpus: Corpus | Ready, options: SurveyOptions, kind: str
) -> list[Tally]:
    """The tallies of rooms for such a corpus; of text those whose columns are asked for."""
    made = [plan.make(subject, corpus, options) for plan in _asked_plans(options, kind)]
    return [tally for tally in made if tally is not None]


def _asked_plans(options: SurveyOptions, kind: str) -> list[TallyPlan]:
    if kind != "text":
        return _tally_plans(kind)
    asked = {*options.reads, *(options.columns or ())} - {column.name for column in COLUMNS}
    if not asked and not options.reads:  # nothing of a room is loaded
        return []
    asked -= {column.name for tally in options.tallies for column in columns_of(tally)}
    asked_for = [
        plan
        for plan in _tally_plans(kind)
        if plan.read_by in options.reads or any(one.name in asked for one in plan.columns)
    ]
    return sorted(asked_for, key=lambda plan: plan.read_by not in options.reads)


def columns_of(tally: Tally) -> tuple[Column, ...]:
    """The columns that a tally fills, and those that are made of them."""
    derived: tuple[Column, ...] = getattr(tally, "derives", ())
    return (*tally.columns, *derived)


def _text_pass(subject: Subject, corpora: Corpora, options: SurveyOptions) -> Pass:
    """The columns of every survey, those of the caller's tallies, and how rare tokens fare."""
    if options.reads and corpora.text_is_annotated:
        options = options.for_annotated(subject, corpora.text)
    more = _of_rooms(subject, corpora.text, options, "text")
    given = {column.name for tally in (*options.tallies, *more) for column in columns_of(tally)}
    given |= {one.name for plan in _asked_plans(options, "text") for one in plan.columns}
    columns = options.columns
    ours = None if columns is None else [name for name in columns if name not in given]
    tallies = chosen_tallies(ours, options.convention, options.confidence_without)
    own = {column.name: column for tally in tallies for column in tally.columns}
    tallies += options.tallies
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
    """Those that fit the model, on the text; ready inputs are no text to make trials of."""
    if isinstance(text, Ready):
        return []
    if options.reads.isdisjoint((TRIALS, "separator")):
        return []
    texts, pairs = texts_and_pairs(text)
    fit = text.paired == ("cross" in subject.anatomy.stacks)
    given = TrialTexts(texts, pairs, options.seed or 0, options.convention, fit)
    return chosen_trials(subject, given, options.reads)


# --- The survey ---------------------------------------------------------------------------------


def _more_tallies(name: str) -> Renamed:
    """A switch of an earlier release that is a name among the tallies now."""

    def put(given: dict[str, Any], value: Any) -> str:
        word = name if isinstance(value, bool) or value == "network" else f"{name}:{value}"
        given["tallies"] = [*given.get("tallies", ()), *([word] if value else [])]
        return f"tallies=['{word}']"

    return Renamed(False, put)


def _shards_in(given: dict[str, Any], folder: Any) -> str:
    given["run"] = None if folder is None else ShardWork(folder=InnerPath.of(folder))
    return "run=DIR (the table is kept there too)"


def _twins(given: dict[str, Any], seeds: Any) -> str:
    judging = as_value(RoleOptions, given.get("roles"), "roles")
    given["roles"] = replace(judging, twins=list(seeds))
    return "roles=hc.RoleOptions(twins=...)"


@few_collected()
@old_keywords(
    {
        "journal": Renamed(None, _shards_in),
        "control_seeds": Renamed((0,), _twins),
        "patterns": _more_tallies("patterns"),
        "offset_mass": _more_tallies("offset-mass"),
    },
    reading=ReadingOptions,
    roles=RoleOptions,
)
def survey(
    subject: Subject,
    corpus: Any = None,
    *,
    treebank: Any = None,
    coref: Any = None,
    columns: Sequence[str] | None = None,
    roles: RoleOptions | Sequence[Role] | bool | None = None,
    tallies: Sequence[Tally | str] = (),
    limit: int | None = None,
    reading: ReadingOptions = ReadingOptions(),  # noqa: B008 - a frozen value
    run: Run | ShardWork | str | Path | None = None,
    replace: bool = False,
    engine: Engine | EngineOptions | str | None = None,
) -> HeadTable:
    """Measure where every head looks, and with annotated text what it does there.

    `corpus` is a list of sentences or pairs, a path (.txt, .tsv, .conllu), "sample" for the bundled
    one, or, for models that read no text, a list of ready model inputs. `columns` chooses some of
    the columns. `tallies` adds more: "patterns" (the shares of Kovaleva et al.'s five patterns by
    the bundled network; "patterns:rule" by the rule), "offset-mass" (all mass by offset, in
    `table.details`), "families" (how unlike every two heads are), or your own. `limit` takes the
    first items, or with a seed a random sample. `reading`, a `ReadingOptions`, says how texts are
    read: convention, seed, batch size, stacks, longest input and so on. Nothing of the model is
    changed.

    A `treebank` or `coref` (coreference) is a corpus with words, read next to the text, or in its
    place where there is none. Then, or with `roles=True`, a list of roles, or `RoleOptions`, heads
    are judged: `table.details["roles"]` has a row for each verdict, `table.details["relations"]`
    one for each head, relation and direction. `RoleOptions(control="random-init")` runs everything
    on random twins as well. Heads that follow a relation climb a ladder of nulls, each as far as it
    gets (`details["ladder"]`, and `rung` in the roles); `RoleOptions(nulls=True)` measures all
    rungs for every head and role, `nulls=False` none. Several treebanks by name ({"EWT": path,
    "GUM": path}) are surveyed one by one: the table is the first's, and its roles say on how many
    of them they stand (`repeats`; all in `details["repeats"]`).

    With a `run` directory the table joins what is there, unless `replace` starts it anew; finished
    shards of the corpus are kept there meanwhile, so that after a kill the same call goes on. The
    work is done by an `engine`: this process, "ray", or a `RayEngine(address, workers,
    gpus_per_worker)`, with the same numbers.

    >>> from headcount.models.loading import load
    >>> table = survey(load("minilm"), ["The cat sat on the mat."])    # doctest: +SKIP
    """
    _check_call(subject, columns, tallies)
    if isinstance(treebank, Mapping):
        others = {"coref": coref, "columns": columns, "roles": roles, "tallies": tallies}
        others |= {"limit": limit, "reading": reading, "replace": replace, "engine": engine}
        measure = partial(survey, subject, corpus, **others)
        found: HeadTable = plugins.part("nulls").survey_each(measure, treebank, run)
        return found
    judging = as_value(RoleOptions, roles, "roles")
    reading = as_value(ReadingOptions, reading, "reading").limited(limit)
    if judging.control is not None:
        plugins.get("parts", "control").check_control(judging.control, judging.seeds)
    asked = _Asked(subject, reading, judging, columns, _tallies(tallies, reading.convention))
    corpora = asked.read(corpus, treebank, coref)
    where = engine_of(engine)
    if run is None or isinstance(run, ShardWork):  # somebody else keeps the table
        folder = None if run is None or run.folder is None else InnerPath.of(run.folder)
        return asked.measure(corpora, ShardWork(where, folder))
    with writable_run(run) as kept:
        assert kept is not None
        stage = kept.stage("survey")
        if replace:
            kept.drop_shards("survey")
        else:
            _check_run(kept, subject, reading.stacks)
        shards = kept.shards("survey")
        try:
            table = asked.measure(corpora, ShardWork(where, shards))
        except KeyboardInterrupt as stop:
            if not shards.exists():
                raise
            told = f"Interrupted; what is done is in {kept.path}/, and the same command goes on."
            raise KeyboardInterrupt(told) from stop
        _keep(stage, table, replace)
        for tally in asked.tallies:
            if isinstance(tally, Kept):
                tally.keep(kept, subject, table)
        kept.drop_shards("survey")
    return table


@runtime_checkable
class Kept(Protocol):
    """A tally that leaves more in a run than columns and details."""

    def keep(self, run: Run, subject: Subject, table: HeadTable) -> None:
        """Write it; the table is there."""


def _tallies(given: Sequence[Tally | str], convention: str) -> list[Tally]:
    """Tallies as they come, or by name."""
    made: list[Tally] = []
    for one in given:
        name, _, way = one.partition(":") if isinstance(one, str) else ("", "", "")
        if not isinstance(one, str):
            made.append(one)
        else:
            found = plugins.get("tallies", name)
            if not isinstance(found, TallyPlan):
                made.append(found())
            elif found.named is not None:
                made.append(found.named(convention, way))
            else:
                raise UsageError(f"The tally '{name}' comes with its roles; leave it out.")
    return made


@dataclass
class _Asked:
    """A survey that was asked for: how texts are read, and what is measured of them."""

    subject: Subject
    reading: ReadingOptions
    judging: RoleOptions
    columns: Sequence[str] | None
    tallies: list[Tally]

    def __post_init__(self) -> None:
        reading = self.reading
        # A sample of rows has the first one and at least one of the others.
        rows: object = reading.rows
        if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 2):
            raise UsageError(
                f"rows is {rows!r}; give the number of queries to read of longer texts, 2 or more, "
                "e.g. 2048, or leave it out to read all of them."
            )
        self.inputs = PassOptions(
            stacks_of(self.subject, reading.stacks),
            *(reading.batch_size, reading.max_length, reading.long, reading.chat),
            *(reading.segments, reading.rows, reading.seed or 0),
        )

    def read(self, corpus: Any, treebank: Any, coref: Any) -> Corpora:
        """What was given, "sample" as this model reads it, and a translator's own output."""
        subject, reading, judging = self.subject, self.reading, self.judging
        texts = {"treebank": treebank, "coref": coref, "arguments": judging.arguments}
        texts["parser"] = judging.parser
        given = judging.control is not None or any(one is not None for one in texts.values())
        self.roles = _roles(judging.roles, given)
        drawn: Any = {"limit": reading.limit, "seed": reading.seed}
        if is_ready(corpus):
            return ready_corpora(corpus, subject.anatomy.stacks, self.inputs, **texts, **drawn)
        corpus = sample_for(subject, corpus, "text", **drawn)
        for name in ("treebank", "coref"):
            texts[name] = sample_for(subject, texts[name], name, **drawn)
        corpora = read_corpora(corpus, **texts, **drawn)
        lacking = reading.own_output is None and self._lacks_translations(corpora, corpus)
        if reading.own_output or lacking:
            return translated(subject, corpora, reading.examples)
        return corpora

    def _lacks_translations(self, corpora: Corpora, given: Any) -> bool:
        """Whether a decoder would have nothing to read: a translator then reads its own output."""
        text, subject = corpora.text, self.subject
        translates = "cross" in subject.anatomy.stacks and subject.inner.can_generate()
        wanted = translates and any(stack != "enc" for stack in self.inputs.stacks)
        # Coreference and predicates alone are of the encoder.
        read = given is not None or text is corpora.treebank
        return wanted and read and isinstance(text, Corpus) and not text.paired

    def measure(self, corpora: Corpora, work: ShardWork) -> HeadTable:
        """The table, with its verdicts where heads are judged."""
        plan = plan_survey(self.subject, corpora, self._options())
        unused = plan.again()
        table = plan.run(self.subject, work=work)
        for tally in plan.passes[0].tallies:
            finish = getattr(tally, "finish", None)  # makes columns of the whole table
            table = table if finish is None else finish(table)
        if not self.roles:
            return table
        judging, twins = self.judging, list[HeadTable]()
        if judging.control is not None:
            room, seeds = plugins.get("parts", "control"), judging.seeds
            twins = room.twin_tables(self.subject, unused, judging.control, seeds, work)
            room.add_control(table, twins)
        verdicts = judged(table, self.roles, twins)
        _note_few_arcs(table, self.roles, corpora.treebank)
        shown = (one for one in verdicts if one.head.stack in self.inputs.stacks)
        table.details["roles"] = verdict_frame(shown)
        ladder = None if judging.nulls is False else plugins.part("nulls")
        if ladder is not None:
            sharp, every = ladder.Twins(self.subject, unused, work), bool(judging.nulls)
            syntactic = (one for one in self.roles if one.name == "syntactic")
            margin = next((getattr(one, "margin", 0.0) for one in syntactic), 0.0)
            ladder.add_rungs(table, plan, sharp, self.roles, margin=margin, every=every)
        return with_roles(table)

    def _options(self) -> SurveyOptions:
        reading, known = self.reading, self.judging.frequencies
        if known is not None:
            known = plugins.get("parts", "frequencies")(known)
        return SurveyOptions(
            self.inputs,
            reading.convention,
            self.columns,
            self.tallies,
            reads=frozenset(name for role in self.roles for name in role.reads),
            word_rows=reading.word_rows,
            relations=self.judging.relations,
            frequencies=known,
            confidence_without=reading.confidence_without,
            seed=reading.seed,
            limit=reading.limit,
            nulls=self.judging.nulls is not False and bool(self.roles),
        )


def sample_for(
    subject: Subject, given: Any, what: str, *, limit: int | None = None, seed: int | None = None
) -> Any:
    """The bundled text, treebank, coref or pairs as a model reads them, where `given` is "sample".

    A translator reads the treebank with its translations.
    """
    if not isinstance(given, str) or given != SAMPLE:
        return given
    translator = what == "treebank" and "cross" in subject.anatomy.stacks
    return read_sample(
        {"pairs": "sample.en-de.tsv", "coref": "coref.jsonl"}.get(what, "sample.conllu"),
        limit=limit,
        seed=seed,
        translation="text_de" if translator else None,
    )


def translated(subject: Subject, corpora: Corpora, batch_size: int) -> Corpora:
    """Each source with the model's own translation, in the text and in a treebank in its place."""
    sources = corpora.text
    if not isinstance(sources, Corpus):
        raise UsageError("own_output translates a text or a treebank, and these are ready inputs.")
    translated = tasks.own_output(subject, sources, batch_size=batch_size)
    pairs = read_corpus(translated)
    lacking = Counter({"sentences without a translation": len(sources) - len(translated)})
    pairs.name, pairs.skipped = f"{sources.name} in its own words", sources.skipped + lacking
    parts = {one.name: getattr(corpora, one.name) for one in fields(corpora)}
    return Corpora(**{name: pairs if part is sources else part for name, part in parts.items()})


# --- A survey into a run directory --------------------------------------------------------------


def _check_run(run: Run, subject: Subject, stacks: Collection[str] | None) -> None:
    """Refuse, before the work, a run of another model or one that would lose what it knows."""
    run.check_subject(bare_table(subject))
    others = [stack for stack in subject.anatomy.stacks if stacks and stack not in stacks]
    if others and run.has_table and "survey" in run.stages:
        raise UsageError(
            f"{run.path}/ has a survey already, and one of {', '.join(stacks or ())} alone would "
            f"clear {', '.join(others)}; leave out stacks=, choose another folder, or --replace."
        )


def _keep(stage: Stage, table: HeadTable, replace: bool) -> None:
    """Put the table into the run: next to the columns of this model that are there, or anew.

    The stage notes which columns came from other texts.
    """
    run = stage.run
    old = run.read_table() if run.has_table and not replace else None
    run.write_table(table if old is None else old.join(table, replace=True), replace=replace)
    about = table.provenance
    settings = {"convention": about["convention"], "columns": table.names, **about["settings"]}
    others = [] if old is None else _other_texts(old, table, run.path)
    stage.finish(settings, about, notes=[*about["remarks"], *others])


def _other_texts(old: HeadTable, new: HeadTable, path: Path) -> list[str]:
    """Which columns were replaced, and which are kept, though measured on other texts."""
    origins = {name: old.origins.get(name, old.provenance) for name in old.names}
    others = [name for name in old.names if origins[name].get("data") != new.provenance["data"]]
    notes = []
    for deed, columns in (
        ("replaces", [name for name in others if name in new.names]),
        ("stands beside", [name for name in others if name not in new.names]),
    ):
        if columns:
            corpora = ", ".join(sorted({str(origins[name].get("corpus")) for name in columns}))
            notes.append(f"In {path}/ this {deed} {', '.join(columns)}, measured on {corpora}.")
    return notes


# --- What may go wrong in the call --------------------------------------------------------------


def _note_few_arcs(table: HeadTable, roles: Sequence[Role], treebank: Corpus | None) -> None:
    """Say with the treebank where its arcs are too few for syntactic roles."""
    for role in roles:
        too_few = getattr(role, "too_few", None)
        if too_few is not None and treebank is not None and "relations" in table.details:
            about = table.provenance["corpora"][treebank.name]
            few = too_few(table.details["relations"], about["counts"]["sentences"])
            about["remarks"] = [*about["remarks"], *filter(None, [few])]


def _check_call(subject: Any, columns: Any, tallies: Any) -> None:
    """Name the slips that Python would report as something else."""
    check_subject(subject, "survey(subject, corpus)")
    if isinstance(columns, str):
        raise UsageError(f"columns is the text '{columns}'; give a list, e.g. ['{columns}'].")
    if not isinstance(tallies, list | tuple) or any(isinstance(one, type) for one in tallies):
        raise UsageError(f"tallies is {tallies!r}; give a list of tallies, e.g. [MyTally()].")


def stacks_of(subject: Subject, stacks: Collection[str] | None) -> tuple[str, ...]:
    """The stacks to look at, in their order; named stacks must exist."""
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
