from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from corpus_files import records

from headcount.errors import Fault
from headcount.rooms.arguments.predicates import read_predicates
from headcount.text.corpus import ReadOptions, read_corpus
from headcount.text.sentence import Argument, Predicate, Sentence, Span

LINE: dict[str, Any] = {
    "sent_id": "s1",
    "tokens": ["She", "mends", "old", "clocks"],
    "upos": ["PRON", "VERB", "ADJ", "NOUN"],
    "head": [2, 0, 4, 2],
    "deprel": ["nsubj", "root", "amod", "obj"],
    "preds": [{"i": 1, "roleset": "mend.01", "args": [["ARG0", 0, 0], ["ARG1", 2, 3]]}],
    "exact": True,
}


def read(*found: Any, **how: Any) -> list[Sentence]:
    return list(read_predicates(records(*found), how.pop("skipped", Counter()), ReadOptions(**how)))


def test_words_trees_and_predicates() -> None:
    (found,) = read(LINE)
    assert found.text == "She mends old clocks"
    assert found.has_tree
    assert found.predicates == (
        Predicate(1, "mend.01", (Argument("ARG0", Span(0, 0)), Argument("ARG1", Span(2, 3)))),
    )
    assert found.comments == {"sent_id": "s1", "exact": "True"}


def test_tokens_and_predicates_are_enough() -> None:
    (found,) = read({"tokens": ["Go"], "preds": [{"i": 0}]})
    assert found.predicates == (Predicate(0),)
    assert found.words is not None
    assert found.words[0].head is None


FAULTS: dict[str, tuple[Any, str]] = {
    "json": ("{", "line 2 is not JSON"),
    "digits": (
        f'{{"tokens": ["Go"], "preds": [{{"i": {"9" * 5000}}}]}}',
        "line 2 is not JSON: it has a number of thousands of digits.",
    ),
    "tags": ({**LINE, "upos": [1, 2, 3, 4]}, "has upos or deprel that are no words"),
    "keys": (
        {"tokens": ["a"]},
        "line 2 has no preds; a sentence with predicates has tokens, preds",
    ),
    "tokens": ({**LINE, "tokens": "She mends"}, "has tokens that are not words"),
    "columns": ({**LINE, "upos": ["PRON"]}, "has 4 tokens and another number of upos, head or"),
    "head": ({**LINE, "head": ["2", 0, 4, 2]}, "has heads that are no numbers"),
    "tree": ({**LINE, "head": [2, 1, 4, 2]}, "has a cycle"),
    "predicate": ({**LINE, "preds": [{"i": 4}]}, "a predicate that is none of its 4 words"),
    "list": ({**LINE, "preds": 3}, "has preds that are not a list"),
    "argument": ({**LINE, "preds": [{"i": 1, "args": [["ARG0", 3, 2]]}]}, "['ARG0', 3, 2]; it is"),
    "outside": ({**LINE, "preds": [{"i": 1, "args": [["ARG0", 0, 4]]}]}, "['ARG0', 0, 4]; it is"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_faulty_line_is_skipped_or_refused(kind: str) -> None:
    line, said = FAULTS[kind]
    skipped: Counter[str] = Counter()
    assert len(read(LINE, line, LINE, skipped=skipped)) == 2
    assert skipped.total() == 1
    with pytest.raises(Fault) as caught:
        read(LINE, line, strict=True)
    assert said in str(caught.value)


@pytest.mark.data
def test_real_predicates(data_dir: Path) -> None:
    corpus = read_corpus(data_dir / "srl" / "ewt_propbank-dev.jsonl.xz")
    found = [item.predicates for item in corpus if isinstance(item, Sentence)]
    assert len(found) == 1970
    assert sum(map(len, found)) == 4977
    assert sum(len(each.arguments) for predicates in found for each in predicates) == 9598
    assert not corpus.skipped
