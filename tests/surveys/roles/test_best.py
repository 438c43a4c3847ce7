"""Clark's Table 1: chosen on one half, judged on the other, and the naive best beside it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from headcount.errors import InputError
from headcount.rooms.relations.best import best_heads, not_shown

NAN = float("nan")


def row(split: str, head: int, accuracy: float, **changes: Any) -> dict[str, Any]:
    base = {
        "stack": "enc", "layer": 2, "head": head, "relation": "det", "direction": "dep->head",
        "split": split, "n": 200 if split == "all" else 100, "accuracy": accuracy,
        "low": accuracy - 0.05, "high": accuracy + 0.05, "baseline": 0.5, "offset": 1.0, "p": 0.01,
        "p_adjusted": 0.02,
    }  # fmt: skip
    return base | changes


FRAME = pd.DataFrame(
    [
        row("select", 0, 0.9), row("report", 0, 0.7), row("all", 0, 0.8),
        row("select", 1, 0.8), row("report", 1, 0.95), row("all", 1, 0.875),
        row("select", 0, 0.3, relation="all"), row("report", 0, 0.3, relation="all"),
        row("all", 0, 0.3, relation="all", n=900),
        row("all", 0, 0.3, relation="nsubj", n=500),
        row("all", 0, 0.3, relation="punct", n=500),
        row("all", 0, 0.3, relation="rare", n=99),
    ]
)  # fmt: skip


def test_head_and_offset_are_those_of_one_half_on_the_other() -> None:
    best = best_heads(FRAME).set_index("relation")
    assert best.loc["det", "head"] == "enc.2.0"
    assert best.loc["det", "accuracy"] == 0.7
    assert best.loc["det", "naive_head"] == "enc.2.1"
    assert best.loc["det", "naive_accuracy"] == 0.875


def test_p_is_corrected_over_the_rows_that_are_shown() -> None:
    best = best_heads(FRAME).set_index("relation")
    assert best["p_adjusted"].dropna().eq(0.02).all()
    assert best["p_chosen"].dropna().eq(0.02).all(), "two rows were tested with 0.01"
    assert best.loc["nsubj", "p_chosen"] != best.loc["nsubj", "p_chosen"], "it was not judged"
    assert not_shown(best_heads(FRAME)) == ""
    weak = best_heads(FRAME.assign(p=0.2))
    assert not_shown(weak).startswith("Not significant: det +20.0 points (about ")
    assert not_shown(weak).endswith("no lead: all.")


def test_order_support_and_what_is_left_out() -> None:
    best = best_heads(FRAME)
    assert best["relation"].tolist() == ["all", "nsubj", "det"]
    assert "control" not in best  # no twin was measured
    twin = FRAME.assign(control=0.4)
    assert best_heads(twin).set_index("relation").loc["det", "control"] == 0.4
    assert "rare" in set(best_heads(FRAME, support=50)["relation"])
    assert "punct" in set(best_heads(FRAME, without=())["relation"])


def test_the_best_of_any_direction_or_of_those_asked_for() -> None:
    more = [row(split, 5, 0.99, direction="head<-dep") for split in ("select", "report", "all")]
    frame = pd.concat([FRAME, pd.DataFrame(more)], ignore_index=True)
    assert best_heads(frame).set_index("relation").loc["det", "direction"] == "head<-dep"
    only = best_heads(frame, directions=["dep->head"]).set_index("relation")
    assert only.loc["det", "head"] == "enc.2.0"


def test_a_direction_with_few_arcs_is_no_rival() -> None:
    few = [row(split, 5, 0.99, direction="head->dep", n=60) for split in ("select", "all")]
    frame = pd.concat([FRAME, pd.DataFrame(few)], ignore_index=True)
    assert best_heads(frame).set_index("relation").loc["det", "head"] == "enc.2.0"
    assert best_heads(frame, support=50).set_index("relation").loc["det", "naive_head"] == "enc.2.5"


def test_stacks_stand_one_after_another() -> None:
    both = pd.concat([FRAME.assign(stack="dec"), FRAME], ignore_index=True)
    assert best_heads(both)["stack"].tolist() == ["enc"] * 3 + ["dec"] * 3


def test_nothing_with_enough_arcs() -> None:
    with pytest.raises(
        InputError, match="No relation has 10000 arcs, the most that one has are 900"
    ):
        best_heads(FRAME, support=10_000)
    with pytest.raises(InputError, match="the most that one has are 0; give a larger treebank"):
        best_heads(FRAME[:0])
