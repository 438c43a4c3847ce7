"""Induction heads: those that copy are told from those that only look."""

from __future__ import annotations

import pandas as pd
from trial_tables import trial_table

from headcount.records.table import HeadTable
from headcount.rooms.trials.recall import Induction, Retrieval

LOOKING = {"dec.0.0": (0.8, 0.02, 0.001), "dec.0.1": (0.6, 0.02, 0.001)}


def test_heads_that_look_and_copy() -> None:
    effects = {"dec.0.0": (0.5, 0.0, 0.001), "dec.0.1": (-0.2, 0.0, 1.0)}
    first, second = Induction().judge(
        trial_table({"induction": LOOKING, "induction_effect": effects})
    )
    assert (first.label, second.label) == ("matches and copies", "matches prefixes")
    assert str(first) == (
        "dec.0.0 induction: what followed this token before 0.80 [0.75, 0.85], "
        "uniform attention 0.02, adds +0.50 nats to the right token"
    )
    assert "adds -0.20 nats" in second.evidence


def test_a_model_that_says_nothing_has_heads_that_look() -> None:
    found = Induction().judge(trial_table({"induction": LOOKING}))
    assert {verdict.label for verdict in found} == {"matches prefixes"}
    assert "nats" not in found[0].evidence


# --- Retrieval heads ----------------------------------------------------------------------------


NEEDLES = {"dec.0.0": (0.7, 0.01, 0.001), "dec.0.1": (0.05, 0.01, 0.001)}


def table_of(right: float) -> HeadTable:
    said = {"trial": ["needle"], "name": ["right tokens of the answer"], "value": [right]}
    return trial_table({"retrieval": NEEDLES}, trial_models=pd.DataFrame(said))


def test_a_model_that_finds_the_needle() -> None:
    (verdict,) = Retrieval().judge(table_of(0.9))
    assert str(verdict) == (
        "dec.0.0 retrieval: the token to be copied 0.70 [0.65, 0.75], uniform attention 0.01, "
        "the model gets 0.90 right"
    )
    assert len(Retrieval(least=-0.05).judge(table_of(0.9))) == 1  # the other is at the baseline
    assert Retrieval().chance(table_of(0.9), verdict) == 0.7


def test_a_model_that_does_not_find_it_has_no_such_heads() -> None:
    assert not Retrieval().judge(table_of(0.4))
    assert Retrieval(trusted=0.3).judge(table_of(0.4))
    assert not Retrieval().judge(trial_table({"retrieval": NEEDLES}))
