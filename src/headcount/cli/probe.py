"""`headcount probe`: how much syntax all heads carry together, and a small parser made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.cli import options
from headcount.cli import probe_options as own
from headcount.cli.corpus import SAMPLE
from headcount.cli.loading import loaded
from headcount.cli.output import output, print_json, print_notes
from headcount.cli.probe_here import probe_here
from headcount.cli.probe_output import print_arc, print_parse, print_probe, probe_json
from headcount.cli.progress import bar, told
from headcount.cli.role_options import WordRows
from headcount.errors import UsageError

if TYPE_CHECKING:
    from headcount.probes.trained import Probe
    from headcount.text.corpus import Corpus

__all__ = ["probe"]


def probe(
    model: own.Model = None,
    treebank: own.Treebank = None,
    test: own.Test = None,
    words: own.Words = None,
    kind: own.Kind = None,
    baselines: own.Baselines = False,
    out: own.Out = None,
    replace: own.Replace = False,
    parse: own.Parse = None,
    tree: own.Tree = True,
    explain: own.Explain = None,
    seeds: own.Seeds = 1,
    learning_rate: own.Rate = None,
    epochs: own.Epochs = None,
    train_batch: own.TrainBatch = None,
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
        with told("Reading the treebank"):
            corpora = _read(treebank, limit, seed), None if test is None else _read(test)
        subject = loaded(model, revision=revision, **loading)
        from headcount.probe import probe as measure

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
    from headcount.text.corpus import read_corpus

    if name != SAMPLE:
        return read_corpus(name, limit=limit, seed=seed)
    corpus = read_corpus(sample.path("sample.conllu"), limit=limit, seed=seed)
    corpus.name = "sample.conllu"  # where headcount is installed tells nothing
    return corpus


def _saved(folder: Path, loading: dict[str, Any]) -> Probe:
    """A probe from the disk, with its model."""
    from headcount.probes.keep import is_probe, load

    if not is_probe(folder):
        raise UsageError(
            f"{folder} holds no trained probe; train one: headcount probe {folder} --treebank FILE "
            "-o DIR, then headcount probe DIR --parse TEXT."
        )
    with told(f"Loading {folder}"):
        return load(folder, **loading)


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
