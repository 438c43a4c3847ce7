"""Tallies of annotated text: batches, padding and shards never show, nor sides without words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import tiny_subjects
from sightings import read_in_tiles
from tiny_tokenizers import ENGLISH, GERMAN

from headcount.models.subject import Subject
from headcount.rooms.coreference.tally import CoreferenceTally, PronounChoice
from headcount.rooms.families.divergence import Divergence
from headcount.rooms.features.tally import FeatureTally
from headcount.rooms.patterns.tally import OffsetMass, Patterns
from headcount.rooms.relations.links import ArgumentTally, Frames, Links
from headcount.rooms.relations.relations import Relations
from headcount.rooms.relations.rest_by_relation import RestByRelation
from headcount.rooms.resting.separator import SeparatorRow
from headcount.surveys.passes import PassOptions, run_pass
from headcount.surveys.tally import Tally
from headcount.text.corpus import read_corpus
from headcount.text.sentence import Argument, Item, Pair, Predicate, Sentence, Span, Word, spaced

TAGS = ["NOUN", "VERB", "PRON", "PROPN", "DET"]
RELATIONS = ["nsubj", "obj", "det", "amod"]


def annotated(text: str, seed: int) -> Sentence:
    """A text with tags, arcs, clusters and predicates drawn at random."""
    noise = np.random.default_rng(seed)
    forms = text.split()
    n = len(forms)
    words = [
        Word(
            form,
            upos=str(noise.choice(TAGS)),
            deprel=str(noise.choice(RELATIONS)),
            head=int(noise.integers(0, n + 1)),
        )
        for form in forms
    ]
    entity = noise.integers(0, 3, n)
    clusters = [tuple(Span(i, i) for i in np.flatnonzero(entity == e).tolist()) for e in (0, 1)]
    predicate = Predicate(0, None, (Argument("ARG1", Span(n - 1, n - 1)),))
    comments = {"pronoun": str(n - 1), "A": "0", "B": "2", "A-coref": "TRUE", "B-coref": "FALSE"}
    sentence = spaced(words, predicates=(predicate,), comments=comments)
    names = ((Span(0, 0), Span(n - 1, n - 1)), (Span(2, 2),))
    return replace(sentence, clusters=names if seed % 2 else tuple(c for c in clusters if c))


TEXTS = [annotated(text, seed) for seed, text in enumerate(ENGLISH)]
PAIRS: list[Item] = [
    Pair(text.text, other, annotated=(text, None))
    for text, other in zip(TEXTS, GERMAN, strict=True)
]
CASES: dict[str, tuple[Subject, Sequence[Item]]] = {
    "enc": (tiny_subjects.encoder(), TEXTS),
    "dec": (tiny_subjects.writer("llama"), TEXTS),
    "enc-dec": (tiny_subjects.translator(), PAIRS),
}


def tallies() -> list[Tally]:
    return [
        CoreferenceTally(), CoreferenceTally("paper"), PronounChoice(), FeatureTally(),
        FeatureTally("code"), Links(),
        Links("code"), ArgumentTally(frames=Frames(words=None)), RestByRelation(support=2),
        SeparatorRow(),
    ]  # fmt: skip


def counted(name: str, size: int, part: slice = slice(None)) -> list[Tally]:
    subject, items = CASES[name]
    made = tallies()
    manner = PassOptions(subject.anatomy.stacks, batch_size=size)
    run_pass(subject, read_corpus(list(items[part])), made, manner)
    return made


def assert_same(mine: Tally, theirs: Tally) -> None:
    one, other = ({(r.column, r.site): r for r in tally.compute()} for tally in (mine, theirs))
    assert one.keys() == other.keys()
    for key, reading in one.items():
        assert reading.note == other[key].note
        for part in ("value", "low", "high"):
            np.testing.assert_allclose(
                getattr(reading, part), getattr(other[key], part), rtol=1e-3, atol=1e-5
            )
    ours, others = mine.details(), theirs.details()
    assert ours.keys() == others.keys()
    for name, frame in ours.items():
        # p values of nearly equal differences part early; they have tests of their own
        plain = [column for column in frame if column not in ("p", "p_adjusted", "p_bh")]
        pd.testing.assert_frame_equal(frame[plain], others[name][plain], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_batch_size_and_padding_never_show(name: str) -> None:
    for mine, theirs in zip(counted(name, 1), counted(name, 10), strict=True):
        assert_same(mine, theirs)


def all_tallies() -> list[Tally]:
    every = [Relations(), Relations("code"), OffsetMass(), Divergence(), Divergence("code")]
    return [*tallies(), *every, Links("paper"), FeatureTally("paper"), Patterns()]


@pytest.mark.parametrize("family", ["enc", "dec", "enc-dec", "t5", "gemma2", "eager"])
@pytest.mark.parametrize("cells", [1, 300, 2**20])
def test_tiles_never_show(family: str, cells: int) -> None:
    subject, items = CASES.get(family, CASES["enc"])
    if family == "t5":  # biases of its own
        subject, items = tiny_subjects.translator("t5"), PAIRS
    elif family == "gemma2":  # soft caps: the family's own function gives the rows
        subject = tiny_subjects._subject("gemma2", "llama")
    elif family == "eager":
        subject = tiny_subjects.encoder()
        subject.model.set_attn_implementation("eager")
    manner = PassOptions(subject.anatomy.stacks, batch_size=3)
    whole, tiled = all_tallies(), all_tallies()
    run_pass(subject, read_corpus(list(items[:6])), whole, manner)
    with read_in_tiles(cells) as read:
        run_pass(subject, read_corpus(list(items[:6])), tiled, replace(manner, batch_size=1))
        pairs = [one.pairs() for one in tiled if isinstance(one, Divergence)]
    assert set(read) == {"Call" if family in ("gemma2", "eager") else "Scores"}
    for mine, theirs in zip(whole, tiled, strict=True):
        assert_same(mine, theirs)
    for mine_pairs, theirs_pairs in zip(
        (one.pairs() for one in whole if isinstance(one, Divergence)), pairs, strict=True
    ):
        assert mine_pairs.keys() == theirs_pairs.keys()
        for stack, own in mine_pairs.items():
            assert own.rows == theirs_pairs[stack].rows
            np.testing.assert_allclose(own.js_sum, theirs_pairs[stack].js_sum, atol=2e-4)


@pytest.mark.parametrize("name", CASES)
def test_shards_merge(name: str) -> None:
    subject, items = CASES[name]
    parts = [tallies(), tallies()]
    manner = PassOptions(subject.anatomy.stacks, batch_size=3)
    for made, part in zip(parts, (items[6:], items[:6]), strict=True):
        run_pass(subject, read_corpus(list(part)), made, manner)
    for mine, theirs, whole in zip(*parts, counted(name, 4), strict=True):
        mine.merge(theirs)
        if not isinstance(
            whole, CoreferenceTally | PronounChoice
        ):  # their texts count from 0 twice
            assert_same(mine, whole)
        elif whole.details():
            totals = (t.frame().query("split == 'all'")["n"].max() for t in (mine, whole))
            assert len(set(totals)) == 1


@pytest.mark.parametrize("name", CASES)
def test_everything_says_something(name: str) -> None:
    told = {type(tally).__name__ for tally in counted(name, 4) if tally.details()}
    silent = {"RestByRelation"} if name == "dec" else set()
    assert {"CoreferenceTally", "PronounChoice", "FeatureTally", "Links", "ArgumentTally"} <= told
    assert "RestByRelation" in told | silent
