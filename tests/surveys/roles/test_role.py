"""Verdicts: their words, their frame, and the closed list of roles."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest
from rich.console import Console
from trial_tables import trial_table

from headcount.errors import UsageError
from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.rooms.resting.sink import SourceEnd
from headcount.rooms.trials.recall import Duplicate, Induction, Previous
from headcount.surveys.roles.role import (
    COLUMNS,
    KINDS,
    TRIALS,
    Role,
    RolesText,
    Verdict,
    best_of,
    verdict_frame,
    verdicts_of,
    with_roles,
)

VERDICT = Verdict(
    Head("enc", 1, 2), "positional", "offset -1", 0.95, 0.94, 0.96, n=100, baseline=0.2,
    p=0.001, p_adjusted=0.01, evidence="0.95 of tokens point to offset -1",
)  # fmt: skip


def test_a_role_that_is_not_on_the_list_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no role 'poetic'; there are positional, .*'other'"):
        replace(VERDICT, role="poetic")


def test_the_twin_is_told_only_where_one_was_asked() -> None:
    assert VERDICT.in_words == "0.95 of tokens point to offset -1"
    assert VERDICT.beside(0.125).in_words.endswith(", random twin 0.12")


def test_verdicts_go_to_a_frame_and_back() -> None:
    verdicts = [VERDICT, replace(VERDICT, head=Head("cross", 0, 0), role="rare", control=0.3)]
    frame = verdict_frame(verdicts)
    assert tuple(frame.columns) == (*COLUMNS, "rests")
    again = verdicts_of(frame)
    assert again[1] == verdicts[1]
    assert math.isnan(again[0].control)
    assert again[0].beside(0.5) == VERDICT.beside(0.5)


def test_no_verdicts_are_a_frame_with_columns() -> None:
    frame = verdict_frame([])
    assert tuple(frame.columns) == (*COLUMNS, "rests")
    assert verdicts_of(frame) == []
    assert frame["value"].dtype == "float64"


def test_the_best_of_a_stack_knows_its_stack() -> None:
    heads = [Head("enc", 0, 0), Head("cross", 0, 0)]
    table = HeadTable.of(heads, {"rare": [0.2, 0.9]})
    assert best_of(table, "rare", "enc") == 0.2
    assert math.isnan(best_of(table, "rare", "dec"))
    assert math.isnan(best_of(table, "common", "enc"))


def test_the_list_is_closed_by_other() -> None:
    assert list(KINDS)[-1] == "other"


# --- Verdicts in a terminal ---------------------------------------------------------------------


RARE = Verdict(Head("enc", 0, 1), "rare", "two rarest tokens", 0.7, evidence="rare 0.70")


def drawn(text: RolesText, width: int = 90) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(text)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def syntactic(label: str, head: int) -> Verdict:
    found = replace(RARE, role="syntactic", label=label, head=Head("enc", 2, head))
    return replace(found, evidence=f"{label} 0.80")


def test_at_a_glance() -> None:
    told = drawn(RolesText([RARE.beside(0.3)], 72, "minilm", ["rare", "positional"]))
    assert told.startswith("minilm: 1 of 72 heads does a nameable job\n")
    assert "rare · points to the rarest token · 1 head\n" in told
    assert "  enc.0.1  rare 0.70, random twin 0.30" in told
    assert "with random weights" in told
    assert "No head: positional." in told


def test_a_place_is_named_and_no_reason_for_it() -> None:
    """Heads of which only a place is known are counted by what is seen."""
    sinks = [replace(RARE, role="sink", head=Head("enc", 2, number)) for number in range(2)]
    assert RolesText([RARE, *sinks], 72).headline.endswith(
        "1 of 72 heads does a nameable job; 2 more look much at one place"
    )
    assert RolesText(sinks[:1], 72).headline == (
        "none of 72 heads does a nameable job; 1 looks much at one place"
    )


def test_without_a_twin_none_is_spoken_of() -> None:
    assert "random" not in drawn(RolesText([RARE], 72))


def test_what_was_not_asked_is_told() -> None:
    told = drawn(RolesText([], 72, "m", unjudged={"coreference": "--coref", "sink": ""}))
    assert "none of 72 heads does a nameable job" in told
    assert "Not asked: coreference (--coref)." in told
    assert "Not for this model: sink." in told


def test_a_role_that_another_rule_found_is_not_called_unasked() -> None:
    told = drawn(RolesText([RARE], 72, unjudged={"rare": "", "sink": ""}))
    assert "Not for this model: sink." in told


def test_the_clearest_of_each_relation_come_first() -> None:
    many = [syntactic("det", n) for n in range(5)] + [syntactic("obj", 7), syntactic("nsubj", 8)]
    told = drawn(RolesText(many, 72, most=3))
    assert [line.split()[1] for line in told.splitlines() if line.startswith("  enc")] == [
        "det", "obj", "nsubj",
    ]  # fmt: skip
    assert "... and 4 more" in told
    assert "7 heads" in told


def test_nothing_is_taken_for_markup() -> None:
    assert "[red]odd[/red] 0.80" in drawn(RolesText([syntactic("[red]odd[/red]", 1)], 72))


# --- What every role of a trial shares ----------------------------------------------------------


ROLES = {
    "induction": (Induction(), "induction", "dec"),
    "duplicate": (Duplicate(), "duplicate", "dec"),
    "previous": (Previous(), "previous_random", "dec"),
    "source-end": (SourceEnd(), "source_end", "cross"),
}


def figures(stack: str, least: float) -> dict[str, tuple[float, float, float]]:
    """Heads above the line, below it, and above it by chance."""
    return {
        f"{stack}.0.0": (least + 0.05, 0.02, 0.01),
        f"{stack}.0.1": (least - 0.01, 0.02, 0.001),
        f"{stack}.0.2": (least + 0.30, 0.02, 0.2),
        f"{stack}.0.3": (least + 0.20, 0.02, 0.001),
        f"{stack}.0.4": (least + 0.20, 0.02, float("nan")),
    }


@pytest.mark.parametrize("name", ROLES)
def test_only_what_reaches_the_line_and_is_no_chance_the_strongest_first(name: str) -> None:
    role, column, stack = ROLES[name]
    table = trial_table({column: figures(stack, role.least)})
    found = role.judge(table)
    assert [verdict.head for verdict in found] == [Head(stack, 0, 3), Head(stack, 0, 0)]
    assert {verdict.role for verdict in found} == {role.name} == {name}
    best = found[0]
    assert (best.value, best.baseline, best.n) == (role.least + 0.2, 0.02, 300)
    assert (best.p, best.p_adjusted) == (0.0001, 0.001)
    assert f"{best.value:.2f} [{best.low:.2f}, {best.high:.2f}], uniform attention 0.02" in str(
        best
    )


@pytest.mark.parametrize("name", ROLES)
def test_thresholds_are_fields(name: str) -> None:
    role, column, stack = ROLES[name]
    table = trial_table({column: figures(stack, role.least)})
    assert len(type(role)(least=0.0, level=1.0).judge(table)) == 4
    assert not type(role)(least=0.99).judge(table)


@pytest.mark.parametrize("name", ROLES)
def test_the_twin_s_best_head_of_the_same_stack(name: str) -> None:
    role, column, stack = ROLES[name]
    (first, *_) = role.judge(trial_table({column: figures(stack, role.least)}))
    twin = trial_table({column: {f"{stack}.0.0": (0.1, 0.1, 1.0), f"{stack}.0.1": (0.2, 0.1, 1.0)}})
    assert role.chance(twin, first) == 0.2


@pytest.mark.parametrize("name", ROLES)
def test_a_role_says_what_it_reads(name: str) -> None:
    role: Role = ROLES[name][0]
    assert {*role.reads} == {ROLES[name][1], TRIALS}


def test_what_a_head_does_stands_before_where_it_rests() -> None:
    head, other = Head("enc", 0, 0), Head("enc", 0, 1)
    found = [Verdict(head, role, "", 0.9) for role in ("sink", "syntactic", "positional")]
    table = HeadTable.of([head, other], {}, details={"roles": verdict_frame(found)})
    frame = with_roles(table).frame
    assert frame["role"].iloc[0] == "positional"
    assert frame["roles"].iloc[0] == "positional, syntactic, sink"
    assert frame["role"].isna().iloc[1]
    assert verdict_frame(found)["rests"].tolist() == [True, False, False]


def test_every_role_says_whether_it_rests() -> None:
    assert {name for name, kind in KINDS.items() if kind.says == "place"} == {
        "separator", "punctuation", "sink", "source-end",
    }  # fmt: skip
    assert {name for name, kind in KINDS.items() if kind.says == "observation"} == {"feature"}


def test_verdicts_come_back_from_a_table_for_one_head_or_all() -> None:
    table = HeadTable.of([RARE.head], {}, details={"roles": verdict_frame([RARE])})
    assert [str(one) for one in verdicts_of(table)] == [str(RARE)]
    assert len(verdicts_of(table, str(RARE.head))) == len(verdicts_of(table.details["roles"])) == 1
    assert verdicts_of(table, "enc.9.9") == []
    with pytest.raises(UsageError, match="No role was judged"):
        verdicts_of(HeadTable.of([RARE.head], {}))
