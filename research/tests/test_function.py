"""Do roles tell what matters: the command takes a run, or makes one of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import headcount as hc
from research import RESULTS
from research.verdicts import function


def saved(run: Path) -> None:
    """A table in which the first head of each layer has a role and matters most."""
    heads = [hc.Head("enc", layer, index) for layer in range(4) for index in range(6)]
    roles = pd.DataFrame({"stack": "enc", "layer": range(4), "head": 0, "role": "rare"})
    score = [7.0 if head.index == 0 else float(head.index) for head in heads]
    column = hc.Column("gradient", group="How much it matters", direction="higher")
    figures = dict.fromkeys(("value", "low", "high", "baseline", "control", "p", "p_adjusted"), 0.0)
    roles = roles.assign(rests=False, label="two rarest tokens", evidence="", n=9, **figures)
    details = {"roles": roles}
    hc.HeadTable.of(heads, {"gradient": score}, [column], details=details).save(run)


@pytest.mark.parametrize("own", [True, False])
def test_a_run_is_taken_or_made(
    own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, Any]] = []

    def story(**given: Any) -> None:
        asked.append(given)
        saved(given["run"])

    monkeypatch.setattr(hc, "story", story)
    words = ["--work", str(tmp_path / "work"), "--limit", "12"]
    if not own:
        saved(tmp_path / "there")
        words = ["--run", str(tmp_path / "there")]
    out = tmp_path / "function.json"
    monkeypatch.setattr(sys, "argv", ["function", *words, "--out", str(out)])
    function.main()
    assert [one["measuring"].limit for one in asked] == ([12] if own else [])
    told = json.loads(out.read_text())
    assert told["command"] == "python -m research.verdicts.function"
    [row] = [row for row in told["rows"] if row["role"] == "any function"]
    assert (row["score"], row["delta"], row["answer"]) == ("gradient", 1.0, "more")
    assert "4 heads that do a nameable job" in capsys.readouterr().out


def test_the_decision_says_what_the_json_says() -> None:
    rows = json.loads((RESULTS / "function.json").read_text(encoding="utf8"))["rows"]
    found = {(row["role"], row["score"]): row["answer"] for row in rows}
    assert found["any function", "ablation"] == "more"
    assert found["any rest", "gradient"] == found["any rest", "ablation"] == "less"
    assert found["any rest", "removal_step"] == "less"
    assert (
        found["any function", "contribution"] == found["any rest", "contribution"] == "cannot tell"
    )
