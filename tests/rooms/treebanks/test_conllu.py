"""Tests of `rooms/treebanks/conllu.py`."""

from __future__ import annotations

import io
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from corpus_files import columns, file_of

from headcount.errors import Fault, InputError
from headcount.rooms.treebanks.conllu import read_conll, read_conllu
from headcount.text.corpus import ReadOptions, read_corpus
from headcount.text.lines import TextFile
from headcount.text.sentence import Multiword, Sentence

GOES_TO_SCHOOL = """\
# sent_id = 7
# text = Er geht zum Arzt.
# text_en = He goes to the doctor.
1 Er er PRON PPER Case=Nom|Number=Sing 2 nsubj _ _
2 geht gehen VERB VVFIN _ 0 root _ _
2.1 geht gehen VERB _ _ _ _ _ CopyOf=2
3-4 zum _ _ _ _ _ _ _ _
3 zu zu ADP APPR _ 5 case _ _
4 dem der DET ART _ 5 det _ _
5 Arzt Arzt NOUN NN _ 2 obl _ SpaceAfter=No
6 . . PUNCT $. _ 2 punct _ _
"""
DO_NOT = """\
1-2 Don't _ _ _ _ _ _ _ _
1 Do do AUX _ _ 3 aux _ _
2 n't not PART _ _ 3 advmod _ _
3 run run VERB _ _ 0 root _ SpaceAfter=No
4 ! ! PUNCT _ _ 3 punct _ _
"""


def read(text: str, skipped: Counter[str] | None = None, *, strict: bool = False) -> list[Sentence]:
    """Read CoNLL-U written with single spaces for tabs."""
    lines = [line if line.startswith("#") else line.replace(" ", "\t") for line in text.split("\n")]
    file = TextFile("t.conllu", lambda: io.BytesIO("\n".join(lines).encode()))
    counts = Counter() if skipped is None else skipped
    return list(read_conllu(file, counts, ReadOptions(strict=strict)))  # type: ignore[arg-type]


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text)
    return str(caught.value)


def places(sentence: Sentence) -> list[str]:
    assert sentence.words is not None
    return [sentence.text[word.start : word.end] for word in sentence.words]


def test_words_and_what_is_said_of_them() -> None:
    skipped: Counter[str] = Counter()
    (sentence,) = read(GOES_TO_SCHOOL, skipped)
    assert sentence.text == "Er geht zum Arzt."
    assert sentence.words is not None
    assert [word.form for word in sentence.words] == ["Er", "geht", "zu", "dem", "Arzt", "."]
    assert [word.head for word in sentence.words] == [2, 0, 5, 5, 2, 2]
    first = sentence.words[0]
    assert (first.lemma, first.upos, first.xpos, first.deprel) == ("er", "PRON", "PPER", "nsubj")
    assert first.feats == {"Case": "Nom", "Number": "Sing"}
    assert sentence.words[4].misc == {"SpaceAfter": "No"}
    assert sentence.comments["text_en"] == "He goes to the doctor."
    assert sentence.comments["sent_id"] == "7"
    assert sentence.line == 1
    assert sentence.has_tree
    assert skipped == {"empty nodes": 1}


def test_multiword_tokens_are_kept_and_their_words_share_its_place() -> None:
    (sentence,) = read(GOES_TO_SCHOOL)
    assert sentence.multiwords == (Multiword(3, 4, "zum"),)
    assert places(sentence) == ["Er", "geht", "zum", "zum", "Arzt", "."]


def test_words_that_spell_their_multiword_token_divide_it() -> None:
    (sentence,) = read(DO_NOT)
    assert sentence.text == "Don't run!"
    assert places(sentence) == ["Do", "n't", "run", "!"]


def test_several_sentences_whatever_stands_between() -> None:
    found = read(f"\n\n{DO_NOT}\n \n\n# a comment alone\n\n{GOES_TO_SCHOOL}")
    assert [sentence.line for sentence in found] == [3, 13]
    assert found[1].text == "Er geht zum Arzt."


def test_text_that_disagrees_gives_way_to_the_words_and_is_counted() -> None:
    skipped: Counter[str] = Counter()
    (sentence,) = read("# text = Don't walk!\n" + DO_NOT, skipped)
    assert sentence.text == "Don't run!"
    assert skipped["text comments that disagree with the words"] == 1


def test_text_with_odd_spaces_is_kept() -> None:
    (sentence,) = read("# text = Don't  run !\n" + DO_NOT)
    assert sentence.text == "Don't  run !"
    assert places(sentence) == ["Do", "n't", "run", "!"]


def test_a_form_with_spaces_stays_one_word() -> None:
    line = "1\t10  000\t_\tNUM\t_\t_\t0\troot\t_\t_\n"
    file = TextFile("t.conllu", lambda: io.BytesIO(line.encode()))
    (sentence,) = read_conllu(file, Counter())
    assert sentence.words is not None
    assert [word.form for word in sentence.words] == ["10 000"]
    assert sentence.words[0].upos == "NUM"


def test_an_underscore_is_a_form_but_no_tag() -> None:
    (sentence,) = read("1 _ _ _ _ _ 0 root _ _\n")
    assert sentence.words is not None
    assert sentence.words[0].form == "_"
    assert sentence.words[0].upos is None


def test_unannotated_heads_are_none() -> None:
    (sentence,) = read("1 Rain _ _ _ _ _ _ _ _\n")
    assert sentence.words is not None
    assert sentence.words[0].head is None
    assert not sentence.has_tree


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "# c\n1 Rain _ _\n",
            "t.conllu, line 2 has 4 columns; CoNLL-U has 10, with tabs between them.",
        ),
        ("x Rain _ _ _ _ 0 root _ _\n", "t.conllu, line 1 is not CoNLL-U: "),
        ("1 Rain _ _ _ _ up root _ _\n", "t.conllu, line 1 is not CoNLL-U: "),
        (
            "\n1 Rain _ _ _ _ 0 root _ _\n3 fell _ _ _ _ 1 x _ _\n",
            "t.conllu, the sentence from line 2, has words numbered [1, 3]; "
            "they count 1, 2, 3, ...",
        ),
        (
            "1-3 zum _ _ _ _ _ _ _ _\n1 zu _ _ _ _ 0 root _ _\n2 dem _ _ _ _ 1 det _ _\n",
            "t.conllu, the sentence from line 1, has a multiword token 1-3 but only 2 words.",
        ),
        ("0.1 Rain _ _ _ _ _ _ _ _\n", "t.conllu, the sentence from line 1, has words numbered []"),
    ],
)
def test_faults_name_file_and_line(text: str, said: str) -> None:
    assert refused(text).startswith(said)


DIGITS = "9" * 5000

#: A sentence that cannot be used: what is said of it, and how it is counted.
FAULTS = {
    "columns": ("1 Rain _ _\n", "has 4 columns; CoNLL-U", "sentences with missing columns"),
    "id": ("x Rain _ _ _ _ 0 root _ _\n", "is not CoNLL-U", "sentences that are not CoNLL-U"),
    "no id": (
        "_ Rain _ _ _ _ 0 root _ _\n",
        "is not CoNLL-U: it has no ID.",
        "sentences that are not CoNLL-U",
    ),
    "digits": (
        f"1 Rain _ _ _ _ {DIGITS} root _ _\n",
        "is not CoNLL-U: it has a number of thousands of digits.",
        "sentences that are not CoNLL-U",
    ),
    "id digits": (
        f"{DIGITS} Rain _ _ _ _ 0 root _ _\n",
        "is not CoNLL-U: it has a number of thousands of digits.",
        "sentences that are not CoNLL-U",
    ),
    "multiword before another word": (
        "2-3 bc _ _ _ _ _ _ _ _\n1 a _ _ _ _ 0 root _ _\n"
        "2 b _ _ _ _ 1 x _ _\n3 c _ _ _ _ 1 x _ _\n",
        "has a multiword token 2-3 out of place; it stands before the line of 2.",
        "sentences with wrong numbers",
    ),
    "numbers": ("2 Rain _ _ _ _ 0 root _ _\n", "numbered [2]", "sentences with wrong numbers"),
    "cycle": (
        "1 a _ _ _ _ 2 x _ _\n2 b _ _ _ _ 1 x _ _\n3 c _ _ _ _ 0 root _ _\n",
        "has a cycle: word 1 ('a')",
        "sentences with a cycle",
    ),
    "roots": (
        "1 a _ _ _ _ 0 root _ _\n2 b _ _ _ _ 0 root _ _\n",
        "has 2 roots",
        "sentences with several roots",
    ),
    "range": ("1 a _ _ _ _ 9 root _ _\n", "hangs from 9", "sentences with a head out of range"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_faulty_sentence_is_skipped_or_refused(kind: str) -> None:
    text, said, reason = FAULTS[kind]
    skipped: Counter[str] = Counter()
    found = read(f"{DO_NOT}\n{text}\n{DO_NOT}", skipped)
    assert [sentence.text for sentence in found] == ["Don't run!"] * 2
    assert +skipped == {reason: 1}
    with pytest.raises(InputError) as caught:
        read(f"{DO_NOT}\n{text}", strict=True)
    assert said in str(caught.value)
    assert str(caught.value).startswith("t.conllu, ")


def test_line_ends_and_a_mark_of_another_system() -> None:
    text = "\ufeff# text = Go\r\n1\tGo\t_\t_\t_\t_\t0\troot\t_\t_\r\n\r\n"
    (sentence,) = read_conllu(TextFile("t.conllu", lambda: io.BytesIO(text.encode())), Counter())
    assert (sentence.text, sentence.has_tree) == ("Go", True)


def test_a_document_may_begin_without_a_name() -> None:
    (sentence,) = read("# newdoc\n# a plain remark\n1 Go _ _ _ _ 0 root _ _\n")
    assert sentence.comments == {"newdoc": ""}


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sentences", "words"),
    [
        ("de_gsd-ud-dev.conllu.xz", 799, 12480),
        ("en_ewt-ud-dev.conllu.xz", 2001, 25147),
        ("fr_pud-ud-test.conllu.xz", 1000, 24726),
        ("ru_pud-ud-test.conllu.xz", 1000, 19355),
    ],
)
def test_real_treebanks(name: str, sentences: int, words: int, data_dir: Path) -> None:
    corpus = read_corpus(data_dir / "treebanks" / name)
    found = list(corpus)
    assert len(corpus) == len(found) == sentences
    assert sum(len(sentence.words) for sentence in found) == words  # type: ignore[union-attr, arg-type]
    assert all(sentence.has_tree for sentence in found)  # type: ignore[union-attr]
    assert corpus.skipped["text comments that disagree with the words"] == 0
    for sentence in found:
        starts = [word.start for word in sentence.words]  # type: ignore[union-attr]
        assert all(one <= two for one, two in pairwise(starts))


# ---  -------------------------------------------------------------------------------------------


TEN = """\
# newdoc id = ferry
1 The the DT DT _ 2 det _ _
2 ferry ferry NN NN _ 3 nsubj _ _
3 sank sink VVD VBD _ 0 root _ SpaceAfter=No
4 . . SENT . _ 3 punct _ Typo=Yes|SpaceAfter=No
"""
EIGHT = "1 Rain rain NOUN NN _ 2 nsubj\n2 fell fall VERB _ _ 0 root\n"


def conll_of(
    text: str, skipped: Counter[str] | None = None, strict: bool = False
) -> list[Sentence]:
    counts = Counter() if skipped is None else skipped
    return list(read_conll(columns(text), counts, ReadOptions(strict=strict)))  # type: ignore[arg-type]


def test_ten_columns() -> None:
    (sentence,) = conll_of(TEN)
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
    (sentence,) = conll_of(EIGHT)
    assert sentence.text == "Rain fell"
    assert sentence.words is not None
    assert [(word.upos, word.xpos) for word in sentence.words] == [("NOUN", "NN"), ("VERB", "VERB")]


def test_a_text_comment_is_taken() -> None:
    (sentence,) = conll_of("# text = Rain  fell\n" + EIGHT)
    assert sentence.text == "Rain  fell"


def test_conll_line_ends_and_a_mark_of_another_system() -> None:
    text = "\ufeff" + EIGHT.replace(" ", "\t").replace("\n", "\r\n")
    (sentence,) = read_conll(file_of(text, "t.conll"), Counter())
    assert sentence.text == "Rain fell"


FAULTS_CONLL = {
    "columns": ("1 Rain rain\n", "has 3 columns; CoNLL has 8 or 10", "missing columns"),
    "head": ("1 Rain _ _ _ _ up root\n", "has the head 'up'", "that is no number"),
    "digits": (f"1 Rain _ _ _ _ {DIGITS} root\n", "the head '99999999999999999999';", "no number"),
    "id": ("1-2 zum _ _ _ _ 0 root\n", "a word numbered '1-2'; CoNLL counts", "wrong numbers"),
    "numbers": ("2 Rain _ _ _ _ 0 root\n", "has words numbered [2]; they", "wrong numbers"),
    "range": ("1 Rain _ _ _ _ 3 root\n", "a head out of range: word 1 ('Rain')", "out of range"),
    "roots": ("1 a _ _ _ _ 0 x\n2 b _ _ _ _ 0 x\n", "has 2 roots", "several roots"),
    "cycle": ("1 a _ _ _ _ 2 x\n2 b _ _ _ _ 1 x\n", "has a cycle", "a cycle"),
}


@pytest.mark.parametrize("kind", FAULTS_CONLL)
def test_conll_a_faulty_sentence_is_skipped_or_refused(kind: str) -> None:
    text, said, reason = FAULTS_CONLL[kind]
    skipped: Counter[str] = Counter()
    assert [each.text for each in conll_of(f"{EIGHT}\n{text}\n{EIGHT}", skipped)] == [
        "Rain fell"
    ] * 2
    ((why, count),) = skipped.items()
    assert (reason in why, count) == (True, 1)
    for broken, strict in ((f"{EIGHT}\n{text}", True), (text, False)):
        with pytest.raises(Fault) as caught:
            conll_of(broken, strict=strict)
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
