"""What holds where, and what was surveyed."""

from __future__ import annotations

from ..findings import findings
from .markdown import NONE, Surveys, table

__all__ = ["sizes", "verdict_table"]


def verdict_table(surveys: Surveys) -> str:
    """Finding by survey: holds or fails."""
    found = findings(surveys)
    rows = []
    for finding, answers in found.items():
        held = [name for name, answer in answers.items() if answer["holds"]]
        failed = [name for name, answer in answers.items() if not answer["holds"]]
        rows.append([finding, ", ".join(held) or NONE, ", ".join(failed) or NONE])
    return table(["finding", "holds on", "fails on"], rows)


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
