"""Dependency heads of real models on a real treebank: what is known of them holds."""

from __future__ import annotations

from pathlib import Path

import pytest

import headcount as hc
from headcount.models.subject import Subject
from headcount.rooms.relations.relations import Relations
from headcount.rooms.words.counts import HitsTest
from headcount.surveys.surveying import survey
from headcount.text import Sentence, read_corpus
from headcount.text.sentence import spaced

pytestmark = [pytest.mark.real, pytest.mark.data]

#: Relation: arcs, accuracy of the best head and of the best offset, dependent to head, percent.
E5 = {
    "prep": (1091, 66.6, 64.4), "nn": (344, 86.9, 85.8), "advmod": (386, 55.4, 47.2),
    "aux": (331, 84.6, 66.5), "det": (869, 93.0, 61.1), "pobj": (1054, 61.4, 43.3),
    "dobj": (438, 66.2, 39.7), "nsubj": (731, 60.6, 47.3), "amod": (666, 89.9, 75.2),
    "poss": (231, 81.8, 66.7), "auxpass": (82, 96.3, 82.9), "prt": (42, 90.5, 78.6),
    "mark": (119, 47.9, 30.3), "ccomp": (93, 37.6, 23.7),
}  # fmt: skip
MINILM = {"det": (869, 78.9, 61.1), "dobj": (438, 71.5, 39.7), "nsubj": (731, 58.7, 47.3)}


def sentences(folder: Path) -> list[Sentence]:
    """500 sentences of 4 to 50 words of GUM with Stanford labels, a space between words."""
    names = ("en_gum5-stanford-dev.conll.xz", "en_gum5-stanford-test.conll.xz")
    read = [item for name in names for item in read_corpus(folder / "treebanks" / name)]
    found = [spaced(item.words) for item in read if isinstance(item, Sentence) and item.words]
    return [one for one in found if 4 <= len(one.words or ()) <= 50][:500]


@pytest.mark.parametrize(("model", "known"), [("e5_small", E5), ("minilm", MINILM)])
def test_the_naive_table_of_the_data(
    model: str,
    known: dict[str, tuple[int, float, float]],
    data_dir: Path,
    request: pytest.FixtureRequest,
) -> None:
    subject: Subject = request.getfixturevalue(model)
    tally = Relations(directions=["dep->head"], test=HitsTest(draws=100))
    survey(subject, sentences(data_dir), columns=["confidence"], tallies=[tally])
    best = hc.roles.best_heads(tally.frame(), support=40).set_index("relation")
    for relation, (arcs, head, offset) in known.items():
        row = best.loc[relation]
        assert row["naive_n"] == arcs
        assert 100 * row["naive_accuracy"] == pytest.approx(head, abs=0.051)
        assert 100 * row["naive_baseline"] == pytest.approx(offset, abs=0.051)
    assert best.loc["det", "p_adjusted"] < 0.001
    assert best.loc["det", "accuracy"] > best.loc["det", "baseline"] + 0.1
