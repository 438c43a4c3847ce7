"""Arguments: which of them are asked about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from trees import sight

import headcount as hc
from headcount.models.subject import Subject
from headcount.survey.tallies.links import ArgumentTally, Frames
from headcount.text.corpus import read_corpus
from headcount.text.sentence import Argument, Predicate, Sentence, Span, Word, spaced


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
        (PLAIN, Frames(every=True), []),  # the time is next to the predicate
        (PLAIN, Frames(every=True, near=0), [(4, Span(0, 1))]),
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
        (sentence(8, (0, {"ARG1": (5, 5)}), (7, {})), Frames(one_predicate=True), []),
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
