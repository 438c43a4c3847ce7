from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headcount.bundle import sample
from headcount.errors import Fault
from headcount.text.coreference import entity_clusters
from headcount.text.corpus import read_corpus
from headcount.text.sentence import Sentence, Span, Word, spaced


def sentence(*marks: str, header: str | None = None) -> Sentence:
    """A sentence of words with these Entity= values."""
    words = [Word("w", misc={"Entity": mark} if mark else {}) for mark in marks]
    return spaced(words, comments={} if header is None else {"global.Entity": header})


def clusters(*sentences: Sentence, skipped: Counter[str] | None = None) -> object:
    return entity_clusters(sentences, "x", Counter() if skipped is None else skipped)


def test_brackets_open_close_and_do_both() -> None:
    found = clusters(sentence("(e1", "e1)", "(e2)", ""), sentence("(e2(e1)", "e2)"))
    assert found == ((Span(0, 1), Span(4, 4)), (Span(2, 2), Span(4, 5)))


def test_further_fields_are_not_the_name() -> None:
    found = clusters(sentence("(1-person-new-cf1,2-1-coref(7-place)", "", "1)", "(1-person)"))
    assert found == ((Span(0, 0),), (Span(0, 2), Span(3, 3)))


def test_the_header_says_which_field_is_the_name() -> None:
    marks = ("(person-a", "a)", "(place-b)", "(person-a)")
    found = clusters(sentence(*marks, header="etype-eid"))
    assert found == ((Span(0, 1), Span(3, 3)), (Span(2, 2),))


def test_mentions_of_one_entity_may_cross_others() -> None:
    found = clusters(sentence("(a", "(b", "a)", "b)"))
    assert found == ((Span(0, 2),), (Span(1, 3),))


@pytest.mark.parametrize(
    ("mark", "said"),
    [("e9)", "closes a mention of 'e9' that is not open"), ("(e9", "does not close a mention")],
)
def test_a_bracket_alone_is_skipped_or_refused(mark: str, said: str) -> None:
    skipped: Counter[str] = Counter()
    assert clusters(sentence("(e1)", mark), skipped=skipped) == ((Span(0, 0),),)
    assert skipped == {"Entity brackets without a partner": 1}
    with pytest.raises(Fault, match=f"Document x {said}"):
        entity_clusters([sentence(mark)], "x", Counter(), strict=True)


def test_the_samples_passages() -> None:
    corpus = read_corpus(sample.path(), passage=10_000)
    expected = sample.passages()
    assert len(corpus) == len(expected)
    for item, passage in zip(corpus, expected, strict=True):
        assert isinstance(item, Sentence)
        assert item.clusters == passage.clusters
        assert item.comments["doc"] == passage.doc
        forms = [word for sent in passage.sents for word in sent]
        assert [word.form for word in item.words or ()] == forms


@pytest.mark.data
def test_gums_entities(data_dir: Path) -> None:
    corpus = read_corpus(data_dir / "treebanks" / "en_gum-ud-dev.conllu.xz", passage=128)
    found = [item for item in corpus if isinstance(item, Sentence)]
    assert len(found) == 263
    assert sum(len(cluster) for item in found for cluster in item.clusters) == 7897
    assert corpus.skipped == {"empty nodes": 12}
