"""`headcount compare`: what changed between two models, or two run directories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import headcount as hc
from headcount import cli
from headcount.errors import UsageError
from headcount.models import LoadOptions
from headcount.records import WorkOptions, option
from headcount.surveys import ReadingOptions

if TYPE_CHECKING:
    from headcount.rooms.compare.runs import Changes
    from headcount.text import Corpus


@dataclass(frozen=True)
class CompareArguments:
    """What is compared."""

    treebank: str | None = option(
        None,
        "FILE",
        "Sentences with trees, .conllu or .conll, in place of a text: also what becomes of words "
        "and roles; `sample` for the bundled one.",
    )
    roles: bool = option(
        True,
        None,
        "With a treebank, judge what the heads of both models do.",
        "--roles/--no-roles",
        instead="hc.compare(..., roles=False)",
    )
    match: str = option(
        "name",
        "HOW",
        "Which heads are compared: of the same name; or, for models of other shapes, one to one by "
        "the cosine of their maps, within layers of the same relative depth (depth) or within a "
        "stack (maps). Half of the texts tell the pairs.",
        choices=("name", "depth", "maps"),
    )
    pad_to: int = option(
        200,
        "N",
        "With --convention code: the width to which maps are padded before the cosine.",
        least=1,
        instead="hc.compare(..., pad_to=N)",
    )


def compare_command(
    first: Annotated[str, cli.argument("A", "The model before, or its run directory.")],
    second: Annotated[str, cli.argument("B", "The model after, or its run directory.")],
    corpus: cli.CorpusArguments,
    asked: CompareArguments,
    target: cli.RunArguments,
    reading: Annotated[
        ReadingOptions,
        cli.without("rows", "word_rows", "confidence_without", "own_output", "chat", "long"),
    ],
    load: Annotated[LoadOptions, cli.without("revision", "tokenizer")],
    json: cli.Json = False,
) -> None:
    """Compare every head of two models of one architecture.

    Without a corpus the bundled sample is read.

    [dim]headcount compare minilm ./minilm-sst2 --text sentences.txt[/dim]
    [dim]headcount compare minilm ./minilm-sst2 --treebank sample -o changes/[/dim]
    [dim]headcount compare run-before/ run-after/[/dim]
    """
    given = corpus.given or asked.treebank is not None
    # Refuse a run and a model: the run's texts may be others.
    runs = [name for name in (first, second) if _is_run(name)]
    if len(runs) == 1:
        other = second if runs[0] == first else first
        raise UsageError(
            f"{runs[0]} is a run directory and {other} is not; compare two run directories, or two "
            "models."
        )
    if _is_run(first):
        if given:
            raise UsageError(
                f"{first} and {second} are run directories, whose texts were read already; leave "
                "out --text, --pairs and --treebank."
            )
        if asked.match != "name":
            raise UsageError(
                f"{first} and {second} are run directories, which keep no maps to match heads by; "
                f"leave out --match {asked.match}, or compare the models themselves."
            )
        from headcount.rooms.compare.runs import compare_runs

        changes = compare_runs(first, second)
    else:
        texts = None
        if given:
            with cli.status("Reading the corpus"):
                texts = _corpus(corpus, asked.treebank, reading)
        before, after = (cli.loaded(name, load) for name in (first, second))
        if target.out is not None and not target.replace:
            with hc.Run.open(target.out) as run:
                from headcount.models import bare_table

                run.check_subject(bare_table(before))
        if texts is None:
            paired = all("cross" in one.anatomy.stacks for one in (before, after))
            texts = cli.sample_corpus("sample.en-de.tsv" if paired else "sample.conllu", reading)
        parsed = asked.treebank is not None
        changes = hc.compare(
            before,
            after,
            None if parsed else texts,
            treebank=texts if parsed else None,
            roles=asked.roles and parsed,
            match=asked.match,
            convention=reading.convention,
            pad_to=asked.pad_to,
            stacks=reading.stacks,
            batch_size=reading.examples,
            max_length=reading.max_length,
            seed=reading.seed,
        )
        if not given:
            changes.notes.append(f"No corpus was named, so the bundled {texts.name} was read.")
    if target.out is not None:
        changes.save(target.out, replace=target.replace)
    if json:
        cli.print_json(changes.to_dict())
        return
    _print(changes)
    if target.out is not None:
        cli.output().print(f"Wrote {target.out}/ (changes.parquet has a row a head).")


def _is_run(name: str) -> bool:
    return (Path(name) / "run.json").is_file()


def _corpus(corpus: cli.CorpusArguments, treebank: str | None, work: WorkOptions) -> Corpus:
    """The one corpus that was named."""
    if treebank is None:
        return corpus.read(work)
    if corpus.given:
        raise UsageError("Both a text and --treebank were given; name one corpus to compare on.")
    if treebank == cli.SAMPLE:
        return cli.sample_corpus("sample.conllu", work)
    from headcount.surveys import read_corpora

    trees = read_corpora(None, treebank=treebank, limit=work.limit, seed=work.seed).treebank
    assert trees is not None
    return trees


def _print(changes: Changes) -> None:
    from headcount.rooms.compare.runs import column_rows, draw_grid, layer_rows, role_rows

    console = cli.output()
    console.print(f"{changes.before} and {changes.after}: {len(changes.heads)} heads", style="bold")
    if "cosine" in changes.heads and changes.heads["cosine"].notna().any():
        console.print("Cosine of each head's maps; 1 is no change.")
        for stack in changes.heads.index.get_level_values("stack").unique():
            console.print(draw_grid(changes, str(stack)))
    if len(changes.layers):
        figures = ["cosine", "95%", "JS (nats a row)", "more than others", "p"]
        cli.print_rows(["layer", *figures], layer_rows(changes.layers), figures)
    figures = ["mean change", "rose", "fell", "most"]
    cli.print_rows(["column", *figures], column_rows(changes), figures)
    if changes.roles is not None:
        kept = int((changes.roles["change"] == "kept").sum())
        console.print(f"Roles: {kept} kept, {len(changes.roles) - kept} lost or won.")
        figures = ["before", "after"]
        titles = ["head", "role", "label", "change", *figures]
        cli.print_rows(titles, role_rows(changes.roles), figures)
    cli.print_notes(changes.notes)
