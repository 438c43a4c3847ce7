"""The page of findings: its rule, and that it is what its files say."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from research import DOCS
from research.findings import freeze, readers
from research.findings.__main__ import main
from research.findings.freeze import faults
from research.findings.papers import FINDINGS
from research.findings.rule import (
    Cost,
    Finding,
    Ours,
    heads_within,
    over_heads,
    overall,
    place,
    share_within,
)

PAGE = DOCS / "findings.md"


@pytest.mark.parametrize(
    ("value", "low", "high", "at_most", "verdict"),
    [
        (0.5, 0.4, 0.6, False, "holds"),
        (0.35, 0.2, 0.5, False, "cannot tell"),
        (0.1, 0.0, 0.2, False, "fails"),
        (0.1, 0.0, 0.2, True, "holds"),
        (0.5, 0.4, 0.6, True, "fails"),
        (0.5, math.nan, math.nan, False, "cannot tell"),
        (0.1, math.nan, math.nan, False, "cannot tell"),
        (math.nan, math.nan, math.nan, False, "cannot tell"),
    ],
)
def test_the_whole_interval_decides(
    value: float, low: float, high: float, at_most: bool, verdict: str
) -> None:
    claim = Finding("", "", "", rule="stated", figure=0.3, at_most=at_most)
    assert claim.verdict(Ours("m", value, low, high)) == verdict


@pytest.mark.parametrize(("value", "verdict"), [(2, "holds"), (1, "holds"), (0, "fails")])
def test_a_count_over_all_heads_needs_no_interval(value: int, verdict: str) -> None:
    claim = Finding("", "", "", rule="stated", figure=1)
    assert claim.verdict(Ours("m", value, counted=True)) == verdict
    assert claim.verdict(Ours("m", value)) == "cannot tell"


HARMLESS, UNSURE, COSTLY = Cost(0.0, -0.5, 0.5), Cost(0.0, -3.0, 3.0), Cost(4.0, 2.0, 6.0)


@pytest.mark.parametrize(
    ("costs", "verdict"),
    [
        ([HARMLESS] * 8 + [UNSURE] * 2, "holds"),
        # Not one of these is significant, and yet none is surely harmless.
        ([UNSURE] * 10, "cannot tell"),
        ([HARMLESS] * 7 + [UNSURE] * 2 + [COSTLY], "cannot tell"),
        ([HARMLESS] * 7 + [COSTLY] * 3, "fails"),
        ([UNSURE] * 7 + [COSTLY] * 3, "fails"),
        # Significant, and surely too small to matter.
        ([Cost(0.3, 0.1, 0.5)] * 10, "holds"),
    ],
)
def test_a_share_is_judged_by_those_surely_below_and_surely_above_the_margin(
    costs: list[Cost], verdict: str
) -> None:
    claim = Finding("", "", "", rule="stated", figure=80)
    assert claim.verdict(share_within("m", costs, 1.0, "layers")) == verdict


def test_heads_go_until_the_margin_may_be_lost() -> None:
    path = [(12, HARMLESS), (24, UNSURE), (36, HARMLESS), (48, COSTLY), (60, HARMLESS)]
    assert heads_within(path, 1.0) == (36, 12, 47)
    assert heads_within([(12, COSTLY)], 1.0) == (0, 0, 11)
    assert heads_within([(12, HARMLESS), (24, UNSURE)], 1.0) == (24, 12, 24)


def test_resampled_heads_are_drawn_from_a_seed() -> None:
    values = [0.0, 0.1, 0.5, 0.9, 2.0]
    value, low, high = over_heads(values)
    assert (value, low, high) == over_heads(values)
    assert value == pytest.approx(0.7)
    assert low < value < high


def test_models_that_differ_say_so() -> None:
    assert overall(["holds", "holds"]) == "holds"
    assert overall(["holds", "fails"]) == "mixed: holds, fails"
    assert overall([]) == "cannot tell"


def test_every_finding_can_be_read_and_names_its_files() -> None:
    assert len(FINDINGS) >= 77
    for one in FINDINGS:
        judged = one.judged()
        assert judged or one.note, one.claim
        for name in one.data:
            assert place(name).exists(), name
        assert ".md" in one.shown or one.ours is None, f"{one.claim}: no page shows it"


def test_every_bound_follows_from_the_papers_figure_by_a_rule() -> None:
    for one in FINDINGS:
        assert one.rule in ("", "half", "stated", "at most", "direction", "set"), one.id
        assert one.rule != "set" or one.why, f"{one.id}: a bound of ours needs its reason"
        assert bool(one.rule) == (not math.isnan(one.bound)), one.id


def test_no_bound_and_no_data_differ_from_the_record() -> None:
    assert faults(FINDINGS) == []


def test_a_changed_bound_and_changed_data_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    first = FINDINGS[3]
    moved = replace(first, figure=first.figure + 1)
    assert f"{first.id} has the bound {moved.bound:g}" in faults([moved])[0]
    assert "other data" in faults([replace(first, data=("importance",))])[0]
    rows = freeze.record()
    rows[first.id] = {k: v for k, v in rows[first.id].items() if k != "changed"}
    monkeypatch.setattr(freeze, "record", lambda: rows)
    assert "newer than its data" in faults([first])[0]


def test_without_an_interval_only_counts_are_judged() -> None:
    for one in FINDINGS:
        for figure, verdict in one.judged():
            if math.isnan(figure.low) and verdict != "cannot tell":
                assert figure.counted, one.claim
                assert float(figure.value).is_integer(), one.claim


def test_positional_heads_of_other_stacks_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"positional": ["dec.3.0", "enc.0.1", "cross.1.1"]}
    row = {"role": "positional", "label": "offset 0"}
    made: dict[str, Any] = {
        "verdicts": {"counts": {"after": {"translator": {"named": named}}}},
        "roles/de-tatoeba": {"roles": [row | {"head": "dec.0.5"}]},
        "roles/ru-tatoeba": {"roles": [row | {"head": f"enc.0.{head}"} for head in (2, 2, 5)]},
    }
    monkeypatch.setattr(readers, "load", made.__getitem__)
    assert [one.value for one in readers.encoder_heads("positional")] == [1, 0, 2]


def test_the_row_of_positional_heads_counts_the_encoder_alone() -> None:
    [row] = [one for one in FINDINGS if one.claim.startswith("some encoder heads are positional")]
    assert row.ours is not None
    told = {figure.model: figure for figure in row.ours()}
    assert not any("dec." in figure.what for figure in told.values())
    whole = readers.roles("de-tatoeba")["roles"]
    heads = {one["head"] for one in whole if one["role"] == "positional"}
    assert told["translator, Tatoeba"].value == sum(head.startswith("enc.") for head in heads)


def test_the_page_is_the_one_that_the_command_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.md"
    assert main(["--out", str(out)]) == 0
    assert out.read_text(encoding="utf8") == PAGE.read_text(encoding="utf8")
    assert "holds" in capsys.readouterr().out


def test_the_page_counts_its_verdicts() -> None:
    text = PAGE.read_text(encoding="utf8")
    text = text.split("## Questions of ours")[0]
    rows = re.findall(r"^\| \w+-\d+ \|.*\*\*(holds|fails|mixed|cannot tell)[^*]*\*\*", text, re.M)
    told = re.search(r"^\*\*(\d+) findings: (.*)\.\*\* ", text, re.M)
    assert told is not None
    assert int(told[1]) == len(rows) == sum(one.of_the_paper for one in FINDINGS)
    assert told[2] == ", ".join(f"{n} {word}" for word, n in Counter(rows).most_common())


@pytest.mark.parametrize("words", [["now"], ["--into", "x"]])
def test_unknown_words_are_refused_in_a_sentence(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.md"
    assert main(["--out", str(out), *words]) != 0
    told = capsys.readouterr().err
    assert words[0] in told
    assert told.count("\n") == 1
    assert not out.exists()


def test_help_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = PAGE.stat().st_mtime_ns
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "--out" in capsys.readouterr().out
    assert PAGE.stat().st_mtime_ns == before
