"""The title: the strongest finding that was measured, never more than that."""

from __future__ import annotations

from typing import Any

import pytest

from headcount.reports.parts.argument import headline, less_likely

EMPTY: dict[str, Any] = {
    "model": "mine", "count": 144, "compare": None, "jobs": [], "go": None, "columns": [],
    "roles": None, "examples": {"gradient": {"of": "each right word"}},
    "stacks": [{"id": "enc", "layers": 12, "heads": 12}],
}  # fmt: skip


def job(name: str, **more: Any) -> dict[str, Any]:
    row = {
        "set": name, "role": None, "that": f"with the role {name}", "heads": 4, "metric": "loss",
        "answer": "more", "added": 0.2, "lo": 0.17, "control": 0.05, "most": 0.07, "visible": 0.02,
        "alone": 0.1,
    }  # fmt: skip
    return row | more


TOGETHER = job("free alone", heads=100, added=2.73, lo=2.59, answer="not compared", alone=0.3)
GOES = {"by": [{"gone": 40, "within": "1% of loss"}]}


@pytest.mark.parametrize(
    ("found", "begins"),
    [
        ({"jobs": [job("alignment")]}, "Without the 4 heads of mine with the role alignment, each"),
        (
            {"jobs": [job("alignment"), TOGETHER]},
            "Alone, 100 of mine\u2019s 144 heads cost nothing",
        ),
        ({"jobs": [job("alignment", lo=0.06)]}, "The 144 attention heads of mine"),
        ({"jobs": [job("alignment", answer="cannot tell")]}, "The 144 attention heads of mine"),
        ({"go": GOES}, "40 of mine\u2019s 144 heads can be pruned within 1% of loss, untrained."),
        ({"go": {"by": [{"gone": 2, "within": "1%"}]}}, "The 144 attention heads of mine"),
        ({"go": GOES, "jobs": [TOGETHER]}, "Alone, 100 of"),
    ],
)
def test_the_strongest_finding_is_the_title(found: dict[str, Any], begins: str) -> None:
    assert headline(EMPTY | found).startswith(begins)


def test_one_head_that_carries_the_most() -> None:
    values, low = [0.5, 0.1, *[0.0] * 142], [0.4, 0.05, *[-0.01] * 142]
    column = {"id": "ablation", "values": values, "lo": low, "hi": values}
    said = headline(
        EMPTY
        | {
            "columns": [column],
            "examples": {"ablation": {"metric": "loss", "of": "the right class"}},
        }
    )
    assert said == (
        "One of mine\u2019s 144 heads, enc.0.0, carries the most: without it the right class "
        "becomes 39% less likely."
    )


def test_a_verdict_is_the_title_where_nothing_was_taken_away() -> None:
    verdict = {"role": "syntactic", "label": "det head->dep", "value": 0.94}
    roles = [[verdict], *[[] for _ in range(143)]]
    assert headline(EMPTY | {"roles": roles}) == (
        "Head enc.0.0 of mine points along det (determiner), from the head to its dependent, "
        "94% of the time."
    )


def test_a_squared_error_is_no_probability() -> None:
    said = headline(EMPTY | {"jobs": [TOGETHER], "examples": {"ablation": {"of": ""}}})
    assert said.endswith("Without all 100, loss rises by 2.7.")


def test_a_sure_finding_is_the_title_though_a_weak_one() -> None:
    found = {"go": {"by": [{"gone": 15, "within": "1 point of spearman"}]}}
    assert headline(EMPTY | found).startswith("15 of mine")


def test_a_head_that_looks_next_to_each_word() -> None:
    verdict = {"role": "positional", "label": "offset +1", "value": 0.93, "dir": 1}
    roles = [[verdict], *[[] for _ in range(143)]]
    said = headline(EMPTY | {"roles": roles})
    assert said == "Head enc.0.0 of mine looks 1 token after each word, 93% of the time."


def test_a_role_that_only_its_label_names_is_no_title() -> None:
    roles = [[{"role": "other", "label": "mine: odd", "value": 0.9}], *[[] for _ in range(143)]]
    assert headline(EMPTY | {"roles": roles}) == "The 144 attention heads of mine"


def test_added_loss_in_words() -> None:
    assert [less_likely(nats) for nats in (-0.1, 0.075, 0.75, 2.73)] == [
        "0% less likely",
        "7% less likely",
        "2.1 times less likely",
        "15 times less likely",
    ]
