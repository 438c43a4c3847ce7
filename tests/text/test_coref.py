from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from corpus_files import records

from headcount.bundle import sample
from headcount.errors import Fault
from headcount.text.coreference import read_coref
from headcount.text.corpus import read_corpus
from headcount.text.sentence import Sentence, Span

DOC: dict[str, Any] = {
    "doc": "tale",
    "sents": [["Ann", "left", "."], [], ["She", "ran", "home", "."]],
    "clusters": [[[0, 0], [3, 3]]],
}


def read(*found: Any, **how: Any) -> list[Sentence]:
    return list(read_coref(records(*found), how.pop("skipped", Counter()), **how))


def test_a_document_is_cut_into_passages() -> None:
    (whole,) = read(DOC)
    assert whole.text == "Ann left . She ran home ."
    assert whole.clusters == ((Span(0, 0), Span(3, 3)),)
    assert whole.comments["doc"] == "tale"
    assert whole.line == 1
    first, second = read(DOC, passage=4)
    assert (first.clusters, second.clusters) == (((Span(0, 0),),), ((Span(0, 0),),))


def test_mentions_that_cannot_be_are_skipped_or_refused() -> None:
    bad = {**DOC, "clusters": [[[0, 0], [3, 9]], [[0, 0], [5, 5]]]}
    skipped: Counter[str] = Counter()
    (found,) = read(bad, skipped=skipped)
    assert found.clusters == ((Span(0, 0),), (Span(5, 5),))
    assert skipped == {"mentions outside the text": 1, "mentions in two clusters": 1}
    with pytest.raises(Fault, match=r"t.jsonl, line 1 has the mention \[3, 9\]; a mention is"):
        read(bad, strict=True)


FAULTS: dict[str, tuple[Any, str, str]] = {
    "broken": ('{"sents": [', "line 2 is not JSON: Expecting value", "lines that are not JSON"),
    "list": ("[1]", "has no sents and no clusters", "lines without sents and clusters"),
    "no clusters": (
        {"sents": []},
        "has no clusters; a document",
        "lines without sents and clusters",
    ),
    "strings": ({**DOC, "sents": ["Ann left"]}, "not lists of words", "not lists of words"),
    "no words": ({**DOC, "sents": [[]]}, "has no word", "lines without a word"),
    "flat": ({**DOC, "clusters": [3]}, "not lists of [first, last]", "that are not lists"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_faulty_line_is_skipped_or_refused(kind: str) -> None:
    line, said, reason = FAULTS[kind]
    skipped: Counter[str] = Counter()
    assert len(read(DOC, line, "", DOC, skipped=skipped)) == 2
    assert skipped.pop("blank lines") == 1
    ((why, count),) = skipped.items()
    assert (reason in why, count) == (True, 1)
    with pytest.raises(Fault) as caught:
        read(DOC, line, strict=True)
    assert said in str(caught.value)


def test_trees_of_the_same_documents_are_lent() -> None:
    plain = read_corpus(sample.path("coref.jsonl"))
    lent = read_corpus(sample.path("coref.jsonl"), trees=sample.path())
    entities = read_corpus(sample.path(), passage=128)
    assert len(plain) == len(lent) == len(entities)
    for one, two, three in zip(plain, lent, entities, strict=True):
        assert isinstance(one, Sentence) and isinstance(two, Sentence)  # noqa: PT018
        assert isinstance(three, Sentence)
        assert one.clusters == two.clusters == three.clusters
        assert (two.text, two.words) == (three.text, three.words)
        assert all(word.head is None for word in one.words or ())
        assert all(word.head is not None for word in two.words or ())
    assert not lent.skipped


def test_trees_of_other_words_are_not_taken() -> None:
    skipped: Counter[str] = Counter()
    trees = [Sentence("Bo left.", comments={"newdoc id": "tale"})]
    (found,) = read(DOC, trees=trees, skipped=skipped)
    assert found.text.startswith("Ann left")
    assert skipped == {"trees of documents in other words": 1}


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "passages", "words", "mentions"),
    [
        ("litbank", 1961, 210532, 29103),
        ("ontogum-dev", 263, 28119, 3817),
        ("ontogum-test2", 166, 17799, 1908),
    ],
)
def test_real_coreference(
    name: str, passages: int, words: int, mentions: int, data_dir: Path
) -> None:
    corpus = read_corpus(data_dir / "coref" / f"{name}.jsonl.xz")
    found = [item for item in corpus if isinstance(item, Sentence)]
    assert len(found) == passages
    assert sum(len(item.words or ()) for item in found) == words
    assert sum(len(cluster) for item in found for cluster in item.clusters) == mentions
