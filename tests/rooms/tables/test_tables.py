"""A run as one table of a page, and as sentences on one head."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from report_runs import THREE, made_curve, made_roles, made_run, made_table

from headcount.errors import UnknownHead, UsageError
from headcount.records import HeadTable
from headcount.rooms.tables import explain, paper_table


def whole() -> HeadTable:
    table = made_table(THREE)
    table.details = {"roles": made_roles(THREE), "curve": made_curve(THREE)}
    return table


def test_the_table_of_a_paper_has_roles_importance_and_removal() -> None:
    text = paper_table(whole(), most=5)
    titles, _, *rows = text.splitlines()
    assert titles == ("| head | role | value (chance) | ablation | gradient | pruned 0.5 BLEU |")
    assert len(rows) == 5
    assert all(row.split(" | ")[1].endswith(": offset -1") for row in rows), "jobs come first"
    assert "[" in rows[0]
    assert rows[0].rsplit(" | ", 1)[1] in ("yes |", "no |")
    assert max(map(len, text.splitlines())) <= 110, "fit for a page"


def test_three_formats_hold_the_same_cells() -> None:
    markdown, latex, typst = (
        paper_table(whole(), f, most=3) for f in ("markdown", "latex", "typst")
    )
    assert len(latex.splitlines()) == len(markdown.splitlines()) - 2 + 6
    assert latex.count(" & ") == 4 * 5
    assert typst.startswith("#table(columns: 6,\n  [head], [role], ")
    assert "<td>" in markdown._repr_html_()
    assert len(repr(markdown)) <= 2_000


def test_what_was_not_measured_has_no_column() -> None:
    assert paper_table(made_table(THREE)).splitlines()[0] == "| head | ablation | gradient |"
    with pytest.raises(UsageError, match="There are no roles and no importance in this run"):
        paper_table(made_table(THREE).without(["ablation", "gradient"]))
    with pytest.raises(UsageError, match="The format is 'word'; choose markdown, latex, typst"):
        paper_table(whole(), "word")


def test_a_head_in_words() -> None:
    told = repr(explain(whole(), "enc.0.0"))
    assert "Role: positional, job: offset -1 for 0.93 of tokens." in told
    assert "Importance: ablation " in told
    assert " loss, rank " in told
    assert "corrected p " in told
    assert "the heads that can be pruned. " in told
    assert "Role: none of the rules" in repr(explain(whole(), "enc.0.1"))


def test_explain_on_the_command_line(headcount: Callable, tmp_path: Path) -> None:
    made_run(tmp_path / "run", THREE)
    told = headcount("explain", "enc.0.0", tmp_path / "run")
    assert told.out.startswith("enc.0.0\n  Role: ")
    paper = headcount("explain", "8-11", tmp_path / "run")
    assert (paper.code, "enc.7.10" in paper.err) == (2, True)
    nowhere = headcount("explain", "enc.0.0", tmp_path / "no")
    assert (nowhere.code, "headcount report MODEL --run" in nowhere.err) == (2, True)
    with pytest.raises(UnknownHead):
        explain(made_table(THREE), "enc.9.9")
