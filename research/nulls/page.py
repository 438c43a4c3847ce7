"""The table of the page: verdicts that survive each rung."""

from __future__ import annotations

import json
from typing import Any

from headcount import stats
from headcount.surveys.roles import KINDS
from research import RESULTS

FILE, FALSE = "nulls.json", "false-verdicts.json"


def ladder_table(results: Any = RESULTS) -> str:
    """A line for each model and treebank: verdicts, and how many clear each rung."""
    file = results / FILE
    surveys = json.loads(file.read_text(encoding="utf8"))["surveys"] if file.exists() else {}
    lines = [
        "| model, treebank | beyond the offset | beyond part of speech | above it at all, without "
        "the margin | beyond the logistic choice | beyond a random model as sharp |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, one in surveys.items():
        counts = one["surviving"]
        cells = [counts["1"], counts["2"], one["above_zero"], counts["3"], counts["4"]]
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def false_table(results: Any = RESULTS) -> str:
    """A line for each case without anything to find: surveys that found something all the same."""
    file = results / FALSE
    cases = json.loads(file.read_text(encoding="utf8"))["cases"] if file.exists() else {}
    lines = [
        "| surveys of | surveys | with a job | at most (95%) | with a place | with an observation |"
    ]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for case, rows in cases.items():
        found = dict.fromkeys(("job", "place", "observation"), 0)
        for told in rows.values():
            for says in {KINDS[one.partition(":")[0]].says for one in told}:
                found[says] += 1
        most = stats.wilson_interval(found["job"], len(rows)).high
        cells = [len(rows), found["job"], f"{most:.0%}", found["place"], found["observation"]]
        lines.append(f"| {case} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)
