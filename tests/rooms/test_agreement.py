"""Agreement of measures, data sets and seeds, in one frame."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from headcount.errors import UsageError
from headcount.importance import importance_columns
from headcount.importance.gradient import GRADIENT
from headcount.records.columns import Column
from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.rooms.agreement.agreement import agreement

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
