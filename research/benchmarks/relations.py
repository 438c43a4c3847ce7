"""Dependency hits of all heads against the same work done map by map in NumPy.

The maps are in memory on both sides, so the forward pass is in neither; nor are intervals and
tests. The fixed baseline is `baselines/relations_map_by_map.py`; a tighter one, which still goes
map by map but reduces to words by matrix products and counts by `bincount`, stands beside it.
`python -m research.benchmarks.relations` writes `results/relations.json`.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from headcount.bundle import sample
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records import provenance
from headcount.rooms.relations.relations import Relations
from headcount.text import encode, intake_of, read_corpus
from headcount.wiring import Needs, Sighting, tap
from research.benchmarks.baselines import relations_map_by_map as fixed
from research.benchmarks.interleave import interleaved, ratio

RESULTS = Path(__file__).parent / "results"
SENTENCES, ROUNDS = 64, 9
FIXED, TIGHT, OURS = "map by map", "map by map, matrix products", "headcount"


def sightings_of(subject: Subject, sentences: int) -> list[list[Sighting]]:
    """What every layer shows of every batch of the bundled sample."""
    corpus = read_corpus(sample.path(), limit=sentences)
    intake = intake_of(subject.model, subject.tokenizer)
    with tap(subject, Needs(maps=True)) as watch:
        return [watch(b) for b in encode(corpus, subject.tokenizer, stacks={"enc"}, intake=intake)]


def one_by_one(seen: Sequence[list[Sighting]]) -> tuple[list[np.ndarray], list[fixed.Annotated]]:
    """The same as maps `[layer, head, token, token]` and annotated sentences, one by one."""
    maps, sentences = [], []
    for layers in seen:
        side = layers[0].queries
        assert side.words is not None
        stacked = torch.stack([one.maps for one in layers], dim=1).numpy()  # type: ignore[misc]
        for row, sentence in enumerate(side.words.sentences):
            assert sentence is not None
            assert sentence.words is not None
            length = int(side.real[row].sum())
            maps.append(np.ascontiguousarray(stacked[row, :, :, :length, :length]))
            pieces = side.words.pieces[row, : len(sentence.words)]
            tokens = [word.nonzero()[:, 0].tolist() for word in pieces]
            heads = [int(word.head or 0) - 1 for word in sentence.words]
            labels = [str(word.deprel) for word in sentence.words]
            sentences.append(fixed.Annotated(tokens, heads, labels))
    return maps, sentences


def tallied(seen: Sequence[list[Sighting]]) -> Relations:
    tally = Relations()
    for layers in seen:
        for sighting in layers:
            tally.update(sighting)
    return tally


def tight(maps: Sequence[np.ndarray], sentences: Sequence[fixed.Annotated]) -> np.ndarray:
    """Hits `[layer, head, direction, relation]`, still one map at a time."""
    names = sorted({label for sentence in sentences for label in sentence.relations})
    number = {name: place for place, name in enumerate(names)}
    hits = np.zeros((*maps[0].shape[:2], 3, len(names)))
    for weights, sentence in zip(maps, sentences, strict=True):
        pieces = np.zeros((len(sentence.tokens), weights.shape[-1]), np.float32)
        for word, tokens in enumerate(sentence.tokens):
            pieces[word, tokens] = 1
        shares = pieces / pieces.sum(1, keepdims=True)
        heads = np.array(sentence.heads)
        child, head = np.flatnonzero(heads >= 0), heads[heads >= 0]
        label = np.array([number[name] for name in sentence.relations])[heads >= 0]
        for place in np.ndindex(weights.shape[:2]):
            between = shares @ weights[place] @ pieces.T
            np.fill_diagonal(between, -np.inf)
            rows, columns = between.argmax(1), between.argmax(0)
            right = (rows[child] == head, rows[head] == child, columns[child] == head)
            for way, one in enumerate(right):
                hits[place][way] += np.bincount(label, one, len(names))
    return hits


def check_same(ours: Relations, theirs: dict, tighter: np.ndarray) -> None:  # type: ignore[type-arg]
    """All count the same hits, or the ratio is of different work."""
    (counts,) = ours.counts()
    names = sorted({label for hits in theirs.values() for _, label in hits})
    for direction in counts.directions:
        for name in names:
            found = counts.of(name, direction, subtypes=True).hits.sum(axis=0)
            for place, head in enumerate(counts.heads):
                expected = theirs[head.layer, head.index][direction, name]
                assert found[place] == expected, (head, direction, name)
    assert sum(sum(hits.values()) for hits in theirs.values()) == tighter.sum()


def main() -> None:
    torch.set_num_threads(1)
    subject = load("minilm", device="cpu", dtype="float32")
    seen = sightings_of(subject, SENTENCES)
    maps, sentences = one_by_one(seen)
    check_same(tallied(seen), fixed.score(maps, sentences)[0], tight(maps, sentences))
    seconds = interleaved(
        {
            FIXED: lambda: fixed.score(maps, sentences),
            TIGHT: lambda: tight(maps, sentences),
            OURS: lambda: tallied(seen),
        },
        ROUNDS,
        warm_up=1,
    )
    result = {
        "what": f"MiniLM float32 on CPU, {SENTENCES} sentences of the sample, 1 thread, maps ready",
        "seconds": {name: round(statistics.median(times), 4) for name, times in seconds.items()},
        "ratio": ratio(seconds, FIXED, OURS),
        "aim": 10,
        "more": "better",
        "ratio_to_matrix_products": ratio(seconds, TIGHT, OURS),
        "rounds": ROUNDS,
        "provenance": provenance.collect() | {"command": "python -m research.benchmarks.relations"},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "relations.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k != "provenance"}, indent=2))


if __name__ == "__main__":
    main()
