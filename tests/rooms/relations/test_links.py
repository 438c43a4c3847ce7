"""Links between words: who is linked with whom, and what is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from trees import sight, site

import headcount as hc
from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.rooms.relations.links import ArgumentTally, Frames, Links
from headcount.text.corpus import read_corpus
from headcount.text.sentence import Argument, Predicate, Sentence, Span, Word, spaced

#  0 Ann  1 sings  2 and  3 Tom  4 hums
TWO = spaced(
    [
        Word("Ann", upos="PROPN", deprel="nsubj", head=2),
        Word("sings", upos="VERB", deprel="root", head=0),
        Word("and", upos="CCONJ", deprel="cc", head=5),
        Word("Tom", upos="PROPN", deprel="nsubj", head=5),
        Word("hums", upos="VERB", deprel="conj", head=2),
    ]
)


def value(tally: Links, link: str) -> float:
    frame = tally.details()["links"].query("split == 'all'")
    return float(frame[frame["link"] == link]["value"].iloc[0])


def weights(**cells: float) -> list[list[float]]:
    maps = np.zeros((5, 5))
    for cell, weight in cells.items():
        maps[int(cell[1]), int(cell[2])] = weight
    return maps.tolist()


@pytest.mark.parametrize(
    ("convention", "found"),
    [
        ("headcount", 0.9),  # Ann and Tom's verb too
        ("paper", 0.9),
        ("code", 0.2),
    ],
)
def test_pairings(convention: str, found: float) -> None:
    tally = Links(convention)
    tally.update(sight([TWO], [[weights(c04=0.9, c01=0.2, c34=0.1, c40=0.5)]]))
    assert value(tally, "subject->verb") == pytest.approx(found)


def test_a_head_that_looks_back_only_is_asked_about_what_it_sees() -> None:
    tally = Links()
    tally.update(sight([TWO], [[weights(c43=0.6)]], site("dec", causal=True)))
    assert value(tally, "verb->subject") == pytest.approx(0.6)
    assert value(tally, "subject->verb") == 0.0  # Tom sees Ann's verb alone


@pytest.mark.parametrize(
    "sentence",
    [
        spaced([Word("Rain")]),
        spaced([Word("Rain", deprel="nsubj", head=0), Word("fell", upos="VERB", head=0)]),
        spaced([Word("Rain", deprel="nsubj", head=9), Word("fell", upos="VERB", head=0)]),
        spaced(
            [Word("Rain", upos="NOUN", deprel="nsubj", head=2), Word("wet", upos="ADJ", head=0)]
        ),
    ],
    ids=["bare", "to the root", "outside", "not a verb"],
)
def test_sentences_without_a_link_say_nothing(sentence: Sentence) -> None:
    tally = Links()
    size = len(sentence.words or ())
    tally.update(sight([sentence], [[np.eye(size).tolist()]]))
    assert tally.details() == {}
    assert {reading.note for reading in tally.compute()} == {
        "no sentence has both ends of such a link"
    }


def test_the_whole_sentence_cannot_be_moved_so_there_is_no_baseline() -> None:
    pair = spaced([Word("Ann", deprel="nsubj", head=2), Word("sings", upos="VERB", head=0)])
    tally = Links()
    tally.update(sight([pair], [[[[0.3, 0.7], [0.5, 0.5]]]]))
    row = tally.details()["links"].query("split == 'all' and link == 'subject->verb'").iloc[0]
    assert row["value"] == pytest.approx(0.7)
    assert np.isnan(row["baseline"])
    assert np.isnan(row["p"])


def test_outliers_are_above_the_99th_percentile() -> None:
    tally = Links()
    maps = [weights(c01=0.1 if head else 0.9) for head in range(120)]
    tally.update(sight([TWO], [maps]))
    frame = tally.details()["links"].query("split == 'all' and link == 'subject->verb'")
    assert frame[frame["outlier"]]["head"].tolist() == [0]


def test_cross_heads_and_settings_that_mean_nothing() -> None:
    tally = Links()
    tally.update(sight([TWO], [[weights()]], site("cross")))
    assert {reading.note for reading in tally.compute()} == {"queries and keys are different texts"}
    with pytest.raises(UsageError, match="no convention 'old'"):
        Links("old")


# --- Arguments ----------------------------------------------------------------------------------


def sentence(words: int, *predicates: tuple[int, dict[str, tuple[int, int]]]) -> Sentence:
    found = tuple(
        Predicate(word, None, tuple(Argument(label, Span(*span)) for label, span in args.items()))
        for word, args in predicates
    )
    return spaced([Word(f"w{n}") for n in range(words)], predicates=found)


PLAIN = sentence(8, (4, {"ARG0": (0, 1), "ARGM-TMP": (5, 7)}))


@pytest.mark.parametrize(
    ("text", "frames", "links"),
    [
        (PLAIN, Frames(), [(4, Span(0, 1))]),
        (PLAIN, Frames(words=7), []),
        (PLAIN, Frames(words=None, near=3), []),
        (PLAIN, Frames(argument_words=1), []),
        (PLAIN, Frames(core=frozenset({"ARGM-TMP"}), near=0), [(4, Span(5, 7))]),
        (PLAIN, Frames(core=frozenset({"ARGM-TMP"}), near=0, argument_words=2), []),
        (sentence(8, (4, {"ARG1": (2, 3)})), Frames(), []),
        (sentence(8, (4, {"R-ARG1": (0, 0)})), Frames(), []),
        (sentence(8, (4, {"ARG1": (3, 5)})), Frames(near=0), []),
        (sentence(8, (0, {"ARG1": (5, 5)}), (7, {"ARG2": (1, 1)})), Frames(),
         [(0, Span(5, 5)), (7, Span(1, 1))]),
        (sentence(3, (9, {"ARG1": (0, 0)})), Frames(near=0), []),
        (sentence(3, (0, {"ARG1": (2, 8)})), Frames(near=0), []),
        (sentence(3), Frames(), []),
    ],
)  # fmt: skip
def test_what_is_asked_about(text: Sentence, frames: Frames, links: list[tuple[int, Span]]) -> None:
    assert frames.links(text) == links


def test_only_pairs_of_one_link_count() -> None:
    text = sentence(8, (0, {"ARG1": (5, 5)}), (7, {"ARG2": (1, 1)}))
    maps = np.zeros((8, 8))
    maps[5, 0], maps[1, 7], maps[5, 7], maps[0, 5] = 0.3, 0.2, 0.9, 0.6
    tally = ArgumentTally()
    tally.update(sight([text], [[maps.tolist()]]))
    frame = tally.details()["arguments"].query("split == 'all'").set_index("link")
    assert frame.loc["argument->predicate", "value"] == pytest.approx(0.3)
    assert frame.loc["predicate->argument", "value"] == pytest.approx(0.6)


def test_the_same_pair_elsewhere_is_the_baseline() -> None:
    text = sentence(6, (5, {"ARG0": (1, 1)}))
    maps = np.zeros((6, 6))
    maps[1, 5], maps[0, 4] = 0.8, 0.2
    tally = ArgumentTally()
    tally.update(sight([text], [[maps.tolist()]]))
    row = tally.details()["arguments"].query("split == 'all'").set_index("link")
    assert row.loc["argument->predicate", "baseline"] == pytest.approx(0.2)


def test_nothing_to_ask() -> None:
    tally = ArgumentTally()
    tally.update(sight([sentence(3)], [[np.eye(3).tolist()]]))
    assert tally.details() == {}
    assert {reading.note for reading in tally.compute()} == {
        "no sentence has a predicate with an argument that is asked about"
    }


@pytest.mark.data
@pytest.mark.real
def test_a_head_of_a_real_model_links_arguments(data_dir: Path, minilm: Subject) -> None:
    corpus = data_dir / "srl" / "ewt_propbank-dev.jsonl.xz"
    kept = [item for item in read_corpus(corpus) if Frames().links(item)]
    table = hc.survey(minilm, kept, tallies=[ArgumentTally()], columns=["argument_to_predicate"])
    frame = table.details["arguments"].query("split == 'all' and link == 'argument->predicate'")
    best = frame.sort_values("value").iloc[-1]
    assert best["outlier"]
    assert best["value"] > 3 * best["baseline"]
