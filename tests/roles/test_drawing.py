"""Verdicts in a terminal: at a glance, and nothing taken for markup."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from headcount.records.heads import Head
from headcount.survey.roles.role import RolesText, Verdict

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
    assert told.startswith("minilm: 1 of 72 heads has a role that we can name\n")
    assert "rare · points to the rarest token · 1 head\n" in told
    assert "  enc.0.1  rare 0.70, random twin 0.30" in told
    assert "with random weights" in told
    assert "No head: positional." in told


def test_without_a_twin_none_is_spoken_of() -> None:
    assert "random" not in drawn(RolesText([RARE], 72))


def test_what_was_not_asked_is_told() -> None:
    told = drawn(RolesText([], 72, "m", unjudged={"coreference": "--coref", "sink": ""}))
    assert "none of 72 heads has a role" in told
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
