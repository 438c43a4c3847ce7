"""A trained probe: trees, which heads decide them, how good it is, and the probe on the disk.

Clark et al. 2019, section 5. The best tree is that of Chu & Liu 1965 and Edmonds 1967.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as loaded
from safetensors.torch import save

from headcount.errors import HeadcountError, ModelError, RunError, UsageError
from headcount.models import Subject
from headcount.models import load as load_model
from headcount.records import (
    Column,
    Head,
    HeadTable,
    InnerPath,
    json_decode,
    json_encode,
    to_strict,
)
from headcount.rooms.parsers import plain_sentence
from headcount.rooms.probing.data import (
    KINDS,
    STRUCTURAL,
    WITH_MAPS,
    ProbeExample,
    Settings,
    gather,
    probed_heads,
)
from headcount.rooms.probing.scorers import Scorer, allowed, batch_of, example_batches, fresh
from headcount.rooms.probing.vectors import OWN, FileVectors, OwnVectors, WordVectors
from headcount.rooms.twins import random_twin
from headcount.stats import Interval, bootstrap_interval, mean_interval, ratio
from headcount.text import Sentence, read_corpus

# --- The best tree ------------------------------------------------------------------------------
# Chu & Liu 1965 and Edmonds 1967; that one word hangs from ROOT is enforced by trying each, as
# McDonald et al. 2005 do.

Scores = NDArray[np.float64]


def best_tree(scores: Scores) -> list[int]:
    """The heads, one a word, of the highest sum; ``scores[word, candidate]``, candidate 0 is ROOT.

    >>> best_tree(np.array([[1.0, 0.0, 9.0], [0.5, 9.0, 0.0]]))
    [0, 1]
    """
    words = len(scores)
    square = np.full((words + 1, words + 1), -np.inf)
    square[1:] = scores
    np.fill_diagonal(square, -np.inf)
    free = _heads(square)
    if int((free[1:] == 0).sum()) == 1:
        return free[1:].tolist()
    tried = []
    for word in range(1, words + 1):  # only this word hangs from ROOT
        forced = square.copy()
        forced[:, 0] = forced[word, 1:] = -np.inf
        forced[word, 0] = square[word, 0]
        tried.append(_heads(forced))
    sums = [square[np.arange(1, words + 1), heads[1:]].sum() for heads in tried]
    return tried[int(np.argmax(sums))][1:].tolist()


def _heads(square: Scores) -> NDArray[np.int64]:
    """The best heads of nodes 1 and up; node 0 is the root, ``square[node, head]``."""
    heads = square.argmax(1)
    heads[0] = 0
    circle = _circle(heads)
    return heads if circle is None else _broken(square, heads, circle)


def _circle(heads: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The nodes of a circle, if there is one."""
    seen = np.zeros(len(heads), dtype=int)
    for start in range(1, len(heads)):
        node = start
        while node and not seen[node]:
            seen[node] = start
            node = int(heads[node])
        if node and seen[node] == start:
            found = [node]
            while int(heads[found[-1]]) != node:
                found.append(int(heads[found[-1]]))
            return np.array(found)
    return None


def _broken(
    square: Scores, heads: NDArray[np.int64], circle: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Treat the circle as one node, find the best tree, and open the circle where it is entered."""
    rest = np.setdiff1d(np.arange(len(heads)), circle)  # 0 stays first
    gain = square[circle] - square[circle, heads[circle]][:, None]
    small = np.full((len(rest) + 1, len(rest) + 1), -np.inf)
    small[:-1, :-1] = square[np.ix_(rest, rest)]
    entered, left = gain[:, rest].argmax(0), square[np.ix_(rest, circle)].argmax(1)
    small[-1, :-1] = gain[:, rest].max(0)
    small[:-1, -1] = square[np.ix_(rest, circle)].max(1)
    small[0] = -np.inf
    inner = _heads(small)
    found = heads.copy()
    for place, node in enumerate(rest[1:], start=1):
        to = inner[place]
        found[node] = circle[left[place]] if to == len(rest) else rest[to]
    door = inner[len(rest)]
    found[circle[entered[door]]] = rest[door]
    return found


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
    found: Choices = []
    for group in example_batches(examples, _MEASURED_AT_ONCE):
        batch = batch_of(group, device)
        best = allowed(scorer(batch), batch).argmax(-1).cpu().numpy()
        found += [row[: len(one)] for row, one in zip(best, group, strict=True)]
    return found


def right_branching(examples: Sequence[ProbeExample], convention: str) -> Choices:
    """Every word hangs from the next. The last hangs from ROOT; for the authors, from itself."""
    found = [np.arange(2, len(example) + 2) for example in examples]
    for heads in found:
        heads[-1] = 0 if convention == "headcount" else len(heads)
    return found


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
    """The place of a folder's probe, alone or in a run directory; None if it has none."""
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
        found = gather(
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
        return found.examples[0]


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


def reliance(
    scorer: Scorer, examples: Sequence[ProbeExample], probed: Sequence[Head], heads: Sequence[Head]
) -> HeadTable:
    """The column `probe_weight` of a table of `heads`, with intervals over sentences.

    Softmax takes no notice of what all candidates of a word get alike, so only the margin over
    their mean counts. Heads of other stacks than the probed one are NA.
    """
    sums = np.array(
        [
            row
            for group in example_batches(examples, _EXPLAINED_AT_ONCE)
            for row in _sums(scorer, group)
        ]
    )
    found = share_of(sums)
    spots = {head: spot for spot, head in enumerate(probed)}
    values, low, high = (
        [float(part[spots[head]]) if head in spots else np.nan for head in heads] for part in found
    )
    name, notes = PROBE_WEIGHT.name, {}
    if len(spots) < len(heads):
        others = sorted({head.stack for head in heads} - {head.stack for head in probed})
        notes[name] = "; ".join(
            f"{stack}: a probe reads {probed[0].stack} only" for stack in others
        )
    ends = {"low": {name: low}, "high": {name: high}}
    return HeadTable.of(list(heads), {name: values}, [PROBE_WEIGHT], notes=notes, **ends)


@torch.no_grad()
def _sums(scorer: Scorer, examples: Sequence[ProbeExample]) -> list[np.ndarray]:
    """``[head, 2]`` of each sentence: the sum of margins on gold arcs, and their number."""
    batch = batch_of(examples, next(scorer.parameters()).device)
    parts = scorer.contributions(batch).double()
    there = batch.candidates[:, None, None].double()
    mean = (parts * there).sum(-1) / there.sum(-1)
    gold = batch.heads.clamp(min=0)[:, None, :, None].expand(-1, parts.shape[1], -1, 1)
    known = batch.known[:, None]
    margins = ((parts.gather(-1, gold)[..., 0] - mean) * known).sum(-1)
    return list(torch.stack([margins, known.sum(-1).expand_as(margins)], dim=-1).cpu().numpy())


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
        found = [each for (name, _), each in hits.items() if name == kind]
        arcs = [each for (name, _), each in (undirected or {}).items() if name == kind]
        more = dict[str, float]()
        if arcs:
            ends = map(float, share_of(np.mean(arcs, axis=0)))
            more = dict(zip(("uuas", "uuas_low", "uuas_high"), ends, strict=True))
        if not found:
            if arcs:
                n = int(arcs[0][:, 1].sum())
                rows.append({"probe": kind, **more, "seeds": len(arcs), "n": n})
            continue
        value, low, high = share_of(np.mean(found, axis=0))
        each = np.array([one[:, 0].sum() / max(one[:, 1].sum(), 1) for one in found])
        _, seed_low, seed_high = mean_interval(each.sum(), each @ each, len(each), bounds=(0, 1))
        figures = {"uas": value, "low": low, "high": high}
        figures |= {"seed_low": seed_low, "seed_high": seed_high}
        numbers = {name: float(end) for name, end in figures.items()} | more
        rows.append({"probe": kind, **numbers, "seeds": len(found), "n": int(found[0][:, 1].sum())})
    return pd.DataFrame(rows)
