"""A probe as a parser, and why it chose an arc."""

from __future__ import annotations

import pytest
from probe_examples import HEADS, example, vectors

from headcount.errors import InputError, UsageError
from headcount.probing.data import batch_of
from headcount.probing.parse import explain_arc, predicted_tree
from headcount.probing.scorers import fresh
from headcount.records.heads import Head
from headcount.text.parsers import plain_sentence

PROBED = [Head("enc", 0, index) for index in range(HEADS)]
ONE = example(5, 4)


def test_a_tree_has_one_root_and_each_word_alone_may_have_none() -> None:
    scorer = fresh("words", HEADS, vectors(), seed=4)
    tree, free = predicted_tree(scorer, ONE), predicted_tree(scorer, ONE, tree=False)
    assert tree.heads.count(0) == 1
    assert free.heads == free.chances.argmax(1).tolist()
    assert tree.chances.sum(1) == pytest.approx(1)
    assert tree.frame["head_form"].tolist() == [("ROOT", *ONE.forms)[head] for head in tree.heads]


def test_an_arc_is_explained_by_margins_that_add_up() -> None:
    scorer = fresh("words", HEADS, vectors(), seed=4).requires_grad_(False)
    scores = scorer(batch_of([ONE]))[0]
    for dependent, head, row, column in (("w1", "w3", 0, 3), ("2", "ROOT", 1, 0)):
        frame = explain_arc(scorer, PROBED, ONE, dependent, head)
        assert frame["part"].sum() == pytest.approx(float(scores[row, column]), abs=1e-5)
        margin = float(scores[row, column] - scores[row].mean())
        assert frame["margin"].sum() == pytest.approx(margin, abs=1e-5)
        assert frame["margin"].abs().is_monotonic_decreasing


def test_words_that_are_not_there() -> None:
    scorer = fresh("attention", HEADS, None)
    with pytest.raises(UsageError, match="'dog' is not a word of this sentence; choose among w1"):
        explain_arc(scorer, PROBED, ONE, "dog", "w1")
    with pytest.raises(UsageError, match="'9' is not a word"):
        explain_arc(scorer, PROBED, ONE, "w1", "9")


def test_plain_text_is_cut_into_words() -> None:
    sentence = plain_sentence('She said: "We don\'t."')
    assert sentence.words is not None
    forms = [word.form for word in sentence.words]
    assert forms == ["She", "said", ":", '"', "We", "do", "n't", ".", '"']
    assert all(sentence.text[word.start : word.end] == word.form for word in sentence.words)
    with pytest.raises(InputError, match="has no word"):
        plain_sentence("  ")
