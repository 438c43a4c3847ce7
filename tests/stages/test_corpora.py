"""The corpora of a survey: which serves for what, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from headcount.bundle import sample
from headcount.errors import InputError, UsageError
from headcount.survey.passes import Manner
from headcount.survey.survey import read_corpora, ready_corpora
from headcount.text.sentence import Argument, Predicate, Sentence, Span, Word, split_words

TREES = sample.path("sample.conllu")
CLUSTERS = sample.path("coref.jsonl")
PLAIN = ["Rain fell.", "It stopped."]


def tree(text: str) -> Sentence:
    """Every word hangs from the first."""
    words = [Word(w.form, head=int(n > 0), start=w.start, end=w.end) for n, w in
             enumerate(split_words(text))]  # fmt: skip
    return Sentence(text, tuple(words))


def test_a_treebank_alone_is_also_the_text() -> None:
    found = read_corpora(None, treebank=TREES, limit=5)
    assert found.text is found.treebank
    assert found.text_is_annotated
    assert len(found.text) == 5


def test_text_and_treebank_may_differ() -> None:
    found = read_corpora(PLAIN, treebank=TREES, limit=2)
    assert found.text is not found.treebank
    assert not found.text_is_annotated
    assert found.text.name == "texts in hand"


def test_a_text_with_trees_is_the_treebank() -> None:
    found = read_corpora(TREES, limit=3)
    assert found.treebank is found.text
    assert read_corpora(PLAIN).treebank is None


def test_coreference_alone_is_the_text() -> None:
    found = read_corpora(None, coref=CLUSTERS)
    assert found.text is found.coref
    assert found.treebank is None


def test_coreference_in_a_treebank_is_read_by_passage() -> None:
    found = read_corpora(PLAIN, coref=TREES)
    assert found.coref is not None
    passages = [item for item in found.coref if isinstance(item, Sentence)]
    assert max(len(one.words or ()) for one in passages) > 30
    assert any(one.clusters for one in passages)


def test_a_treebank_of_the_same_documents_lends_its_trees() -> None:
    alone, lent = (read_corpora(PLAIN, coref=CLUSTERS, treebank=one).coref for one in (None, TREES))
    assert alone is not None
    assert lent is not None
    heads = [
        [word.head for item in corpus for word in getattr(item, "words", ())]
        for corpus in (alone, lent)
    ]
    assert len(heads[0]) == len(heads[1])
    assert not any(head is not None for head in heads[0])
    assert all(head is not None for head in heads[1])


def test_a_treebank_of_other_documents_is_no_matter() -> None:
    found = read_corpora(None, coref=CLUSTERS, treebank=[tree("Rain fell.")]).coref
    assert found is not None
    assert not found.skipped


def test_a_parser_makes_a_treebank_of_the_text() -> None:
    found = read_corpora(PLAIN, parser=tree)
    assert found.text is found.treebank
    first = next(iter(found.text))
    assert isinstance(first, Sentence)
    assert [word.form for word in first.words or ()] == ["Rain", "fell", "."]


def test_predicates_are_arguments() -> None:
    read = Predicate(1, "fall.01", (Argument("ARG1", Span(0, 0)),))
    given = [Sentence("Rain fell", split_words("Rain fell"), predicates=(read,))]
    assert read_corpora(None, arguments=given).arguments is not None


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"treebank": PLAIN}, InputError, "texts in hand has no trees: no word has a HEAD"),
        (
            {"treebank": [Sentence("Rain fell", split_words("Rain fell"))]},
            InputError,
            "has no trees: no word has a HEAD; give a treebank",
        ),
        ({"coref": PLAIN}, InputError, "has no coreference: no two mentions mean the same"),
        ({"arguments": PLAIN}, InputError, "has no predicate with an argument"),
        ({"parser": tree}, UsageError, "A parser was given and no text to parse"),
        ({"corpus": PLAIN, "parser": tree, "treebank": TREES}, UsageError, "leave one of them out"),
        ({}, UsageError, "There is nothing to read: give a corpus, or a treebank in its place"),
    ],
)
def test_what_lacks_what_it_is_read_for_is_refused(
    given: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_corpora(given.pop("corpus", None), **given)  # type: ignore[arg-type]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        read_corpora(None, treebank=tmp_path / "none.conllu")


def test_ready_inputs_take_no_settings_of_texts() -> None:
    ready = [{"input_ids": torch.ones(1, 4, dtype=torch.long)}]
    assert ready_corpora(ready, ["enc"], Manner(("enc",))).treebank is None
    with pytest.raises(UsageError, match=r"treebank is .* but these are ready inputs"):
        ready_corpora(ready, ["enc"], Manner(("enc",)), treebank=TREES)
    with pytest.raises(UsageError, match="max_length is 3, but these are ready inputs"):
        ready_corpora(ready, ["enc"], Manner(("enc",), max_length=3))
