"""`headcount compare`: what changed between two models, or two run directories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headcount.cli import options
from headcount.cli import options as role_options
from headcount.cli import survey as survey_options
from headcount.cli.inputs import SAMPLE, named_corpus
from headcount.cli.options import loaded
from headcount.cli.output import announced, bar, output, print_json, print_notes
from headcount.errors import UsageError

if TYPE_CHECKING:
    from headcount.compare import Changes
    from headcount.models import Subject
    from headcount.text import Corpus

First = Annotated[
    str,
    typer.Argument(metavar="A", help="The model before, or its run directory.", show_default=False),
]
Second = Annotated[
    str,
    typer.Argument(metavar="B", help="The model after, or its run directory.", show_default=False),
]
Roles = Annotated[
    bool,
    typer.Option(
        "--roles/--no-roles", help="With a treebank, judge what the heads of both models do."
    ),
]
PadTo = Annotated[
    int,
    typer.Option(
        metavar="N",
        callback=options.positive,
        help="With --convention code: the width to which maps are padded before the cosine.",
    ),
]


def compare_command(
    first: First,
    second: Second,
    text: survey_options.Text = None,
    pairs: survey_options.Pairs = None,
    treebank: role_options.Treebank = None,
    out: survey_options.Out = None,
    roles: Roles = True,
    pad_to: PadTo = 200,
    stacks: survey_options.Stacks = None,
    format: survey_options.Format = None,
    max_length: survey_options.MaxLength = None,
    replace: survey_options.Replace = False,
    convention: options.Convention = "headcount",
    limit: options.Limit = None,
    seed: options.Seed = None,
    batch_size: options.BatchSize = 16,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    allow_bin: options.AllowBin = False,
    trust_remote_code: options.RemoteCode = False,
    json: options.Json = False,
) -> None:
    """Tell how every head of model B differs from the same head of model A.

    Without a corpus the bundled sample is read.

    [dim]headcount compare minilm ./minilm-sst2 --text sentences.txt[/dim]
    [dim]headcount compare minilm ./minilm-sst2 --treebank sample -o changes/[/dim]
    [dim]headcount compare run-before/ run-after/[/dim]
    """
    given = (text, pairs, treebank)
    _check_kinds(first, second)
    if _is_run(first) and _is_run(second):
        if any(one is not None for one in given):
            raise UsageError(
                f"{first} and {second} are run directories, whose texts were read already; leave "
                "out --text, --pairs and --treebank."
            )
        from headcount.compare import compare_runs

        found = compare_runs(first, second)
    else:
        corpus = None
        if any(one is not None for one in given):
            with announced("Reading the corpus"):
                corpus = _corpus(text, pairs, treebank, format, limit, seed)
        before, after = (
            loaded(
                name,
                device=device,
                dtype=dtype,
                allow_bin=allow_bin,
                trust_remote_code=trust_remote_code,
            )
            for name in (first, second)
        )
        from headcount.compare import compare as measure

        if out is not None and not replace:
            _check_out(out, before)
        if corpus is None:
            corpus = _sample_for(before, limit, seed)
        with bar("Comparing", unit="texts") as progress:
            found = measure(
                before,
                after,
                None if treebank is not None else corpus,
                treebank=corpus if treebank is not None else None,
                roles=roles and treebank is not None,
                convention=convention,
                pad_to=pad_to,
                stacks=options.names(stacks),
                batch_size=batch_size,
                max_length=max_length,
                seed=seed,
                progress=progress,
            )
        if all(one is None for one in given):
            found.notes.append(f"No corpus was named, so the bundled {corpus.name} was read.")
    if out is not None:
        found.save(out, replace=replace)
    if json:
        print_json(found.to_dict())
        return
    _print(found)
    if out is not None:
        output().print(f"Wrote {out}/ (changes.parquet has a row a head).")


def _check_kinds(first: str, second: str) -> None:
    """Refuse a run beside a model: a run's texts may be others."""
    runs = [name for name in (first, second) if _is_run(name)]
    if len(runs) == 1:
        other = second if runs[0] == first else first
        raise UsageError(
            f"{runs[0]} is a run directory and {other} is not; compare two run directories, or two "
            "models."
        )


def _is_run(name: str) -> bool:
    return (Path(name) / "run.json").is_file()


def _corpus(
    text: str | None,
    pairs: str | None,
    treebank: str | None,
    format: str | None,
    limit: int | None,
    seed: int | None,
) -> Corpus:
    """The one corpus that was named."""
    if treebank is None:
        return named_corpus(text, pairs, format, limit, seed)
    if text is not None or pairs is not None:
        raise UsageError("Both a text and --treebank were given; name one corpus to compare on.")
    if treebank == SAMPLE:
        return named_corpus(SAMPLE, None, format, limit, seed)
    from headcount.survey import read_corpora

    found = read_corpora(None, treebank=treebank, limit=limit, seed=seed).treebank
    assert found is not None
    return found


def _sample_for(subject: Subject, limit: int | None, seed: int | None) -> Corpus:
    """The bundled sentences, or pairs for a model that reads such."""
    paired = "cross" in subject.anatomy.stacks
    text, pairs = (None, SAMPLE) if paired else (SAMPLE, None)
    return named_corpus(text, pairs, None, limit, seed)


def _check_out(out: Path, subject: Subject) -> None:
    """Refuse a run directory of another model before the work."""
    from headcount.records import HeadTable, Run

    about = {"weights": subject.weights_hash}
    with Run.open(out) as run:
        run.check_subject(HeadTable.of(subject.heads, {}, provenance=about))


def _print(found: Changes) -> None:
    from headcount.compare import draw_columns, draw_grid, draw_layers, draw_role_changes

    console = output()
    console.print(f"{found.before} and {found.after}: {len(found.heads)} heads", style="bold")
    if "cosine" in found.heads and found.heads["cosine"].notna().any():
        console.print("Cosine of each head's maps; 1 is no change.")
        for stack in found.heads.index.get_level_values("stack").unique():
            console.print(draw_grid(found, str(stack)))
    if len(found.layers):
        console.print(draw_layers(found.layers))
    console.print(draw_columns(found))
    if found.roles is not None:
        kept = int((found.roles["change"] == "kept").sum())
        console.print(f"Roles: {kept} kept, {len(found.roles) - kept} lost or won.")
        console.print(draw_role_changes(found.roles))
    print_notes(found.notes)
