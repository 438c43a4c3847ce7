"""Tests of `rooms/coreference/files.py`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from corpus_files import file_of, records
from hypothesis import given
from hypothesis import strategies as st
from scripts_of import script

from headcount.bundle import sample
from headcount.errors import Fault, InputError, UsageError
from headcount.rooms.coreference.files import (
    GAP_HEADER,
    brackets,
    documents,
    entity_clusters,
    read_coref,
    read_gap,
    split_passages,
)
from headcount.text.corpus import ReadOptions, read_corpus
from headcount.text.sentence import Sentence, Span, Word, spaced

DOC: dict[str, Any] = {
    "doc": "tale",
    "sents": [["Ann", "left", "."], [], ["She", "ran", "home", "."]],
    "clusters": [[[0, 0], [3, 3]]],
}


def read(*found: Any, **how: Any) -> list[Sentence]:
    return list(read_coref(records(*found), how.pop("skipped", Counter()), ReadOptions(**how)))


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
    "digits": (
        f'{{"sents": [["Go"]], "clusters": [[[0, {"9" * 5000}]]]}}',
        "line 2 is not JSON: it has a number of thousands of digits.",
        "lines that are not JSON",
    ),
    "nested": ("[" * 100_000, "line 2 is not JSON: it is nested too", "lines that are not JSON"),
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


# ---  -------------------------------------------------------------------------------------------


def text(**comments: str) -> Sentence:
    return Sentence(
        "A.", comments={key.replace("_", " "): value for key, value in comments.items()}
    )


def test_documents_begin_where_they_say_so() -> None:
    found = documents([text(newdoc_id="x"), text(), text(newdoc=""), text(newdoc_id="y"), text()])
    assert [(name, len(inside)) for name, inside in found] == [("x", 2), ("", 1), ("y", 2)]


def test_sentences_before_the_first_are_a_document() -> None:
    found = documents([text(), text(newdoc_id="x")])
    assert [(name, len(inside)) for name, inside in found] == [("", 1), ("x", 1)]
    assert list(documents([])) == []


# ---  -------------------------------------------------------------------------------------------


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
    expected = script("sample_files").passages()
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


# ---  -------------------------------------------------------------------------------------------


TEXT = "Ann Lee phoned Bo's sister, but she was out."
ROW = {
    "ID": "test-1",
    "Text": TEXT,
    "Pronoun": "she",
    "Pronoun-offset": "32",
    "A": "Ann Lee",
    "A-offset": "0",
    "A-coref": "FALSE",
    "B": "Bo",
    "B-offset": "15",
    "B-coref": "TRUE",
}


def lines(*rows: dict[str, str]) -> str:
    table = [GAP_HEADER, *(row.values() for row in rows)]
    return "\n".join("\t".join(cells) for cells in table) + "\n"


def gap_of(
    *rows: dict[str, str], strict: bool = False, skipped: Counter[str] | None = None
) -> list[Sentence]:
    counts = Counter() if skipped is None else skipped
    return list(read_gap(file_of(lines(*rows), "t.tsv"), counts, ReadOptions(strict=strict)))


def spelt(sentence: Sentence, span: Span) -> str:
    words = sentence.words or ()
    return sentence.text[words[span.first].start : words[span.last].end]


def test_the_pronoun_and_its_names() -> None:
    (found,) = gap_of(ROW)
    assert [[spelt(found, span) for span in cluster] for cluster in found.clusters] == [
        ["Ann Lee"],
        ["Bo", "she"],
    ]
    assert found.comments["sent_id"] == "test-1"
    assert (
        spelt(found, Span(int(found.comments["pronoun"]), int(found.comments["pronoun"]))) == "she"
    )
    assert (found.comments["A"], found.comments["B"]) == ("0", "3")


def test_a_pronoun_that_means_neither() -> None:
    (found,) = gap_of({**ROW, "B-coref": "FALSE"})
    assert [len(cluster) for cluster in found.clusters] == [1, 1, 1]


FAULTS_GAP = {
    "offset": ({**ROW, "A-offset": "1"}, "has 'Ann Lee' at 1, where the text has 'nn Lee '"),
    "beyond": ({**ROW, "B-offset": "999"}, "has 'Bo' at 999, where the text has ''"),
    "word": ({**ROW, "Pronoun-offset": "x"}, "has 'she' at x"),
    "truth": ({**ROW, "A-coref": "maybe"}, "has A-coref 'maybe'; it is TRUE or FALSE"),
    "digits": ({**ROW, "A-offset": "9" * 5000}, "has 'Ann Lee' at 99999999999999999999, where"),
    "short": ({"ID": "1", "Text": "a"}, "has 2 columns and no Pronoun, Pronoun-offset, A, "),
}


@pytest.mark.parametrize("kind", FAULTS_GAP)
def test_gap_a_faulty_line_is_skipped_or_refused(kind: str) -> None:
    row, said = FAULTS_GAP[kind]
    skipped: Counter[str] = Counter()
    assert len(gap_of(ROW, row, ROW, skipped=skipped)) == 2
    assert skipped.total() == 1
    with pytest.raises(InputError) as caught:
        gap_of(ROW, row, strict=True)
    assert str(caught.value).startswith(f"t.tsv, line 3 {said}")


def test_a_row_may_lack_a_column_though_it_has_as_many_as_gap() -> None:
    header, cells = ["note", *GAP_HEADER], ["x", *ROW.values()]
    rows = [header, cells, cells[:-1], cells]
    file = file_of("\n".join("\t".join(row) for row in rows), "t.tsv")
    skipped: Counter[str] = Counter()
    assert len(list(read_gap(file, skipped))) == 2
    assert skipped == {"lines with missing columns": 1}
    with pytest.raises(InputError, match=r"t\.tsv, line 3 has 10 columns and no B-coref; GAP has"):
        list(read_gap(file, Counter(), ReadOptions(strict=True)))


def test_another_table_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"t\.tsv is not a GAP file: its first line does not name ID"
    ):
        list(read_gap(file_of("Rain.\tRegen.\n", "t.tsv"), Counter()))


def test_its_header_tells_it_from_pairs(tmp_path: Path) -> None:
    path = tmp_path / "gap.tsv"
    path.write_text(lines(ROW), encoding="utf-8")
    corpus = read_corpus(path)
    assert not corpus.paired
    assert corpus.annotated


@pytest.mark.data
@pytest.mark.parametrize(("name", "count"), [("validation", 454), ("test", 2000)])
def test_the_real_files(name: str, count: int, data_dir: Path) -> None:
    corpus = read_corpus(data_dir / "coref" / f"gap-{name}.tsv.xz")
    assert (len(corpus), dict(corpus.skipped)) == (count, {})


# ---  -------------------------------------------------------------------------------------------


TEXTS = ["Ann left .", "She ran home .", "Oh .", "Bo met her there , and she smiled ."]


def sentences() -> list[Sentence]:
    return [
        spaced([Word(form, head=0 if place == 0 else 1) for place, form in enumerate(text.split())])
        for text in TEXTS
    ]


def test_whole_sentences_up_to_so_many_words() -> None:
    clusters = ((Span(0, 0), Span(3, 3), Span(11, 11)), (Span(9, 9),))
    found = list(split_passages(sentences(), clusters, 7, "tale"))
    assert [each.text for each in found] == [f"{TEXTS[0]} {TEXTS[1]}", TEXTS[2], TEXTS[3]]
    assert [each.clusters for each in found] == [
        ((Span(0, 0), Span(3, 3)),),
        (),
        ((Span(2, 2),), (Span(0, 0),)),
    ]
    assert [each.comments["passage"] for each in found] == ["0", "1", "2"]
    assert {each.comments["doc"] for each in found} == {"tale"}


def test_words_stand_where_the_text_has_them_and_heads_stay_in_their_sentence() -> None:
    (found,) = split_passages(sentences(), (), 99)
    words = found.words or ()
    assert [found.text[word.start : word.end] for word in words] == found.text.split()
    assert [word.head for word in words][:7] == [0, 1, 1, 0, 4, 4, 4]
    assert not found.has_tree


def test_a_passage_has_a_word_at_least() -> None:
    with pytest.raises(UsageError, match="A passage has 0 words; it must have 1 or more"):
        list(split_passages(sentences(), (), 0))


@given(st.text(alphabet="()ab-", max_size=14))
def test_brackets_are_those_of_the_pattern(text: str) -> None:
    """What the pattern says, without going through a long name again from each of its letters."""
    assert list(brackets(text)) == re.findall(r"\(([^()]*)|([^()]*)\)", text)
