"""Features: which words have them, labels of three schemes, what is told where there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny_subjects
import torch
from trees import sight, site

import headcount as hc
from headcount.errors import UsageError
from headcount.rooms.features.tally import FeatureTally
from headcount.rooms.words.pairs import FEATURES, NEGATIONS, Feature
from headcount.text.sentence import Sentence, Word, spaced
from headcount.wiring.sighting import Sighting

BY_NAME = {feature.name: feature for feature in FEATURES}


@pytest.mark.parametrize(
    ("word", "features"),
    [
        (Word("rain", upos="NOUN"), {"noun"}),
        (Word("York", upos="PROPN"), {"noun"}),
        (Word("rains", xpos="NNS"), {"noun"}),
        (Word("sang", xpos="VBD"), {"verb"}),
        (Word("has", upos="AUX", xpos="VBZ"), set()),  # the universal tag counts
        (Word("her", xpos="PRP$", deprel="poss"), {"pronoun"}),
        (Word("it", upos="PRON", deprel="expl"), {"pronoun", "subject"}),
        (Word("rain", deprel="nsubj:pass"), {"subject"}),
        (Word("rain", deprel="nsubjpass"), {"subject"}),
        (Word("by", deprel="agent"), {"subject"}),
        (Word("her", deprel="obl:agent"), {"subject"}),
        (Word("rain", deprel="obl"), set()),
        (Word("rain", deprel="obj"), {"object"}),
        (Word("rain", deprel="dobj"), {"object"}),
        (Word("rain", deprel="dative"), {"object"}),
        (Word("Not"), {"negation"}),
        (Word("n't"), {"negation"}),
        (Word("another"), set()),
    ],
)
def test_labels_of_three_schemes(word: Word, features: set[str]) -> None:
    assert {name for name, feature in BY_NAME.items() if feature.has(word)} == features


def test_as_many_negations_as_the_authors_list() -> None:
    assert len(NEGATIONS) == 17


SENTENCE = spaced([Word("rain", upos="NOUN"), Word("fell", upos="VERB")])
MAP = [[[0.1, 0.9], [0.4, 0.6]]]


def spelled(sentences: list[Sentence], maps: list[list[list[list[float]]]]) -> Sighting:
    """A sighting in which words that are written alike, and no others, have the same id."""
    found = sight(sentences, maps)
    forms = sorted({word.form for sentence in sentences for word in sentence.words or ()})
    ids = [[forms.index(word.form) for word in one.words or ()] for one in sentences]
    side = replace(found.keys, ids=torch.tensor(ids))
    return replace(found, keys=side, queries=side)


def columns(tally: FeatureTally) -> dict[str, float]:
    return {reading.column: float(reading.value[0]) for reading in tally.compute()}


def test_a_text_without_the_feature_is_left_out_or_counts_as_nothing() -> None:
    plain = spaced([Word("so", upos="ADV"), Word("blue", upos="ADJ")])
    for convention, noun in (("headcount", 0.25), ("paper", 0.25), ("code", 0.125)):
        tally = FeatureTally(convention)
        tally.update(spelled([SENTENCE, plain], [MAP, MAP]))
        assert columns(tally)["to_noun"] == pytest.approx(noun)


def test_negation_in_code_is_a_test_of_substrings() -> None:
    ignored = spaced([Word("we", upos="PRON"), Word("ignored", upos="VERB")])
    never = spaced([Word("never", upos="ADV"), Word("again", upos="ADV")])
    tally = FeatureTally("code")
    tally.update(spelled([SENTENCE, ignored, never], [MAP] * 3))
    # "nor" is in "ignored": it counts, with nothing found; rain does not count
    assert columns(tally)["to_negation"] == pytest.approx((0.0 + 0.25) / 2)
    tally = FeatureTally()
    tally.update(spelled([SENTENCE, ignored, never], [MAP] * 3))
    assert columns(tally)["to_negation"] == pytest.approx(0.25)


def test_what_no_text_has_is_missing_with_its_reason() -> None:
    tally = FeatureTally()
    tally.update(sight([SENTENCE], [MAP]))
    told = {reading.column: reading for reading in tally.compute()}
    assert np.isnan(told["to_object"].value).all()
    assert told["to_object"].note == "no text has words with such a tag or relation"
    assert set(tally.details()["features"]["feature"]) == {"noun", "verb"}


def test_a_side_without_words_is_silent() -> None:
    """The targets of parsed sources: they are known to have no words."""
    found = sight([SENTENCE], [MAP])
    assert found.keys.words is not None
    none = replace(
        found.keys.words, pieces=found.keys.words.pieces[:, :0], there=found.keys.words.there[:, :0]
    )
    side = replace(found.keys, words=none)
    tally = FeatureTally()
    tally.update(replace(found, keys=side, queries=side))
    assert tally.details() == {}
    assert {one.note for one in tally.compute()} == {
        "no text has words with such a tag or relation"
    }


def test_one_word_and_words_without_a_tag() -> None:
    tally = FeatureTally()
    tally.update(sight([spaced([Word("rain")])], [[[[1.0]]]]))
    assert tally.details() == {}
    tally = FeatureTally()
    tally.update(sight([spaced([Word("rain", upos="NOUN")])], [[[[1.0]]]]))
    assert columns(tally)["to_noun"] == 1.0


def test_merging_is_adding() -> None:
    other = spaced([Word("she", upos="PRON"), Word("fell", upos="VERB")])
    whole, first, second = FeatureTally(), FeatureTally(), FeatureTally()
    whole.update(sight([SENTENCE, other], [MAP, [[[0.5, 0.5], [0.2, 0.8]]]]))
    first.update(sight([other], [[[[0.5, 0.5], [0.2, 0.8]]]], index=[1]))
    second.update(sight([SENTENCE], [MAP]))
    first.merge(second)
    mine, theirs = columns(first), columns(whole)
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        np.testing.assert_allclose(value, theirs[name], equal_nan=True)


def test_attention_that_is_no_number_is_told() -> None:
    tally = FeatureTally()
    tally.update(sight([SENTENCE], [np.full((1, 2, 2), np.nan).tolist()]))
    told = {reading.column: reading for reading in tally.compute()}
    assert told["to_noun"].note is None
    assert np.isnan(told["to_noun"].value).all()


def test_own_features_and_a_survey_of_plain_text() -> None:
    adverb = Feature("adverb", upos=frozenset({"ADV"}))
    subject = tiny_subjects.encoder()
    treebank = [spaced([Word("rain", upos="NOUN"), Word("now", upos="ADV")])]
    table = hc.survey(
        subject, treebank, columns=["to_adverb"], tallies=[FeatureTally(features=[adverb])]
    )
    assert table.frame["to_adverb"].between(0, 1).all()
    plain = hc.survey(subject, ["Rain fell."], columns=["to_adverb"],
                      tallies=[FeatureTally(features=[adverb])])  # fmt: skip
    assert plain.frame["to_adverb"].isna().all()
    assert "no text has words" in plain.notes["to_adverb"]


def test_cross_heads_look_at_the_words_of_the_source() -> None:
    tally = FeatureTally()
    tally.update(sight([SENTENCE], [MAP], site("cross")))
    assert columns(tally)["to_noun"] == pytest.approx(0.25)
    assert set(tally.details()["features"]["origin"]) == {"all"}


def test_settings_that_mean_nothing() -> None:
    with pytest.raises(UsageError, match="no convention 'old'; choose headcount, paper or code"):
        FeatureTally("old")
    with pytest.raises(UsageError, match="pieces is 'some'; choose sum or each"):
        FeatureTally(pieces="some")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="give each its own name, other than first"):
        FeatureTally(features=[Feature("first")])


def resting(head_looks_at: str) -> list[list[list[list[float]]]]:
    """Maps of `TEXTS`: nine tenths on the first word, the rest on a kind of word or evenly."""
    maps = []
    for text in TEXTS:
        words = text.words or ()
        row = np.array([float(word.upos == head_looks_at) for word in words])
        row = row / row.sum() if row.sum() else np.full(len(words), 1 / len(words))
        row = 0.1 * row + 0.9 * (np.arange(len(words)) == 0)
        maps.append(np.tile(row, (1, len(words), 1)).tolist())
    return maps


#: Six words each; half of the texts start with a noun, and one noun stands anywhere behind.
TEXTS = [
    spaced([Word("w", upos="NOUN" if k in (0 if n % 2 else 9, 1 + n % 5) else "ADJ")
            for k in range(6)])
    for n in range(60)
]  # fmt: skip


@pytest.mark.parametrize(("kind", "low", "high"), [("none", 0.999, 1.001), ("NOUN", 3, 6)])
def test_the_first_word_is_not_compared(kind: str, low: float, high: float) -> None:
    tally = FeatureTally()
    tally.update(sight(TEXTS, resting(kind)))
    row = tally.details()["features"].query("feature == 'noun' and split == 'all'").iloc[0]
    assert row["value"] > 0.4  # the paper's figure: the first word is often a noun
    assert low < row["compared"] / row["baseline"] < high
    assert row["against"] == "any word in such a place"


def test_code_compares_with_nothing() -> None:
    tally = FeatureTally("code")
    tally.update(spelled([SENTENCE], [MAP]))
    assert tally.details()["features"]["baseline"].isna().all()
