"""The rare-word role: its threshold, its baseline, its words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from headcount.heads import Head
from headcount.roles.rare import Rare
from headcount.table import HeadTable

HEADS = [Head("enc", 0, n) for n in range(3)]


def table() -> HeadTable:
    about = {"stack": "enc", "layer": 0, "head": range(3), "n": 700, "low": 0.5, "high": 0.9}
    one = pd.DataFrame(
        {
            **about,
            "target": "rare",
            "share": [0.5, 0.3, 0.1],
            "chance": 0.1,
            "baseline": 0.2,
            "p": 1,
        }
    )
    two = one.assign(target="rare_two", share=[0.7, 0.55, 0.2], baseline=0.4, p=[1e-9, 0.2, np.nan])
    details = {"rarity": pd.concat([one, two], ignore_index=True)}
    return HeadTable.of(HEADS, {"rare_two": [0.7, 0.55, 0.2]}, details=details)


def test_a_share_that_uncommon_tokens_explain_is_no_role() -> None:
    (verdict,) = Rare().judge(table())
    assert str(verdict.head) == "enc.0.0"
    assert (verdict.value, verdict.baseline, verdict.n) == (0.7, 0.4, 700)
    assert verdict.p_adjusted == 2e-9
    assert verdict.evidence == (
        "one of the two rarest tokens 0.70 [0.50, 0.90], the rarest 0.50, any uncommon token 0.40"
    )


def test_thresholds_are_fields() -> None:
    assert Rare(share=0.8).judge(table()) == []
    assert len(Rare(level=0.3).judge(table())) == 2


def test_the_twin_answers_with_its_best_head() -> None:
    (verdict,) = Rare().judge(table())
    assert Rare().chance(table(), verdict) == 0.7
