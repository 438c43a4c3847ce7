from __future__ import annotations

from headcount.text.coreference import documents
from headcount.text.sentence import Sentence


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
