"""Windows: texts as they are read, the order that is chosen, and the tables of the page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from research.window import page
from research.window.__main__ import CASES, _text, best, nearest, worths


def row(metric: str, cost: float, **more: Any) -> dict[str, Any]:
    return {"task": "t", "metric": metric, "n": 9, "whole": 0.9, "value": 0.9 - cost, "cost": cost,
            "low": None, "high": None, "bound": None, **more}  # fmt: skip


def test_a_document_is_read_as_people_write() -> None:
    sents = [["Who", "'s", "there", "?"], ["It", "(", "you", "know", ")", "rained", ",", "twice"]]
    assert _text({"sents": sents}) == "Who's there? It (you know) rained, twice"


def test_the_order_is_chosen_by_its_worst_task_in_units_of_what_may_be_lost() -> None:
    rows = {
        "path share 6": {"text": row("loss", 0.01), "needles": row("accuracy", 0.05)},
        "path and slope 6": {"text": row("loss", 0.04), "needles": row("accuracy", 0.01)},
    }
    assert best(rows) == "path and slope"


def test_orders_take_the_least_costly_first() -> None:
    units = [("a",), ("b", "c"), ("d",)]
    costs = {"text": {"path": [0.3, 0.1, 0.2], "slope": [0.1, 0.1, 0.3]}}
    found = worths(costs, [3.0, 2.0, 1.0], units)  # type: ignore[arg-type]
    assert nearest(found["text alone"], 2, units) == ["b", "c", "d"]  # type: ignore[arg-type]
    assert np.argsort(found["kvpress"]).tolist() == [2, 1, 0]
    assert {case.window for case in CASES.values()} <= {"4+44", "16+240", "16+112"}


def test_tables_say_value_cost_interval_and_bound() -> None:
    judged = {
        "path share 60": {
            "text": row("loss", 0.01, value=3.51, whole=3.5, low=0.0, high=0.02, bound=0.018),
            "needles, unseen": row("accuracy", 0.005),
        }
    }
    case: dict[str, Any] = {"groups": 90, "judged": judged, "order": "path share", "removed": {}}
    table = page.curves(case)
    assert "| 0 of 90 | the whole model | 3.500 | 90.0 |" in table
    assert (
        "| 60 | path share | 3.510 (+0.010 [+0.000, +0.020]; bound 0.018) | 89.5 (+0.5) |" in table
    )
    costs = {"examples": 3, "halves": [[1, 2, 3], [1, 3, 2]], "sum": 0.1, "whole": 3.0}
    told = page.truth({"groups": 3, "costs": {"text": costs | {"all restricted": 3.11}}})
    assert "| text | 3 | – | +0.100 | +0.110 | 0.50 |" in told
    half = {"prefill seconds": 1.0, "step milliseconds": 9.0, "cache megabytes": 4.0}
    made = page.generate({"generate": {"1024": {"whole": half, "half near": half}}})
    assert made.endswith("| 1,024 | 4.0 MB | 4.0 MB | 9.0 ms | 9.0 ms | 1.0 s | 1.0 s |")


@pytest.mark.parametrize("name", [*CASES])
def test_every_case_has_repeats_enough_to_be_tested(name: str) -> None:
    pages = CASES[name].judge[1]
    assert max(pages // 3, min(pages // 2, 6), 1) >= 6
