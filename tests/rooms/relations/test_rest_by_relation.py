"""Where heads rest: the separator's own row, and words that bear a relation against the others."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from trees import batch_of, side_of, site, tree, words_of

from headcount.rooms.relations.rest_by_relation import RestByRelation
from headcount.rooms.resting.separator import SeparatorRow
from headcount.text.batch import Side
from headcount.text.sentence import Sentence
from headcount.wiring.sighting import Sighting, look


def sighting(
    sentences: list[Sentence], maps: torch.Tensor, tally: RestByRelation | SeparatorRow
) -> Sighting:
    """Words of one token between [CLS] and [SEP]; maps ``[batch, head, token, token]``."""
    words = words_of(sentences)
    sizes = [len(sentence.words or ()) for sentence in sentences]
    width = max(sizes) + 2
    pieces = torch.nn.functional.pad(words.pieces, (1, 1))
    real = torch.arange(width) < torch.tensor(sizes)[:, None] + 2
    ends = torch.arange(width) == torch.tensor(sizes)[:, None] + 1
    side = side_of(type(words)(pieces, words.there, words.sentences))
    known = {**side.__dict__, "real": real, "separator": ends, "annotated": True}
    side = Side(**known)
    return look(site(heads=maps.shape[1]), maps, None, batch_of(side), tally.needs)


SENTENCE = tree("a/det/3 b/amod/3 c/nsubj/4 d/root/0 e/obj/4 f/punct/4")


def test_bearers_against_the_other_words() -> None:
    maps = torch.zeros(1, 2, 8, 8)
    maps[0, 0, :, 7] = torch.tensor([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    maps[0, :, :, 0] = 0.25
    tally = RestByRelation()
    tally.update(sighting([SENTENCE], maps, tally))
    frame = tally.details()["rest_by_relation"].query("split == 'all' and head == 0")
    rows = frame.set_index(["rest", "relation", "direction"])
    nsubj = rows.loc[("separator", "nsubj", "dep->head")]
    # f stands beside [SEP] and is not asked; a stands beside [CLS], which is no separator
    assert nsubj["value"] == pytest.approx(0.3)
    assert nsubj["baseline"] == pytest.approx((0.1 + 0.2 + 0.4 + 0.5) / 4)
    head = rows.loc[("separator", "nsubj", "head->dep")]
    assert head["value"] == pytest.approx(0.4)
    first = rows.loc[("first", "nsubj", "dep->head")]
    assert first["value"] == first["baseline"] == pytest.approx(0.25)
    assert ("separator", "punct", "dep->head") not in rows.index
    assert ("first", "det", "dep->head") not in rows.index


def test_a_sentence_whose_words_all_bear_it_says_nothing() -> None:
    tally = RestByRelation()
    maps = torch.full((1, 1, 4, 4), 0.25)
    tally.update(sighting([tree("a/x/2 b/x/1")], maps, tally))
    assert tally.details() == {}


def test_plain_words_and_single_words_say_nothing() -> None:
    tally = RestByRelation()
    tally.update(sighting([tree("a b c")], torch.full((1, 1, 5, 5), 0.2), tally))
    tally.update(sighting([tree("a/root/0")], torch.full((1, 1, 3, 3), 1 / 3), tally))
    assert tally.details() == {}
    assert tally.compute() == []


def test_it_is_told_which_rest_less() -> None:
    noise = torch.Generator().manual_seed(0)
    texts = [tree(f"a/det/3 b{n}/amod/3 c/nsubj/4 d/root/0 e/obj/4 f/punct/4") for n in range(80)]
    maps = torch.rand(80, 2, 8, 8, generator=noise) * 0.1
    maps[:, 0, :, 7] += 0.5
    maps[:, 0, 3, 7] -= 0.5  # the subject has something to do
    tally = RestByRelation()
    tally.update(sighting(texts, maps, tally))
    frame = tally.details()["rest_by_relation"].query("split == 'report' and rest == 'separator'")
    found = frame.query("relation == 'nsubj' and direction == 'dep->head'").set_index("head")
    assert found.loc[0, "p_adjusted"] < 0.001
    assert found.loc[0, "difference"] == pytest.approx(-0.5, abs=0.05)
    assert found.loc[1, "p_adjusted"] > 0.05


def test_broken_attention_is_told() -> None:
    tally = RestByRelation()
    tally.update(sighting([SENTENCE], torch.full((1, 1, 8, 8), torch.nan), tally))
    assert np.isnan(tally.compute()[0].value).all()
    assert tally.compute()[0].note is None


def test_the_row_of_a_separator() -> None:
    maps = torch.full((1, 2, 4, 4), 0.25)
    maps[0, 1, 3] = torch.tensor([0.0, 0.0, 0.0, 1.0])
    tally = SeparatorRow()
    tally.update(sighting([tree("a b")], maps, tally))
    told = {reading.column: reading.value.tolist() for reading in tally.compute()}
    assert told["entropy_separator"] == pytest.approx([math.log(4), 0.0], abs=1e-6)
    assert told["separator_breadth"] == pytest.approx([1.0, 0.0], abs=1e-6)


def test_without_a_separator_there_is_no_row() -> None:
    tally = SeparatorRow()
    found = sighting([tree("a b")], torch.full((1, 1, 4, 4), 0.25), tally)
    bare = Side(**{**found.queries.__dict__, "separator": torch.zeros_like(found.queries.real)})
    tally.update(Sighting(**{**found.__dict__, "queries": bare, "keys": bare}))
    assert {reading.note for reading in tally.compute()} == {"no separator asks here"}
