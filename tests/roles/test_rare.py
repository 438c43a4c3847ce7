"""The rare-word role: its threshold, its baseline, its words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.survey.roles.linguistic import Rare

HEADS = [Head("enc", 0, n) for n in range(3)]


def table() -> HeadTable:
    about = {"stack": "enc", "layer": 0, "head": range(3), "n": 700, "low": 0.5, "high": 0.9}
    one = pd.DataFrame(
        {**about, "target": "rare", "share": [0.5, 0.3, 0.1], "chance": 0.1, "uncommon": 0.2}
    ).assign(p=1.0, p_uncommon=1.0)
    two = one.assign(target="rare_two", share=[0.7, 0.55, 0.2], chance=0.25, uncommon=0.4)
    two = two.assign(p=[1e-9, 1e-9, np.nan], p_uncommon=[1e-9, 0.2, np.nan])
    details = {"rarity": pd.concat([one, two], ignore_index=True)}
    return HeadTable.of(HEADS, {"rare_two": [0.7, 0.55, 0.2]}, details=details)


def test_a_share_and_a_test_make_the_role() -> None:
    first, second = Rare().judge(table())
    assert (str(first.head), str(second.head)) == ("enc.0.0", "enc.0.1")
    assert (first.value, first.baseline, first.n) == (0.7, 0.25, 700)
    assert first.p_adjusted == 2e-9
    assert first.evidence == (
        "one of the two rarest tokens 0.70 [0.50, 0.90], the rarest 0.50, a blind pick 0.25, "
        "one of uncommon tokens 0.40"
    )


def test_a_share_that_uncommon_tokens_explain_may_be_refused() -> None:
    (verdict,) = Rare(above="uncommon").judge(table())
    assert (str(verdict.head), verdict.baseline) == ("enc.0.0", 0.4)


def test_thresholds_are_fields() -> None:
    assert Rare(share=0.8).judge(table()) == []
    assert [v.head.index for v in Rare(times=2.5).judge(table())] == [0]
    assert len(Rare(above="uncommon", level=0.3).judge(table())) == 2


def test_the_twin_answers_with_its_best_head() -> None:
    verdict = Rare().judge(table())[0]
    assert Rare().chance(table(), verdict) == 0.7
