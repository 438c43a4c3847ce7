"""`headcount survey`: what every head looks at, over a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headcount.cli import options
from headcount.cli.corpus import named_corpus
from headcount.cli.loading import loaded
from headcount.cli.output import output, print_json, print_notes, print_table
from headcount.cli.progress import bar, told
from headcount.errors import UsageError
from headcount.heads import STACKS

if TYPE_CHECKING:
    from headcount.run import Run, Stage
    from headcount.subject import Subject
    from headcount.table import HeadTable
    from headcount.text.corpus import Corpus

__all__ = ["survey"]


def survey(
    model: options.Model,
    text: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Sentences: .txt (one a line), .conllu, .tsv (pairs), also .gz, .xz and .bz2; "
            "- for standard input; `sample` for the bundled sentences.",
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Pairs, two columns with a tab between: source and target for a translator, two "
            "texts for an encoder; `sample` for the bundled English-German pairs.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Run directory to write; made where there is none."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Columns to measure and show, separated by commas."),
    ] = None,
    stacks: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Stacks to look at: enc, dec, cross; separated by commas."
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            callback=options.one_of("txt", "tsv", "conllu"),
            help="What the input is, if its name does not tell: txt, tsv, conllu.",
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            callback=options.positive,
            help="Longest input in tokens; by default what the model takes.",
        ),
    ] = None,
    long: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            callback=options.one_of("window", "truncate", "error"),
            help="What to do with longer sentences: window, truncate or error.",
        ),
    ] = "window",
    chat: options.Chat = False,
    own_output: Annotated[
        bool,
        typer.Option(
            "--own-output", help="Translate first, and survey the model's own translations."
        ),
    ] = False,
    offset_mass: Annotated[
        bool,
        typer.Option("--offset-mass", help="Also keep the whole distribution of mass by offset."),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Start the run directory's table anew."),
    ] = False,
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
    """Measure where every head of MODEL looks, over a corpus.

    [dim]headcount survey minilm --text sample[/dim]
    [dim]headcount survey ./my-model --text sentences.txt -o run/[/dim]
    [dim]cat news.txt | headcount survey bert-base-uncased --text - --json[/dim]
    """
    chosen, wanted = options.names(columns), _stacks(stacks)
    with told("Reading the corpus"):
        corpus = named_corpus(text, pairs, format, limit, seed)
        _check_columns(chosen, convention)
    with _opened(out) as run:
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
            _check_run(run, subject, wanted)
        if own_output:
            corpus = _translated(subject, corpus, batch_size)
        from headcount.survey import survey as measure

        unit = "pairs" if corpus.paired else "sentences"
        with bar("Surveying", unit) as progress:
            table = measure(
                subject,
                corpus,
                convention=convention,
                columns=chosen,
                stacks=wanted,
                batch_size=batch_size,
                max_length=max_length,
                long=long,  # type: ignore[arg-type]  # one of the three, as checked above
                chat=chat,
                offset_mass=offset_mass,
                limit=limit,
                seed=seed,
                progress=progress,
            )
        other_texts = [] if stage is None else _write(stage, table, replace)
    if json:
        print_json(table.to_dict())
        return
    shown = table if wanted is None else table.select(h for h in table.heads if h.stack in wanted)
    print_table(shown, chosen)
    output().print(f"{_sizes(table.provenance, unit)}; {subject!r}", style="dim")
    remarks = [*table.provenance["remarks"], *_skipped(corpus.skipped), *other_texts]
    print_notes([*subject.notes, *remarks])
    if out is not None:
        output().print(f"Wrote {out}/ (headcount ls {out} lists what it holds).")


def _stacks(given: str | None) -> list[str] | None:
    """The stacks asked for; a word that is no stack is refused before anything is loaded."""
    wanted = options.names(given)
    for stack in wanted or ():
        if stack not in STACKS:
            raise UsageError(f"There is no stack '{stack}'; choose among {', '.join(STACKS)}.")
    return wanted


def _check_columns(columns: list[str] | None, convention: str) -> None:
    """Refuse a column that is not known before a model is loaded for it."""
    from headcount.tallies.catalogue import chosen_tallies

    if columns is not None and not columns:
        raise UsageError("--columns names no column; name some, e.g. --columns self,next.")
    chosen_tallies(columns, convention)


def _opened(out: Path | None) -> AbstractContextManager[Run | None]:
    """The run directory, made and locked before the work: a bad place is told at once."""
    if out is None:
        return nullcontext()
    from headcount.run import Run

    return Run.open(out)


def _check_run(run: Run, subject: Subject, stacks: list[str] | None) -> None:
    """Refuse, before the work, a run of another model or one that would lose what it knows."""
    from headcount.table import HeadTable

    run.check_subject(HeadTable.of(subject.heads, {}, provenance={"weights": subject.weights_hash}))
    others = [stack for stack in subject.anatomy.stacks if stacks and stack not in stacks]
    if others and run.has_table and "survey" in run.stages:
        raise UsageError(
            f"{run.path}/ has a survey already, and one of {', '.join(stacks or ())} alone would "
            f"clear {', '.join(others)}; leave out --stacks, choose another folder, or --replace."
        )


def _translated(subject: Subject, corpus: Corpus, batch_size: int) -> Corpus:
    """Each source with what the model makes of it."""
    from headcount.tasks.own_output import own_output
    from headcount.text.corpus import read_corpus

    with bar("Translating", unit="sentences") as progress:
        told = own_output(subject, corpus, batch_size=batch_size, progress=progress)
    pairs = read_corpus(told)
    untold = Counter({"sentences without a translation": len(corpus) - len(told)})
    pairs.name, pairs.skipped = f"{corpus.name} in its own words", corpus.skipped + untold
    return pairs


def _write(stage: Stage, table: HeadTable, replace: bool) -> list[str]:
    """Put the table into the run: beside the columns of this model that are there, or anew.

    Returns what to tell of columns that came from other texts.
    """
    run = stage.run
    old = run.read_table() if run.has_table and not replace else None
    run.write_table(table if old is None else old.join(table, replace=True), replace=replace)
    about = table.provenance
    settings = {"convention": about["convention"], "columns": table.names, **about["settings"]}
    stage.finish(settings, about, notes=about["remarks"])
    return [] if old is None else _other_texts(old, table, run.path)


def _other_texts(old: HeadTable, new: HeadTable, path: Path) -> list[str]:
    """Which columns were replaced, and which are kept, though measured on other texts."""
    origins = {name: old.origins.get(name, old.provenance) for name in old.names}
    others = [name for name in old.names if origins[name].get("data") != new.provenance["data"]]
    told = []
    for deed, names in (
        ("replaces", [name for name in others if name in new.names]),
        ("stands beside", [name for name in others if name not in new.names]),
    ):
        if names:
            corpora = ", ".join(sorted({str(origins[name].get("corpus")) for name in names}))
            told.append(f"In {path}/ this {deed} {', '.join(names)}, measured on {corpora}.")
    return told


def _sizes(about: dict[str, Any], unit: str) -> str:
    """What was read, in words: "20 pairs of news.tsv, 310 source and 290 target tokens"."""
    counts = about["counts"]
    sides = [f"{number:,} {side}" for side, number in counts["tokens"].items()]
    tokens = " and ".join(sides) if len(sides) > 1 else f"{sum(counts['tokens'].values()):,}"
    number = counts["sentences"]
    named = unit.removesuffix("s") if number == 1 else unit
    return f"{number:,} {named} of {about['corpus']}, {tokens} tokens"


def _skipped(counts: Mapping[str, int]) -> list[str]:
    return [
        f"{number} {what.removesuffix('s') if number == 1 else what} skipped."
        for what, number in counts.items()
    ]
