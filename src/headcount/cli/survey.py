"""`headcount survey`: what every head looks at, over a corpus."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from headcount.cli import options, role_options, survey_options
from headcount.cli.annotation import Annotation, read_annotated
from headcount.cli.corpus import named_corpus
from headcount.cli.families import families_json, print_families, watched, write_families
from headcount.cli.loading import loaded
from headcount.cli.output import output, print_json
from headcount.cli.progress import bar, told
from headcount.cli.survey_output import print_survey, survey_json
from headcount.cli.survey_run import check_run, opened, write
from headcount.errors import UsageError
from headcount.heads import STACKS

if TYPE_CHECKING:
    from headcount.subject import Subject
    from headcount.tallies.frequencies import Frequencies
    from headcount.text.corpus import Corpus

__all__ = ["survey"]


def survey(
    model: options.Model,
    text: survey_options.Text = None,
    pairs: survey_options.Pairs = None,
    out: survey_options.Out = None,
    columns: survey_options.Columns = None,
    stacks: survey_options.Stacks = None,
    format: survey_options.Format = None,
    max_length: survey_options.MaxLength = None,
    long: survey_options.Long = "window",
    chat: options.Chat = False,
    own_output: survey_options.OwnOutput = False,
    offset_mass: survey_options.OffsetMass = False,
    families: survey_options.Families = False,
    patterns: survey_options.Patterns = False,
    replace: survey_options.Replace = False,
    treebank: role_options.Treebank = None,
    coref: role_options.Coref = None,
    arguments: role_options.Arguments = None,
    parser: role_options.Parser = None,
    roles: role_options.Roles = False,
    control: role_options.Control = None,
    twins: role_options.Twins = 1,
    word_rows: role_options.WordRows = None,
    relations: role_options.Relations = None,
    word_frequencies: role_options.Frequencies = None,
    convention: options.Convention = "headcount",
    limit: options.Limit = None,
    seed: options.Seed = None,
    batch_size: options.BatchSize = 16,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    allow_bin: options.AllowBin = False,
    trust_remote_code: options.RemoteCode = False,
    tokenizer: options.Tokenizer = None,
    json: options.Json = False,
) -> None:
    """Measure where every head of MODEL looks, over a corpus, and tell what it does there.

    [dim]headcount survey minilm --text sample[/dim]
    [dim]headcount survey minilm --treebank sample --control random-init[/dim]
    [dim]headcount survey ./my-model --text sentences.txt -o run/[/dim]
    [dim]cat news.txt | headcount survey bert-base-uncased --text - --json[/dim]
    """
    chosen, wanted = options.names(columns), _stacks(stacks)
    with told("Reading the corpus"):
        annotated = read_annotated(treebank, coref, arguments, limit, seed)
        corpus = _text(text, pairs, format, parser, annotated, limit, seed)
        frequencies = _frequencies(word_frequencies)
        _check_columns(chosen, convention)
    with opened(out) as run:
        stage = None if run is None else run.stage("survey")
        subject = loaded(
            model,
            device=device,
            dtype=dtype,
            revision=revision,
            allow_bin=allow_bin,
            trust_remote_code=trust_remote_code,
            tokenizer=tokenizer,
        )
        if run is not None and not replace:
            check_run(run, subject, wanted)
        annotated = annotated.for_model(subject, limit, seed)
        if parser is not None:
            annotated = annotated.with_treebank(corpus)
        if own_output:
            corpus, annotated = _translated(subject, corpus, annotated, batch_size)
        from headcount.survey import survey as measure

        watching = watched(convention) if families else []
        table = measure(
            subject,
            corpus,
            treebank=annotated.treebank,
            coref=annotated.coref,
            arguments=annotated.arguments,
            roles=roles or None,
            control=control,
            control_seeds=range(twins),
            word_rows=word_rows,  # type: ignore[arg-type]  # one of the three, as checked above
            relations=options.names(relations),
            frequencies=frequencies,
            convention=convention,
            columns=chosen,
            stacks=wanted,
            batch_size=batch_size,
            max_length=max_length,
            long=long,  # type: ignore[arg-type]  # one of the three, as checked above
            chat=chat,
            offset_mass=offset_mass,
            patterns=patterns,
            limit=limit,
            seed=seed,
            tallies=watching,
            telling=bar,
        )
        other_texts = [] if stage is None else write(stage, table, replace)
        kin = write_families(run, subject, watching, table, seed)
    if json:
        print_json(survey_json(table) | families_json(kin))
        return
    print_survey(table, subject, chosen, wanted, other_texts)
    print_families(kin)
    if out is not None:
        output().print(f"Wrote {out}/ (headcount ls {out} lists what it holds).")
    elif "roles" in table.details:
        output().print("-o DIR keeps every verdict and figure; --json prints them.", style="dim")


def _text(
    text: str | None,
    pairs: str | None,
    format: str | None,
    parser: str | None,
    annotated: Annotation,
    limit: int | None,
    seed: int | None,
) -> Corpus | None:
    """The text that was named, parsed where a parser was; none where a treebank stands in."""
    if text is None and pairs is None and annotated.any:
        return None
    corpus = named_corpus(text, pairs, format, limit, seed)
    if parser is None:
        return corpus
    if annotated.treebank is not None:
        raise UsageError(
            "Both --treebank and --parser were given; a parser makes a treebank of the text, so "
            "leave one of them out."
        )
    from headcount.text.corpus import read_corpus

    return read_corpus(corpus, parser=parser)


def _frequencies(given: str | None) -> Frequencies | None:
    from headcount.tallies.frequencies import frequencies_of

    return frequencies_of(given)


def _stacks(given: str | None) -> list[str] | None:
    """The stacks asked for; a word that is no stack is refused before anything is loaded."""
    wanted = options.names(given)
    for stack in wanted or ():
        if stack not in STACKS:
            raise UsageError(f"There is no stack '{stack}'; choose among {', '.join(STACKS)}.")
    return wanted


def _check_columns(columns: list[str] | None, convention: str) -> None:
    """Refuse a column that is not known before a model is loaded for it."""
    from headcount.patterns.kinds import COLUMNS, PATTERN
    from headcount.tallies.catalogue import chosen_tallies

    if columns is not None and not columns:
        raise UsageError("--columns names no column; name some, e.g. --columns self,next.")
    patterns = {PATTERN.name, *(column.name for column in COLUMNS)}
    others = None if columns is None else [name for name in columns if name not in patterns]
    chosen_tallies(others, convention)


def _translated(
    subject: Subject, corpus: Corpus | None, annotated: Annotation, batch_size: int
) -> tuple[Corpus | None, Annotation]:
    """Each source with what the model makes of it, in the text or in the treebank in its place."""
    from headcount.tasks.own_output import own_output
    from headcount.text.corpus import Corpus, read_corpus

    sources = annotated.treebank if corpus is None else corpus
    if not isinstance(sources, Corpus):
        raise UsageError("--own-output translates a text or a treebank, and none was given.")
    with bar("Translating", unit="sentences") as progress:
        told = own_output(subject, sources, batch_size=batch_size, progress=progress)
    pairs = read_corpus(told)
    untold = Counter({"sentences without a translation": len(sources) - len(told)})
    pairs.name, pairs.skipped = f"{sources.name} in its own words", sources.skipped + untold
    same = corpus is None or corpus is annotated.treebank
    return (None if corpus is None else pairs), (
        annotated.with_treebank(pairs) if same else annotated
    )
