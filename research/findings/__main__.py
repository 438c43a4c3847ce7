"""`python -m research.findings [--out FILE]`: docs/results/findings.md, from the JSON of research/results."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from headcount.errors import InputError
from research import DOCS
from research.settings import told

from .papers import FINDINGS
from .rule import DRAWS, SEED, Finding, overall, place

RULE = f"""\
*Written by `python -m research.findings` from the JSON files of `research/results`; do not edit it by hand.*

**How a row is judged.** Every finding has a bound: the smallest effect that would still bear it out, chosen from what the paper
says (not from our data). It **holds** where our whole 95% interval lies on the finding's side of the bound, **fails** where all of it lies on
the other side, and **cannot tell** otherwise: the data lack the power, no interval was kept, or nothing was measured. Significance decides nothing,
and "not significant" is not "costs nothing":

- Where a paper says that heads or layers cost nothing, the bound names a margin. Those that surely cost less (their whole interval lies below the
  margin) are the low end of the share, those that do not surely cost more the high end; it holds where the surely harmless ones meet the bound, and
  fails where the surely costly ones put it out of reach.
- Counts over all heads, layers or functions of a model have no interval and are compared as they are. No other figure without an interval is judged.
- An interval over resampled heads ({DRAWS:,} draws, seed {SEED}) says how much the figure hangs on single heads, not on the texts.

Where models differ, each says its own. None of our models is the paper's own, so "fails" means: not on these models, with these data.
"""


def page() -> tuple[str, str]:
    """The page, and its verdicts counted."""
    counts: Counter[str] = Counter()
    lines = ["# The papers' findings on one page", "", RULE]
    for paper in dict.fromkeys(one.paper for one in FINDINGS):
        lines += [f"## {paper}", "", "| # | finding | published | bound | ours | verdict | from |"]
        lines += ["|--:|---|---|---|---|---|---|"]
        for number, one in enumerate(FINDINGS, 1):
            if one.paper == paper:
                row, verdict = _row(number, one)
                lines.append(row)
                counts[verdict.split(":")[0]] += 1
        lines.append("")
    said = ", ".join(f"{n} {word}" for word, n in counts.most_common())
    lines.insert(3, f"**{len(FINDINGS)} findings: {said}.**\n")
    return "\n".join(lines), said


def _row(number: int, one: Finding) -> tuple[str, str]:
    judged = one.judged()
    verdict = overall([word for _, word in judged])
    ours = "<br>".join(str(figure) for figure, _ in judged) or "not measured"
    sign = "" if one.bound != one.bound else f"{'≤' if one.at_most else '≥'} {one.bound:g}"
    if one.margin:
        sign += one.margin if one.margin.startswith("%") else f" {one.margin}"
    if one.note:
        ours += f"<br>{one.note}"
    files = ", ".join(_file(name) for name in one.source.split())
    where = "; ".join(filter(None, [one.shown, files, f"`{one.command}`" if one.command else ""]))
    cells = [str(number), one.claim, one.published, sign, ours, f"**{verdict}**", where]
    return "| " + " | ".join(cells) + " |", verdict


def _file(name: str) -> str:
    """A link to a result; the name of what lies elsewhere."""
    if "/results/" in name:
        return f"`{name}{'/' if place(name).is_dir() else '.json'}`"
    return f"[{name}.json](../../research/results/{name}.json)"


def main(arguments: list[str] | None = None) -> int:
    """Write the page; a mistake is told in a sentence."""
    parser = argparse.ArgumentParser(prog="research.findings", description=__doc__)
    parser.add_argument("--out", type=Path, default=DOCS / "findings.md", help="the page")
    given, unknown = parser.parse_known_args(arguments)
    return told(lambda: _write(given.out, unknown))


def _write(out: Path, unknown: list[str]) -> None:
    if unknown:
        raise InputError(f"There is no '{unknown[0]}' here; only --out FILE can be given.")
    if not out.parent.is_dir():
        raise InputError(f"{out.parent} is no folder; give --out a file in one that is there.")
    text, said = page()
    out.write_text(text, encoding="utf8")
    print(said)


if __name__ == "__main__":
    raise SystemExit(main())
