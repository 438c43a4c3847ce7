from __future__ import annotations

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import UsageError
from headcount.tasks.translation import COLUMNS, bleu_counts, bleu_metric, sentence_bleu

WORDS = ["the", "cat", "sat", "on", "a", "mat", ".", ","]
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
TEXTS = [
    ("The cat sat on the mat.", "The cat is on the mat."),
    ("It rains.", "It is raining, isn't it?"),
    ("", "Nothing was said here."),
    ("Two crows argued over bread", "Two crows argued over a crust of bread."),
]


def counts(texts: list[tuple[str, str]]) -> np.ndarray:
    return np.array([bleu_counts(*text) for text in texts], dtype=float)


def test_summed_counts_give_sacrebleus_corpus_bleu() -> None:
    told, references = [list(side) for side in zip(*TEXTS, strict=True)]
    judged = sacrebleu.corpus_bleu(told, [references]).score
    assert bleu_metric().value(counts(TEXTS)) == pytest.approx(judged, abs=1e-9)
    assert judged > 10


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=6))
def test_it_does_so_for_any_sentences(texts: list[tuple[str, str]]) -> None:
    told, references = [list(side) for side in zip(*texts, strict=True)]
    judged = sacrebleu.corpus_bleu(told, [references]).score
    assert bleu_metric().value(counts(texts)) == pytest.approx(judged, abs=1e-9)
    each = [sacrebleu.sentence_bleu(a, [b]).score for a, b in texts]
    assert sentence_bleu(counts(texts)) == pytest.approx(each, abs=1e-9)


def test_a_resample_is_bleu_of_the_sentences_drawn() -> None:
    drawn = [TEXTS[0], TEXTS[0], TEXTS[3], TEXTS[3]]
    told, references = [list(side) for side in zip(*drawn, strict=True)]
    [value] = bleu_metric().resample(counts(TEXTS), np.array([[2.0, 0, 0, 2]]))
    judged = sacrebleu.corpus_bleu(told, [references]).score
    assert value == pytest.approx(judged, abs=1e-9)


def test_the_signature_is_sacrebleus() -> None:
    judge = sacrebleu.BLEU()
    judge.corpus_score(["a"], [["a"]])
    assert bleu_metric().signature == str(judge.get_signature())
    assert "tok:char" in str(bleu_metric("char").signature)


def test_another_tokenizer_counts_otherwise() -> None:
    assert bleu_counts("ab", "ac", "char")[:2] == [2, 2]
    assert bleu_counts("ab", "ac")[:2] == [1, 1]
    assert len(COLUMNS) == len(bleu_counts("a", "a")) == 10


def test_an_unknown_tokenizer_is_told() -> None:
    with pytest.raises(UsageError, match=r"has no tokenizer 'moses'; choose one of .*13a"):
        bleu_metric("moses")
