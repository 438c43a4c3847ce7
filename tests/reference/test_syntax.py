"""Clark et al.'s dependency accuracies, from their program, matched to the last digit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headcount as hc
from headcount.models.subject import Subject
from headcount.rooms.relations.relations import CLARKS_OFFSETS, Relations, most_attended
from headcount.rooms.words.counts import HitsTest
from headcount.surveys.surveying import survey
from headcount.text import Sentence, Word
from headcount.text.sentence import spaced

HERE = Path(__file__).parent
ITEMS: list[dict[str, Any]] = json.loads((HERE / "inputs.json").read_text())["own_single"]
#: Our convention, the name of their rows.
ROWS = {"paper": "mean", "code": "first"}
DIRECTIONS = ("dep->head", "head<-dep")


def figures() -> dict[str, np.ndarray]:
    with np.load(HERE / "clark_syntax.npz") as found:
        return {key: found[key] for key in found.files}


def sentence(item: dict[str, Any]) -> Sentence:
    parts = zip(item["words"], item["heads"], item["relns"], strict=True)
    return spaced([Word(form, head=head, deprel=relation) for form, head, relation in parts])


@pytest.mark.parametrize("rows", ROWS.values())
def test_what_every_word_of_a_sentence_points_to(rows: str) -> None:
    with np.load(HERE / "clark_words.npz") as found:
        maps = torch.from_numpy(found[f"own-000/{rows}"])[..., 1:-1, 1:-1]
    there = torch.ones(len(maps), maps.shape[-1], dtype=torch.bool)
    pointed = most_attended([(slice(0, maps.shape[-1]), maps)], there, zero_self=True)
    for ours, name in zip(pointed, ("normal", "transpose"), strict=True):
        np.testing.assert_array_equal(ours.flatten(0, 1) + 1, figures()[f"{rows}/{name}"])


@pytest.mark.real
@pytest.mark.parametrize("size", [1, 16])
@pytest.mark.parametrize("convention", ROWS)
def test_accuracies_of_heads_and_offsets(minilm: Subject, convention: str, size: int) -> None:
    tally = Relations(convention, test=HitsTest(draws=100))
    corpus = [sentence(item) for item in ITEMS]
    survey(
        minilm,
        corpus,
        columns=["confidence"],
        tallies=[tally],
        reading=hc.ReadingOptions(batch_size=size),
    )
    theirs, (counts,) = figures(), tally.counts()
    assert counts.tried == CLARKS_OFFSETS
    for place, relation in enumerate(theirs["relations"]):
        for way, direction in enumerate(DIRECTIONS):
            found = counts.of(str(relation), direction)
            assert found.arcs.sum() == theirs["counts"][place]
            for ours, name in ((found.hits, "heads"), (found.offsets, "offsets")):
                expected = theirs[f"{ROWS[convention]}/{name}"][..., place]
                expected = expected[way].ravel() if name == "heads" else expected
                np.testing.assert_allclose(ours.sum(0) / found.arcs.sum(), expected, atol=6e-9)


@pytest.mark.real
def test_the_frame_has_their_numbers_under_all(minilm: Subject) -> None:
    tally = Relations("paper", test=HitsTest(draws=100))
    table = survey(
        minilm, [sentence(item) for item in ITEMS], columns=["confidence"], tallies=[tally]
    )
    frame = table.details["relations"]
    det = frame[(frame["relation"] == "det") & (frame["split"] == "all")]
    theirs = figures()
    place = list(theirs["relations"]).index("det")
    ours = det[det["direction"] == "dep->head"]["accuracy"]
    np.testing.assert_allclose(ours, theirs["mean/heads"][0, ..., place].ravel(), atol=6e-9)
    assert det["baseline"].iloc[0] == pytest.approx(theirs["mean/offsets"][:, place].max())
    assert det["offset"].iloc[0] == CLARKS_OFFSETS[theirs["mean/offsets"][:, place].argmax()]
