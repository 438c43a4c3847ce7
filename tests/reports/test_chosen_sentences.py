"""Exhibits are what a tap sees, for every kind of model, with the words of every text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import tiny_subjects

import headcount as hc
from headcount.bundle import sample
from headcount.rooms.exhibits.choosing import (
    chosen_items,
    exhibits_of,
    look_at,
    shown_by,
    telling_passage,
    wanted_by,
)
from headcount.rooms.show.showing import show
from headcount.text import Sentence, Word, read_corpus, read_sample


def test_a_translator_shows_all_three_stacks_of_a_pair() -> None:
    subject = tiny_subjects.translator()
    seen = look_at(subject, ("Ines poured the water.", "Ines goss das Wasser."))
    source, target = seen.texts["src"].tokens, seen.texts["tgt"].tokens
    assert {stack for stack, _ in seen.maps} == {"enc", "dec", "cross"}
    assert seen.maps["cross", 0].shape[1:] == (len(target), len(source))
    assert seen.sides["cross"] == ("tgt", "src")
    head = next(head for head in subject.heads if head.stack == "cross")
    view = show(subject, "Ines poured the water.", str(head), target="Ines goss das Wasser.")
    np.testing.assert_allclose(seen.maps["cross", 0][0], view.weights, atol=1e-6)
    assert view.keys == source


@pytest.mark.parametrize("kind", ["encoder", "writer"])
def test_one_text_is_always_the_source(kind: str) -> None:
    subject = getattr(tiny_subjects, kind)()
    seen = look_at(subject, "Rain fell on the old town, and it stopped.")
    assert list(seen.texts) == ["src"]
    assert list(seen.sides) == list(subject.anatomy.stacks)
    for maps in seen.maps.values():
        np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
    text = seen.texts["src"]
    assert text.words is not None
    assert text.word_texts[:3] == ["Rain", "fell", "on"]
    assert all(
        (word == -1) == special for word, special in zip(text.words, text.special, strict=True)
    )


def test_words_that_share_a_token_are_one() -> None:
    words = (Word("zu", start=0, end=3), Word("dem", start=0, end=3), Word("Dom", start=4, end=7))
    text = look_at(tiny_subjects.encoder(), Sentence("zum Dom", words)).texts["src"]
    assert text.word_texts == ["zum", "Dom"]
    assert text.words is not None
    assert max(text.words) == 1


def test_sentences_that_show_the_verdicts_come_first() -> None:
    roles = pd.DataFrame({"role": ["syntactic"] * 2, "label": ["nsubj:pass dep->head", "iobj x"]})
    corpus = read_corpus(sample.path())
    (_, first), *_ = chosen_items(corpus, roles)
    assert wanted_by(roles) == {"nsubj:pass", "iobj"}
    assert shown_by(first) & wanted_by(roles)
    assert len({place for place, _ in chosen_items(corpus, roles)}) == 3


def test_what_is_over_the_budget_is_left_out_and_told() -> None:
    corpus = read_corpus(sample.sentences()[:20])
    found, notes = exhibits_of(tiny_subjects.encoder(), corpus, budget=1)
    assert len(found) == 1
    assert notes == ["1 of 3 exhibits were kept: more would take over 0 MB."]
    assert found[0].own_text
    assert found[0].id.startswith("own-")


def test_a_corpus_of_odd_lengths_still_gives_one() -> None:
    found, _ = exhibits_of(tiny_subjects.encoder(), read_corpus(["No.", "Yes."]), own_text=False)
    assert [one.title for one in found] == ["No."]


def test_known_arcs_and_translations_are_kept() -> None:
    """Arcs lie between words of the text, and links between tokens that are no special ones."""
    subject = hc.load("translator", device="cpu")
    found, _ = exhibits_of(subject, read_sample(translation="text_de", limit=60), own_text=False)
    for one in found:
        words = one.texts["src"].word_texts
        assert len(one.arcs) > 4
        assert all(text == "src" and word != head for text, _, word, head in one.arcs)
        assert any(relation == "nsubj" for _, relation, _, _ in one.arcs)
        assert max(max(word, head) for *_, word, head in one.arcs) < len(words)
        assert one.links
        for target, source in one.links:
            assert not one.texts["tgt"].special[target]
            assert not one.texts["src"].special[source]


def test_a_passage_shows_mentions_where_heads_find_antecedents() -> None:
    """Whole sentences with most mentions, each pointing to those of its entity before it."""
    subject = tiny_subjects.encoder()
    coref = read_sample("coref.jsonl")
    roles = pd.DataFrame({"role": ["coreference"], "label": ["antecedents"]})
    corpus = read_corpus(sample.sentences()[:8])
    found, _ = exhibits_of(subject, corpus, roles=roles, count=1, coref=coref, own_text=False)
    assert [one.id.rpartition("-")[0] for one in found] == ["sample", "sample-coref"]
    words = found[1].texts["src"].word_texts
    chosen = telling_passage(coref)
    assert chosen is not None
    whole = [word.form for word in chosen[1].words or ()]
    assert whole[-1] in ".!?"
    assert 15 < len(whole) <= 26
    assert words == whole[: len(words)]  # as far as so small a model reads
    named = [arc for arc in found[1].arcs if arc[1].startswith("coref:")]
    assert len({word for _, _, word, _ in named}) > 2
    assert all(head < word for _, _, word, head in named)
    passage = next(one for one in coref if found[1].title in one.text)
    forms = [word.form for word in passage.words or ()]
    entities = [
        {form for span in cluster for form in forms[span.first : span.last + 1]}
        for cluster in passage.clusters
    ]
    for _, _, word, head in named:
        assert any({words[word], words[head]} <= entity for entity in entities)
    without, _ = exhibits_of(subject, corpus, roles=roles.iloc[:0], count=1, coref=coref)
    assert len(without) == 1
