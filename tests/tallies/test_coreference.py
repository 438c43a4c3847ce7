"""Coreference: what is asked of a head, where, and what is told when nothing can be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_subjects
from trees import sight, site

import headcount as hc
from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.survey.tallies.coreference import CoreferenceTally
from headcount.text.sentence import Sentence, Span, Word, spaced


def passage(text: str, *clusters: tuple[int, ...], doc: str | None = None) -> Sentence:
    """A text with clusters of one-word mentions."""
    spans = tuple(tuple(Span(place, place) for place in cluster) for cluster in clusters)
    comments = {} if doc is None else {"doc": doc}
    return replace(spaced([Word(form) for form in text.split()]), clusters=spans, comments=comments)


def pointing(size: int, *arrows: tuple[int, int]) -> list[list[float]]:
    """A map in which some words put most weight on another; the others look at themselves."""
    maps = np.eye(size)
    for source, target in arrows:
        maps[source] = 0.2 * np.eye(size)[source] + 0.6 * np.eye(size)[target] + 0.2 / size
    return maps.tolist()


def accuracies(tally: CoreferenceTally, kind: str = "all", split: str = "all") -> list[float]:
    frame = tally.frame()
    rows = frame[(frame["kind"] == kind) & (frame["split"] == split)]
    return rows[rows["against"] == "nearest"]["accuracy"].tolist()


ANN = passage("Ann saw Tom . She left him", (0, 4), (2, 6))


def test_the_most_attended_word_must_head_an_antecedent() -> None:
    tally = CoreferenceTally()
    right, wrong = pointing(7, (4, 0), (6, 2)), pointing(7, (4, 2), (6, 2))
    tally.update(sight([ANN], [[right, wrong]]))
    assert accuracies(tally) == [1.0, 0.5]
    assert accuracies(tally, "pronoun") == [1.0, 0.5]
    frame = tally.frame()
    assert set(frame["kind"]) == {"all", "pronoun"}  # first mentions are not asked
    assert set(frame["n"]) == {2}
    # the nearest mention of She is Tom, of him it is She; by gender, She leaves both open
    assert set(frame[frame["against"] == "nearest"]["baseline"]) == {0.0}
    assert set(frame[frame["against"] == "head match"]["baseline"]) == {0.0}


def test_any_antecedent_will_do_and_the_word_itself_is_none() -> None:
    text = passage("Ann ran . She hid . She sang", (0, 3, 6))
    tally = CoreferenceTally()
    tally.update(sight([text], [[pointing(8, (6, 0), (3, 3)), pointing(8, (6, 3), (3, 0))]]))
    assert accuracies(tally) == [1.0, 1.0]  # 3 looks at itself most, and at 0 next


@pytest.mark.parametrize(
    ("candidates", "accuracy"), [("preceding", 1.0), ("all", 0.5), ("mentions", 1.0)]
)
def test_candidates(candidates: str, accuracy: float) -> None:
    ahead = np.array(pointing(7, (6, 2)))
    ahead[4] = [0.2, 0, 0.1, 0.0, 0.1, 0.6, 0]  # mostly ahead, then at Ann
    tally = CoreferenceTally(candidates=candidates)
    tally.update(sight([ANN], [[ahead.tolist()]]))
    assert accuracies(tally) == [accuracy]


def test_a_causal_head_is_never_asked_what_it_cannot_see() -> None:
    tally = CoreferenceTally(convention="paper")
    where = site("dec", causal=True)
    tally.update(sight([ANN], [[pointing(7, (4, 0), (6, 2))]], where))
    assert accuracies(tally) == [1.0]


def test_passages_of_a_document_are_one_text() -> None:
    texts = [passage("Ann ran . She hid", (0, 3), doc=name) for name in ("one", "one", "two")]
    tally = CoreferenceTally()
    tally.update(sight(texts, [[pointing(5, (3, 0))]] * 3))
    assert set(tally.frame().query("split == 'all'")["texts"]) == {2}
    assert set(tally.frame().query("split == 'all'")["n"]) == {3}


def test_batches_and_shards_never_show() -> None:
    texts = [passage(f"Ann {word} . She hid", (0, 3)) for word in ("ran", "sang", "fell", "wept")]
    maps = [[pointing(5, (3, 0)), pointing(5, (3, 1 + n % 2 * -1))] for n in range(4)]
    whole, first, second = CoreferenceTally(), CoreferenceTally(), CoreferenceTally()
    whole.update(sight(texts, maps))
    first.update(sight(texts[2:], maps[2:], index=[2, 3], extra=3))
    second.update(sight(texts[:2], maps[:2], index=[0, 1]))
    first.merge(second)
    np.testing.assert_array_equal(
        first.frame().drop(columns="note").sort_index(axis=1).to_numpy(dtype=str),
        whole.frame().drop(columns="note").sort_index(axis=1).to_numpy(dtype=str),
    )
    assert first.compute()[0].value.tolist() == whole.compute()[0].value.tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    "text",
    [
        passage("Ann ran", (0,)),
        passage("Ann ran"),
        passage("Ann", (0,)),
        passage("Ann ran", (0, 7), (9, 12)),
        replace(spaced([Word("Ann"), Word("Hill")]), clusters=((Span(0, 1), Span(1, 1)),)),
    ],
    ids=["one mention", "none", "one word", "outside", "nested"],
)
def test_without_an_antecedent_nothing_is_claimed(text: Sentence) -> None:
    tally = CoreferenceTally()
    size = len(text.words or ())
    tally.update(sight([text], [[np.eye(size).tolist()]]))
    assert tally.details() == {}
    reading = tally.compute()[0]
    assert np.isnan(reading.value).all()
    assert reading.note == "no mention has an antecedent in the same text"


def test_cross_heads_are_not_asked() -> None:
    tally = CoreferenceTally()
    tally.update(sight([ANN], [[pointing(7)]], site("cross")))
    assert tally.compute()[0].note == "queries and keys are different texts"


def test_attention_that_is_no_number_is_told() -> None:
    tally = CoreferenceTally()
    maps = np.full((7, 7), np.nan)
    tally.update(sight([ANN], [[maps.tolist()]]))
    assert tally.compute()[0].note is None
    assert np.isnan(tally.compute()[0].value).all()


def test_a_survey_of_plain_text_has_no_value_and_says_why() -> None:
    table = hc.survey(
        tiny_subjects.encoder(), ["Rain fell on the tin roof."], tallies=[CoreferenceTally()]
    )
    assert table.frame["coreference"].isna().all()
    assert "no mention has an antecedent" in table.notes["coreference"]


def test_windows_of_a_long_text_ask_what_they_hold() -> None:
    text = passage("Ann sat . " * 3 + "She saw Ann . She hid", (0, 9, 11, 13))
    table = hc.survey(
        tiny_subjects.encoder(), [text], tallies=[CoreferenceTally()], max_length=12, batch_size=2
    )
    frame = table.details["coreference"]
    assert 0 < frame.query("split == 'all'")["n"].max() < 3


def test_settings_that_mean_nothing() -> None:
    with pytest.raises(UsageError, match="no convention 'code': its authors published no code"):
        CoreferenceTally(convention="code")
    with pytest.raises(UsageError, match="candidates is 'near'; choose preceding, mentions, all"):
        CoreferenceTally(candidates="near")  # type: ignore[arg-type]


@pytest.mark.data
@pytest.mark.real
def test_a_head_of_a_real_model_finds_antecedents(data_dir: Path, minilm: Subject) -> None:
    tally = CoreferenceTally()
    corpus = data_dir / "coref" / "ontogum-dev.jsonl.xz"
    table = hc.survey(minilm, corpus, limit=80, tallies=[tally], columns=["coreference"])
    frame = table.details["coreference"].query("split == 'all' and kind == 'all'")
    rules = frame.groupby("against")["baseline"].max()
    assert rules["nearest"] < rules["head match"] < rules["rules"]
    assert frame["accuracy"].max() > rules["nearest"] + 0.1
    assert frame["accuracy"].max() < rules["rules"]
