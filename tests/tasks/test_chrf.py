from __future__ import annotations

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import StatsError
from headcount.tasks.translation import chrf, chrf_counts, chrf_metric

TEXTS = st.tuples(st.text("abc ü.", max_size=12), st.text("abc ü.", max_size=12))


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_summed_counts_give_sacrebleus_chrf(texts: list[tuple[str, str]]) -> None:
    told, references = [list(side) for side in zip(*texts, strict=True)]
    counts = np.array([chrf_counts(*text) for text in texts], dtype=float)
    judged = sacrebleu.corpus_chrf(told, [references]).score
    assert chrf_metric().value(counts) == pytest.approx(judged, abs=1e-9)
    each = [sacrebleu.sentence_chrf(a, [b]).score for a, b in texts]
    assert chrf_metric().scores(counts) == pytest.approx(each, abs=1e-9)


def test_a_perfect_translation_scores_100() -> None:
    counts = np.array(chrf_counts("Regen fiel.", "Regen fiel."), dtype=float)
    assert chrf(counts) == pytest.approx(100)


def test_the_signature_is_sacrebleus() -> None:
    judge = sacrebleu.CHRF()
    judge.corpus_score(["a"], [["a"]])
    assert chrf_metric().signature == str(judge.get_signature())


def test_other_statistics_are_refused() -> None:
    with pytest.raises(StatsError, match="chrF is made of 18 statistics, not of 10"):
        chrf(np.ones(10))
