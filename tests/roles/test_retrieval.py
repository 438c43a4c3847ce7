"""Retrieval heads: only where the model retrieves."""

from __future__ import annotations

import pandas as pd
from trial_tables import trial_table

from headcount.records.table import HeadTable
from headcount.survey.roles.recall import Retrieval

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
    assert len(Retrieval(least=0.01).judge(table_of(0.9))) == 2
    assert Retrieval().chance(table_of(0.9), verdict) == 0.7


def test_a_model_that_does_not_find_it_has_no_such_heads() -> None:
    assert not Retrieval().judge(table_of(0.4))
    assert Retrieval(trusted=0.3).judge(table_of(0.4))
    assert not Retrieval().judge(trial_table({"retrieval": NEEDLES}))
