from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from corpus_files import columns, file_of

from headcount.errors import Fault
from headcount.text.conllu import read_conll
from headcount.text.corpus import read_corpus
from headcount.text.sentence import Sentence

TEN = """\
# newdoc id = ferry
1 The the DT DT _ 2 det _ _
2 ferry ferry NN NN _ 3 nsubj _ _
3 sank sink VVD VBD _ 0 root _ SpaceAfter=No
4 . . SENT . _ 3 punct _ Typo=Yes|SpaceAfter=No
"""
EIGHT = "1 Rain rain NOUN NN _ 2 nsubj\n2 fell fall VERB _ _ 0 root\n"


def read(text: str, skipped: Counter[str] | None = None, strict: bool = False) -> list[Sentence]:
    return list(read_conll(columns(text), Counter() if skipped is None else skipped, strict=strict))


def test_ten_columns() -> None:
    (sentence,) = read(TEN)
    assert sentence.text == "The ferry sank."
    assert sentence.comments == {"newdoc id": "ferry"}
    assert sentence.words is not None
    assert [sentence.text[word.start : word.end] for word in sentence.words] == [
        *("The", "ferry", "sank", "."),
    ]
    assert [(word.head, word.deprel) for word in sentence.words] == [
        *((2, "det"), (3, "nsubj"), (0, "root"), (3, "punct")),
    ]
    assert [word.xpos for word in sentence.words] == ["DT", "NN", "VBD", "."]
    assert {word.upos for word in sentence.words} == {None}, "these tags are not universal"


def test_eight_columns() -> None:
    (sentence,) = read(EIGHT)
    assert sentence.text == "Rain fell"
    assert sentence.words is not None
    assert [(word.upos, word.xpos) for word in sentence.words] == [("NOUN", "NN"), ("VERB", "VERB")]


def test_a_text_comment_is_taken() -> None:
    (sentence,) = read("# text = Rain  fell\n" + EIGHT)
    assert sentence.text == "Rain  fell"


def test_line_ends_and_a_mark_of_another_system() -> None:
    text = "\ufeff" + EIGHT.replace(" ", "\t").replace("\n", "\r\n")
    (sentence,) = read_conll(file_of(text, "t.conll"), Counter())
    assert sentence.text == "Rain fell"


FAULTS = {
    "columns": ("1 Rain rain\n", "has 3 columns; CoNLL has 8 or 10", "missing columns"),
    "head": ("1 Rain _ _ _ _ up root\n", "has the head 'up'", "that is no number"),
    "numbers": ("2 Rain _ _ _ _ 0 root\n", "has words numbered 2; CoNLL", "wrong numbers"),
    "range": ("1 Rain _ _ _ _ 3 root\n", "a head out of range: word 1 ('Rain')", "out of range"),
    "roots": ("1 a _ _ _ _ 0 x\n2 b _ _ _ _ 0 x\n", "has 2 roots", "several roots"),
    "cycle": ("1 a _ _ _ _ 2 x\n2 b _ _ _ _ 1 x\n", "has a cycle", "a cycle"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_faulty_sentence_is_skipped_or_refused(kind: str) -> None:
    text, said, reason = FAULTS[kind]
    skipped: Counter[str] = Counter()
    assert [each.text for each in read(f"{EIGHT}\n{text}\n{EIGHT}", skipped)] == ["Rain fell"] * 2
    ((why, count),) = skipped.items()
    assert (reason in why, count) == (True, 1)
    for broken, strict in ((f"{EIGHT}\n{text}", True), (text, False)):
        with pytest.raises(Fault) as caught:
            read(broken, strict=strict)
        assert said in str(caught.value)
        assert str(caught.value).startswith("t.conll")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sentences", "skipped"), [("dev", 533, 0), ("test", 650, 0), ("train", 4088, 3)]
)
def test_real_stanford_files(name: str, sentences: int, skipped: int, data_dir: Path) -> None:
    corpus = read_corpus(data_dir / "treebanks" / f"en_gum5-stanford-{name}.conll.xz")
    assert (len(corpus), corpus.skipped.total()) == (sentences, skipped)
    assert all(isinstance(each, Sentence) and each.has_tree for each in corpus)
