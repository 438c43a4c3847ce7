"""The ladder of nulls: rules that read words alone, sharp random twins, and rungs in a survey."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from subjects import subject_of

import headcount as hc
from headcount.models import Subject
from headcount.records import Head
from headcount.rooms.nulls import Ladder, Pointing, PointingRelations, layer_confidence, sharp_twin
from headcount.rooms.nulls.climb import beyond
from headcount.rooms.nulls.pointing import BatchWords
from headcount.rooms.nulls.rules import Rules, nearest_members, word_classes
from headcount.rooms.relations import Arcs
from headcount.rooms.words import Unit
from headcount.surveys import Pass, PassOptions, read_corpora
from headcount.surveys.roles import verdicts_of
from headcount.text import read_sample


@pytest.fixture(scope="module")
def encoder() -> Subject:
    return subject_of("bert", "wordpiece")


def corpus(seed: int = 0, texts: int = 300, tagged: bool = True) -> Pointing:
    """Texts in which half of the adverbs hang from the next verb, half from the one after it.

    Which, no word gives away. Four heads: the truth, the next verb, the truth four times in five,
    and the first word.
    """
    rng = np.random.default_rng(seed)
    forms, tags, rows, children, parents, pointed, there = [], [], [], [], [], [], []
    for text in range(texts):
        size = int(rng.integers(9, 12))
        kinds = rng.choice(["NOUN", "ADJ"], size).tolist()
        query, first, second = 0, *sorted(rng.choice(np.arange(2, size), 2, replace=False).tolist())
        kinds[query], kinds[first], kinds[second] = "ADV", "VERB", "VERB"
        target = int(rng.choice([first, second]))
        own = np.zeros((4, size), dtype=np.int16)
        own[0], own[1] = target, first
        own[2] = target if rng.random() < 0.8 else first
        pointed.append(np.pad(own, ((0, 0), (0, 12 - size))))
        forms.append(tuple(f"w{rng.integers(0, 40)}" for _ in range(size)))
        tags.append(tuple(kinds) if tagged else ("",) * size)
        there.append(np.arange(12) < size)
        rows.append(text)
        children.append(query)
        parents.append(target)
    units = tuple(Unit.of(text, f"{seed} {text}") for text in range(texts))
    sizes = np.array([len(form) for form in forms])
    arcs = Arcs(
        np.array(rows), np.array(children), np.array(children), np.array(parents), sizes,
        ("advmod",) * texts,
    )  # fmt: skip
    batch = BatchWords(units, tuple(forms), tuple(tags), np.stack(there), arcs)
    both = np.stack([np.stack(pointed)] * 2)
    heads = tuple(Head("enc", 0, index) for index in range(4))
    return Pointing("enc", heads, False, [batch], [[both]])


def test_the_nearest_member_is_the_one_that_a_slow_search_finds() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 7, 30)
    starts = np.cumsum(sizes) - sizes
    members = rng.random((3, sizes.sum())) < 0.3
    left, right = nearest_members(members, starts, sizes)
    for kind in range(3):
        for start, size in zip(starts, sizes, strict=True):
            own = range(start, start + size)
            for here in own:
                before = [p for p in own if p < here and members[kind, p]]
                behind = [p for p in own if p > here and members[kind, p]]
                assert left[kind, here] == (before[-1] if before else -1)
                assert right[kind, here] == (behind[0] if behind else -1)


def test_a_head_that_is_the_nearest_verb_stands_on_the_first_rung_and_the_truth_on_the_last() -> (
    None
):
    ladder = Ladder(corpus(), margin=0.1)
    heights = [ladder.height(head, "advmod", "dep->head") for head in ladder.pointing.heads]
    assert heights == [4, 1, 4, 1]
    second = ladder.rung("advmod", "dep->head", 2)
    assert second is not None
    assert second.name in ("nearest VERB right", "nearest VERB or AUX right")
    assert second.lead[1] == 0
    assert 0.4 < second.chance[0] < 0.6


def test_a_head_that_rests_on_the_first_word_is_not_beyond_what_sentences_begin_with() -> None:
    """SmolLM2's sinks "followed" discourse markers of GUM: these begin their sentences."""
    known = corpus(texts=400)
    batch = known.batches[0]
    head = np.where(batch.arcs.row % 10 < 8, 0, batch.arcs.head)
    dependent = np.where(head == 0, batch.arcs.length - 1, 0)
    arcs = replace(batch.arcs, head=head, dependent=dependent, source=dependent)
    tags = tuple(("NOUN",) * len(row) for row in batch.forms)
    changed = batch._replace(arcs=arcs, tags=tags)
    given = Pointing("enc", known.heads, False, [changed], known.sites)
    for half in known.sites[0][0]:
        half[:, 3] = 0  # the last head looks at the first word
    ladder = Ladder(given)
    second = ladder.rung("advmod", "dep->head", 2)
    assert second is not None
    assert second.name == "first word"
    assert ladder.height(given.heads[3], "advmod", "dep->head") == 1


def test_what_the_words_give_away_does_not_count() -> None:
    """The verb that is meant is told by a word: the logistic choice learns it, and catches up."""
    known = corpus(texts=600)
    batch = known.batches[0]
    forms = tuple(
        tuple("said" if place == head else word for place, word in enumerate(row))
        for row, head in zip(batch.forms, batch.arcs.head, strict=True)
    )
    given = Pointing("enc", known.heads, False, [batch._replace(forms=forms)], known.sites)
    assert Ladder(known).height(known.heads[0], "advmod", "dep->head") == 4
    ladder = Ladder(given)
    third = ladder.rung("advmod", "dep->head", 3)
    assert third is not None
    assert third.chance[0] > 0.98
    assert ladder.height(given.heads[0], "advmod", "dep->head") == 2


def test_without_tags_words_are_classed_by_frequency_and_form() -> None:
    classes = word_classes(corpus(tagged=False))
    assert all("words" in name for name in classes.names)
    bands = classes.members[:5]
    assert (bands.sum(axis=0) <= 1).all()


def test_the_null_is_chosen_on_one_half_and_judged_on_the_other() -> None:
    pointing = corpus()
    asked = pointing.asked("advmod", "dep->head")
    null = Rules(pointing).offset(asked)
    steps = asked.target - asked.query
    chosen = steps[~asked.judged]
    assert null.name == f"offset {np.bincount(chosen).argmax():+d}"
    ladder = Ladder(pointing).rung("advmod", "dep->head", 1)
    assert ladder is not None
    assert ladder.n == int(asked.judged.sum())


def test_false_rungs_are_rare() -> None:
    """Heads that follow a null and err at random never surely exceed it; 40 seeds, level 5%."""
    false = 0
    for seed in range(40):
        pointing = corpus(seed, texts=120)
        ladder = Ladder(pointing)
        false += ladder.height(pointing.heads[3], "advmod", "dep->head") > 1
        second = ladder.rung("advmod", "dep->head", 2)
        false += second is not None and bool(second.low[1] > 0)
    assert false == 0


def test_the_ladder_stands_on_the_figures_of_the_survey(encoder: Subject) -> None:
    tally = PointingRelations()
    trees = list(read_sample())[:120]
    plain = hc.survey(encoder, treebank=trees, columns=[], roles=hc.RoleOptions(nulls=False))
    assert "rung" not in plain.details["relations"]
    table = hc.survey(
        encoder, treebank=trees, columns=[], tallies=[tally], roles=hc.RoleOptions(nulls=True)
    )
    named = table.details["ladder"].groupby("rung")["null"].first()
    assert sorted(named.index) == [1, 2, 3, 4] or sorted(named.index) == [2, 3, 4]
    (pointing,) = tally.pointings()
    frame = table.details["relations"]
    frame = frame[frame["split"] == "report"].set_index(["relation", "direction", "layer", "head"])
    ladder = Ladder(pointing)
    for relation in ("nsubj", "det"):
        for way in ("dep->head", "head->dep", "head<-dep"):
            rung = ladder.rung(relation, way, 1)
            assert rung is not None
            rows = frame.loc[relation, way]
            assert np.allclose(rung.accuracy, rows["accuracy"])
            assert np.allclose(rung.chance, rows["baseline"])
            assert (rung.n == rows["n"]).all()


def test_a_sharp_twin_is_as_confident_as_the_model(encoder: Subject) -> None:
    texts = read_corpora(list(read_sample())[:40]).text
    options = PassOptions(("enc",), 16, None, "window", False, True, None, 0)
    like = Pass("Surveying", texts, (), options)
    goal = dict.fromkeys(layer_confidence(encoder, like), 0.6)
    twin = sharp_twin(encoder, like, goal=goal)
    found = layer_confidence(twin, like)
    assert all(abs(found[layer] - 0.6) < 0.02 for layer in goal)
    assert "as confident as" in twin.notes[-1]


def test_rungs_are_kept_with_a_table_and_told_with_a_verdict(tmp_path) -> None:  # type: ignore[no-untyped-def]
    subject = hc.load("translator", device="cpu")
    trees = list(read_sample())
    rules = [hc.roles.Syntactic(support=60, level=1.0)]
    table = hc.survey(
        subject, treebank=trees, roles=rules, columns=[], reading=hc.ReadingOptions(stacks=["enc"])
    )
    assert len(table.details["roles"])
    assert (table.details["roles"]["rung"] >= 1).all()
    assert {"rung", "null_2", "null_2_low", "null_2_high"} <= set(table.details["relations"])
    table.save(tmp_path / "run")
    again = hc.HeadTable.load(tmp_path / "run")
    verdict = verdicts_of(again)[0]
    assert "beyond the offset" in verdict.in_words
    assert verdict.rung >= 1
    old = again.details["roles"].drop(columns=["rung", "beyond"])
    assert verdicts_of(old)[0].beyond == ""


def test_no_verdict_is_called_more_than_it_is() -> None:
    assert beyond(2, {}) == (
        "beyond part of speech, not beyond part of speech, distance and word together"
    )
