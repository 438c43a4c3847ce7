"""`python -m research.findings [--out FILE]`: docs/results/findings.md, from the JSON of research/results."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

from headcount.errors import InputError
from research import DOCS
from research.settings import told

from .freeze import faults, freeze, record
from .papers import FINDINGS
from .rule import DRAWS, PAPERS, SEED, Finding, overall, place

RULE = f"""\
*Written by `python -m research.findings` from the JSON files of `research/results`; do not edit it by hand.*

**How a row is judged.** Every finding has a bound: the smallest effect that still bears it out. It follows from the paper's figure:
*half* of the published effect (of the smallest, where several are published), *stated* by the claim itself, *at most* the published figure with its own
rounding, or the *direction* alone (0) where no figure is printed. Where none of these can be had, the bound is *set* by us, with the reason.
The finding **holds** where our whole 95% interval lies on its side of the bound, **fails** where all of it lies on
the other side, and **cannot tell** otherwise: the data lack the power, no interval was kept, or nothing was measured. Significance decides nothing.

- Where a paper says that heads or layers cost nothing, the bound names a margin. The share's interval runs from those that cost less with their whole
  interval to those that do not cost more with theirs.
- Counts over all heads, layers or functions of a model have no interval and are compared as they are. No other figure without an interval is judged.
- An interval over resampled heads ({DRAWS:,} draws, seed {SEED}) says how much the figure hangs on single heads, not on the texts.
- Claims and bounds are frozen: `research/findings/frozen/*.toml` holds them, `record.json` the commit that wrote each bound and the hash of its data. A test
  refuses a bound that is newer than its data unless it is listed, with the reason, at the end of this page. The page began with figures at hand:
  a *set* bound is our choice of then, and to be read so.

Where models differ, each has its own verdict. None of our models is the paper's own, so "fails" means: not on these models, with these data.
"""


def page() -> tuple[str, str]:
    """The page, and its verdicts counted."""
    lines = ["# The papers' findings on one page", "", RULE]
    claims = [one for one in FINDINGS if one.of_the_paper]
    counts: Counter[str] = Counter()
    sections = [
        (title, [one for one in claims if one.id.startswith(f"{key}-")])
        for key, title in PAPERS.items()
    ]
    questions = [one for one in FINDINGS if not one.of_the_paper]
    for title, rows in [*sections, ("Questions of ours beside the papers'", questions)]:
        lines += [f"## {title}", "", "| id | finding | published | bound | ours | verdict | from |"]
        lines += ["|---|---|---|---|---|---|---|"]
        for one in rows:
            row, verdict = _row(one)
            lines.append(row)
            counts[verdict.split(":")[0]] += one.of_the_paper
        lines.append("")
    said = ", ".join(f"{n} {word}" for word, n in counts.most_common() if n)
    lines.insert(3, f"**{len(claims)} findings: {said}.** {_judgements()}\n")
    return "\n".join([*lines, *_changes()]) + "\n", said


def _judgements() -> str:
    """How often a verdict was given, and how often by chance it is wrong."""
    judged = [figure for one in FINDINGS for figure, word in one.judged() if word != "cannot tell"]
    counted = sum(figure.counted for figure in judged)
    measured = len(judged) - counted
    return (
        f"They rest on {len(judged)} judgements: {measured} by a 95% interval, {counted} by a count. An interval puts a true effect on the "
        f"wrong side of its bound in at most 2.5% of cases, so that at most {0.025 * measured:.1f} of the {measured} are expected to be wrong by chance."
    )


def _changes() -> list[str]:
    """The bounds that are newer than their data, by the reason."""
    rows = record()
    changed = {one.id: rows.get(one.id, {}).get("changed") for one in FINDINGS}
    lines = ["## Bounds newer than their data"]
    for reason in dict.fromkeys(filter(None, changed.values())):
        lines += ["", f"{reason[0].upper()}{reason[1:]}.", ""]
        lines += ["| id | bound before | bound now | verdict before | verdict now |"]
        lines += ["|---|--:|--:|---|---|"]
        for one in FINDINGS:
            if changed[one.id] == reason:
                then = replace(one, rule="stated", figure=one.bound_before)
                before = "none" if math.isnan(one.bound_before) else f"{one.bound_before:g}"
                cells = [one.id, before, f"{one.bound:g}", _overall(then), _overall(one)]
                lines.append("| " + " | ".join(cells) + " |")
    return lines


def _overall(one: Finding) -> str:
    return overall([word for _, word in one.judged()])


def _row(one: Finding) -> tuple[str, str]:
    judged = one.judged()
    verdict = _overall(one)
    ours = "<br>".join(str(figure) for figure, _ in judged) or "not measured"
    sign = "" if one.bound != one.bound else f"{'≤' if one.at_most else '≥'} {one.bound:g}"
    if one.margin:
        sign += one.margin if one.margin.startswith("%") else f" {one.margin}"
    if one.rule:
        sign += f" ({one.rule}{': ' + one.why if one.why else ''})"
    if one.note:
        ours += f"<br>{one.note}"
    files = ", ".join(_file(name) for name in one.data)
    where = "; ".join(filter(None, [one.shown, files, f"`{one.command}`" if one.command else ""]))
    cells = [one.id, one.claim, one.published, sign, ours, f"**{verdict}**", where]
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
    parser.add_argument(
        "--freeze", metavar="REASON", help="record bounds and data; why they changed"
    )
    given, unknown = parser.parse_known_args(arguments)
    if given.freeze is not None and not unknown:
        return told(lambda: print(f"{freeze(FINDINGS, given.freeze)} bounds newer than their data"))
    return told(lambda: _write(given.out, unknown))


def _write(out: Path, unknown: list[str]) -> None:
    if unknown:
        raise InputError(
            f"There is no '{unknown[0]}' here; only --out FILE or --freeze REASON can be given."
        )
    if not out.parent.is_dir():
        raise InputError(f"{out.parent} is no folder; give --out a file in one that is there.")
    if sentences := faults(FINDINGS):
        raise InputError(f"{sentences[0]}; record it with --freeze and the reason.")
    text, said = page()
    out.write_text(text, encoding="utf8")
    print(said)


if __name__ == "__main__":
    raise SystemExit(main())
