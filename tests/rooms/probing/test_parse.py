"""A probe as a parser, and why it chose an arc."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from probe_examples import HEADS, example, vectors

from headcount.errors import InputError, UsageError
from headcount.records.heads import Head
from headcount.rooms.parsers.parsers import plain_sentence
from headcount.rooms.probing.probing import best_tree, explain_arc, predicted_tree, reliance
from headcount.rooms.probing.scorers import batch_of, fresh

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


# --- Which heads a probe relies on --------------------------------------------------------------


EXAMPLES = [example(words, seed) for seed, words in enumerate((4, 2, 6, 3))]


def test_heads_add_up_to_the_margin_of_gold_arcs() -> None:
    for kind in ("attention", "words"):
        scorer = fresh(kind, HEADS, vectors(), seed=1).requires_grad_(False)
        table = reliance(scorer, EXAMPLES, PROBED, PROBED)
        margins: list[float] = []
        for one in EXAMPLES:
            scores = scorer(batch_of([one]))[0]
            gold = scores.gather(1, one.heads[:, None])[:, 0]
            margins += (gold - scores.mean(1)).tolist()
        np.testing.assert_allclose(table.frame["probe_weight"].sum(), np.mean(margins), rtol=1e-4)
        assert (table.low["probe_weight"] <= table.frame["probe_weight"]).all()


def test_a_head_that_is_the_same_everywhere_decides_nothing() -> None:
    examples = [example(words, seed) for seed, words in enumerate((4, 2, 6, 3))]
    for one in examples:
        assert one.maps is not None
        one.maps[1] = 0.25
    scorer = fresh("attention", HEADS, None)
    scorer.begin({"weights": [1.0] * 6, "root": [0.5, 0.5]})
    table = reliance(scorer.requires_grad_(False), examples, PROBED, PROBED)
    assert abs(table.frame["probe_weight"].iloc[1]) < 1e-6
    assert (table.frame["probe_weight"].iloc[[0, 2]].abs() > 1e-4).all()


def test_heads_of_other_stacks_are_unknown() -> None:
    heads = [*PROBED, Head("cross", 0, 0)]
    table = reliance(fresh("attention", HEADS, None).requires_grad_(False), EXAMPLES, PROBED, heads)
    assert np.isnan(table.frame["probe_weight"].iloc[-1])
    assert table.notes["probe_weight"] == "cross: a probe reads enc only"
    assert not torch.isnan(torch.tensor(table.frame["probe_weight"].to_numpy()[:-1])).any()


# --- The best tree, against all trees there are -------------------------------------------------


def is_tree(heads: tuple[int, ...]) -> bool:
    if heads.count(0) != 1:
        return False
    for start in range(1, len(heads) + 1):
        node, seen = start, set()
        while node:
            if node in seen:
                return False
            seen.add(node)
            node = heads[node - 1]
    return True


@pytest.mark.parametrize("words", [1, 2, 3, 4, 5])
def test_against_every_tree(words: int) -> None:
    draw = np.random.default_rng(words)
    trees = [one for one in product(range(words + 1), repeat=words) if is_tree(one)]
    for _ in range(40):
        scores = draw.normal(size=(words, words + 1))
        best = max(sum(scores[range(words), heads]) for heads in trees)
        found = best_tree(scores)
        assert is_tree(tuple(found))
        assert scores[range(words), found].sum() == pytest.approx(best)
