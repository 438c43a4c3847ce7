"""Agreement of measures, data sets and seeds, in one frame."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from headcount.errors import UsageError
from headcount.importance import importance_columns
from headcount.importance.gradient import GRADIENT
from headcount.records.columns import Column
from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.rooms.agreement.agreement import agreement, by_role

HEADS = [Head(stack, layer, i) for stack in ("enc", "cross") for layer in (0, 1) for i in range(4)]
RNG = np.random.default_rng(0)
TRUTH = RNG.normal(size=16)


def table(**columns: np.ndarray) -> HeadTable:
    return HeadTable.of(HEADS, columns)


def noisy(amount: float) -> np.ndarray:
    return TRUTH + amount * RNG.normal(size=16)


def test_columns_of_a_table_over_all_heads_and_by_stack() -> None:
    one, two = noisy(0.5), noisy(0.5)
    found = agreement(table(gradient=one, ablation=two))
    assert list(found["stack"].unique()) == ["all", "enc", "cross"]
    assert found["heads"].tolist() == [16] * 3 + [8] * 6
    rows = found[found["stack"] == "all"].set_index("kind")
    assert rows.loc["spearman", "value"] == pytest.approx(scipy.stats.spearmanr(one, two)[0])
    assert rows.loc["kendall", "value"] == pytest.approx(scipy.stats.kendalltau(one, two)[0])
    assert rows.loc["pearson", "value"] == pytest.approx(scipy.stats.pearsonr(one, two)[0])
    assert (found["low"] <= found["value"]).all()
    assert (found["value"] <= found["high"]).all()


def test_one_measure_on_two_data_sets_as_in_michels_scatter() -> None:
    one, two = noisy(0.2), noisy(0.2)
    tables = {"tatoeba": table(ablation=one), "lohelp": table(ablation=two)}
    found = agreement(tables, ["ablation"], kinds=["pearson"])
    assert found.loc[0, ["first", "second"]].tolist() == [
        "ablation on tatoeba",
        "ablation on lohelp",
    ]
    assert found.loc[0, "value"] == pytest.approx(scipy.stats.pearsonr(one, two)[0])


def test_a_column_whose_lower_values_rank_first_is_turned() -> None:
    columns = [Column("gradient", direction="higher"), Column("leftover", direction="lower")]
    both = HeadTable.of(HEADS, {"gradient": TRUTH, "leftover": -TRUTH}, columns)
    found = agreement(both, ["gradient", "leftover"], kinds=["spearman"])
    assert found["value"].tolist() == pytest.approx([1.0, 1.0, 1.0])


def test_heads_without_a_value_are_left_out_of_the_pair() -> None:
    holes = noisy(0.3)
    holes[3] = np.nan
    found = agreement(table(gradient=TRUTH, relevance=holes), kinds=["spearman"])
    assert found["heads"].tolist() == [15, 7, 8]


def test_a_score_that_says_nothing_has_a_note() -> None:
    found = agreement(table(gradient=TRUTH, ablation=np.ones(16)), kinds=["kendall"])
    assert found.loc[0, "note"] == "ablation is the same for every head"
    assert np.isnan(found.loc[0, "value"])
    nothing = agreement(table(gradient=TRUTH, ablation=np.full(16, np.nan)), kinds=["kendall"])
    assert nothing.loc[0, "note"] == "0 heads are too few"


def test_by_default_the_columns_that_say_how_much_a_head_matters() -> None:
    columns = [GRADIENT, Column("confidence", direction="higher"), Column("entropy")]
    values = {name: noisy(1.0) for name in ("gradient", "confidence", "entropy")}
    mixed = HeadTable.of(HEADS, values, columns)
    assert importance_columns(mixed) == ["gradient", "confidence"]
    assert set(agreement(mixed)["first"]) == {"gradient"}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (table(gradient=TRUTH), "needs two scores or more, and there is gradient"),
        (
            {"a": table(gradient=TRUTH), "b": HeadTable.of(HEADS[:8], {"gradient": TRUTH[:8]})},
            "The table 'b' has 8 heads and the first 16",
        ),
        ({}, "there is none"),
    ],
)
def test_what_cannot_be_compared_is_told(tables: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        agreement(tables)  # type: ignore[arg-type]


def judged(errors: float = 0.0, seed: int = 0) -> HeadTable:
    """Two roles, of which one is of heads with higher scores, with intervals over examples."""
    rng = np.random.default_rng(seed)
    heads = [Head("enc", layer, index) for layer in range(6) for index in range(8)]
    rows = [(head, "rare" if head.index == 0 else "sink") for head in heads if head.index < 2]
    roles = pd.DataFrame([(*head, role, role == "sink") for head, role in rows])
    roles.columns = pd.Index(["stack", "layer", "head", "role", "rests"])
    score = np.array([4.0 * (head.index == 0) for head in heads]) + rng.normal(size=len(heads))
    values = {"gradient": score, "ablation": rng.normal(size=len(heads))}
    ends = {name: one + 1.96 * errors for name, one in values.items()}
    lows = {name: one - 1.96 * errors for name, one in values.items()}
    return HeadTable.of(heads, values, low=lows, high=ends, details={"roles": roles})


def test_an_answer_does_not_change_with_what_else_is_asked() -> None:
    table = judged()
    key = ["role", "score"]
    alone = by_role(table, ["gradient"]).set_index(key)
    both = by_role(table, ["gradient", "ablation"]).set_index(key)
    assert alone.equals(both.loc[alone.index])
    assert alone.loc[("any function", "gradient"), "answer"] == "more"


def test_intervals_hold_examples_and_seeds() -> None:
    def width(found: pd.DataFrame) -> float:
        row = found.set_index("role").loc["rare"]
        assert -1 <= row["low"] <= row["delta"] <= row["high"] <= 1
        return float(row["high"] - row["low"])

    sure, unsure = (width(by_role(judged(error), ["ablation"])) for error in (0.0, 2.0))
    assert unsure > sure
    seeds = {str(seed): judged(seed=seed) for seed in range(3)}
    assert width(by_role(seeds, ["ablation"])) > 0
    plain, wide = (
        agreement(judged(error), ["gradient", "ablation"], kinds=["spearman"]).iloc[0]
        for error in (0.0, 2.0)
    )
    assert wide["value"] == plain["value"]
    assert wide["high"] - wide["low"] > plain["high"] - plain["low"]


def test_a_two_way_interval_holds_the_truth_where_one_way_does_not() -> None:
    """Scores are measured with an error; what is asked is of heads and examples together."""
    rng, held = np.random.default_rng(1), {"heads": 0, "both": 0}
    truth = 0.5
    for trial in range(60):
        one = rng.normal(size=60)
        two = truth * one + np.sqrt(1 - truth**2) * rng.normal(size=60)
        first, second = one + 0.1 * rng.normal(size=60), two + 0.1 * rng.normal(size=60)
        scores = {"a": first, "b": second}
        ends = {n: {name: one + n * 0.196 for name, one in scores.items()} for n in (-1, 1)}
        of_examples = {"low": ends[-1], "high": ends[1]}
        heads = [Head("enc", 0, index) for index in range(60)]
        for name, how in (("heads", {}), ("both", of_examples)):
            measured = HeadTable.of(heads, scores, **how)
            row = agreement(measured, kinds=["pearson"], draws=500, seed=trial).iloc[0]
            held[name] += row["low"] <= truth <= row["high"]
    assert held["both"] >= held["heads"]
    assert held["both"] >= 54
