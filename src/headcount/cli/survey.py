"""`headcount survey`: what every head looks at, over a corpus."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headcount.cli import options
from headcount.cli.corpus import named_corpus
from headcount.cli.loading import loaded
from headcount.cli.output import output, print_json, print_notes, print_table
from headcount.cli.progress import bar
from headcount.errors import UsageError
from headcount.heads import STACKS

if TYPE_CHECKING:
    from headcount.run import Run
    from headcount.subject import Subject
    from headcount.table import HeadTable

__all__ = ["survey"]


class Format(StrEnum):
    """What an input file holds."""

    txt = "txt"
    tsv = "tsv"
    conllu = "conllu"


class Long(StrEnum):
    """What is done with a sentence that the model cannot take whole."""

    window = "window"
    truncate = "truncate"
    error = "error"


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
        Format | None,
        typer.Option(
            metavar="KIND", help="What the input is, if its name does not tell: txt, tsv, conllu."
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Longest input in tokens; by default what the model takes."
        ),
    ] = None,
    long: Annotated[
        Long,
        typer.Option(
            metavar="HOW", help="What to do with longer sentences: window, truncate or error."
        ),
    ] = Long.window,
    chat: options.Chat = False,
    offset_mass: Annotated[
        bool,
        typer.Option("--offset-mass", help="Also keep the whole distribution of mass by offset."),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Start the run directory's table anew."),
    ] = False,
    convention: options.Convention = options.Conventions.headcount,
    limit: options.Limit = None,
    seed: options.Seed = None,
    batch_size: options.BatchSize = 16,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    allow_bin: options.AllowBin = False,
    trust_remote_code: options.RemoteCode = False,
    json: options.Json = False,
) -> None:
    """Measure where every head of MODEL looks, over a corpus.

    [dim]headcount survey minilm --text sample[/dim]
    [dim]headcount survey ./my-model --text sentences.txt -o run/[/dim]
    [dim]cat news.txt | headcount survey bert-base-uncased --text - --json[/dim]
    """
    chosen, wanted = options.names(columns), _stacks(stacks)
    corpus = named_corpus(text, pairs, format, limit, seed)
    _check_columns(chosen, convention)
    with _opened(out) as run:
        subject = loaded(
            model,
            device=device,
            dtype=dtype,
            revision=revision,
            allow_bin=allow_bin,
            trust_remote_code=trust_remote_code,
        )
        if run is not None and not replace:
            _check_run(run, subject, wanted)
        from headcount.survey import survey as measure

        with bar("Surveying", unit="pairs" if corpus.paired else "sentences") as progress:
            table = measure(
                subject,
                corpus,
                convention=convention.value,
                columns=chosen,
                stacks=wanted,
                batch_size=batch_size,
                max_length=max_length,
                long=long.value,
                chat=chat,
                offset_mass=offset_mass,
                seed=seed,
                progress=progress,
            )
        if run is not None:
            _write(run, table, replace)
    _print(table, subject, out, chosen, wanted, json)


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


def _write(run: Run, table: HeadTable, replace: bool) -> None:
    """Put the table into the run: beside the columns of this model that are there, or anew."""
    stage = run.stage("survey")
    whole = run.read_table().join(table, replace=True) if run.has_table and not replace else table
    run.write_table(whole, replace=replace)
    about = table.provenance
    settings = {"convention": about["convention"], "columns": table.names, **about["settings"]}
    stage.finish(settings, about, notes=about["remarks"])


def _print(
    table: HeadTable,
    subject: Subject,
    out: Path | None,
    columns: list[str] | None,
    stacks: list[str] | None,
    json: bool,
) -> None:
    if json:
        print_json(table.to_dict())
        return
    shown = [head for head in table.heads if stacks is None or head.stack in stacks]
    print_table(table.select(shown), columns)
    about = table.provenance
    console = output()
    console.print(_sizes(about["counts"], about["corpus"]), style="dim")
    console.print(repr(subject), style="dim")
    print_notes([*subject.notes, *about["remarks"], *_skipped(about["counts"]["skipped"])])
    if out is not None:
        console.print(f"Wrote {out}/ (heads.parquet, run.json).")


def _sizes(counts: dict[str, Any], corpus: str) -> str:
    tokens = " and ".join(f"{number:,} {side}" for side, number in counts["tokens"].items())
    what = "pairs" if len(counts["tokens"]) > 1 else "sentences"
    return f"{counts['sentences']:,} {what} of {corpus}, {tokens} tokens"


def _skipped(counts: dict[str, int]) -> list[str]:
    return [f"{number} {what} skipped." for what, number in counts.items()]
