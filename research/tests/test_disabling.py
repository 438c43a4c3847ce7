"""Disabling, from sweep to page, on a tiny classifier."""

from __future__ import annotations

import json
import tomllib

import pytest
from tiny_subjects import classifier

import headcount as hc
from headcount.importance.sweeps.sweeping import sweep
from headcount.records.files import to_strict
from research.disabling.__main__ import HERE
from research.disabling.draw import draw
from research.disabling.findings import findings
from research.disabling.measure import interventions
from research.disabling.page import table

WORDS = ["the cat sat on the mat", "a dog ran", "rain fell all day", "it was late and the dog ran"]


@pytest.mark.parametrize("metric", ["accuracy", "matthews"])
def test_findings_and_picture(metric: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    config = tomllib.loads((HERE / "config.toml").read_text(encoding="utf8"))
    subject = classifier()
    examples = [(text, place % 2) for place, text in enumerate(WORDS * 5)]
    task = hc.tasks.classification(examples, metric=metric)
    many = [one for mode in config["modes"] for one in interventions(subject, mode)]
    told = findings(sweep(subject, task, many, metric="task"), config)
    heads = told["head uniform"]
    assert len(heads["gains"]) == len(subject.heads)
    assert len(told["layer zero"]["gains"]) == 2
    assert len(heads["best of halves"]) == config["splits"]
    assert heads["best on all of dev"]["gain"] == max(heads["gains"].values())
    if metric == "accuracy":
        assert heads["too small"]  # ten examples cannot show 1.2 points
    result = {"config": config, "tasks": {"toy": told}}
    (tmp_path / "together-disabling.json").write_text(json.dumps(to_strict(result)))
    draw(tmp_path, tmp_path)
    assert (tmp_path / "together-disabling.svg").stat().st_size > 1000
    assert table(result).count("\n") == 1 + 4
