"""The page of findings: its rule, and that it is what its files say."""

from __future__ import annotations

import math

import pytest

from experiments.findings.papers import FINDINGS
from experiments.findings.rule import RESULTS, Finding, Ours, overall


@pytest.mark.parametrize(
    ("value", "low", "high", "at_most", "verdict"),
    [
        (0.5, 0.4, 0.6, False, "holds"),
        (0.35, 0.2, 0.5, False, "cannot tell"),
        (0.1, 0.0, 0.2, False, "fails"),
        (0.1, 0.0, 0.2, True, "holds"),
        (0.5, math.nan, math.nan, False, "holds"),
        (math.nan, math.nan, math.nan, False, "cannot tell"),
    ],
)
def test_the_whole_interval_decides(
    value: float, low: float, high: float, at_most: bool, verdict: str
) -> None:
    claim = Finding("", "", "", None, bound=0.3, at_most=at_most)
    assert claim.verdict(Ours("m", value, low, high)) == verdict


def test_models_that_differ_say_so() -> None:
    assert overall(["holds", "holds"]) == "holds"
    assert overall(["holds", "fails"]) == "mixed: holds, fails"
    assert overall([]) == "cannot tell"


def test_every_finding_can_be_read_and_names_its_files() -> None:
    assert len(FINDINGS) >= 52
    for one in FINDINGS:
        judged = one.judged()
        assert judged or one.note, one.claim
        for name in one.source.split():
            assert (RESULTS / f"{name}.json").is_file(), name


def test_the_page_is_the_one_that_the_command_writes(capsys: pytest.CaptureFixture[str]) -> None:
    from experiments.findings.__main__ import main

    before = (RESULTS / "findings.md").read_text(encoding="utf8")
    main()
    assert (RESULTS / "findings.md").read_text(encoding="utf8") == before
    assert "holds" in capsys.readouterr().out
