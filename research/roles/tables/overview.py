"""What holds where, and what was surveyed."""

from __future__ import annotations

from typing import Any

from ..findings import findings
from .markdown import NONE, Surveys, table

__all__ = ["sizes", "verdict_table"]


def verdict_table(surveys: Surveys) -> str:
    """Finding by survey: holds or fails."""
    found = findings(surveys)
    rows = [
        [finding, *(_where(answers, held) for held in (True, False, None))]
        for finding, answers in found.items()
    ]
    return table(["finding", "holds on", "fails on", "too little to tell"], rows)


def _where(answers: dict[str, Any], held: bool | None) -> str:
    return ", ".join(name for name, one in answers.items() if one["holds"] is held) or NONE


def sizes(surveys: Surveys) -> str:
    """What was surveyed."""
    rows = []
    for name, one in surveys.items():
        for corpus, about in one["provenance"]["corpora"].items():
            counts = about["counts"]
            size = [f"{counts['sentences']:,}", f"{counts['words']:,}"]
            twin = "yes" if one["plan"].get("control") else "no"
            rows.append([name, one["plan"]["model"], corpus, *size, twin])
    return table(["survey", "model", "corpus", "texts", "words", "twin"], rows)
