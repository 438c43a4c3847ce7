"""`headcount survey`: what every head looks at, over a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headcount.cli import options
from headcount.errors import UsageError

__all__ = ["survey"]


def survey(
    model: options.Model,
    text: Annotated[
        str | None,
        typer.Option(
            help="Sentences: .txt (one a line), .conllu, .tsv (pairs), also .gz and .xz; - for "
            "standard input; `sample` for the bundled sentences.",
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="Pairs: a .tsv of two columns; source and target of a translator, two texts "
            "for an encoder; `sample` for the bundled ones.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Run directory to write; made where there is none."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns to measure and show, separated by commas.")
    ] = None,
    stacks: Annotated[
        str | None, typer.Option(help="Stacks to look at: enc, dec, cross; separated by commas.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="What the input is, where its name does not tell: txt, tsv, conllu."),
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(help="Longest input in tokens; by default what the model takes.")
    ] = None,
    long: Annotated[
        str, typer.Option(help="What to do with longer sentences: window, truncate or error.")
    ] = "window",
    chat: Annotated[
        bool, typer.Option("--chat", help="Put each sentence into the model's chat template.")
    ] = False,
    offset_mass: Annotated[
        bool,
        typer.Option("--offset-mass", help="Also keep the whole distribution of mass by offset."),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace a table of another model in the run directory."),
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
    json: options.Json = False,
) -> None:
    """Measure where every head of MODEL looks, over a corpus.

    [dim]headcount survey minilm --text sample[/dim]
    [dim]headcount survey ./my-model --text sentences.txt -o run/[/dim]
    [dim]cat news.txt | headcount survey bert-base-uncased --text - --json[/dim]
    """
    corpus = _corpus(text, pairs, format, limit, seed)

    from headcount.cli.progress import bar, told
    from headcount.models.load import load
    from headcount.run import Run
    from headcount.survey import survey as measure

    _check_place(out)
    with told(f"Loading {model}"):
        subject = load(
            model,
            device=device,
            dtype=dtype,
            revision=revision,
            allow_bin=allow_bin,
            trust_remote_code=trust_remote_code,
        )
    with bar("Surveying", unit="sentences") as progress:
        table = measure(
            subject,
            corpus,
            convention=convention,
            columns=_names(columns),
            stacks=_names(stacks),
            batch_size=batch_size,
            max_length=max_length,
            long=long,  # type: ignore[arg-type]  # checked by encode, with a clear message
            chat=chat,
            offset_mass=offset_mass,
            seed=seed,
            progress=progress,
        )
    if out is not None:
        with Run.open(out) as run:
            stage = run.stage("survey")
            run.write_table(_joined(run, table, replace), replace=replace)
            for name, frame in table.details.items():
                run.write_frame(name, frame)
            stage.finish({"convention": convention, "columns": list(table.frame.columns)})
    _print(table, subject, out, json)


def _corpus(
    text: str | None, pairs: str | None, format: str | None, limit: int | None, seed: int | None
) -> Any:
    """The corpus that was asked for: exactly one of the two options."""
    if (text is None) == (pairs is None):
        which = "Both --text and --pairs were" if text else "Neither --text nor --pairs was"
        raise UsageError(
            f"{which} given; name one corpus, e.g. --text sentences.txt, or --text sample."
        )
    from headcount.text.corpus import read_corpus

    source: Any = text if text is not None else pairs
    if source == "sample":
        from headcount.bundle.sample import pairs as sample_pairs
        from headcount.bundle.sample import sentences as sample_sentences

        source = sample_sentences() if text is not None else sample_pairs()
    elif pairs is not None and format is None and source == "-":
        format = "tsv"
    return read_corpus(source, format=format, limit=limit, seed=seed)


def _names(given: str | None) -> list[str] | None:
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def _check_place(out: Path | None) -> None:
    """Say at once, not after the work, that the run directory cannot be used."""
    if out is not None:
        from headcount.run_record import check_place

        check_place(out, True)


def _joined(run: Any, table: Any, replace: bool) -> Any:
    """The new columns beside those that the run already has of this model."""
    if not run.has_table or replace:
        return table
    old = run.read_table()
    return old.join(table, replace=True) if old.heads == table.heads else table


def _print(table: Any, subject: Any, out: Path | None, json: bool) -> None:
    from headcount.cli.progress import out_console

    if json:
        from headcount.exact_json import encode

        typer.echo(encode(table.to_dict()))
        return
    console = out_console()
    console.print(table)
    counts = table.provenance["counts"]
    tokens = ", ".join(f"{n:,} {side}" for side, n in counts["tokens"].items())
    console.print(f"[dim]{subject!r}; {counts['sentences']:,} sentences, {tokens} tokens[/dim]")
    for remark in [*table.provenance["remarks"], *_skipped(counts)]:
        console.print(f"[yellow]Note:[/yellow] {remark}")
    if out is not None:
        console.print(f"Wrote {out}/ (heads.parquet, run.json).")


def _skipped(counts: dict[str, Any]) -> list[str]:
    return [f"{n} {what} skipped." for what, n in counts["skipped"].items()]
