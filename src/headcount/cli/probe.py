"""`headcount probe`: how much syntax all heads carry together, and a small parser made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headcount.cli import options
from headcount.cli.inputs import SAMPLE
from headcount.cli.options import WordRows, loaded, one_of, positive
from headcount.cli.output import announced, bar, output, print_json, print_notes
from headcount.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from headcount.probing import Parse, Probe
    from headcount.text import Corpus


# --- Options of `headcount probe` alone ---------------------------------------------------------

_TRAINING = "Training"
_ASKING = "Using a trained probe"

Model = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="A model, as in `headcount survey`; or the folder of a trained probe (-o), by default "
        "the newest here.",
        show_default=False,
    ),
]
Treebank = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Sentences with trees to learn from (.conllu, .conll); `sample` for the bundled ones.",
        show_default=False,
    ),
]
Test = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Sentences with trees to test on; by default every fifth of the treebank.",
        show_default=False,
    ),
]
Words = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Vectors of words, as text (GloVe, word2vec) or .npz; `own` for the model's own input "
        "embeddings. With them the weights of heads depend on the words.",
        show_default=False,
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        callback=one_of("attention", "words", "distances", "random-init", "right-branching"),
        help="attention, words, or a baseline: distances, random-init, right-branching; by "
        "default attention, and words where --words is given.",
        show_default=False,
    ),
]
Baselines = Annotated[
    bool, typer.Option("--baselines", help="Train every kind, and put them side by side.")
]
Seeds = Annotated[
    int,
    typer.Option(
        metavar="N",
        callback=positive,
        help="Train so often, with seeds counting up; the first is kept.",
        rich_help_panel=_TRAINING,
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--learning-rate", metavar="X", help="Adam's step.", rich_help_panel=_TRAINING,
        show_default=False,
    ),
]  # fmt: skip
Epochs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=positive,
        help="Passes over the treebank.",
        rich_help_panel=_TRAINING,
        show_default=False,
    ),
]
TrainBatch = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=positive,
        help="Sentences a training step.",
        rich_help_panel=_TRAINING,
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="DIR", help="Run directory to write; made where there is none."
    ),
]
Replace = Annotated[bool, typer.Option("--replace", help="Start the run directory's table anew.")]
ParseOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="A sentence to parse.",
        rich_help_panel=_ASKING,
        show_default=False,
    ),
]
Tree = Annotated[
    bool,
    typer.Option(
        "--tree/--no-tree",
        help="The best tree, or each word's best head by itself.",
        rich_help_panel=_ASKING,
    ),
]
Explain = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="DEP HEAD",
        help="Which attention heads decided this arc of --parse; words or their numbers, or ROOT.",
        rich_help_panel=_ASKING,
        show_default=False,
    ),
]


# --- A probe told to people ---------------------------------------------------------------------

#: What each kind is, in words.
MEANINGS = {
    "right-branching": "every word hangs from the next",
    "random-init": "attention of a random twin, and words",
    "distances": "distances and words, no attention",
    "attention": "attention of all heads",
    "words": "attention of all heads, and words",
}
#: So many heads of an arc are shown.
_SHOWN = 10


def print_probe(probe: Probe) -> None:
    """UAS of every kind, then the heads that the probe relies on."""
    from headcount.cli.output import print_ranking
    from headcount.probing import probe_summary

    rows = []
    found: Any = probe_summary(probe.hits)
    for row in found.itertuples():
        seeds = f"{row.seed_low:.3f} to {row.seed_high:.3f}" if row.seeds > 1 else ""
        known = row.low == row.low  # one sentence has no interval
        uas, ends = f"{row.uas:.3f}", f"[{row.low:.3f}, {row.high:.3f}]" if known else ""
        rows.append([row.probe, MEANINGS[row.probe], uas, ends, seeds])
    _print(["probe", "what it sees", "UAS", "95%", "over seeds"], rows)
    about = probe.provenance
    test = about["test"]
    output().print(
        f"Trained on {_sentences(about['settings']['train'])} of {about['corpus']}, tested on "
        f"{test['sentences']:,} ({test['corpus']}); punctuation left out.",
        style="dim",
    )
    if probe.table is not None:
        print_ranking(probe.table, "probe_weight")


def _sentences(count: int) -> str:
    """So many, in words."""
    return "1 sentence" if count == 1 else f"{count:,} sentences"


def print_parse(parse: Parse) -> None:
    """A row a word."""
    frame: Any = parse.frame
    rows = [
        [str(row.word), row.form, f"{row.head} {row.head_form}", f"{row.chance:.2f}"]
        for row in frame.itertuples()
    ]
    _print(["", "word", "head", "chance"], rows)


def print_arc(parse: Parse, arc: pd.DataFrame, dependent: str, head: str) -> None:
    """The heads that spoke loudest for an arc, or against it."""
    margin = arc["margin"].sum()
    output().print(
        f"{dependent} → {head}: all heads together put it {margin:+.2f} above the mean candidate."
    )
    shown: Any = arc.head(_SHOWN)
    rows = [[row.head, f"{row.margin:+.3f}"] for row in shown.itertuples()]
    _print(["head", "margin"], rows)


def probe_json(
    probe: Probe, trained: bool, parse: Parse | None, arc: pd.DataFrame | None
) -> dict[str, Any]:
    """All of it for machines."""
    from headcount.probing import probe_summary
    from headcount.records import to_strict

    told: dict[str, Any] = {"kind": probe.kind, "model": probe.subject.name}
    if trained:
        told["results"] = to_strict(probe.results.to_dict("records"))
        told["summary"] = to_strict(probe_summary(probe.hits).to_dict("records"))
        told["table"] = None if probe.table is None else probe.table.to_dict()
        told["provenance"] = to_strict(probe.provenance)
    if parse is not None:
        told["parse"] = to_strict(parse.frame.to_dict("records"))
    if arc is not None:
        told["explained"] = to_strict(arc.to_dict("records"))
    return told


def _print(headings: list[str], rows: list[list[str]]) -> None:
    from rich.table import Table

    drawn = Table(box=None)
    for heading in headings:
        drawn.add_column(heading)
    for row in rows:
        drawn.add_row(*row)
    output().print(drawn)


# --- The probe that parses where none is named --------------------------------------------------


def probe_here(loading: dict[str, Any]) -> tuple[Probe, str]:
    """The probe of this folder, the newest of its folders', or a fresh one; and a word on it."""
    from headcount.probing import load_probe

    folder = _newest(Path())
    if folder is None:
        return _fresh(loading)
    with announced(f"Loading {folder}"):
        found = load_probe(folder, **loading)
    return found, f"Parsed with the probe in {folder}/ ({found.kind}, {found.subject.name})."


def _newest(here: Path) -> Path | None:
    from headcount.probing import FILE, INSIDE, is_probe

    if is_probe(here):
        return here
    folders = [place for place in here.iterdir() if place.is_dir() and is_probe(place)]

    def age(place: Path) -> float:
        inside = place / INSIDE / FILE
        return (inside if inside.is_file() else place / FILE).stat().st_mtime

    return max(folders, key=age, default=None)


def _fresh(loading: dict[str, Any]) -> tuple[Probe, str]:
    """A probe of the bundled translator, trained on the bundled sentences."""
    from headcount.bundle import sample
    from headcount.models import load
    from headcount.probing import probe

    found = probe(load("translator", **loading), sample.path("sample.conllu"), telling=bar)
    return found, (
        "No trained probe lies here, so one of the bundled translator was trained on the bundled "
        "sentences; for a better one: headcount probe MODEL --treebank FILE -o DIR."
    )


# --- `headcount probe` --------------------------------------------------------------------------


def probe_command(
    model: Model = None,
    treebank: Treebank = None,
    test: Test = None,
    words: Words = None,
    kind: Kind = None,
    baselines: Baselines = False,
    out: Out = None,
    replace: Replace = False,
    parse: ParseOption = None,
    tree: Tree = True,
    explain: Explain = None,
    seeds: Seeds = 1,
    learning_rate: Rate = None,
    epochs: Epochs = None,
    train_batch: TrainBatch = None,
    word_rows: WordRows = None,
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
    """Train a probe of all heads of MODEL on a treebank, or parse with one.

    Without MODEL the newest probe that lies here parses, or one of the bundled translator.

    [dim]headcount probe minilm --treebank sample[/dim]
    [dim]headcount probe minilm --treebank train.conllu --test dev.conllu --words own -o run/[/dim]
    [dim]headcount probe run/ --parse "The cat sat on the mat." --explain the cat[/dim]
    """
    _check(model, treebank, out, parse, explain)
    loading: dict[str, Any] = {"device": device, "dtype": dtype, "allow_bin": allow_bin}
    loading |= {"trust_remote_code": trust_remote_code, "tokenizer": tokenizer}
    if model is None:
        found, remark = probe_here(loading)
        print_notes([] if json else [remark])
    elif treebank is None:
        found = _saved(Path(model), loading)
    else:
        with announced("Reading the treebank"):
            corpora = _read(treebank, limit, seed), None if test is None else _read(test)
        subject = loaded(model, revision=revision, **loading)
        from headcount.probing import probe as measure

        found = measure(
            subject,
            corpora[0],
            test=corpora[1],
            words=words,
            kind=kind,
            baselines=baselines,
            seed=seed or 0,
            seeds=seeds,
            convention=convention,
            word_rows=word_rows,  # type: ignore[arg-type]  # one of the three, as checked above
            rate=learning_rate,
            epochs=epochs,
            train_batch=train_batch,
            batch_size=batch_size,
            run=out,
            replace=replace,
            telling=bar,
        )
    _tell(found, treebank is not None, parse, tree, explain, json)
    if out is not None and not json:
        output().print(f"Wrote {out}/ (headcount probe {out} --parse TEXT parses with it).")


def _check(
    model: str | None,
    treebank: str | None,
    out: Path | None,
    parse: str | None,
    explain: tuple[str, str] | None,
) -> None:
    """Refuse, before anything is loaded, what cannot go together."""
    if model is None and (parse is None or treebank is not None):
        raise UsageError(
            "No model was given; name one: headcount probe MODEL --treebank FILE, e.g. headcount "
            "probe minilm --treebank sample."
        )
    if explain is not None and parse is None:
        raise UsageError(
            "--explain tells of an arc of a sentence, and none was given; give it with --parse, "
            'e.g. --parse "The cat sat." --explain the cat.'
        )
    if treebank is None and (parse is None or out is not None):
        raise UsageError(
            "No --treebank was given to learn from; give one (`sample` for the bundled sentences), "
            "or parse with a trained probe: headcount probe DIR --parse TEXT."
        )


def _read(name: str, limit: int | None = None, seed: int | None = None) -> Corpus:
    from headcount.bundle import sample
    from headcount.text import read_corpus

    if name != SAMPLE:
        return read_corpus(name, limit=limit, seed=seed)
    corpus = read_corpus(sample.path("sample.conllu"), limit=limit, seed=seed)
    corpus.name = "sample.conllu"  # where headcount is installed tells nothing
    return corpus


def _saved(folder: Path, loading: dict[str, Any]) -> Probe:
    """A probe from the disk, with its model."""
    from headcount.probing import is_probe, load_probe

    if not is_probe(folder):
        raise UsageError(
            f"{folder} holds no trained probe; train one: headcount probe {folder} --treebank FILE "
            "-o DIR, then headcount probe DIR --parse TEXT."
        )
    with announced(f"Loading {folder}"):
        return load_probe(folder, **loading)


def _tell(
    found: Probe,
    trained: bool,
    parse: str | None,
    tree: bool,
    explain: tuple[str, str] | None,
    json: bool,
) -> None:
    """What was learnt, then what was asked."""
    parsed = None if parse is None else found.parse(parse, tree)
    arc = None if explain is None or parse is None else found.explain(parse, *explain)
    if json:
        print_json(probe_json(found, trained, parsed, arc))
        return
    if trained:
        print_probe(found)
        print_notes([*found.subject.notes, *found.provenance["remarks"]])
    if parsed is not None:
        print_parse(parsed)
    if arc is not None and explain is not None and parsed is not None:
        print_arc(parsed, arc, *explain)
