from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headcount.bundle import sample
from headcount.errors import InputError
from headcount.text.corpus import read_corpus
from headcount.text.parsers import load_udpipe
from headcount.text.sentence import Multiword, Pair, Sentence

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
