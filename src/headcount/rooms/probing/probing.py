"""The probe: how much syntax all heads of a model carry together.

A trained probe: trees, which heads decide them, how good it is, and the probe on the disk.

Clark et al. 2019, section 5. The best tree is that of Chu & Liu 1965 and Edmonds 1967.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as loaded
from safetensors.torch import save

from headcount.errors import HeadcountError, InputError, ModelError, RunError, UsageError
from headcount.models import Subject, bare_table, check_subject, subject_facts
from headcount.models import load as load_model
from headcount.records import (
    Column,
    Engine,
    EngineOptions,
    Head,
    HeadTable,
    InnerPath,
    Renamed,
    Run,
    engine_of,
    json_decode,
    json_encode,
    old_keywords,
    provenance,
    to_strict,
    writable_run,
)
from headcount.rooms.parsers import plain_sentence
from headcount.rooms.probing.data import (
    KINDS,
    OWN,
    STRUCTURAL,
    WITH_MAPS,
    WITH_WORDS,
    FileVectors,
    Gathered,
    OwnVectors,
    ProbeExample,
    Settings,
    WordVectors,
    gather,
    probed_heads,
    read_vectors,
    settings_for,
)
from headcount.rooms.probing.options import ProbeOptions, old_rate
from headcount.rooms.probing.scorers import (
    Scorer,
    allowed,
    batch_of,
    example_batches,
    fresh,
    structural_hits,
    train,
    undirected_arcs,
    undirected_hits,
    word_states,
)
from headcount.rooms.twins import random_twin
from headcount.stats import Interval, bootstrap_interval, mean_interval, ratio
from headcount.surveys import ShardWork
from headcount.text import Corpus, Sentence, read_corpus

# --- The best tree ------------------------------------------------------------------------------
# Chu & Liu 1965 and Edmonds 1967, by networkx.

Scores = NDArray[np.float64]


def best_tree(scores: Scores) -> list[int]:
    """The heads, one a word, of the highest sum; ``scores[word, candidate]``, candidate 0 is ROOT.

    >>> best_tree(np.array([[1.0, 0.0, 9.0], [0.5, 9.0, 0.0]]))
    [0, 1]
    """
    words = len(scores)
    # ROOT's arcs cost more than all others could gain: so one word alone hangs from it.
    priced = scores - (np.arange(words + 1) == 0) * (1 + words * np.ptp(scores))
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from(
        (head, word + 1, priced[word, head])
        for word, head in np.ndindex(scores.shape)
        if head != word + 1
    )
    tree = networkx.maximum_spanning_arborescence(graph)
    return [next(tree.predecessors(word)) for word in range(1, words + 1)]


# --- A sentence parsed by a probe ---------------------------------------------------------------

ROOT = "ROOT"


@dataclass(frozen=True)
class Parse:
    """Words and their heads; 0 is ROOT, words count from 1."""

    forms: tuple[str, ...]
    heads: list[int]
    #: ``[word, candidate]``: what the probe gives each candidate, summing to 1 for a word.
    chances: NDArray[np.float64]

    @property
    def frame(self) -> pd.DataFrame:
        """A row a word: form, head, the head's form, and how likely the probe finds it."""
        names = (ROOT, *self.forms)
        words = range(1, len(self.forms) + 1)
        frame = pd.DataFrame({"word": words, "form": self.forms, "head": self.heads})
        chances = [row[head] for row, head in zip(self.chances, self.heads, strict=True)]
        return frame.assign(head_form=[names[head] for head in self.heads], chance=chances)


@torch.no_grad()
def predicted_tree(scorer: Scorer, example: ProbeExample, tree: bool = True) -> Parse:
    """The best tree, or with ``tree=False`` each word's best candidate by itself."""
    batch = batch_of([example], next(scorer.parameters()).device)
    scores = scorer(batch)[0].double().cpu()
    chances = scores.softmax(-1).numpy()
    heads = best_tree(np.log(chances + 1e-300)) if tree else chances.argmax(1).tolist()
    return Parse(example.forms, heads, chances)


@torch.no_grad()
def explain_arc(
    scorer: Scorer, heads: list[Head], example: ProbeExample, dependent: str, head: str
) -> pd.DataFrame:
    """Each attention head's part in one arc, the largest first.

    `part` is what it adds to the arc's score; `margin` that part less its mean over all
    candidates of the dependent: what all candidates get alike decides nothing.
    """
    word, candidate = _place(dependent, example.forms) - 1, _place(head, example.forms, root=True)
    if word < 0:
        raise UsageError("ROOT has no head; name a word, e.g. --explain the cat.")
    batch = batch_of([example], next(scorer.parameters()).device)
    parts = scorer.contributions(batch)[0, :, word].double().cpu().numpy()
    part = parts[:, candidate]
    frame = pd.DataFrame({"head": [*map(str, heads)], "part": part, "margin": part - parts.mean(1)})
    order = frame["margin"].abs().sort_values(ascending=False, kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def _place(name: str, forms: tuple[str, ...], root: bool = False) -> int:
    """A word by its number from 1, or by its form; the first where several are alike."""
    if root and name in (ROOT, "0"):
        return 0
    if name.isdigit() and 1 <= int(name) <= len(forms) and name not in forms:
        return int(name)
    lowered = [form.lower() for form in forms]
    if name.lower() not in lowered:
        also = f" or {ROOT}" if root else ""
        raise UsageError(
            f"'{name}' is not a word of this sentence; choose among {', '.join(forms)}{also}, or a "
            f"number from 1 to {len(forms)}."
        )
    return lowered.index(name.lower()) + 1


# --- How good a probe is ------------------------------------------------------------------------

#: The heads of each example's words.
Choices = list[NDArray[np.int64]]
_MEASURED_AT_ONCE = 32


@torch.no_grad()
def best_candidates(scorer: Scorer, examples: Sequence[ProbeExample]) -> Choices:
    """Every word takes the candidate of the highest score, whether or not that makes a tree."""
    device = next(scorer.parameters()).device
    chosen: Choices = []
    for group in example_batches(examples, _MEASURED_AT_ONCE):
        batch = batch_of(group, device)
        best = allowed(scorer(batch), batch).argmax(-1).cpu().numpy()
        chosen += [row[: len(one)] for row, one in zip(best, group, strict=True)]
    return chosen


def right_branching(examples: Sequence[ProbeExample], convention: str) -> Choices:
    """Every word hangs from the next. The last hangs from ROOT; for the authors, from itself."""
    choices = [np.arange(2, len(example) + 2) for example in examples]
    for heads in choices:
        heads[-1] = 0 if convention == "headcount" else len(heads)
    return choices


def hits(chosen: Choices, examples: Sequence[ProbeExample]) -> NDArray[np.int64]:
    """``[sentence, 2]``: words whose head was found, and words that count."""
    rows = []
    for example, heads in zip(examples, chosen, strict=True):
        right = (example.heads.numpy() == heads) & example.scored.numpy()
        rows.append((right.sum(), example.scored.sum().item()))
    return np.array(rows, dtype=np.int64)


def share_of(sums: NDArray[Any]) -> Interval:
    """The share of sums ``[sentence, ..., 2]``, with an interval from resampled sentences.

    One sentence has a share and no interval.
    """
    if len(sums) > 1:
        return bootstrap_interval(sums)
    share = np.asarray(ratio(sums[0].astype(float)))
    return Interval(share, np.full_like(share, np.nan), np.full_like(share, np.nan))


# --- A trained probe, also on the disk: weights as safetensors, all else as JSON ----------------

FILE, WEIGHTS = "probe.json", "probe.safetensors"
SCHEMA = 1
#: Where a run directory keeps its probe.
INSIDE = "probe"


def probe_file(folder: Path) -> InnerPath | None:
    """Where a folder keeps its probe, by itself or as a run directory; None where it has none."""
    inner = InnerPath(folder)
    return next((one for one in (inner / FILE, inner / INSIDE / FILE) if one.exists()), None)


#: What a probe.json that is not what it should be, or does not fit its weights, leads to.
_DAMAGE = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def _read(place: InnerPath) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    try:
        about, tensors = json_decode((place / FILE).read()), loaded((place / WEIGHTS).read())
        newer = about["schema"] > SCHEMA
        if not newer and not {"source", "revision", "weights_hash"} <= about["model"].keys():
            raise ValueError("it names no model")
    except (OSError, SafetensorError, *_DAMAGE) as error:
        raise RunError(_unreadable(place, error)) from error
    if newer:
        raise RunError(
            f"{place} was written with schema {about['schema']}; this headcount reads up to "
            f"{SCHEMA}: upgrade headcount."
        )
    return about, tensors


def _unreadable(place: InnerPath, error: Exception) -> str:
    return (
        f"{place} holds no probe that can be read ({error}); train one: "
        f"headcount probe MODEL --treebank FILE -o {place}."
    )


def _model_of(folder: Path, model: Mapping[str, Any], how: Mapping[str, Any]) -> Subject:
    """The model that a probe was trained on, if it is on this machine."""
    try:
        return load_model(model["source"], revision=model["revision"], **{**how, "offline": True})
    except (HeadcountError, *_DAMAGE) as error:
        raise ModelError(
            f"{folder} was trained on {model['source']!r}, which is not loaded from this machine "
            f"({error}) A file does not decide what is fetched: where you trust that name, fetch "
            "it first, or give the model: hc.Probe.load(folder, hc.load(NAME))."
        ) from error


def _built(about: dict[str, Any], tensors: dict[str, torch.Tensor], subject: Subject) -> Probe:
    """The probe of a record and its weights."""
    kind, origin = about["kind"], about["provenance"]
    if kind == "random-init":
        subject = random_twin(subject, seed=origin["seed"], keep_embeddings=True)
    dtype = getattr(torch, about["settings"]["dtype"])
    settings = Settings(**{**about["settings"], "dtype": dtype})
    vectors: WordVectors | None = None
    if "vectors" in tensors:
        values = tensors.pop("vectors").numpy()
        vectors = FileVectors(about["vocabulary"], values, about["vectors"])
    elif about["vectors"] is not None:
        if about["vectors"] != OWN:
            raise ValueError(f"the vectors '{about['vectors']}' are missing")
        vectors = OwnVectors(subject)
    probe = Probe(subject, kind, settings, vectors=vectors, provenance=origin)
    probe.results = pd.DataFrame(about["results"])
    if kind not in ("right-branching", STRUCTURAL):
        table = None if vectors is None else vectors.table()
        probe.scorer = fresh(kind, len(about["heads"]), table, shifted=settings.shifted)
        probe.scorer.begin(tensors)
        probe.scorer.requires_grad_(False).to(subject.device)
    return probe


@dataclass(repr=False)
class Probe:
    """What `hc.probe` gives; `hc.Probe.load` brings a saved one back."""

    subject: Subject
    kind: str
    settings: Settings
    #: None for right-branching, which learns nothing.
    scorer: Scorer | None = None
    vectors: WordVectors | None = None
    #: A row a probe and seed: probe, model, uas, low, high, seed, n, ...
    results: pd.DataFrame = field(default_factory=pd.DataFrame)
    #: The column `probe_weight`; None where no attention is looked at.
    table: HeadTable | None = None
    #: Hits and words that count ``[sentence, 2]`` by kind and seed, to compare probes by.
    hits: dict[tuple[str, int], NDArray[np.int64]] = field(default_factory=dict)
    #: The same for arcs between words, whatever their direction.
    undirected: dict[tuple[str, int], NDArray[np.int64]] = field(default_factory=dict)
    #: Where it comes from.
    provenance: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        figure = f"UUAS {self.uuas:.3f}" if self.kind == STRUCTURAL else f"UAS {self.uas:.3f}"
        return f"Probe({self.kind} of {self.subject.name}, {figure})"

    @property
    def uuas(self) -> float:
        """The share of arcs between words that were found, in either direction."""
        return float(self.results.loc[self.results["probe"] == self.kind, "uuas"].mean())

    @property
    def uas(self) -> float:
        """The share of words of the test sentences whose head was found, punctuation left out."""
        return float(self.results.loc[self.results["probe"] == self.kind, "uas"].mean())

    def parse(self, text: str | Sentence, tree: bool = True) -> Parse:
        """The heads of a sentence's words: the best tree, or each word's best candidate."""
        if self.kind == STRUCTURAL:
            raise UsageError(
                "The structural probe is a baseline: its trees have no direction, and only its "
                "figures are kept; parse with the kind attention or words."
            )
        example = self._example(text)
        if self.scorer is None:
            heads = right_branching([example], self.settings.convention)[0]
            return Parse(example.forms, heads.tolist(), np.eye(len(example) + 1)[heads])
        return predicted_tree(self.scorer, example, tree)

    def explain(self, text: str | Sentence, dependent: str, head: str) -> pd.DataFrame:
        """Which attention heads decided an arc; words by form, or by number from 1."""
        if self.kind not in WITH_MAPS or self.scorer is None:
            raise UsageError(
                f"The probe '{self.kind}' looks at no attention, so no head decides its arcs; "
                "train the kind attention or words."
            )
        heads = probed_heads(self.subject)
        return explain_arc(self.scorer, heads, self._example(text), dependent, head)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write probe.safetensors and probe.json; no pickle."""
        place = InnerPath.of(folder)
        place.make()
        vectors, subject = self.vectors, self.provenance["subject"]
        tensors: dict[str, torch.Tensor] = {}
        if self.scorer is not None:
            weights = self.scorer.named_parameters()
            tensors = {name: weight.detach().cpu().contiguous() for name, weight in weights}
        if isinstance(vectors, FileVectors):  # they go along, so that it can parse without the file
            tensors["vectors"] = torch.from_numpy(np.ascontiguousarray(vectors.values))
        about = {
            "schema": SCHEMA,
            "kind": self.kind,
            "settings": self.settings.to_dict(),
            "model": {name: subject[name] for name in ("source", "revision", "weights_hash")},
            "heads": [str(head) for head in probed_heads(self.subject)],
            "vectors": None if vectors is None else vectors.name,
            "vocabulary": vectors.words if isinstance(vectors, FileVectors) else [],
            "results": to_strict(self.results.to_dict("records")),
            "provenance": self.provenance,
        }
        (place / WEIGHTS).write(save(tensors))
        (place / FILE).write((json_encode(about) + "\n").encode())

    @staticmethod
    def load(folder: str | Path, subject: Subject | None = None, **how: Any) -> Probe:
        """Read a saved probe; without a subject the model that it was trained on is loaded.

        `how` goes to `hc.load`. The name of that model comes from a file, so the hub is not asked
        for it: it must be on this machine.
        """
        folder = Path(folder)
        place = (probe_file(folder) or InnerPath(folder) / INSIDE / FILE).parent
        about, tensors = _read(place)
        model = about["model"]
        if subject is None:
            subject = _model_of(folder, model, how)
        if subject.weights_hash != model["weights_hash"]:
            raise ModelError(
                f"{folder} was trained on other weights ({str(model['weights_hash'])[:12]}) than "
                f"{subject.name} has ({subject.weights_hash[:12]}); give the model it was trained "
                "on."
            )
        try:
            return _built(about, tensors, subject)
        except (HeadcountError, *_DAMAGE) as error:
            raise RunError(_unreadable(place, error)) from error

    def _example(self, text: str | Sentence) -> ProbeExample:
        sentence = plain_sentence(text) if isinstance(text, str) else text
        read = gather(
            self.subject,
            read_corpus([sentence]),
            self.settings,
            vectors=self.vectors,
            maps=self.kind in WITH_MAPS,
            trees=False,
        )
        if self.vectors is not None and self.scorer is not None:
            # Words that are new may have got rows of their own.
            device = next(self.scorer.parameters()).device
            self.scorer.vectors = self.vectors.table().to(device)
        return read.examples[0]


# --- Which heads a probe relies on --------------------------------------------------------------

PROBE_WEIGHT = Column(
    "probe_weight",
    title="Probe weight",
    meaning="What this head adds to the score of a gold arc in a probe of all heads together, "
    "above what it adds to the mean candidate of the same word; they add up to the probe's margin.",
    paper="Clark et al. 2019, section 5",
    direction="higher",
    more="relied on more",
    group="What it does",
    format=".3f",
    diverging=True,
)
_EXPLAINED_AT_ONCE = 8


@torch.no_grad()
def reliance(
    scorer: Scorer, examples: Sequence[ProbeExample], probed: Sequence[Head], heads: Sequence[Head]
) -> HeadTable:
    """The column `probe_weight` of a table of `heads`, with intervals over sentences.

    Softmax takes no notice of what all candidates of a word get alike, so only the margin over
    their mean counts. Heads of other stacks than the probed one are NA.
    """
    sums = []
    for group in example_batches(examples, _EXPLAINED_AT_ONCE):
        # ``[sentence, head, 2]``: the sum of margins on gold arcs, and their number.
        batch = batch_of(group, next(scorer.parameters()).device)
        parts = scorer.contributions(batch).double()
        there = batch.candidates[:, None, None].double()
        mean = (parts * there).sum(-1) / there.sum(-1)
        gold = batch.heads.clamp(min=0)[:, None, :, None].expand(-1, parts.shape[1], -1, 1)
        known = batch.known[:, None]
        margins = ((parts.gather(-1, gold)[..., 0] - mean) * known).sum(-1)
        sums.append(torch.stack([margins, known.sum(-1).expand_as(margins)], dim=-1).cpu())
    interval = share_of(torch.cat(sums).numpy())
    spots = {head: spot for spot, head in enumerate(probed)}
    values, low, high = (
        [float(part[spots[head]]) if head in spots else np.nan for head in heads]
        for part in interval
    )
    name, notes = PROBE_WEIGHT.name, {}
    if len(spots) < len(heads):
        others = sorted({head.stack for head in heads} - {head.stack for head in probed})
        notes[name] = "; ".join(
            f"{stack}: a probe reads {probed[0].stack} only" for stack in others
        )
    ends = {"low": {name: low}, "high": {name: high}}
    return HeadTable.of(list(heads), {name: values}, [PROBE_WEIGHT], notes=notes, **ends)


# --- Several probes and seeds -------------------------------------------------------------------


Hits = Mapping[tuple[str, int], NDArray[np.int64]]


def probe_summary(hits: Hits, undirected: Hits | None = None) -> pd.DataFrame:
    """A row a probe, the expected best last.

    `low` and `high`: the bootstrap over sentences of the mean over seeds; `seed_low` and
    `seed_high`: Student's interval over seeds, NaN with one seed. With the hits of `undirected`
    arcs also `uuas`, `uuas_low` and `uuas_high`; a probe without a direction has these alone.

    >>> one, two = np.array([[1, 2], [2, 2]]), np.array([[2, 2], [2, 2]])
    >>> probe_summary({("attention", 0): one, ("attention", 1): two})["uas"].tolist()
    [0.875]
    """
    rows = []
    for kind in KINDS:
        directed, arcs = (
            [each for (name, _), each in counts.items() if name == kind]
            for counts in (hits, undirected or {})
        )
        if not directed + arcs:
            continue
        means = (np.mean(each, axis=0) if each else None for each in (directed, arcs))
        row: dict[str, Any] = {"probe": kind, **shares(*means)}
        each = np.array([one[:, 0].sum() / max(one[:, 1].sum(), 1) for one in directed])
        if directed:
            _, low, high = mean_interval(each.sum(), each @ each, len(each), bounds=(0, 1))
            row |= {"seed_low": float(low), "seed_high": float(high)}
        first = (directed or arcs)[0]
        rows.append(row | {"seeds": len(directed or arcs), "n": int(first[:, 1].sum())})
    return pd.DataFrame(rows)


def shares(directed: NDArray[Any] | None, undirected: NDArray[Any] | None) -> dict[str, float]:
    """UAS and UUAS with their intervals; NaN where a probe has no such figure."""
    row: dict[str, float] = {}
    for name, counts in (("uas", directed), ("uuas", undirected)):
        ends = (np.nan,) * 3 if counts is None else map(float, share_of(counts))
        low, high = ("low", "high") if name == "uas" else ("uuas_low", "uuas_high")
        row |= zip((name, low, high), ends, strict=True)
    return row


#: Of the treebank's sentences, each of this number is kept to test on where no test is given.
_HELD_OUT = 5


@old_keywords({"rate": Renamed(None, old_rate)}, learning=ProbeOptions)
def probe(
    subject: Subject,
    treebank: Any,
    *,
    test: Any = None,
    words: str | Path | WordVectors | None = None,
    kind: str | None = None,
    baselines: bool | Sequence[str] = False,
    initial: Mapping[str, Any] | None = None,
    learning: ProbeOptions | None = None,
    run: Run | str | Path | None = None,
    replace: bool = False,
    engine: Engine | EngineOptions | str | None = None,
) -> Probe:
    """Train a probe of a model's heads on a treebank, and test it (Clark et al. 2019, section 5).

    `kind` is "attention" (a weight for each head and direction), "words" (weights that depend on
    the two words), or a baseline: "distances" (words and their places, no attention),
    "random-init" (as "words", on a twin whose weights are random but for its embeddings),
    "right-branching", or "structural" (distances between hidden states, Hewitt & Manning 2019,
    whose trees have no direction: they have a UUAS and no UAS). `words` are vectors: a file (text
    or .npz), or "own" for the model's own input embeddings; given, the kind is "words" by default.
    `baselines` trains all kinds as well, or those named. `test` is another treebank; without it,
    every fifth sentence is kept to test on.

    `learning` (`hc.ProbeOptions`): training draws from `seed`; `seeds` trains that many times,
    counting up, and keeps the first. `convention="paper"` trains as the authors did, "code" with
    their program's shift of words. `learning_rate`, `epochs` and `train_batch` change the training,
    `batch_size` only the speed of reading; `limit` takes the first sentences of the treebank.
    `initial` are weights to begin with. With a `run` directory, the results join what is there,
    and the probe is saved in it; what the model gave for finished shards of the treebank is kept
    there meanwhile, so that after a kill the same call goes on. The model is run in this process,
    or by the workers of an `engine` ("ray", `RayEngine(...)`).

    >>> import headcount as hc
    >>> from headcount.bundle import sample
    >>> few = hc.ProbeOptions(limit=40)
    >>> trees = sample.path("sample.conllu")
    >>> found = probe(hc.load("translator", device="cpu"), trees, learning=few)
    >>> found.kind, found.results["probe"].tolist(), found.table.names
    ('attention', ['attention'], ['probe_weight'])
    """
    check_subject(subject, "probe(subject, treebank)")
    how = learning or ProbeOptions()
    if how.seeds < 1:
        raise UsageError(f"The number of seeds is {how.seeds}; it must be 1 or more.")
    kind = kind or ("attention" if words is None else "words")
    wanted = (kind, *(KINDS if baselines is True else baselines or ()))
    for one in wanted:
        if one not in KINDS:
            raise UsageError(f"There is no probe '{one}'; choose {', '.join(KINDS)}.")
    kinds = [one for one in KINDS if one in wanted]  # the expected best last
    if any(one in WITH_WORDS for one in kinds):
        words = words or OWN
    given: dict[str, Any] = {"rows": how.word_rows, "rate": how.learning_rate}
    given |= {"epochs": how.epochs, "batch": how.train_batch}
    settings = {one: settings_for(how.convention, one, **given) for one in kinds}
    first = how.seed or 0
    work = _Work(
        subject, *_corpora(treebank, test, how.limit), words, settings,
        range(first, first + how.seeds), how.examples, initial or {}, kind,
        ShardWork(engine_of(engine)),
    )  # fmt: skip
    with writable_run(run) as kept:
        if kept is None:
            return work.done()
        if replace:
            kept.drop_shards("probe")
        else:  # a run of another model is refused before the work
            kept.check_subject(bare_table(subject))
        stage = kept.stage("probe")
        work.shards = ShardWork(work.shards.engine, kept.shards("probe"))
        result = work.done()
        kept.drop_shards("probe")
        _write(kept, result, replace)
        stage.finish(result.provenance["settings"], result.provenance)
    return result


@dataclass
class _Work:
    """Probes under way."""

    subject: Subject
    train: Corpus
    test: Corpus
    words: str | Path | WordVectors | None
    settings: Mapping[str, Settings]
    seeds: Sequence[int]
    batch_size: int
    initial: Mapping[str, Any]
    kind: str
    shards: ShardWork
    hits: dict[tuple[str, int], Any] = field(default_factory=dict)
    #: The same for arcs without a direction.
    undirected: dict[tuple[str, int], Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def done(self) -> Probe:
        """All kinds and seeds; the probe of the wanted kind and first seed comes back."""
        own = [kind for kind in self.settings if kind not in ("random-init", STRUCTURAL)]
        result = self._on(self.subject, own, self.seeds) if own else None
        if STRUCTURAL in self.settings:
            self._structural(self.settings[STRUCTURAL], remark=not own)
            if self.kind == STRUCTURAL:
                result = Probe(self.subject, STRUCTURAL, self.settings[STRUCTURAL])
        for seed in self.seeds if "random-init" in self.settings else ():
            twin = random_twin(self.subject, seed=seed, keep_embeddings=True)
            other = self._on(twin, ["random-init"], [seed])
            if result is None and other is not None:
                result = other
        assert result is not None
        rows = []
        for (kind, seed), arcs in self.undirected.items():
            directed = self.hits.get((kind, seed))
            counts = arcs if directed is None else directed
            about = {"seed": seed, "n": int(counts[:, 1].sum()), "sentences": len(counts)}
            row = {"probe": kind} | shares(directed, arcs) | about
            rows.append(row | {"model": self.subject.name} | self._settings())
        result.results, result.hits, result.undirected = (
            pd.DataFrame(rows),
            self.hits,
            self.undirected,
        )
        result.provenance = self._provenance(result)
        if result.table is not None:
            result.table.provenance = result.provenance
        return result

    def _on(self, subject: Subject, kinds: Sequence[str], seeds: Sequence[int]) -> Probe | None:
        """Kinds that read the same model: it runs once over each treebank."""
        vectors = self._vectors(subject)
        first = self.settings[kinds[0]]
        maps = any(kind in WITH_MAPS for kind in kinds)
        of = "" if subject is self.subject else f" for the {subject.name.split(' of ')[0]}"
        read = []
        for corpus, part in ((self.train, "train"), (self.test, "test")):
            title = f"Reading {Path(corpus.name).name}{of}"
            read.append(
                gather(
                    subject, corpus, first, vectors=vectors, maps=maps, title=title,
                    batch_size=self.batch_size, shards=self.shards.of(f"{part}{of}"),
                )
            )  # fmt: skip
        if subject is self.subject:
            self._remark(read, vectors)
        result, heads = None, probed_heads(subject)
        for kind in kinds:
            for seed in seeds:
                settings, test, scorer = self.settings[kind], read[1].examples, None
                if kind == "right-branching":
                    chosen = right_branching(test, settings.convention)
                else:
                    words = None if vectors is None else vectors.table()
                    scorer = fresh(kind, len(heads), words, seed=seed, shifted=settings.shifted)
                    scorer.begin(self.initial if kind == self.kind else None)
                    scorer.to(subject.device)
                    title = f"Training {kind}, seed {seed}"
                    train(scorer, read[0].examples, settings, seed, title)
                    scorer.requires_grad_(False)
                    chosen = best_candidates(scorer, test)
                # Which heads were found, and which arcs were, whatever their direction.
                self.hits[kind, seed] = hits(chosen, test)
                arcs = [undirected_arcs(each) for each in chosen]
                self.undirected[kind, seed] = undirected_hits(arcs, test)
                if kind == self.kind and seed == self.seeds[0]:
                    used = vectors if kind in WITH_WORDS else None
                    result = Probe(subject, kind, self.settings[kind], scorer, used)
                    if scorer is not None and kind in WITH_MAPS:
                        result.table = reliance(scorer, test, heads, subject.heads)
        return result

    def _structural(self, settings: Settings, remark: bool) -> None:
        """The probe of hidden states, of every seed."""
        read = []
        for corpus in (self.train, self.test):
            whole = gather(self.subject, corpus, settings, maps=False, batch_size=self.batch_size)
            self.remarks += whole.remarks if remark else []
            states = word_states(self.subject, corpus, whole, self.batch_size)
            read.append((whole.examples, states))
        for seed in self.seeds:
            counts, about = structural_hits(read[0], read[1], settings, seed)
            self.undirected[STRUCTURAL, seed] = counts
            self.remarks.append(
                f"The structural probe of seed {seed} has rank {about['rank']} and reads layer "
                f"{about['layer']} of {about['layers']} (0: the embeddings), chosen on a tenth of "
                "the training sentences."
            )

    def _vectors(self, subject: Subject) -> WordVectors | None:
        if str(self.words) == OWN:
            return OwnVectors(subject)
        if isinstance(self.words, str | Path):
            self.words = read_vectors(self.words)  # a twin reads the same file
        return self.words

    def _remark(self, read: Sequence[Gathered], vectors: WordVectors | None) -> None:
        """Tell what was left out; refuse vectors that know none of the words."""
        self.remarks += [remark for one in read for remark in one.remarks]
        if not isinstance(vectors, FileVectors):
            return
        rows = [row for example in read[0].examples for row in example.words.tolist()]
        share = sum(row > 0 for row in rows) / len(rows)
        if not share:
            raise InputError(
                f"{vectors.name} has a vector for none of the {len(rows):,} words of "
                f"{read[0].name}; give vectors of its language, in lower case, or --words own."
            )
        self.remarks.append(f"{vectors.name} has vectors for {share:.1%} of the words.")

    def _settings(self) -> dict[str, Any]:
        name = self.words if self.words is None else getattr(self.words, "name", str(self.words))
        return {"words": name, "train": len(self.train), "test": Path(self.test.name).name}

    def _provenance(self, result: Probe) -> dict[str, Any]:
        return provenance.collect(
            **subject_facts(self.subject),
            corpus=self.train.name,
            data=self.train.hash,
            test={"corpus": self.test.name, "data": self.test.hash, "sentences": len(self.test)},
            convention=result.settings.convention,
            seed=self.seeds[0],
            settings={"kind": result.kind, **self._settings(), **result.settings.to_dict()},
            remarks=self.remarks,
        )


def _corpora(treebank: Any, test: Any, limit: int | None) -> tuple[Corpus, Corpus]:
    """What to train on, and what to test on: given, or kept back."""
    corpus = read_corpus(treebank, limit=limit)
    if test is not None:
        return corpus, read_corpus(test)
    if len(corpus) < 2:
        raise InputError(
            f"{corpus.name} has one sentence, so none is left to test the probe on; give more, or "
            "a treebank to test on (--test)."
        )
    items = list(corpus)
    every = min(_HELD_OUT, len(items))
    kept = [item for number, item in enumerate(items) if number % every != every - 1]
    train, held_out = read_corpus(kept), read_corpus(items[every - 1 :: every])
    train.name, held_out.name = corpus.name, f"every fifth sentence of {corpus.name}"
    return train, held_out


def _write(run: Run, probe: Probe, replace: bool) -> None:
    """Add the column and the frame to the run; the probe itself goes into a folder of it."""
    bare = HeadTable.of(probe.subject.heads, {}, provenance=probe.provenance)
    table = bare if probe.table is None else probe.table
    old = run.read_table() if run.has_table and not replace else None
    results = probe.results
    before = None if old is None else old.details.pop("probes", None)
    if before is not None:  # other probes and seeds stay
        key = ["probe", "seed"]
        again = before.set_index(key).index.isin(results.set_index(key).index)
        results = pd.concat([before[~again], results], ignore_index=True)
    table.details["probes"] = results
    run.write_table(table if old is None else old.join(table, replace=True), replace=replace)
    probe.save(run.folder(INSIDE))
