"""Pronouns between two names: who is meant, what the rules say, and what asks nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from trees import sight, site

import headcount as hc
from headcount.models.subject import Subject
from headcount.survey.tallies.coreference import PronounChoice
from headcount.text.sentence import Sentence, Span, Word, spaced

#        0    1    2   3    4   5    6
TEXT = "Ann Hill met Eve ; she left"


ANN, EVE = Span(0, 1), Span(3, 3)


def passage(
    meant: str = "A", text: str = TEXT, pronoun: int = 5, a: Span = ANN, b: Span = EVE
) -> Sentence:
    names = {"A": a, "B": b}
    together = [Span(pronoun, pronoun), *(span for name, span in names.items() if name in meant)]
    alone = [(span,) for name, span in names.items() if name not in meant]
    comments = {
        "pronoun": str(pronoun), "A": str(a.first), "B": str(b.first),
        "A-coref": str("A" in meant).upper(), "B-coref": str("B" in meant).upper(),
    }  # fmt: skip
    words = spaced([Word(form) for form in text.split()], comments=comments)
    return replace(words, clusters=(tuple(sorted(together)), *alone))


def looking(first: float, second: float, third: float, pronoun: int = 5) -> list[list[float]]:
    """A map whose pronoun looks so much at Ann, Hill and Eve."""
    maps = np.zeros((7, 7))
    maps[pronoun, [0, 1, 3]] = first, second, third
    return maps.tolist()


def rows(tally: PronounChoice, kind: str = "all") -> dict[str, float]:
    frame = tally.frame().query("split == 'all' and kind == @kind").set_index("against")
    return {"accuracy": frame["accuracy"].iloc[0], **frame["baseline"].to_dict()}


def test_a_name_gets_the_sum_of_its_words() -> None:
    tally = PronounChoice()
    tally.update(sight([passage("A"), passage("B")], [[looking(0.2, 0.2, 0.3)]] * 2))
    assert rows(tally) == {"accuracy": 0.5, "nearest": 0.5, "first": 0.5}


def test_nearest_and_first_are_told_by_place() -> None:
    tally = PronounChoice()
    swapped = passage("A", a=EVE, b=ANN)  # A stands second here
    tally.update(sight([swapped], [[looking(0.2, 0.2, 0.3)]]))
    assert rows(tally) == {"accuracy": 0.0, "nearest": 1.0, "first": 0.0}


def test_bias_is_feminine_over_masculine() -> None:
    he = TEXT.replace("she", "He")
    texts = [passage("A"), passage("B"), passage("A", he), passage("A", he)]
    maps = [
        looking(0.3, 0.3, 0.1),
        looking(0.3, 0.3, 0.1),
        looking(0.3, 0.3, 0.1),
        looking(0, 0, 1),
    ]
    tally = PronounChoice()
    tally.update(sight(texts, [[one] for one in maps]))
    assert rows(tally, "feminine")["accuracy"] == rows(tally, "masculine")["accuracy"] == 0.5
    assert set(tally.frame().query("split == 'all'")["bias"]) == {1.0}


def test_a_tie_is_no_hit() -> None:
    tally = PronounChoice()
    tally.update(sight([passage("A"), passage("B")], [[looking(0.1, 0.1, 0.2)]] * 2))
    assert rows(tally)["accuracy"] == 0.0


@pytest.mark.parametrize(
    "text",
    [
        passage(""),
        passage("AB"),
        replace(passage("A"), comments={}),
        replace(passage("A"), clusters=()),
        passage("A", pronoun=99),
    ],
    ids=["neither", "both", "another corpus", "no names", "outside"],
)
def test_what_asks_nothing(text: Sentence) -> None:
    tally = PronounChoice()
    tally.update(sight([text], [[looking(0.2, 0.2, 0.3)]]))
    assert tally.details() == {}
    assert "no text has a pronoun between two names" in str(tally.compute()[0].note)


def test_a_causal_head_is_asked_only_about_names_it_has_seen() -> None:
    tally, ahead = PronounChoice(), passage("A", pronoun=2, text="Ann Hill she Eve ; met left")
    tally.update(sight([ahead], [[looking(0.2, 0.2, 0.3, 2)]], site("dec", causal=True)))
    assert tally.details() == {}
    tally.update(sight([passage("A")], [[looking(0.2, 0.2, 0.3)]], site("dec", causal=True)))
    assert rows(tally)["accuracy"] == 1.0


@pytest.mark.data
@pytest.mark.real
def test_gap_is_read_and_asked(data_dir: Path, minilm: Subject) -> None:
    table = hc.survey(
        minilm, data_dir / "coref" / "gap-validation.tsv.xz", limit=40, tallies=[PronounChoice()],
        columns=["pronoun_choice"],
    )  # fmt: skip
    frame = table.details["pronoun_choice"]
    assert set(frame["kind"]) == {"all", "feminine", "masculine"}
    assert frame.query("split == 'all' and kind == 'all'")["n"].max() > 25
