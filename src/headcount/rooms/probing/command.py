"""`headcount probe`: how much syntax all heads carry together, and a small parser made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import headcount as hc
from headcount import cli
from headcount.errors import InputError, UsageError
from headcount.models import LoadOptions
from headcount.records import EngineOptions, WorkOptions, option
from headcount.rooms import probing
from headcount.rooms.probing.options import ProbeOptions

if TYPE_CHECKING:
    import pandas as pd

    from headcount.text import Corpus


# --- Its options --------------------------------------------------------------------------------

_using = partial(option, panel="Using a trained probe")

_KINDS = ("attention", "words", "distances", "random-init", "right-branching", "structural")

ModelOrProbe = Annotated[
    str | None,
    cli.argument(
        "MODEL",
        "A model, as in `headcount survey`; or the folder of a trained probe (-o), by default the "
        "newest here.",
    ),
]


@dataclass(frozen=True)
class ProbeArguments:
    """What a probe learns from, how, and what it is used for."""

    treebank: str | None = option(
        None,
        "FILE",
        "Sentences with trees to learn from (.conllu, .conll); `sample` for the bundled ones.",
    )
    test: str | None = option(
        None, "FILE", "Sentences with trees to test on; by default every fifth of the treebank."
    )
    words: str | None = option(
        None,
        "FILE",
        "Vectors of words, as text (GloVe, word2vec) or .npz; `own` for the model's own input "
        "embeddings. With them the weights of heads depend on the words.",
    )
    kind: str | None = option(
        None,
        "NAME",
        "attention, words, or a baseline: distances, random-init, right-branching, structural; by "
        "default attention, and words where --words is given; all: every kind, side by side.",
        choices=("all", *_KINDS),
    )
    baselines: bool = option(False, None, "", instead="--kind all")

    parse: str | None = _using(None, "TEXT", "A sentence to parse.")
    tree: bool = _using(
        True, None, "", "--tree/--no-tree", instead="probe.parse(text, tree=False) in Python"
    )
    explain: tuple[str, str] | None = _using(
        None,
        "DEP HEAD",
        "Which attention heads decided this arc of --parse; words or their numbers, or ROOT.",
    )


# --- The verb -----------------------------------------------------------------------------------


def probe_command(
    asked: ProbeArguments,
    target: cli.RunArguments,
    learning: ProbeOptions,
    engine: EngineOptions,
    load: LoadOptions,
    model: ModelOrProbe = None,
    json: cli.Json = False,
) -> None:
    """Train a probe of all heads on a treebank, or parse with it.

    Without MODEL the newest probe in this folder parses, or one of the bundled translator.

    [dim]headcount probe minilm --treebank sample[/dim]
    [dim]headcount probe minilm --treebank train.conllu --test dev.conllu --words own -o run/[/dim]
    [dim]headcount probe run/ --parse "The cat sat on the mat." --explain the cat[/dim]
    """
    _check(model, asked, target.out)
    where = engine.made()
    if model is None:
        probe, remark = _probe_here(load)
        cli.print_notes([] if json else [remark])
    elif asked.treebank is None:
        probe = _saved(Path(model), load)
    else:
        with cli.status("Reading the treebank"):
            treebank = _read(asked.treebank, learning)
            test = None if asked.test is None else _read(asked.test, WorkOptions())
        subject = cli.loaded(model, load)
        every = asked.baselines or asked.kind == "all"
        probe = hc.probe(
            subject,
            treebank,
            kind=None if asked.kind == "all" else asked.kind,
            baselines=every,
            test=test,
            words=asked.words,
            learning=replace(learning, limit=None),  # the treebank is read that far
            run=target.out,
            replace=target.replace,
            engine=where,
        )
    _print_results(probe, asked, json)
    if target.out is not None and not json:
        cli.output().print(
            f"Wrote {target.out}/ (headcount probe {target.out} --parse TEXT parses with it)."
        )


def _check(model: str | None, asked: ProbeArguments, out: Path | None) -> None:
    """Refuse, before anything is loaded, what cannot go together or is not there."""
    if model is None and (asked.parse is None or asked.treebank is not None):
        raise UsageError(
            "No model was given; name one: headcount probe MODEL --treebank FILE, e.g. headcount "
            "probe minilm --treebank sample."
        )
    if asked.explain is not None and asked.parse is None:
        raise UsageError(
            "--explain is about an arc of a sentence, and none was given; give it with --parse, "
            'e.g. --parse "The cat sat." --explain the cat.'
        )
    if asked.treebank is None and (asked.parse is None or out is not None):
        raise UsageError(
            "No --treebank was given to learn from; give one (`sample` for the bundled sentences), "
            "or parse with a trained probe: headcount probe DIR --parse TEXT."
        )
    if asked.words not in (None, "own") and not Path(str(asked.words)).is_file():
        raise InputError(f"There is no file {asked.words} to read vectors of words from (--words).")


def _read(name: str, work: WorkOptions) -> Corpus:
    from headcount.text import read_corpus

    if name == cli.SAMPLE:
        return cli.sample_corpus("sample.conllu", work)
    return read_corpus(name, limit=work.limit, seed=work.seed)


# --- A probe from the disk, or a fresh one ------------------------------------------------------


def _saved(folder: Path, load: LoadOptions) -> hc.Probe:
    """A probe from the disk, with its model."""
    if probing.probe_file(folder) is None:
        raise UsageError(
            f"{folder} holds no trained probe; train one: headcount probe {folder} --treebank FILE "
            "-o DIR, then headcount probe DIR --parse TEXT."
        )
    how = vars(load)
    with cli.status(f"Loading {folder}"):
        return hc.Probe.load(folder, **{name: how[name] for name in how if name != "revision"})


def _probe_here(load: LoadOptions) -> tuple[hc.Probe, str]:
    """The probe of this folder, the newest of its folders', or a fresh one; and a note on it."""
    places = [Path()] if probing.probe_file(Path()) else [*Path().iterdir()]
    files = {place: probing.probe_file(place) for place in places if place.is_dir()}
    ages = {place: Path(file).stat().st_mtime for place, file in files.items() if file is not None}
    if ages:
        folder = max(ages, key=lambda place: ages[place])
        probe = _saved(folder, load)
        return probe, f"Parsed with the probe in {folder}/ ({probe.kind}, {probe.subject.name})."
    subject = cli.loaded("translator", replace(load, revision=None))
    return hc.probe(subject, cli.sample_corpus("sample.conllu", WorkOptions())), (
        "There is no trained probe here, so one of the bundled translator was trained on the "
        "bundled sentences; for a better one: headcount probe MODEL --treebank FILE -o DIR."
    )


# --- What is printed ----------------------------------------------------------------------------

#: What each kind is, in words.
MEANINGS = {
    "right-branching": "every word hangs from the next",
    "random-init": "attention of a random twin, and words",
    "distances": "distances and words, no attention",
    "attention": "attention of all heads",
    "words": "attention of all heads, and words",
    "structural": "hidden states; trees without direction",
}
#: So many heads of an arc are shown.
_SHOWN = 10


def _print_probe(probe: hc.Probe) -> None:
    """UAS of every kind, then the heads that the probe relies on."""
    rows = []
    for row in probing.probe_summary(probe.hits, probe.undirected).to_dict("records"):
        figures = [
            _figure(row, *names)
            for names in (("uas", "low", "high"), ("uuas", "uuas_low", "uuas_high"))
        ]
        known = not math.isnan(row.get("seed_low", math.nan))
        seeds = f"{row['seed_low']:.3f} to {row['seed_high']:.3f}" if known else ""
        rows.append([row["probe"], MEANINGS[row["probe"]], *figures, seeds])
    cli.print_rows(["probe", "what it sees", "UAS [95%]", "UUAS [95%]", "UAS over seeds"], rows)
    about = probe.provenance
    train, test = about["settings"]["train"], about["test"]
    cli.output().print(
        f"Trained on {train:,} sentence{'s' if train != 1 else ''} of {about['corpus']}, tested on "
        f"{test['sentences']:,} ({test['corpus']}); punctuation left out.",
        style="dim",
    )
    if probe.table is not None:
        cli.print_ranking(probe.table, "probe_weight")


def _figure(row: Mapping[Any, Any], value: str, low: str, high: str) -> str:
    """A share and its interval; one sentence has none, and a tree without direction no UAS."""
    if math.isnan(row.get(value, math.nan)):
        return "–"
    ends = "" if math.isnan(row[low]) else f" [{row[low]:.3f}, {row[high]:.3f}]"
    return f"{row[value]:.3f}{ends}"


def _print_arc(arc: pd.DataFrame, dependent: str, head: str) -> None:
    """The heads that spoke loudest for an arc, or against it."""
    margin = arc["margin"].sum()
    cli.output().print(
        f"{dependent} → {head}: all heads together put it {margin:+.2f} above the mean candidate."
    )
    shown: Any = arc.head(_SHOWN)
    rows = [[row.head, f"{row.margin:+.3f}"] for row in shown.itertuples()]
    cli.print_rows(["head", "margin"], rows)


def _print_results(probe: hc.Probe, asked: ProbeArguments, json: bool) -> None:
    """What was learnt, where it was trained now; then the parse, and what decided its arc."""
    from headcount.records import to_strict

    trained = asked.treebank is not None
    parse = None if asked.parse is None else probe.parse(asked.parse, asked.tree)
    arc = None
    if asked.explain is not None and asked.parse is not None:
        arc = probe.explain(asked.parse, *asked.explain)
    if json:
        answer: dict[str, Any] = {"kind": probe.kind, "model": probe.subject.name}
        if trained:
            answer["results"] = to_strict(probe.results.to_dict("records"))
            summary = probing.probe_summary(probe.hits, probe.undirected)
            answer["summary"] = to_strict(summary.to_dict("records"))
            answer["table"] = None if probe.table is None else probe.table.to_dict()
            answer["provenance"] = to_strict(probe.provenance)
        if parse is not None:
            answer["parse"] = to_strict(parse.frame.to_dict("records"))
        if arc is not None:
            answer["explained"] = to_strict(arc.to_dict("records"))
        cli.print_json(answer)
        return
    if trained:
        _print_probe(probe)
        cli.print_notes([*probe.subject.notes, *probe.provenance["remarks"]])
    if parse is not None:
        # A row a word.
        frame: Any = parse.frame
        rows = [
            [str(row.word), row.form, f"{row.head} {row.head_form}", f"{row.chance:.2f}"]
            for row in frame.itertuples()
        ]
        cli.print_rows(["", "word", "head", "chance"], rows)
    if arc is not None and asked.explain is not None:
        _print_arc(arc, *asked.explain)
