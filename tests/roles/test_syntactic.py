"""The syntactic role: thresholds, both halves, the twin, and the words of a verdict."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.survey.roles.linguistic import Syntactic
from headcount.survey.roles.role import Role

HEADS = [Head("enc", 0, 0), Head("enc", 0, 1)]


def row(split: str, **changes: Any) -> dict[str, Any]:
    base = {
        "stack": "enc", "layer": 0, "head": 1, "relation": "nsubj", "direction": "dep->head",
        "split": split, "n": 400, "accuracy": 0.71, "low": 0.68, "high": 0.74, "baseline": 0.45,
        "offset": 1.0, "p": 1e-6, "p_adjusted": 1e-4, "p_bh": 1e-5, "selected": True,
    }  # fmt: skip
    return base | changes


def table(*rows: dict[str, Any]) -> HeadTable:
    return HeadTable.of(HEADS, {}, details={"relations": pd.DataFrame(rows)})


def both(**changes: Any) -> HeadTable:
    return table(row("select", **changes), row("report", **changes))


def test_a_verdict_in_words() -> None:
    role: Role = Syntactic()
    (verdict,) = role.judge(both())
    assert verdict.head == Head("enc", 0, 1)
    assert verdict.label == "nsubj dep->head"
    assert (verdict.value, verdict.baseline, verdict.n) == (0.71, 0.45, 400)
    assert verdict.evidence == "nsubj dep->head 0.71 [0.68, 0.74], offset baseline 0.45"
    twin = both(accuracy=0.22)
    assert str(verdict.beside(role.chance(twin, verdict))) == (
        "enc.0.1 syntactic: nsubj dep->head 0.71 [0.68, 0.74], offset baseline 0.45, "
        "random twin 0.22"
    )


def test_a_twin_that_lacks_the_relation() -> None:
    (verdict,) = Syntactic().judge(both())
    assert math.isnan(Syntactic().chance(both(relation="det"), verdict))


@pytest.mark.parametrize(
    ("changes", "role", "holds"),
    [
        ({"accuracy": 0.45, "baseline": 0.35}, Syntactic(), True),
        ({"accuracy": 0.44, "baseline": 0.35}, Syntactic(), False),
        ({"accuracy": 0.44, "baseline": 0.35}, Syntactic(margin=0.05), True),
        ({"accuracy": 0.44, "baseline": 0.42}, Syntactic(relative=True), False),
        ({"accuracy": 0.47, "baseline": 0.42}, Syntactic(relative=True), True),
        ({"p_adjusted": 0.06}, Syntactic(), False),
        ({"p_adjusted": 0.06}, Syntactic(level=0.1), True),
        ({"p_adjusted": math.nan}, Syntactic(), False),
        ({"p_adjusted": math.nan}, Syntactic(level=None), True),
        ({"n": 49}, Syntactic(), False),
        ({"n": 50}, Syntactic(), True),
        ({"n": 20}, Syntactic(support=40), True),
        ({"relation": "punct"}, Syntactic(), False),
        ({"relation": "all"}, Syntactic(), False),
        ({"relation": "punct"}, Syntactic(without=frozenset()), True),
    ],
)
def test_thresholds(changes: dict[str, Any], role: Syntactic, holds: bool) -> None:
    assert bool(role.judge(both(**changes))) is holds


def test_it_must_hold_on_both_halves() -> None:
    weak = {"accuracy": 0.5}
    assert not Syntactic().judge(table(row("select", **weak), row("report")))
    assert not Syntactic().judge(table(row("select"), row("report", **weak)))
    assert not Syntactic().judge(table(row("report")))
    assert not Syntactic().judge(table(row("all")))


def test_the_clearest_comes_first_and_a_head_may_have_several() -> None:
    found = table(
        *(row(split, relation="det", accuracy=0.6) for split in ("select", "report")),
        *(row(split, relation="obj", accuracy=0.9) for split in ("select", "report")),
        *(row(split, head=0, accuracy=0.8) for split in ("select", "report")),
    )
    verdicts = Syntactic().judge(found)
    assert [verdict.label for verdict in verdicts] == [
        "obj dep->head", "nsubj dep->head", "det dep->head",
    ]  # fmt: skip
