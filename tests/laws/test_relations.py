"""Dependency hits don't depend on plumbing: batches, padding, windows and shards never show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tiny_subjects import encoder, translator, writer

import headcount as hc
from headcount.bundle.sample import path
from headcount.models.subject import Subject
from headcount.rooms.relations.relations import DIRECTIONS, Relations
from headcount.rooms.words.counts import HitsTest, RelationCounts
from headcount.surveys.surveying import survey
from headcount.text import Corpus, read_corpus

SUBJECTS = {"enc": encoder(), "dec": writer(), "enc-dec": translator()}
SAMPLE = read_corpus(path(), limit=40)


def tally(subject: Subject, corpus: Corpus, size: int, convention: str = "headcount") -> Relations:
    found = Relations(convention, test=HitsTest(draws=100))
    stacks = ["enc"] if "enc" in subject.anatomy.stacks else ["dec"]
    survey(
        subject,
        corpus,
        columns=["confidence"],
        tallies=[found],
        reading=hc.ReadingOptions(batch_size=size, stacks=stacks),
    )
    return found


def counts(found: Relations) -> RelationCounts:
    (one,) = found.counts()
    return one


def assert_same(one: RelationCounts, other: RelationCounts) -> None:
    assert one.units == other.units
    for relation in ["all", *one.relations(subtypes=True)]:
        for direction in one.directions:
            mine, theirs = (each.of(relation, direction, True) for each in (one, other))
            for part in ("unit", "arcs", "hits", "offsets"):
                np.testing.assert_array_equal(getattr(mine, part), getattr(theirs, part))


@pytest.mark.parametrize("convention", ["headcount", "paper", "code"])
@pytest.mark.parametrize("kind", SUBJECTS)
def test_batch_size_never_shows(kind: str, convention: str) -> None:
    alone = counts(tally(SUBJECTS[kind], SAMPLE, 1, convention))
    assert len(alone.units) == 40
    for size in (7, 40):
        assert_same(alone, counts(tally(SUBJECTS[kind], SAMPLE, size, convention)))


def test_split_anywhere_and_merge() -> None:
    subject, items = SUBJECTS["enc"], list(SAMPLE)
    whole = tally(subject, SAMPLE, 16)
    first, second = (tally(subject, read_corpus(part), 16) for part in (items[:23], items[23:]))
    empty = Relations()
    for part in (first, second):
        empty.merge(part)
    ours, theirs = counts(empty), counts(whole)
    # shards count their sentences from 0, so the order differs and the sentences do not
    assert {unit.digest for unit in ours.units} == {unit.digest for unit in theirs.units}
    for relation in theirs.relations():
        for direction in DIRECTIONS:
            mine, all_of_it = ours.of(relation, direction), theirs.of(relation, direction)
            for part in ("arcs", "hits", "offsets"):
                got, expected = getattr(mine, part), getattr(all_of_it, part)
                np.testing.assert_array_equal(got.sum(0), expected.sum(0))


def test_the_frame_is_the_same_whatever_the_batches() -> None:
    frames = [tally(SUBJECTS["enc"], SAMPLE, size).frame() for size in (1, 16)]
    pd.testing.assert_frame_equal(*frames)


def test_the_encoder_of_a_translator_has_its_relations() -> None:
    frame = tally(SUBJECTS["enc-dec"], SAMPLE, 16).frame()
    assert set(frame["stack"]) == {"enc"}
    assert {"nsubj", "det", "obj"} <= set(frame["relation"])


def test_a_decoder_counts_what_it_can_see() -> None:
    everything = counts(tally(SUBJECTS["enc"], SAMPLE, 16))
    seen = counts(tally(SUBJECTS["dec"], SAMPLE, 16))
    for relation in ("nsubj", "obj", "det"):
        total = everything.of(relation, "dep->head").arcs.sum()
        back = seen.of(relation, "dep->head").arcs.sum()
        ahead = seen.of(relation, "head->dep").arcs.sum()
        assert back + ahead == total
        assert seen.of(relation, "head<-dep").arcs.sum() == ahead
        # an offset to the right is never right
        offsets = seen.of(relation, "dep->head").offsets.sum(0)
        assert not offsets[np.array(seen.tried) > 0].any()
