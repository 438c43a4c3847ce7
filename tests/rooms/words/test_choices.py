"""Choices on two halves: what is selected, tested, corrected, and told where nothing can be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from trees import sight

from headcount import stats
from headcount.rooms.coreference.tally import CoreferenceTally
from headcount.rooms.words.counts import HitsTest
from headcount.text.sentence import Sentence, Span, Word, spaced


def passage(number: int) -> Sentence:
    """Ann ... Tom ... she: the nearest mention is wrong, the word before it right."""
    words = [Word(form) for form in f"Ann saw Tom once{number} ; she".split()]
    return replace(spaced(words), clusters=((Span(0, 0), Span(5, 5)), (Span(2, 2),)))


def tallied(texts: int, right: float, **test: object) -> pd.DataFrame:
    """One head that is always right, and one that is right for a share of the texts."""
    maps = np.zeros((texts, 2, 6, 6))
    maps[:, 0, 5, 0] = 1
    lucky = np.arange(texts) < right * texts
    maps[lucky, 1, 5, 0] = 1
    maps[~lucky, 1, 5, 2] = 1
    tally = CoreferenceTally(test=HitsTest(**{"support": 1, **test}))  # type: ignore[arg-type]
    tally.update(sight([passage(n) for n in range(texts)], maps.tolist()))
    return tally.frame().query("kind == 'all' and against == 'nearest'")


def test_halves_add_up_and_only_report_is_tested() -> None:
    frame = tallied(60, 0.5)
    n = frame.groupby("split")["n"].max()
    assert n["select"] + n["report"] == n["all"] == 60
    assert min(n["select"], n["report"]) > 15
    assert frame["p"].notna().equals(frame["split"] == "report")


def test_the_best_head_of_select_is_marked_on_both_halves() -> None:
    frame = tallied(60, 0.5)
    marked = frame[frame["selected"].astype(bool)]
    assert set(marked["split"]) == {"select", "report"}
    assert set(marked["head"]) == {0}


def test_p_is_that_of_paired_signs_and_holm_goes_over_heads_and_kinds() -> None:
    tally = CoreferenceTally(test=HitsTest(support=1))
    maps = np.zeros((40, 1, 6, 6))
    maps[:, 0, 5, 0] = 1
    tally.update(sight([passage(n) for n in range(40)], maps.tolist()))
    frame = tally.frame().query("split == 'report' and against == 'nearest'")
    texts = int(frame["texts"].iloc[0])
    assert frame["p"].tolist() == pytest.approx([0.5**texts] * 2)  # all mentions, and pronouns
    assert frame["p_adjusted"].tolist() == pytest.approx(stats.holm(frame["p"]).tolist())


def test_too_few_texts_have_no_p_and_a_reason() -> None:
    frame = tallied(8, 1.0).query("split == 'report'")
    assert frame["p"].isna().all()
    assert frame["note"].str.contains("use at least").all()
    assert frame["accuracy"].notna().all()


def test_too_few_questions_are_not_tested() -> None:
    frame = tallied(20, 1.0, support=30)
    assert frame["p"].isna().all()
    assert set(frame["note"]) == {""}


def test_one_text_has_no_interval() -> None:
    frame = tallied(1, 1.0)
    assert frame["low"].isna().all()
    assert set(frame["accuracy"]) == {1.0}
    assert len(set(frame["split"])) == 2  # its half, and both together
